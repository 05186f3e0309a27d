// What the parts of the recorder use: the tensor cores' (record_tensor_cores.cu, record_matrices.cu), the scalar
// instructions' (record_scalars.cu), the video instructions' (record_video.cu), the carries' (record_carry.cu), the fused
// products' and sums' (record_contraction.cu) and the tensor copies' (record_tensors.cu).
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#define CHECK(call) check_cuda((call), #call, __FILE__, __LINE__)
// Ends the program unless the call went well.
void check_cuda(cudaError_t error, const char *what, const char *file, int line);

// Files: each ends the program with a line when it cannot.
FILE *open_file(const char *directory, const char *name, const char *mode);
void write_bytes(FILE *file, const void *data, size_t size);
void close_file(FILE *file);

// A copy on the GPU, which the caller frees.
template <typename T> static T *upload(const std::vector<T> &values) {
  T *device;
  CHECK(cudaMalloc(&device, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

// A kernel of some PTX, compiled by the driver; the caller unloads the library.
cudaKernel_t compile_kernel(const char *text, const char *kernel, cudaLibrary_t *library);

// The vectors go to the directory `golden`, what a model can be found with to `explore`.
void record_tensor_cores(const char *golden, const char *explore);
void record_matrices(const char *golden, const char *explore);
void record_scalars(const char *golden);
void record_video(const char *golden);
void record_carry(const char *golden);
void record_contraction(const char *golden);
void record_ulps(const char *explore);
void record_tensors(const char *golden);
