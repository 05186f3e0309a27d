// A consumer's products in e4m3, and how its output leaves.
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct Products : ConsumerBase<Self, HEAD_DIM, CAUSAL> {
  using Base = ConsumerBase<Self, HEAD_DIM, CAUSAL>;
  using Base::problem, Base::warpgroup, Base::elected;
  using Base::s, Base::p, Base::o, Base::sum, Base::factor, Base::q, Base::k, Base::v, Base::shared, Base::tensors;
  using S = typename Base::S;
  float t[(HEAD_DIM + ONES) / 2];  // P V of one key tile, and sums of its weights

  // Starts S = Q K^T.
  template <int> __device__ void scores() {
    uint64_t a = k_major_bytes<HEAD_DIM>(shared_address(shared.q[q.slot]) + warpgroup * WARPGROUP_ROWS * HEAD_DIM);
    uint64_t b = k_major_bytes<HEAD_DIM>(shared_address(shared.k[k.slot]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 32; d++) wgmma_e4m3<KEYS>(s, columns_32(a, d), columns_32(b, d), d > 0);
    wgmma_commit();
  }

  // The weights of keys FROM to TO in e4m3. Of every 8 columns a thread has two neighbours in S, but four as A. So
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

  // With HEAD_DIM = 64 a thread has 160 registers, too few for P beside S, T and O. So P waits in shared memory.
  static constexpr bool WEIGHTS_IN_MEMORY = HEAD_DIM == 64;
  __device__ uint32_t weights_tile() {
    __shared__ __align__(1024) uint8_t tile[S::CONSUMERS][WARPGROUP_ROWS * KEYS];
    return shared_address(tile[number()]);
  }
  __device__ void put_weights() {
    int thread = thread_index() % WARPGROUP, lane = thread % WARP;
    uint32_t to = weights_tile() + swizzled_bytes<KEYS>(thread / WARP * 16 + lane % 16, lane / 16);
#pragma unroll
    for (int n = 0; n < KEYS / 32; n++) stmatrix(to ^ 32 * n, p[n][0], p[n][1], p[n][2], p[n][3]);
    fence_async_proxy();
  }

  // Starts T = P V of this key tile alone. An FP8 tensor core keeps 13 bits of a sum, too few for a long one.
  __device__ void output(int = 0) {
    uint64_t b = k_major_bytes<KEYS>(shared_address(shared.v[v.slot]));
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 32; n++) {
      if constexpr (Self::WEIGHTS_IN_MEMORY)
        wgmma_e4m3<HEAD_DIM + ONES>(t, columns_32(k_major_bytes<KEYS>(weights_tile()), n), columns_32(b, n), n > 0);
      else
        wgmma_e4m3<HEAD_DIM + ONES>(t, p[n], columns_32(b, n), n > 0);
    }
    wgmma_commit();
  }

  // When it is done: O += T, in fp32.
  __device__ void output_done() {
    wgmma_results(t);
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] += t[i];
    sum[0] += t[HEAD_DIM / 2];
    sum[1] += t[HEAD_DIM / 2 + 2];
  }

  __device__ void shrink_output() {
    Base::shrink_output();
    sum[0] *= factor[0];
    sum[1] *= factor[1];
  }

  __device__ void tile_begins() {
    sum[0] = sum[1] = 0;
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] = 0;
  }

  // O / sum, straight to global memory. V^T's row order gives a thread four neighbouring columns of every 16. The
  // tile's number is read again from beside its queries: to keep it would cost registers while products run.
  __device__ void store(const float (&)[2], int slot, int, int) {
    Tile tile = find_tile<HEAD_DIM, CAUSAL>(problem, shared.tile[slot]);
    float v_scale = shared.v_scale[slot];
    __syncwarp();
    if (elected) mbarrier_arrive(shared_address(shared.q_empty + slot));
    int thread = thread_index() % WARPGROUP, lane = thread % WARP;
    int first = tile.row + warpgroup * WARPGROUP_ROWS + thread / WARP * 16 + lane / 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = first + 8 * h;
      if (i < 0 || i >= problem.seqlen) continue;
      float scale = v_scale / sum[h];
      half *to = output_row(tile.head, i) + lane % 4 * 4;
#pragma unroll
      for (int d = 0; d < HEAD_DIM / 16; d++) {
        const float *even = o + 8 * d + 2 * h, *odd = even + 4;  // V^T has the even columns of 16 first
        *(uint2 *)(to + 16 * d) =
            make_uint2(pack(even[0] * scale, odd[0] * scale), pack(even[1] * scale, odd[1] * scale));
      }
    }
  }

  // Stage 11d's O may have strides. Here they would change how ptxas orders the whole loop.
  static constexpr bool STRIDED = false;
  __device__ half *output_row(int head, int row) {
    if (Self::STRIDED) return tensors.o + head * tensors.o_head + row * tensors.o_row;
    return tensors.o + ((int64_t)head * problem.seqlen + row) * HEAD_DIM;
  }

  // Computed each time, to save a register in the turns. No half tiles: they would need more registers.
  __device__ int number() { return thread_index() / WARPGROUP - 1; }
  __device__ bool half_tile() { return false; }

  // ptxas requires a value in the registers of the first product before its wgmma.fence, so s starts as zeros.
  __device__ void run() {
    for (int i = 0; i < KEYS / 2; i++) s[i] = 0;
    wgmma_results(s);
    Base::run();
  }
};
