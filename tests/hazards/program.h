// What the programs of program.py need: buffers, tensor maps and a launch.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <vector>

enum Content { RAMP, ZERO, ONE, FRESH, FREED };

template <class T> T *make_buffer(int count, Content content) {
  std::vector<T> values;
  for (int i = 0; i < count; i++) values.push_back((T)(content == RAMP ? i : content == ONE));
  T *buffer;
  cudaMalloc((void **)&buffer, count * sizeof(T));
  if (content != FRESH) cudaMemcpy(buffer, values.data(), count * sizeof(T), cudaMemcpyHostToDevice);
  if (content == FREED) cudaFree(buffer);
  return buffer;
}

// A parameter of so many bytes: the floats 0, 1, 2, ...
template <int bytes> struct alignas(16) Bytes { float values[bytes / 4]; };
template <int bytes> Bytes<bytes> make_bytes() {
  Bytes<bytes> made;
  for (int i = 0; i < bytes / 4; i++) made.values[i] = (float)i;
  return made;
}

inline CUtensorMapDataType type_of(int *) { return CU_TENSOR_MAP_DATA_TYPE_INT32; }
inline CUtensorMapDataType type_of(float *) { return CU_TENSOR_MAP_DATA_TYPE_FLOAT32; }
inline CUtensorMapDataType type_of(double *) { return CU_TENSOR_MAP_DATA_TYPE_FLOAT64; }
inline CUtensorMapDataType type_of(__half *) { return CU_TENSOR_MAP_DATA_TYPE_FLOAT16; }
inline CUtensorMapDataType type_of(unsigned char *) { return CU_TENSOR_MAP_DATA_TYPE_UINT8; }

// A map of packed rows, its sizes in elements, innermost first. All of it is 0 if the driver refuses it.
template <class T>
CUtensorMap make_map(T *buffer, std::vector<cuuint64_t> size, std::vector<cuuint32_t> box, CUtensorMapSwizzle swizzle) {
  CUtensorMap map = {};
  cuuint64_t strides[5] = {};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  for (size_t d = 0; d + 1 < size.size(); d++) strides[d] = (d ? strides[d - 1] : sizeof(T)) * size[d];
  if (cuTensorMapEncodeTiled(&map, type_of(buffer), (cuuint32_t)size.size(), buffer, size.data(), strides, box.data(),
                             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    fprintf(stderr, "the driver refuses the tensor map\n");
  return map;
}

// 0 if the kernel ran to its end, otherwise 1.
inline int launch(const void *kernel, dim3 grid, dim3 block, dim3 cluster, size_t shared, void **arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = cluster.x * cluster.y * cluster.z > 1;
  if (shared > 48 << 10) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  cudaError_t error = cudaLaunchKernelExC(&config, kernel, arguments);
  if (!error) error = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}

inline int usage() {
  fprintf(stderr, "usage: PROGRAM KERNEL\n");
  return 2;
}
