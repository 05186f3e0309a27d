// Tiles of V as they are, and the warps that transpose them.
#pragma once

enum { VALUE_SLOTS = 2 };

// The ring for tiles of V as TMA loads them. It lies next to struct Shared: only the producer's warpgroup uses it.
template <int HEAD_DIM> struct Values {
  uint8_t tile[VALUE_SLOTS][KEYS * HEAD_DIM];
  uint64_t full[VALUE_SLOTS], empty[VALUE_SLOTS];
  int end[VALUE_SLOTS];  // 1 when no more tiles come

  __device__ void init() {
    for (int i = 0; i < VALUE_SLOTS; i++) {
      mbarrier_init(shared_address(full + i), 1);
      mbarrier_init(shared_address(empty + i), TRANSPOSERS);
      end[i] = 0;
    }
    mbarrier_fence_init();
  }
};

// Transposes 32 keys of 16 columns of V: 16 bytes of each key's row become 32 of each column's row.
//
// ldmatrix moves pairs of bytes. With .trans, lane l gets two of each 8 keys, 2 (l % 4) and the next, with two columns
// each, 2 (l / 4) and the next. prmt separates the columns: 0x6420 takes the even bytes of two registers, 0x7531 the
// odd ones. What stmatrix then stores as a row of 16 bytes is a column with its keys in another order: position p holds
// key 2 (p / 4) + p % 2 + 8 (p / 2 % 2), as pack_weights has it. Even columns go to the first eight rows, odd ones to
// the next.
__device__ __forceinline__ void transpose(uint32_t from, uint32_t to) {
  uint32_t x[4];
  ldmatrix_transposed(x, from);
  stmatrix(to, __byte_perm(x[0], x[1], 0x6420), __byte_perm(x[0], x[1], 0x7531), __byte_perm(x[2], x[3], 0x6420),
           __byte_perm(x[2], x[3], 0x7531));
}

// A warp that transposes KEYS / TRANSPOSERS keys of each tile.
template <int HEAD_DIM> struct Transposer {
  using S = Shared<HEAD_DIM>;
  S &shared;
  Values<HEAD_DIM> &values;

  // A tile begins at a multiple of 1024 bytes, and the swizzle XORs the chunk's number with bits of the row. So a step
  // along a row is an XOR, and a step of whole groups of 8 rows is an addition.
  __device__ void transpose_tile(uint32_t tile, uint32_t transposed) {
    const int keys = KEYS / TRANSPOSERS;
    int first = threadIdx.x / WARP % TRANSPOSERS * keys, lane = threadIdx.x % WARP;
    uint32_t from = tile + swizzled_bytes<HEAD_DIM>(first + lane, 0);
    uint32_t to = transposed + swizzled_bytes<KEYS>(lane % 16, (first + lane) / 16);
#pragma unroll
    for (int column = 0; column < HEAD_DIM; column += 16)
#pragma unroll
      for (int key = 0; key < keys; key += 32) transpose((from ^ column) + key * HEAD_DIM, (to ^ key) + column * KEYS);
    fence_async_proxy();
    __syncwarp();
  }

  // All tiles that the producer loads. The numbers of slots are powers of two, so n alone says which slot is next in
  // each ring, and in which phase. Lane 0 alone reads the flag: the arrival that lets the producer write it is lane
  // 0's.
  __device__ void run() {
    bool arrives = threadIdx.x % WARP == 0;
    for (unsigned n = 0;; n++) {
      int from = n % VALUE_SLOTS, to = n % S::SLOTS;
      mbarrier_wait(shared_address(values.full + from), n / VALUE_SLOTS % 2);
      if (__any_sync(0xffffffff, arrives && values.end[from])) return;
      mbarrier_wait(shared_address(shared.v_empty + to), n / S::SLOTS % 2 ^ 1);
      transpose_tile(shared_address(values.tile[from]), shared_address(shared.v[to]));
      if (arrives) {
        mbarrier_arrive(shared_address(shared.v_full + to));
        mbarrier_arrive(shared_address(values.empty + from));
      }
    }
  }
};
