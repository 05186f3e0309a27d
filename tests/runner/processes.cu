// A program of several processes: this one launches a kernel; a forked one ends, or uses CUDA, which no GPU allows; one
// that it starts only counts the devices.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void write(int *value) { *value = 7; }

static int code_of(pid_t process) {
  int status;
  EXPECT(waitpid(process, &status, 0) == process && WIFEXITED(status));
  return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
  int count, *value;
  if (argc > 1 && !strcmp(argv[1], "counts")) return cudaGetDeviceCount(&count) != cudaSuccess || count != 1;
  CHECK(cudaMallocManaged(&value, sizeof *value));
  write<<<1, 1>>>(value);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*value == 7);
  pid_t process = fork();
  if (!process) exit(argc > 1 ? cudaMalloc(&value, 64) : 5);
  EXPECT(code_of(process) == (argc > 1 ? cudaErrorInitializationError : 5));
  process = fork();
  if (!process) execl(argv[0], argv[0], "counts", NULL);
  EXPECT(code_of(process) == 0);
  printf("right\n");
  return 0;
}
