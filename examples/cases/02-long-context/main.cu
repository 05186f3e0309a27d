// A cache of so many pages, and a sequence that has its first, its middle and its last page: main PAGES
#include "kernel.cuh"
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  const int pages = argc > 1 ? atoi(argv[1]) : 16400, row = 64 * 128;  // 64 heads of 128 bytes: a page is 128 KiB
  const size_t page = (size_t)TOKENS * row;
  std::vector<int> chosen = {0, pages / 2, pages - 1};
  std::vector<int8_t> keys(chosen.size() * page), wanted(chosen.size() * page);
  for (size_t i = 0; i < wanted.size(); i++) wanted[i] = (int8_t)(i * 7 + i / page * 31);
  int8_t *cache, *device_keys;
  int *device_chosen;
  if (cudaMalloc(&cache, pages * page)) return printf("no memory\n"), 3;
  cudaMalloc(&device_keys, keys.size());
  cudaMalloc(&device_chosen, chosen.size() * sizeof(int));
  cudaMemcpy(device_chosen, chosen.data(), chosen.size() * sizeof(int), cudaMemcpyHostToDevice);
  for (size_t p = 0; p < chosen.size(); p++)
    cudaMemcpy(cache + chosen[p] * page, wanted.data() + p * page, page, cudaMemcpyHostToDevice);

  run_gather(cache, device_chosen, device_keys, (int)chosen.size(), row);
  cudaError_t error = cudaMemcpy(keys.data(), device_keys, keys.size(), cudaMemcpyDeviceToHost);
  if (error) return printf("%s\n", cudaGetErrorString(error)), 3;
  for (size_t i = 0; i < keys.size(); i++)
    if (keys[i] != wanted[i])
      return printf("wrong: byte %zu of page %d is %d, and should be %d\n", i % page, chosen[i / page], keys[i],
                    wanted[i]),
             3;
  printf("right\n");
  return 0;
}
