// Stage 03: the fused kernel with what Ampere brought. Copies of K and V run in the background (cp.async) while the
// tensor cores work on the tiles before (mma.sync), and every matrix stays in registers from its product on.
//
// One block: 128 queries of one head; each of its 4 warps has 32 of them, as two blocks of 16. For each tile of keys:
//
//   S = Q K^T                    mma; Q and K from shared memory, by ldmatrix
//   P = exp2(S - max), sum += P  in registers, while max and sum run along
//   O += P V                     mma; P from where S was, V from shared memory
#include <cuda_fp16.h>
#include <stdint.h>

#ifndef KEYS64
#define KEYS64 64
#endif
#ifndef KEYS128
#define KEYS128 64
#endif
#ifndef MIN64
#define MIN64 2
#endif
#ifndef MIN128
#define MIN128 2
#endif
#ifndef QREG64
#define QREG64 1
#endif
#ifndef LAZY
#define LAZY 1
#endif

enum { WARP = 32, THREADS = 128, ROWS = 128, STAGES = 2 };

// ---- instructions ----

// Copies 16 bytes from global to shared memory without passing through registers, some time before a wait for the
// group that it is in. Of the 16, `bytes` are read, the rest is zero. PTX ISA 9.7.9.25.3.
__device__ void cp_async(uint32_t to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// All copies of this thread since the commit before become a group.
__device__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's groups are on their way.
template <int PENDING> __device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Four 8 x 8 matrices of fp16 from shared memory: lane l gives the address of one row, the (l % 8)th of matrix l / 8,
// and gets of each matrix the two neighbours in row l / 4, from column l % 4 * 2. PTX ISA 9.7.14.5.15.
__device__ void ldmatrix(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// The same, and each matrix is transposed on its way.
__device__ void ldmatrix_transposed(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// D += A B, a 16 x 8 x 16 product: fp16 factors, fp32 sums. PTX ISA 9.7.14.5.8.
__device__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2^x in one instruction.
__device__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two numbers as fp16 in one register, the first in the lower half.
__device__ uint32_t pack(float low, float high) {
  half2 pair = __floats2half2_rn(low, high);
  return *(uint32_t *)&pair;
}

// ---- tiles in shared memory ----

// Where 16 bytes lie in a tile: `row` is a query or a key, `chunk` counts the 16 bytes along the head dimension. Rows
// are not padded; the chunks of a row are shuffled, each row in another way, by xor with the row's number.
template <int HEAD_DIM> __device__ int place(int row, int chunk) {
  return (row * (HEAD_DIM / 8) + (chunk ^ row % 8)) * 16;
}

// The address that this lane gives to ldmatrix for rows 0 to 15 and columns 0 to 15 of a tile.
template <int HEAD_DIM> __device__ uint32_t lane_address(uint32_t tile) {
  int lane = threadIdx.x % WARP;
  return tile + place<HEAD_DIM>(lane % 16, lane / 16);
}

// The same with the matrices 1 and 2 exchanged.
template <int HEAD_DIM> __device__ uint32_t key_address(uint32_t tile) {
  int lane = threadIdx.x % WARP;
  return tile + place<HEAD_DIM>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

// And from that the one for rows 16 i to 16 i + 15 and columns 16 j to 16 j + 15.
template <int HEAD_DIM> __device__ uint32_t move_to(uint32_t address, int i, int j) {
  return (address ^ j % 4 * 32) + j / 4 * 128 + i * 16 * HEAD_DIM * 2;
}

// Starts the copy of a tile, whose first row is `first` of `rows`; rows past the last become zeros.
template <int HEAD_DIM, int TILE_ROWS>
__device__ void copy_tile(uint32_t tile, const half *from, int first, int rows) {
  const int chunks = HEAD_DIM / 8, step = THREADS / chunks;
  int chunk = threadIdx.x % chunks, row = threadIdx.x / chunks, left = rows - first - row;
  const half *source = from + (size_t)(first + row) * HEAD_DIM + chunk * 8;
  tile += place<HEAD_DIM>(row, chunk);
#pragma unroll
  for (int i = 0; i < TILE_ROWS; i += step)
    cp_async(tile + i * HEAD_DIM * 2, source + i * HEAD_DIM, i < left ? 16 : 0);
}

// ---- what a warp keeps in registers ----

// A warp's 32 queries are two blocks of 16. Of each, lane l has rows l / 4 and l / 4 + 8, of an n8 block of columns
// the numbers {row l / 4: column l % 4 * 2, the next; row l / 4 + 8: the same two}.
template <int HEAD_DIM> struct Rows {
  float o[2][HEAD_DIM / 8][4];
  float max[2][2], sum[2][2];
};

// S = Q K^T.
template <int HEAD_DIM, int KEYS, bool QREG>
__device__ void scores(float (&s)[2][KEYS / 8][4], uint32_t q, uint32_t k, const uint32_t (&qr)[2][HEAD_DIM / 16][4]) {
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) s[b][n][i] = 0;
#pragma unroll
  for (int d = 0; d < HEAD_DIM / 16; d++) {
    uint32_t query[2][4];
#pragma unroll
    for (int b = 0; b < 2; b++) {
      if (!QREG) ldmatrix(query[b], move_to<HEAD_DIM>(q, b, d));
      else for (int i = 0; i < 4; i++) query[b][i] = qr[b][d][i];
    }
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) {
      uint32_t key[4];
      ldmatrix(key, move_to<HEAD_DIM>(k, n, d));
#pragma unroll
      for (int b = 0; b < 2; b++) {
        mma(s[b][2 * n], query[b], key[0], key[1]);
        mma(s[b][2 * n + 1], query[b], key[2], key[3]);
      }
    }
  }
}

// Scores of keys that a row may not see become minus infinity. row and key: the first of this warp and of the tile.
template <int KEYS> __device__ void mask(float (&s)[2][KEYS / 8][4], int row, int key, int seqlen, int causal) {
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * b + 8 * h + lane / 4, last = causal ? min(i, seqlen - 1) : seqlen - 1;
      last -= key + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < KEYS / 8; n++) {
        if (8 * n > last) s[b][n][2 * h] = -INFINITY;
        if (8 * n + 1 > last) s[b][n][2 * h + 1] = -INFINITY;
      }
    }
}

// The largest of a row's scores; a quad of lanes has the row.
template <int KEYS> __device__ float row_max(const float (&s)[KEYS / 8][4], int h) {
  float max = fmaxf(s[0][2 * h], s[0][2 * h + 1]);
#pragma unroll
  for (int n = 1; n < KEYS / 8; n++) max = fmaxf(fmaxf(max, s[n][2 * h]), s[n][2 * h + 1]);
  max = fmaxf(max, __shfl_xor_sync(0xffffffff, max, 1));
  return fmaxf(max, __shfl_xor_sync(0xffffffff, max, 2));
}

template <int HEAD_DIM, int KEYS>
__device__ void softmax(Rows<HEAD_DIM> &rows, float (&s)[2][KEYS / 8][4], float scale) {
#if LAZY
  float top[2][2];
  bool grew = false;
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      top[b][h] = row_max<KEYS>(s[b], h);
      grew |= (top[b][h] - rows.max[b][h]) * scale > 8;
    }
  if (__any_sync(0xffffffff, grew)) {
#pragma unroll
    for (int b = 0; b < 2; b++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float max = fmaxf(rows.max[b][h], top[b][h]);
        float shrink = exp2_approx((rows.max[b][h] - max) * scale);
        rows.max[b][h] = max;
        rows.sum[b][h] *= shrink;
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; n++) {
          rows.o[b][n][2 * h] *= shrink;
          rows.o[b][n][2 * h + 1] *= shrink;
        }
      }
  }
#endif
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
#if !LAZY
      float max = fmaxf(rows.max[b][h], row_max<KEYS>(s[b], h));
      float shrink = exp2_approx((rows.max[b][h] - max) * scale);
      rows.max[b][h] = max;
      rows.sum[b][h] *= shrink;
#pragma unroll
      for (int n = 0; n < HEAD_DIM / 8; n++) {
        rows.o[b][n][2 * h] *= shrink;
        rows.o[b][n][2 * h + 1] *= shrink;
      }
#endif
      float scaled = rows.max[b][h] * scale, sum = 0;
#pragma unroll
      for (int n = 0; n < KEYS / 8; n++) {
        s[b][n][2 * h] = exp2_approx(s[b][n][2 * h] * scale - scaled);
        s[b][n][2 * h + 1] = exp2_approx(s[b][n][2 * h + 1] * scale - scaled);
        rows.sum[b][h] += s[b][n][2 * h];
        sum += s[b][n][2 * h + 1];
      }
      rows.sum[b][h] += sum;
    }
}

// O += P V.
template <int HEAD_DIM, int KEYS>
__device__ void output(Rows<HEAD_DIM> &rows, const float (&p)[2][KEYS / 8][4], uint32_t v) {
#pragma unroll
  for (int n = 0; n < KEYS / 16; n++) {
    uint32_t weight[2][4];
#pragma unroll
    for (int b = 0; b < 2; b++)
#pragma unroll
      for (int i = 0; i < 4; i++) weight[b][i] = pack(p[b][2 * n + i / 2][i % 2 * 2], p[b][2 * n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      uint32_t value[4];
      ldmatrix_transposed(value, move_to<HEAD_DIM>(v, n, d));
#pragma unroll
      for (int b = 0; b < 2; b++) {
        mma(rows.o[b][2 * d], weight[b], value[0], value[1]);
        mma(rows.o[b][2 * d + 1], weight[b], value[2], value[3]);
      }
    }
  }
}

// O / sum, through the place that this warp's queries had in shared memory, so that whole rows leave.
template <int HEAD_DIM>
__device__ void store(const Rows<HEAD_DIM> &rows, char *tile, half *o, int row, int seqlen) {
  int lane = threadIdx.x % WARP;
  __syncwarp();
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float sum = rows.sum[b][h];
      sum += __shfl_xor_sync(0xffffffff, sum, 1);
      sum += __shfl_xor_sync(0xffffffff, sum, 2);
      float scale = 1 / sum;
#pragma unroll
      for (int n = 0; n < HEAD_DIM / 8; n++) {
        int to = place<HEAD_DIM>(16 * b + 8 * h + lane / 4, n) + lane % 4 * 4;
        *(uint32_t *)(tile + to) = pack(rows.o[b][n][2 * h] * scale, rows.o[b][n][2 * h + 1] * scale);
      }
    }
  __syncwarp();
  const int chunks = HEAD_DIM / 8;
#pragma unroll
  for (int i = lane; i < 32 * chunks; i += WARP) {
    int r = i / chunks, chunk = i % chunks;
    if (row + r < seqlen)
      *(uint4 *)(o + (size_t)(row + r) * HEAD_DIM + chunk * 8) = *(uint4 *)(tile + place<HEAD_DIM>(r, chunk));
  }
}

template <int HEAD_DIM, int KEYS, bool QREG>
__device__ void attention(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  extern __shared__ __align__(128) char shared[];
  const int q_bytes = ROWS * HEAD_DIM * 2, kv_bytes = KEYS * HEAD_DIM * 2;
  uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(shared), k_tiles = q_tile + q_bytes;

  int blocks = (seqlen + ROWS - 1) / ROWS;
  size_t head = (size_t)(blockIdx.x / blocks) * seqlen * HEAD_DIM;
  q += head;
  k += head;
  v += head;
  o += head;
  int block_row = (blocks - 1 - blockIdx.x % blocks) * ROWS;
  int warp = threadIdx.x / WARP, row = block_row + 32 * warp;
  int tiles = ((causal ? min(block_row + ROWS, seqlen) : seqlen) + KEYS - 1) / KEYS;
  int full_tiles = (causal ? min(block_row + 1, seqlen) : seqlen) / KEYS;

  copy_tile<HEAD_DIM, ROWS>(q_tile, q, block_row, seqlen);
  copy_tile<HEAD_DIM, KEYS>(k_tiles, k, 0, seqlen);
  copy_tile<HEAD_DIM, KEYS>(k_tiles + STAGES * kv_bytes, v, 0, seqlen);
  cp_async_commit();
  uint32_t q_lane = lane_address<HEAD_DIM>(q_tile + 32 * warp * HEAD_DIM * 2);

  Rows<HEAD_DIM> rows;
#pragma unroll
  for (int b = 0; b < 2; b++) {
#pragma unroll
    for (int n = 0; n < HEAD_DIM / 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) rows.o[b][n][i] = 0;
    rows.max[b][0] = rows.max[b][1] = -1e30f;
    rows.sum[b][0] = rows.sum[b][1] = 0;
  }
  scale *= 1.4426950408889634f;

  uint32_t qr[2][HEAD_DIM / 16][4];
  if (QREG) {
    cp_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++)
#pragma unroll
      for (int b = 0; b < 2; b++) ldmatrix(qr[b][d], move_to<HEAD_DIM>(q_lane, b, d));
  }
#pragma unroll 1
  for (int t = 0; t < tiles; t++) {
    cp_async_wait<0>();
    __syncthreads();
    uint32_t k_tile = k_tiles + t % 2 * kv_bytes, k_next = k_tiles + (t + 1) % 2 * kv_bytes;
    if (t + 1 < tiles) {
      copy_tile<HEAD_DIM, KEYS>(k_next, k, (t + 1) * KEYS, seqlen);
      copy_tile<HEAD_DIM, KEYS>(k_next + STAGES * kv_bytes, v, (t + 1) * KEYS, seqlen);
      cp_async_commit();
    }
    if (causal && t * KEYS > row + 31) continue;
    uint32_t k_lane = key_address<HEAD_DIM>(k_tile);
    float s[2][KEYS / 8][4];
    scores<HEAD_DIM, KEYS, QREG>(s, q_lane, k_lane, qr);
    if (t >= full_tiles) mask<KEYS>(s, row, t * KEYS, seqlen, causal);
    softmax<HEAD_DIM, KEYS>(rows, s, scale);
    output<HEAD_DIM, KEYS>(rows, s, lane_address<HEAD_DIM>(k_tile + STAGES * kv_bytes));
  }
  store<HEAD_DIM>(rows, shared + 32 * warp * HEAD_DIM * 2, o, row, seqlen);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN64)
    attention_64(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<64, KEYS64, QREG64>(q, k, v, o, seqlen, scale, causal);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN128)
    attention_128(const half *q, const half *k, const half *v, half *o, int seqlen, float scale, int causal) {
  attention<128, KEYS128, false>(q, k, v, o, seqlen, scale, causal);
}
