// Device code in a static library.
__device__ int from_the_library(int value) { return value + 1000; }
