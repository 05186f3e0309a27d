// The kernel that transposes V before the attention.
#pragma once

// V of [heads][seqlen][HEAD_DIM] becomes [heads][HEAD_DIM][pitch], pitch being seqlen rounded up to a multiple of
// TRANSPOSED_KEYS; keys past the end are zeros (0 times NaN would be NaN). KeyOrder says which key and which column
// goes where.
//
// Grid: pitch / TRANSPOSED_KEYS times heads; along y a grid has 65,535 blocks at most. Block: 256.
template <int HEAD_DIM> __device__ void transpose(const uint8_t *values, uint8_t *transposed, int seqlen, int pitch) {
  __shared__ uint8_t tile[TRANSPOSED_KEYS][HEAD_DIM + 4];  // 4 more, so that neighbouring keys lie in different banks
  int tiles = pitch / TRANSPOSED_KEYS, head = blockIdx.x / tiles, first = blockIdx.x % tiles * TRANSPOSED_KEYS;
  const uint8_t *from = values + ((int64_t)head * seqlen + first) * HEAD_DIM;
  for (int i = threadIdx.x * 4; i < TRANSPOSED_KEYS * HEAD_DIM; i += blockDim.x * 4)
    *(uint32_t *)&tile[i / HEAD_DIM][i % HEAD_DIM] = first + i / HEAD_DIM < seqlen ? *(const uint32_t *)(from + i) : 0;
  __syncthreads();
  for (int i = threadIdx.x * 4; i < TRANSPOSED_KEYS * HEAD_DIM; i += blockDim.x * 4) {
    int row = i / TRANSPOSED_KEYS, position = i % TRANSPOSED_KEYS;
    int column = KeyOrder::column(row), key = KeyOrder::first_key(position);
    uint32_t four = tile[key][column] | tile[key + 1][column] << 8 | tile[key + KeyOrder::HOP][column] << 16 |
                    (uint32_t)tile[key + KeyOrder::HOP + 1][column] << 24;
    *(uint32_t *)(transposed + ((int64_t)head * HEAD_DIM + row) * pitch + first + position) = four;
  }
}

extern "C" __global__ void transpose_values_64(const uint8_t *values, uint8_t *transposed, int seqlen, int pitch) {
  transpose<64>(values, transposed, seqlen, pitch);
}

extern "C" __global__ void transpose_values_128(const uint8_t *values, uint8_t *transposed, int seqlen, int pitch) {
  transpose<128>(values, transposed, seqlen, pitch);
}
