// The body of a kernel that makes one pass.
#pragma once

// One pass, for one block's own tile. Part is what a warpgroup does: a Warpgroup, or what derives from it and replaces some of
// its functions, as forward.h's Forward. `more` is what its kernel has besides, for own_tile and start.
//
// Grid: own tiles, head after head. Block: 256.
template <int HEAD_DIM, Pass PASS, bool CAUSAL, class Part = Warpgroup<HEAD_DIM, PASS, CAUSAL>, class... More>
__device__ void run_pass(const Tensors &tensors, const Problem &problem, const More &...more) {
  const int COLUMNS = COLUMNS_OF(HEAD_DIM);
  extern __shared__ __align__(1024) char memory[];  // the pattern of a 128-byte swizzle begins at multiples of 1024
  typename Part::Memory &shared = *(typename Part::Memory *)memory;
  unsigned number = Part::own_tile(shared, more...);
  int head = number / problem.head_tiles, tile = number % problem.head_tiles;
  // Causal: the longest tile first. In the pass over keys that is tile 0 already.
  if (PASS == QUERIES) tile = problem.head_tiles - 1 - tile;
  int block_row = tile * ROWS;
  int begin = CAUSAL && PASS == KEYS ? block_row : 0;  // of the streamed rows
  int end = CAUSAL && PASS == QUERIES ? min(block_row + ROWS, problem.seqlen) : problem.seqlen;
  int first = begin / COLUMNS, tiles = (end + COLUMNS - 1) / COLUMNS;

  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the shuffle tells ptxas that it is uniform
  int thread = threadIdx.x % WARPGROUP, row = block_row + warpgroup * WARPGROUP_ROWS;
  Part part{shared, tensors, problem, warpgroup, thread / WARP, thread % WARP, head, row};
  part.start(more...);
  if (threadIdx.x == 0) {
    shared.init();
    mbarrier_arrive_expect(shared_address(&shared.own_full), sizeof shared.own);
    load<HEAD_DIM>(shared.own, shared.own_full, tensors.own, block_row, head);
    part.load_streamed(first);
  }
  __syncthreads();  // the mbarriers are initialised
  mbarrier_wait(shared_address(&shared.own_full), 0);
  for (int t = first; t < tiles; t++) part.step(t, threadIdx.x == 0 && t + 1 < tiles ? t + 1 : -1);
  part.store();
}
