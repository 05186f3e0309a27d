// A consumer that computes PV of each key tile in separate registers, T, adds T to the output in fp32, and stores the
// output. Self starts the products and has:
//
//   write_row(to, lane, h, scale)  stores this thread's part of row h of the output, multiplied by scale
#pragma once

template <class Self, int HEAD_DIM, bool CAUSAL> struct Promoted : ConsumerBase<Self, HEAD_DIM, CAUSAL> {
  using Base = ConsumerBase<Self, HEAD_DIM, CAUSAL>;
  using Base::problem, Base::warpgroup, Base::elected, Base::self;
  using Base::s, Base::o, Base::sum, Base::q, Base::k, Base::shared, Base::tensors;
  using S = typename Base::S;
  float t[(HEAD_DIM + ONES) / 2];  // P V of one key tile

  // Starts S = Q K^T.
  template <int> __device__ void scores() {
    uint64_t a = k_major_bytes<HEAD_DIM>(shared_address(shared.q[q.slot]) + warpgroup * WARPGROUP_ROWS * HEAD_DIM);
    uint64_t b = k_major_bytes<HEAD_DIM>(shared_address(shared.k[k.slot]));
    start_scores<HEAD_DIM, KEYS>(s, a, b);
  }

  // T is complete: O += T, in fp32.
  __device__ void output_done() {
    wgmma_results(t);
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] += t[i];
  }

  __device__ void tile_begins() {
    sum[0] = sum[1] = 0;
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] = 0;
  }

  // Where the weights of this consumer's key tile wait for their product, if not in registers.
  __device__ uint8_t *weights_tile() {
    __shared__ __align__(1024) uint8_t tile[S::CONSUMERS][WARPGROUP_ROWS * KEYS];
    return tile[self().number()];
  }

  // O / sum, straight to global memory. The tile's number is read again from shared memory: to keep it would cost
  // registers while products run.
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
      self().write_row(output_row(tile.head, i), lane, h, scale);
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
