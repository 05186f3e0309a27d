// A consumer's product of weights and values in e4m3. The weights stay in the order in which its registers have them,
// and rows of ones below V^T make the tensor cores add them up.
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct Products : Promoted<Self, HEAD_DIM, CAUSAL> {
  using Base = Promoted<Self, HEAD_DIM, CAUSAL>;
  using Base::s, Base::p, Base::o, Base::t, Base::sum, Base::factor, Base::v, Base::shared, Base::weights_tile;

  // Packs the weights of keys FROM to TO in e4m3. In S a thread has two of each 8 columns, but as A four of each 16. So
  // p[n][j] takes two from 8 columns and two from the next 8, and V^T has its keys in that order.
  template <int FROM, int TO> __device__ void pack_keys() {
#pragma unroll
    for (int n = FROM / 32; n < TO / 32; n++)
      for (int j = 0; j < 4; j++) {
        int h = j % 2;  // the row
        const float *first = s + 16 * n + 8 * (j / 2) + 2 * h, *second = first + 4;  // 8 columns, and the next 8
        p[n][j] = pack_e4m3(first[0], first[1], second[0], second[1]);
      }
  }
  template <int> __device__ void pack_weights() {
    pack_keys<0, KEYS>();
    if (Self::WEIGHTS_IN_MEMORY) put_weights();
  }

  // With HEAD_DIM = 64 a thread has 160 registers, too few for S, T, O and P. So P waits in shared memory.
  static constexpr bool WEIGHTS_IN_MEMORY = HEAD_DIM == 64;
  __device__ void put_weights() {
    int thread = thread_index() % WARPGROUP, lane = thread % WARP;
    uint32_t to = shared_address(weights_tile()) + swizzled_bytes<KEYS>(thread / WARP * 16 + lane % 16, lane / 16);
#pragma unroll
    for (int n = 0; n < KEYS / 32; n++) stmatrix(to ^ 32 * n, p[n][0], p[n][1], p[n][2], p[n][3]);
    fence_async_proxy();
  }

  // Starts T = P V of this key tile alone. Below V^T stand ones: the last columns of T are sums of the weights.
  __device__ void output(int = 0) {
    uint64_t b = k_major_bytes<KEYS>(shared_address(shared.v[v.slot]));
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 32; n++) {
      if constexpr (Self::WEIGHTS_IN_MEMORY)
        wgmma_e4m3<HEAD_DIM + ONES>(t, columns_32(k_major_bytes<KEYS>(shared_address(weights_tile())), n),
                                    columns_32(b, n), n > 0);
      else
        wgmma_e4m3<HEAD_DIM + ONES>(t, p[n], columns_32(b, n), n > 0);
    }
    wgmma_commit();
  }

  // When T is complete: O += T, in fp32, and the same for the sums.
  __device__ void output_done() {
    Base::output_done();
    sum[0] += t[HEAD_DIM / 2];
    sum[1] += t[HEAD_DIM / 2 + 2];
  }

  __device__ void shrink_output() {
    Base::shrink_output();
    sum[0] *= factor[0];
    sum[1] *= factor[1];
  }

  // V^T's row order gives a thread four neighbouring columns of every 16: the even columns come first.
  __device__ void write_row(half *to, int lane, int h, float scale) {
    to += lane % 4 * 4;
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      const float *even = o + 8 * d + 2 * h, *odd = even + 4;
      *(uint2 *)(to + 16 * d) =
          make_uint2(pack(even[0] * scale, odd[0] * scale), pack(even[1] * scale, odd[1] * scale));
    }
  }
};
