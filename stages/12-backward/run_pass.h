// The body of a kernel that makes one pass.
#pragma once

// What a block does: its own tile's head and first row, and the streamed tiles first, first + 1, and so on, below
// `tiles`.
struct Work {
  int head, row, first, tiles;
};

template <int HEAD_DIM, Pass PASS, bool CAUSAL, class Part>
__device__ Work find_work(const Problem &problem, unsigned number) {
  const int COLUMNS = COLUMNS_OF(HEAD_DIM);
  int head, tile;
  Part::find_tile(problem, number, head, tile);
  int row = tile * ROWS;
  int begin = CAUSAL && PASS == OVER_KEYS ? row : 0;  // of the streamed rows
  int end = CAUSAL && PASS == OVER_QUERIES ? min(row + ROWS, problem.seqlen) : problem.seqlen;
  return {head, row, begin / COLUMNS, (end + COLUMNS - 1) / COLUMNS};
}

// One pass, for one block's own tile. Part is what a warpgroup does: a Warpgroup, or a struct that extends it and
// replaces functions, as forward_pass.h's Forward. `more` are further arguments of the kernel, for own_tile and start.
//
// Grid: own tiles, head after head. Block: 256.
template <int HEAD_DIM, Pass PASS, bool CAUSAL, class Part = Warpgroup<HEAD_DIM, PASS, CAUSAL>, class... More>
__device__ void run_pass(const Tensors &tensors, const Problem &problem, const More &...more) {
  extern __shared__ __align__(1024) char memory[];  // the pattern of a 128-byte swizzle begins at multiples of 1024
  typename Part::Memory &shared = *(typename Part::Memory *)memory;
  Work work = find_work<HEAD_DIM, PASS, CAUSAL, Part>(problem, Part::own_tile(shared, more...));
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  int thread = threadIdx.x % WARPGROUP, row = work.row + warpgroup * WARPGROUP_ROWS;
  Part part{shared, tensors, problem, warpgroup, thread / WARP, thread % WARP, work.head, row};
  part.start(more...);
  if (threadIdx.x == 0) {
    shared.init();
    mbarrier_arrive_expect(shared_address(&shared.own_full), sizeof shared.own);
    load<HEAD_DIM>(shared.own, shared.own_full, tensors.own, work.row, work.head);
    part.load_streamed(work.first);
  }
  __syncthreads();  // the mbarriers are initialised
  mbarrier_wait(shared_address(&shared.own_full), 0);
  for (int t = work.first; t < work.tiles; t++) part.step(t, threadIdx.x == 0 && t + 1 < work.tiles ? t + 1 : -1);
  part.store();
}
