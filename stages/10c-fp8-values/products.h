// A consumer's product of weights and values in e4m3. The weights go through shared memory.
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct Products : Promoted<Self, HEAD_DIM, CAUSAL> {
  using Base = Promoted<Self, HEAD_DIM, CAUSAL>;
  using Base::s, Base::o, Base::t, Base::sum, Base::factor, Base::v, Base::shared, Base::weights_tile;

  // Rounds the weights to e4m3, adds up what they have become, and writes them into a tile of 64 rows of KEYS bytes. In
  // each of its two rows a thread has two neighbouring keys of every 8.
  template <int> __device__ void pack_weights() {
    int thread = thread_index() % WARPGROUP, lane = thread % WARP, row = thread / WARP * 16 + lane / 4;
    uint8_t *tile = weights_tile() + lane % 4 * 2;
    sum[0] *= factor[0];
    sum[1] *= factor[1];
#pragma unroll
    for (int g = 0; g < KEYS / 8; g++) {
      const float *x = s + 4 * g;
      uint32_t four = pack_e4m3(x[0], x[1], x[2], x[3]);
      *(uint16_t *)(tile + swizzled_bytes<KEYS>(row, g / 2) + g % 2 * 8) = four;
      *(uint16_t *)(tile + swizzled_bytes<KEYS>(row + 8, g / 2) + g % 2 * 8) = four >> 16;
      float rounded[4];
      unpack_e4m3(rounded, four);
      sum[0] += rounded[0] + rounded[1];
      sum[1] += rounded[2] + rounded[3];
    }
    fence_async_proxy();
  }

  // Starts T = P V of this key tile alone. An FP8 tensor core keeps 13 bits of a sum, too few for a long one.
  __device__ void output(int = 0) {
    uint64_t a = k_major_bytes<KEYS>(shared_address(weights_tile()));
    uint64_t b = k_major_bytes<KEYS>(shared_address(shared.v[v.slot]));
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 32; n++) wgmma_e4m3<HEAD_DIM>(t, columns_32(a, n), columns_32(b, n), n > 0);
    wgmma_commit();
  }

  // The four threads of a row have each added up their own weights.
  __device__ void store(const float (&o_sum)[2], int slot, int head, int row) {
    sum[0] = quad_sum(sum[0]);
    sum[1] = quad_sum(sum[1]);
    Base::store(o_sum, slot, head, row);
  }

  // A thread has two neighbouring columns of every 8.
  __device__ void write_row(half *to, int lane, int h, float scale) {
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 8; d++) {
      const float *x = o + 4 * d + 2 * h;
      *(uint32_t *)(to + 8 * d + lane % 4 * 2) = pack(x[0] * scale, x[1] * scale);
    }
  }
};
