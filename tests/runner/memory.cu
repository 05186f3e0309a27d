// Memory of every kind: the host and kernels reach managed, pinned and registered memory by one pointer.
#include <cstring>

#include "check.h"

__constant__ int factors[4];
__device__ int total = 5;
__managed__ int counter = 7;

__global__ void scale(int *values, int n) {
  int i = threadIdx.x;
  if (i < n) values[i] *= factors[i % 4];
  if (i == 0) atomicAdd(&total, n);
  if (i == 0) counter += 1;
}

__global__ void transpose(const int *in, size_t in_pitch, int *out, size_t out_pitch, int rows, int columns) {
  int row = threadIdx.y, column = threadIdx.x;
  if (row >= rows || column >= columns) return;
  int value = *(const int *)((const char *)in + row * in_pitch + column * sizeof(int));
  *(int *)((char *)out + column * out_pitch + row * sizeof(int)) = value;
}

static void scale_all(int *values, int n) {
  for (int i = 0; i < n; i++) values[i] = i;
  scale<<<1, 32>>>(values, n);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++) EXPECT(values[i] == i * (i % 4 + 1));
}

static cudaMemoryType type_of(const void *pointer) {
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, pointer));
  return attributes.type;
}

static void symbols() {
  const int values[4] = {1, 2, 3, 4};
  int read = 0;
  int *address;
  size_t size;
  CHECK(cudaMemcpyToSymbol(factors, values, sizeof values));
  CHECK(cudaMemcpyToSymbol(factors, &values[1], sizeof(int), sizeof(int)));
  CHECK(cudaMemcpyFromSymbol(&read, total, sizeof read));
  EXPECT(read == 5);
  CHECK(cudaGetSymbolAddress((void **)&address, total));
  CHECK(cudaGetSymbolSize(&size, factors));
  EXPECT(size == sizeof values && type_of(address) == cudaMemoryTypeDevice);
  EXPECT(counter == 7);
  counter = 10;
  EXPECT(cudaMemcpyToSymbol(factors, values, 5 * sizeof(int)) == cudaErrorInvalidValue);
  cudaGetLastError();
}

static void pitched() {
  const int rows = 3, columns = 5;
  int in[rows][columns], out[columns][rows], *a, *b;
  size_t a_pitch, b_pitch;
  CHECK(cudaMallocPitch(&a, &a_pitch, columns * sizeof(int), rows));
  CHECK(cudaMallocPitch(&b, &b_pitch, rows * sizeof(int), columns));
  EXPECT(a_pitch >= columns * sizeof(int) && a_pitch % 32 == 0);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) in[r][c] = 10 * r + c;
  CHECK(cudaMemcpy2D(a, a_pitch, in, sizeof in[0], columns * sizeof(int), rows, cudaMemcpyHostToDevice));
  CHECK(cudaMemset2D(b, b_pitch, 0xff, rows * sizeof(int), columns));
  transpose<<<1, dim3(8, 4)>>>(a, a_pitch, b, b_pitch, rows, columns);
  CHECK(cudaMemcpy2D(out, sizeof out[0], b, b_pitch, rows * sizeof(int), columns, cudaMemcpyDeviceToHost));
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) EXPECT(out[c][r] == 10 * r + c);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

int main() {
  int *managed, *pinned, *device, *mapped, ordinary[20];
  symbols();
  CHECK(cudaMallocManaged(&managed, 20 * sizeof(int)));
  CHECK(cudaHostAlloc(&pinned, 20 * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostRegister(ordinary, sizeof ordinary, cudaHostRegisterDefault));
  CHECK(cudaHostGetDevicePointer(&mapped, ordinary, 0));
  EXPECT(type_of(managed) == cudaMemoryTypeManaged && type_of(pinned) == cudaMemoryTypeHost);
  EXPECT(type_of(&managed) == cudaMemoryTypeUnregistered && mapped == ordinary);
  scale_all(managed, 20);
  scale_all(pinned, 20);
  scale_all(mapped, 20);
  CHECK(cudaHostUnregister(ordinary));
  EXPECT(counter == 13);

  CHECK(cudaMalloc(&device, 20 * sizeof(int)));
  CHECK(cudaMemcpy(device, managed, 20 * sizeof(int), cudaMemcpyDefault));
  CHECK(cudaMemset(managed, 0, 20 * sizeof(int)));
  CHECK(cudaMemcpy(pinned, device, 20 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 20; i++) EXPECT(managed[i] == 0 && pinned[i] == i * (i % 4 + 1));
  CHECK(cudaMemPrefetchAsync(managed, 80, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, 0));
  // Past the end of an allocation, and twice free: errors, and no undefined behaviour.
  EXPECT(cudaMemcpy(device, pinned, 21 * sizeof(int), cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  EXPECT(cudaMemcpy(ordinary, pinned, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaFree(device));
  EXPECT(cudaFree(device) == cudaErrorInvalidValue);
  cudaGetLastError();
  size_t left, all;
  CHECK(cudaMemGetInfo(&left, &all));
  EXPECT(all > 79ull << 30 && left == all - 80);
  CHECK(cudaFree(managed));
  CHECK(cudaFreeHost(pinned));
  pitched();
  printf("right\n");
}
