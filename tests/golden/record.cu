// Records the golden vectors on an H200: what the tensor cores and the special functions really compute.
//
// golden/README.md says how to build it.
//
//   ./record tests/golden EXPLORE_DIRECTORY
//
// The first directory receives the vectors that the tests use (*.bin, below 1 MB each); the second more of the same, to
// find a model with: explore.bin, ulp.txt and ulp.bin (errors of the special functions over all 2^32 inputs), and
// summary.txt (where tensor_core.c and the hardware differ).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
#include "tensor_core.h"
}
#include "scalars.h"
#include "vectors.h"

static void check(cudaError_t error, const char *what, int line) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "record.cu:%d: %s: %s\n", line, what, cudaGetErrorString(error));
  exit(3);
}
#define CHECK(call) check((call), #call, __LINE__)

static FILE *summary;  // summary.txt

// ---- the instructions ----

// One launch of an instruction over `tiles` tiles. C and D are row-major 64 x 64, 4 or 2 bytes an element.
struct Operands {
  const uint16_t *a, *b;  // [tile][64][16]
  const void *c;
  void *d;
};

__device__ static uint32_t pair(const uint16_t *p) { return *(const uint32_t *)p; }

enum Types { F32_F16, F16_F16, F32_BF16 };

// m16n8k16 or m16n8k8: a warp per 16 x 8 results, blocks (tile, row block, column block). PTX ISA 9.7.14.5, fragments.
template <Types TYPES, int DEPTH> __global__ void mma_kernel(Operands o) {
  int tile = blockIdx.x, lane = threadIdx.x, g = lane / 4, t = lane % 4;
  int row = blockIdx.y * 16 + g, column = blockIdx.z * 8;
  const uint16_t *a = o.a + (tile * GOLDEN_M + row) * GOLDEN_K + 2 * t;
  const uint16_t *b = o.b + (tile * GOLDEN_N + column + g) * GOLDEN_K + 2 * t;
  size_t place = (size_t)tile * GOLDEN_RESULTS + row * GOLDEN_N + column + 2 * t, below = place + 8 * GOLDEN_N;
  uint32_t a0 = pair(a), a1 = pair(a + 8 * GOLDEN_K), b0 = pair(b);
  uint32_t a2 = pair(a + 8), a3 = pair(a + 8 * GOLDEN_K + 8), b1 = pair(b + 8);
  if (TYPES == F16_F16) {
    const uint16_t *c = (const uint16_t *)o.c;
    uint32_t d0 = pair(c + place), d1 = pair(c + below);
    if (DEPTH == 16)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                   : "+r"(d0), "+r"(d1)
                   : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                   : "+r"(d0), "+r"(d1)
                   : "r"(a0), "r"(a1), "r"(b0));
    uint16_t *d = (uint16_t *)o.d;
    *(uint32_t *)(d + place) = d0;
    *(uint32_t *)(d + below) = d1;
  } else {
    const float *c = (const float *)o.c;
    float d0 = c[place], d1 = c[place + 1], d2 = c[below], d3 = c[below + 1];
#define MMA_16(TYPE)                                                                                                   \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                                                  \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                                                   \
               "{%0, %1, %2, %3};"                                                                                     \
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)                                                                \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define MMA_8(TYPE)                                                                                                    \
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE                                                   \
               ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                              \
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)                                                                \
               : "r"(a0), "r"(a1), "r"(b0))
    if (TYPES == F32_F16 && DEPTH == 16) MMA_16("f16");
    if (TYPES == F32_F16 && DEPTH == 8) MMA_8("f16");
    if (TYPES == F32_BF16 && DEPTH == 16) MMA_16("bf16");
    if (TYPES == F32_BF16 && DEPTH == 8) MMA_8("bf16");
    float *d = (float *)o.d;
    d[place] = d0, d[place + 1] = d1, d[below] = d2, d[below + 1] = d3;
  }
}

// m16n16k16 through nvcuda::wmma, a warp per 16 x 16 results. C and D may differ in type.
template <typename In, typename C, typename D> __global__ void wmma_kernel(Operands o) {
  using namespace nvcuda;
  int tile = blockIdx.x, row = blockIdx.y * 16, column = blockIdx.z * 16;
  size_t place = (size_t)tile * GOLDEN_RESULTS + row * GOLDEN_N + column;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, In, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, In, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, C> c;
  wmma::fragment<wmma::accumulator, 16, 16, 16, D> d;
  wmma::load_matrix_sync(a, (const In *)(o.a + (tile * GOLDEN_M + row) * GOLDEN_K), GOLDEN_K);
  wmma::load_matrix_sync(b, (const In *)(o.b + (tile * GOLDEN_N + column) * GOLDEN_K), GOLDEN_K);
  wmma::load_matrix_sync(c, (const C *)o.c + place, GOLDEN_N, wmma::mem_row_major);
  wmma::mma_sync(d, a, b, c);
  wmma::store_matrix_sync((D *)o.d + place, d, GOLDEN_N, wmma::mem_row_major);
}

#define LIST_4 "{%0, %1, %2, %3}"
#define LIST_2 "{%0, %1}"
#define LIST_16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define LIST_32                                                                                                        \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
  "%24, %25, %26, %27, %28, %29, %30, %31}"
#define OUT_2(K, d) "+" K(d[0]), "+" K(d[1])
#define OUT_4(K, d, i) "+" K(d[i]), "+" K(d[i + 1]), "+" K(d[i + 2]), "+" K(d[i + 3])
#define OUT_16(K, d, i) OUT_4(K, d, i), OUT_4(K, d, i + 4), OUT_4(K, d, i + 8), OUT_4(K, d, i + 12)

// The asm statement for a count of accumulator registers: DA, DA+1, ... number the operands that follow them.
#define WGMMA_SHARED(SHAPE, LIST, DA, DB, P, SA, SB, ...)                                                              \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned." SHAPE " " LIST ", " DA      \
               ", " DB ", p, " SA ", " SB ", 0, 0;\n}"                                                                 \
               : __VA_ARGS__                                                                                           \
               : "l"(desc_a), "l"(desc_b), "r"(accumulate), "n"(SCALE_A), "n"(SCALE_B))
#define WGMMA_REGISTERS(SHAPE, LIST, A0, A1, A2, A3, DB, P, SA, SB, ...)                                               \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned." SHAPE " " LIST ", {" A0     \
               ", " A1 ", " A2 ", " A3 "}, " DB ", p, " SA ", " SB ", 0;\n}"                                           \
               : __VA_ARGS__                                                                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc_b), "r"(accumulate), "n"(SCALE_A), "n"(SCALE_B))

// A K-major operand of 64 rows by 16 without swizzle: core matrices of 8 rows x 16 bytes, 128 bytes each, the two along
// K beside each other (LBO 128), then the next 8 rows (SBO 256).
__device__ static uint64_t descriptor(const uint16_t *shared) {
  uint64_t address = (uint64_t)__cvta_generic_to_shared(shared);
  return (address & 0x3ffff) >> 4 | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
}

__device__ static int core_index(int line, int k) { return (line / 8 * 2 + k / 8) * 64 + line % 8 * 8 + k % 8; }

// One m64n64k16 or eight m64n8k16 per tile, a warpgroup each.
template <Types TYPES, int N, bool A_REGISTERS, int SCALE_A, int SCALE_B>
__global__ void __launch_bounds__(128) wgmma_kernel(Operands o, int accumulate) {
  __shared__ __align__(1024) uint16_t shared_a[GOLDEN_M * GOLDEN_K], shared_b[GOLDEN_N * GOLDEN_K];
  int tile = blockIdx.x, thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const uint16_t *global_a = o.a + tile * GOLDEN_M * GOLDEN_K, *global_b = o.b + tile * GOLDEN_N * GOLDEN_K;
  for (int i = thread; i < GOLDEN_M * GOLDEN_K; i += 128) {
    shared_a[core_index(i / GOLDEN_K, i % GOLDEN_K)] = global_a[i];
    shared_b[core_index(i / GOLDEN_K, i % GOLDEN_K)] = global_b[i];
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  int row = 16 * warp + lane / 4, pair_column = 2 * (lane % 4);
  const uint16_t *lane_a = global_a + row * GOLDEN_K + pair_column;
  uint32_t a[4] = {pair(lane_a), pair(lane_a + 8 * GOLDEN_K), pair(lane_a + 8), pair(lane_a + 8 * GOLDEN_K + 8)};
  uint64_t desc_a = descriptor(shared_a);
  for (int column = 0; column < GOLDEN_N; column += N) {
    uint64_t desc_b = descriptor(shared_b + column * GOLDEN_K);
    size_t place = (size_t)tile * GOLDEN_RESULTS + row * GOLDEN_N + column + pair_column;
    // Register pair i of a thread: rows row and row + 8 in turn, then eight columns on.
    auto pair_place = [=](int i) { return place + i % 2 * 8 * GOLDEN_N + i / 2 * 8; };
    if constexpr (TYPES == F16_F16) {
      uint32_t d[N / 4];
      for (int i = 0; i < N / 4; i++) d[i] = pair((const uint16_t *)o.c + pair_place(i));
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      if constexpr (N == 64 && !A_REGISTERS)
        WGMMA_SHARED("m64n64k16.f16.f16.f16", LIST_16, "%16", "%17", "%18", "%19", "%20", OUT_16("r", d, 0));
      if constexpr (N == 8 && !A_REGISTERS)
        WGMMA_SHARED("m64n8k16.f16.f16.f16", LIST_2, "%2", "%3", "%4", "%5", "%6", OUT_2("r", d));
      if constexpr (N == 64 && A_REGISTERS)
        WGMMA_REGISTERS("m64n64k16.f16.f16.f16", LIST_16, "%16", "%17", "%18", "%19", "%20", "%21", "%22", "%23",
                        OUT_16("r", d, 0));
      if constexpr (N == 8 && A_REGISTERS)
        WGMMA_REGISTERS("m64n8k16.f16.f16.f16", LIST_2, "%2", "%3", "%4", "%5", "%6", "%7", "%8", "%9", OUT_2("r", d));
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
      for (int i = 0; i < N / 4; i++) *(uint32_t *)((uint16_t *)o.d + pair_place(i)) = d[i];
    } else {
      float d[N / 2];
      for (int i = 0; i < N / 2; i++) d[i] = ((const float *)o.c)[pair_place(i / 2) + i % 2];
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#define WGMMA_F32(T)                                                                                                   \
  do {                                                                                                                 \
    if constexpr (N == 64 && !A_REGISTERS)                                                                             \
      WGMMA_SHARED("m64n64k16.f32." T, LIST_32, "%32", "%33", "%34", "%35", "%36", OUT_16("f", d, 0),                  \
                   OUT_16("f", d, 16));                                                                                \
    if constexpr (N == 8 && !A_REGISTERS)                                                                              \
      WGMMA_SHARED("m64n8k16.f32." T, LIST_4, "%4", "%5", "%6", "%7", "%8", OUT_4("f", d, 0));                         \
    if constexpr (N == 64 && A_REGISTERS)                                                                              \
      WGMMA_REGISTERS("m64n64k16.f32." T, LIST_32, "%32", "%33", "%34", "%35", "%36", "%37", "%38", "%39",             \
                      OUT_16("f", d, 0), OUT_16("f", d, 16));                                                          \
    if constexpr (N == 8 && A_REGISTERS)                                                                               \
      WGMMA_REGISTERS("m64n8k16.f32." T, LIST_4, "%4", "%5", "%6", "%7", "%8", "%9", "%10", "%11", OUT_4("f", d, 0));  \
  } while (0)
      if constexpr (TYPES == F32_F16) WGMMA_F32("f16.f16");
      if constexpr (TYPES == F32_BF16) WGMMA_F32("bf16.bf16");
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
      for (int i = 0; i < N / 2; i++) ((float *)o.d)[pair_place(i / 2) + i % 2] = d[i];
    }
  }
}

template <Types TYPES, int DEPTH> static void launch_mma(Operands o, int tiles) {
  mma_kernel<TYPES, DEPTH><<<dim3(tiles, 4, 8), 32>>>(o);
}

template <typename In, typename C, typename D> static void launch_wmma(Operands o, int tiles) {
  wmma_kernel<In, C, D><<<dim3(tiles, 4, 4), 32>>>(o);
}

template <Types TYPES, int N, bool A_REGISTERS, int SCALE_A = 1, int SCALE_B = 1, int ACCUMULATE = 1>
static void launch_wgmma(Operands o, int tiles) {
  wgmma_kernel<TYPES, N, A_REGISTERS, SCALE_A, SCALE_B><<<tiles, 128>>>(o, ACCUMULATE);
}

// ---- the plan ----

enum { TILES = 512 };

// A family: instructions with the same inputs. Its first instruction is the reference for the others.
struct Instruction {
  const char *name;
  void (*launch)(Operands o, int tiles);
  GoldenFormat result;
  uint32_t flags;
  int golden, explore;  // tiles to keep in full; of an instruction that repeats the reference's results, none
  bool is_repeat;       // expected to give the reference's results
};

struct Family {
  const char *file;
  GoldenFormat format, accumulator;
  int depth;
  std::vector<Instruction> instructions;
};

template <Types TYPES> static void add_wgmma(Family &family, const char *types, GoldenFormat result) {
  static char names[64][64];
  static int used;
  auto name = [&](const char *shape, const char *rest) {
    snprintf(names[used], sizeof names[used], "wgmma.%s.%s%s", shape, types, rest);
    return names[used++];
  };
  auto &list = family.instructions;
  list.push_back({name("m64n64k16", " A shared"), launch_wgmma<TYPES, 64, false>, result, 0, 8, 32, true});
  list.push_back({name("m64n64k16", " A registers"), launch_wgmma<TYPES, 64, true>, result, 0, 8, 32, true});
  list.push_back({name("m64n8k16", " A shared"), launch_wgmma<TYPES, 8, false>, result, 0, 8, 32, true});
  list.push_back({name("m64n8k16", " A registers"), launch_wgmma<TYPES, 8, true>, result, 0, 8, 32, true});
  list.push_back(
      {name("m64n64k16", " scale-d 0"), launch_wgmma<TYPES, 64, false, 1, 1, 0>, result, GOLDEN_NO_C, 0, 16, false});
  list.push_back(
      {name("m64n64k16", " -A"), launch_wgmma<TYPES, 64, false, -1, 1>, result, GOLDEN_NEGATE_A, 0, 16, false});
  list.push_back(
      {name("m64n64k16", " -B"), launch_wgmma<TYPES, 64, true, 1, -1>, result, GOLDEN_NEGATE_B, 0, 16, false});
  list.push_back({name("m64n64k16", " -A -B"), launch_wgmma<TYPES, 64, false, -1, -1>, result,
                  GOLDEN_NEGATE_A | GOLDEN_NEGATE_B, 0, 16, false});
}

static std::vector<Family> make_plan() {
  std::vector<Family> plan;
  plan.push_back({"f32.f16.bin",
                  GOLDEN_F16,
                  GOLDEN_F32,
                  16,
                  {{"mma.m16n8k16.f32.f16.f16.f32", launch_mma<F32_F16, 16>, GOLDEN_F32, 0, 16, 96, false},
                   {"wmma.m16n16k16.f32.f32", launch_wmma<half, float, float>, GOLDEN_F32, 0, 8, 32, true},
                   {"wmma.m16n16k16.f16.f32", launch_wmma<half, float, half>, GOLDEN_F16, 0, 16, 32, false}}});
  add_wgmma<F32_F16>(plan.back(), "f32.f16.f16", GOLDEN_F32);
  plan.push_back({"f32.f16.bin",
                  GOLDEN_F16,
                  GOLDEN_F32,
                  8,
                  {{"mma.m16n8k8.f32.f16.f16.f32", launch_mma<F32_F16, 8>, GOLDEN_F32, 0, 16, 48, false}}});
  plan.push_back({"f16.f16.bin",
                  GOLDEN_F16,
                  GOLDEN_F16,
                  16,
                  {{"mma.m16n8k16.f16.f16.f16.f16", launch_mma<F16_F16, 16>, GOLDEN_F16, 0, 16, 192, false},
                   {"wmma.m16n16k16.f16.f16", launch_wmma<half, half, half>, GOLDEN_F16, 0, 8, 32, true},
                   {"wmma.m16n16k16.f32.f16", launch_wmma<half, half, float>, GOLDEN_F32, 0, 16, 32, false}}});
  add_wgmma<F16_F16>(plan.back(), "f16.f16.f16", GOLDEN_F16);
  plan.push_back({"f16.f16.bin",
                  GOLDEN_F16,
                  GOLDEN_F16,
                  8,
                  {{"mma.m16n8k8.f16.f16.f16.f16", launch_mma<F16_F16, 8>, GOLDEN_F16, 0, 16, 96, false}}});
  plan.push_back(
      {"f32.bf16.bin",
       GOLDEN_BF16,
       GOLDEN_F32,
       16,
       {{"mma.m16n8k16.f32.bf16.bf16.f32", launch_mma<F32_BF16, 16>, GOLDEN_F32, 0, 16, 176, false},
        {"wmma.m16n16k16.f32.f32 bf16", launch_wmma<__nv_bfloat16, float, float>, GOLDEN_F32, 0, 8, 32, true}}});
  add_wgmma<F32_BF16>(plan.back(), "f32.bf16.bf16", GOLDEN_F32);
  plan.push_back({"f32.bf16.bin",
                  GOLDEN_BF16,
                  GOLDEN_F32,
                  8,
                  {{"mma.m16n8k8.f32.bf16.bf16.f32", launch_mma<F32_BF16, 8>, GOLDEN_F32, 0, 16, 96, false}}});
  return plan;
}

// ---- running it ----

static size_t element_size(GoldenFormat format) { return format == GOLDEN_F32 ? 4 : 2; }

// A family's inputs for all tiles, on the host and on the GPU.
struct Inputs {
  std::vector<GoldenTile> tiles;
  uint64_t hash;
  Operands device;
};

template <typename T> static T *upload(const std::vector<T> &values) {
  T *device;
  CHECK(cudaMalloc(&device, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

static Inputs make_inputs(const Family &family) {
  Inputs inputs = {std::vector<GoldenTile>(TILES), golden_fnv_start, {}};
  std::vector<uint16_t> a, b, c16;
  std::vector<uint32_t> c32;
  for (int t = 0; t < TILES; t++) {
    GoldenTile &tile = inputs.tiles[t];
    golden_tile(family.format, family.accumulator, family.depth, t, &tile);
    inputs.hash = golden_fnv(inputs.hash, &tile, sizeof tile);
    a.insert(a.end(), &tile.a[0][0], &tile.a[0][0] + GOLDEN_M * GOLDEN_K);
    b.insert(b.end(), &tile.b[0][0], &tile.b[0][0] + GOLDEN_N * GOLDEN_K);
    for (int i = 0; i < GOLDEN_RESULTS; i++) {
      uint32_t c = (&tile.c[0][0])[i];
      if (family.accumulator == GOLDEN_F16)
        c16.push_back((uint16_t)c);
      else
        c32.push_back(c);
    }
  }
  inputs.device.a = upload(a);
  inputs.device.b = upload(b);
  inputs.device.c = family.accumulator == GOLDEN_F16 ? (const void *)upload(c16) : (const void *)upload(c32);
  CHECK(cudaMalloc(&inputs.device.d, (size_t)TILES * GOLDEN_RESULTS * 4));
  return inputs;
}

// What tensor_core.c says. With C and D of different types, the step is that of f32, between conversions.
static void model(const Family &family, const Instruction &instruction, const GoldenTile &tile, void *results) {
  static TensorA a;
  static TensorB b;
  TensorFormat format = family.format == GOLDEN_F16 ? TENSOR_F16 : TENSOR_BF16;
  bool accumulate = !(instruction.flags & GOLDEN_NO_C);
  tensor_decode_a(&a, format, GOLDEN_M, family.depth, &tile.a[0][0], GOLDEN_K, 1, instruction.flags & GOLDEN_NEGATE_A);
  tensor_decode_b(&b, format, GOLDEN_N, family.depth, &tile.b[0][0], 1, GOLDEN_K, instruction.flags & GOLDEN_NEGATE_B);
  const uint32_t *c = &tile.c[0][0];
  if (family.accumulator == GOLDEN_F16 && instruction.result == GOLDEN_F16) {
    for (int i = 0; i < GOLDEN_RESULTS; i++) ((uint16_t *)results)[i] = (uint16_t)c[i];
    tensor_step_f16(&a, &b, (uint16_t *)results, GOLDEN_N, accumulate);
    return;
  }
  static float d[GOLDEN_RESULTS];
  memcpy(d, c, sizeof d);
  for (int i = 0; family.accumulator == GOLDEN_F16 && i < GOLDEN_RESULTS; i++)
    d[i] = __half2float(__ushort_as_half((uint16_t)c[i]));
  tensor_step_f32(&a, &b, d, GOLDEN_N, accumulate);
  if (instruction.result == GOLDEN_F32) memcpy(results, d, sizeof d);
  for (int i = 0; instruction.result == GOLDEN_F16 && i < GOLDEN_RESULTS; i++)
    ((uint16_t *)results)[i] = __half_as_ushort(__float2half_rn(d[i]));
}

static uint32_t element(const void *results, size_t size, size_t i) {
  return size == 4 ? ((const uint32_t *)results)[i] : ((const uint16_t *)results)[i];
}

// Compares with tensor_core.c: one line to stdout, the first differences of each kind to summary.txt.
static void compare_with_model(const Family &family, const Instruction &instruction, const Inputs &inputs,
                               const std::vector<uint8_t> &results) {
  size_t size = element_size(instruction.result);
  int wrong[KIND_COUNT] = {0}, total = 0;
  std::vector<uint32_t> expected(GOLDEN_RESULTS);
  for (int t = 0; t < TILES; t++) {
    model(family, instruction, inputs.tiles[t], expected.data());
    for (int i = 0; i < GOLDEN_RESULTS; i++) {
      uint32_t got = element(results.data(), size, (size_t)t * GOLDEN_RESULTS + i),
               want = element(expected.data(), size, i);
      if (got == want) continue;
      total++;
      if (wrong[t % KIND_COUNT]++ < 6)
        fprintf(summary, "%s kind %d tile %d m %d n %d c %08x: gpu %08x model %08x\n", instruction.name, t % KIND_COUNT,
                t, i / GOLDEN_N, i % GOLDEN_N, inputs.tiles[t].c[i / GOLDEN_N][i % GOLDEN_N], got, want);
    }
  }
  printf("  model differs on %d of %d", total, TILES * GOLDEN_RESULTS);
  for (int k = 0; total && k < KIND_COUNT; k++)
    if (wrong[k]) printf("; kind %d: %.2f%%", k, 100.0 * wrong[k] / (TILES / KIND_COUNT * GOLDEN_RESULTS));
  printf("\n");
}

static void write_bytes(FILE *file, const void *data, size_t size) {
  if (fwrite(data, 1, size, file) == size) return;
  perror("record: cannot write");
  exit(1);
}

static void write_record(FILE *file, const Family &family, const Instruction &instruction, const Inputs &inputs,
                         int full, const std::vector<uint8_t> &results) {
  size_t size = element_size(instruction.result), tile_size = size * GOLDEN_RESULTS;
  GoldenRecord record = {};
  strcpy(record.magic, "HLGOLD1");
  snprintf(record.name, sizeof record.name, "%s", instruction.name);
  record.input_hash = inputs.hash;
  record.format = family.format, record.accumulator = family.accumulator, record.result = instruction.result;
  record.depth = (uint32_t)family.depth, record.flags = instruction.flags;
  record.tiles = TILES, record.full = (uint32_t)full, record.element_size = (uint32_t)size;
  write_bytes(file, &record, sizeof record);
  for (int t = 0; t < TILES; t++) {
    uint64_t hash = golden_fnv(golden_fnv_start, results.data() + t * tile_size, tile_size);
    write_bytes(file, &hash, sizeof hash);
  }
  write_bytes(file, results.data(), full * tile_size);
}

static FILE *open_file(const char *directory, const char *name, const char *mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, mode);
  if (file) return file;
  fprintf(stderr, "record: cannot write %s: the directory must exist\n", path);
  exit(2);
}

static void record_family(const Family &family, bool append, const char *golden, FILE *explore) {
  Inputs inputs = make_inputs(family);
  FILE *file = open_file(golden, family.file, append ? "ab" : "wb");
  std::vector<uint8_t> reference;
  for (const Instruction &instruction : family.instructions) {
    std::vector<uint8_t> results((size_t)TILES * GOLDEN_RESULTS * element_size(instruction.result));
    CHECK(cudaMemset(inputs.device.d, 0x5a, results.size()));
    instruction.launch(inputs.device, TILES);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(results.data(), inputs.device.d, results.size(), cudaMemcpyDeviceToHost));
    printf("%s (K = %d)\n", instruction.name, family.depth);
    bool same = false;
    if (instruction.is_repeat) {
      int different[KIND_COUNT] = {0}, total = 0;
      size_t size = element_size(instruction.result);
      for (size_t i = 0; i < results.size() / size; i++)
        if (element(results.data(), size, i) != element(reference.data(), size, i))
          different[i / GOLDEN_RESULTS % KIND_COUNT]++, total++;
      same = total == 0;
      if (same)
        printf("  same as %s\n", family.instructions[0].name);
      else
        printf("  differs from %s on %d:", family.instructions[0].name, total);
      for (int k = 0; !same && k < KIND_COUNT; k++) printf(" %d", different[k]);
      if (!same) printf(" by kind\n");
    }
    if (!same) compare_with_model(family, instruction, inputs, results);
    int room = (int)((13500000 - ftell(explore)) / (long)(GOLDEN_RESULTS * element_size(instruction.result)));
    write_record(file, family, instruction, inputs, same ? 0 : instruction.golden, results);
    write_record(explore, family, instruction, inputs,
                 same                         ? 0
                 : instruction.explore < room ? instruction.explore
                 : room > 0                   ? room
                                              : 0,
                 results);
    if (reference.empty()) reference = results;
  }
  printf("%s so far %ld bytes\n", family.file, ftell(file));
  if (fclose(file)) perror("record: cannot write"), exit(1);
  CHECK(cudaFree((void *)inputs.device.a));
  CHECK(cudaFree((void *)inputs.device.b));
  CHECK(cudaFree((void *)inputs.device.c));
  CHECK(cudaFree(inputs.device.d));
}

// ---- scalar instructions ----

#define FLOAT(x) __uint_as_float(x)
#define HALF(x) (uint16_t)(x)
#define RESULT_F(...)                                                                                                  \
  {                                                                                                                    \
    float r;                                                                                                           \
    __VA_ARGS__ return __float_as_uint(r);                                                                             \
  }
#define RESULT_H(...)                                                                                                  \
  {                                                                                                                    \
    uint16_t r;                                                                                                        \
    __VA_ARGS__ return r;                                                                                              \
  }
#define RESULT_R(...)                                                                                                  \
  {                                                                                                                    \
    uint32_t r;                                                                                                        \
    __VA_ARGS__ return r;                                                                                              \
  }
#define RESULT_L(...)                                                                                                  \
  {                                                                                                                    \
    uint64_t r;                                                                                                        \
    __VA_ARGS__ return r;                                                                                              \
  }
#define RUN_FF(I) RESULT_F(asm volatile(I " %0, %1;" : "=f"(r) : "f"(FLOAT(a)));)
#define RUN_FFF(I) RESULT_F(asm volatile(I " %0, %1, %2;" : "=f"(r) : "f"(FLOAT(a)), "f"(FLOAT(b)));)
#define RUN_FFFF(I)                                                                                                    \
  RESULT_F(asm volatile(I " %0, %1, %2, %3;" : "=f"(r) : "f"(FLOAT(a)), "f"(FLOAT(b)), "f"(FLOAT(c)));)
#define RUN_FH(I) RESULT_F(asm volatile(I " %0, %1;" : "=f"(r) : "h"(HALF(a)));)
#define RUN_FR(I) RESULT_F(asm volatile(I " %0, %1;" : "=f"(r) : "r"(a));)
#define RUN_HH(I) RESULT_H(asm volatile(I " %0, %1;" : "=h"(r) : "h"(HALF(a)));)
#define RUN_HHH(I) RESULT_H(asm volatile(I " %0, %1, %2;" : "=h"(r) : "h"(HALF(a)), "h"(HALF(b)));)
#define RUN_HHHH(I) RESULT_H(asm volatile(I " %0, %1, %2, %3;" : "=h"(r) : "h"(HALF(a)), "h"(HALF(b)), "h"(HALF(c)));)
#define RUN_HF(I) RESULT_H(asm volatile(I " %0, %1;" : "=h"(r) : "f"(FLOAT(a)));)
#define RUN_HR(I) RESULT_H(asm volatile(I " %0, %1;" : "=h"(r) : "r"(a));)
#define RUN_RR(I) RESULT_R(asm volatile(I " %0, %1;" : "=r"(r) : "r"(a));)
#define RUN_RRR(I) RESULT_R(asm volatile(I " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));)
#define RUN_RRRR(I) RESULT_R(asm volatile(I " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));)
#define RUN_RF(I) RESULT_R(asm volatile(I " %0, %1;" : "=r"(r) : "f"(FLOAT(a)));)
#define RUN_RH(I) RESULT_R(asm volatile(I " %0, %1;" : "=r"(r) : "h"(HALF(a)));)
#define RUN_RFF(I) RESULT_R(asm volatile(I " %0, %1, %2;" : "=r"(r) : "f"(FLOAT(a)), "f"(FLOAT(b)));)
#define RUN_LF(I) RESULT_L(asm volatile(I " %0, %1;" : "=l"(r) : "f"(FLOAT(a)));)

struct Scalar {
  const char *signature, *name;
};
#define SCALAR_ENTRY(SIGNATURE, NAME) {#SIGNATURE, NAME},
static const Scalar scalars[] = {SCALARS(SCALAR_ENTRY)};
enum { SCALAR_COUNT = sizeof scalars / sizeof *scalars };

enum { COUNTER_BASE = __COUNTER__ + 1 };

// Instruction number `which` of SCALARS.
__device__ static uint64_t scalar_result(int which, uint32_t a, uint32_t b, uint32_t c) {
#define SCALAR_CASE(SIGNATURE, NAME)                                                                                   \
  case __COUNTER__ - COUNTER_BASE: RUN_##SIGNATURE(NAME)
  switch (which) { SCALARS(SCALAR_CASE) }
  return 0;
}

__global__ void scalar_kernel(int which, int count, const uint32_t *a, const uint32_t *b, const uint32_t *c,
                              uint64_t *d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) d[i] = scalar_result(which, a[i], b[i], c[i]);
}

static void record_scalars(const char *golden) {
  FILE *file = open_file(golden, "special.bin", "wb");
  for (int which = 0; which < SCALAR_COUNT; which++) {
    const Scalar &scalar = scalars[which];
    // Three files, split where the lists of scalars.h begin.
    const char *next = !strcmp(scalar.name, "cvt.rn.f16.f32") ? "convert.bin"
                       : !strcmp(scalar.name, "add.f32")      ? "arithmetic.bin"
                                                              : NULL;
    if (next) {
      if (fclose(file)) perror("record: cannot write"), exit(1);
      file = open_file(golden, next, "wb");
    }
    ScalarRecord record = {};
    strcpy(record.magic, "HLSCAL1");
    snprintf(record.signature, sizeof record.signature, "%s", scalar.signature);
    snprintf(record.name, sizeof record.name, "%s", scalar.name);
    record.inputs = scalar_is_exhaustive(scalar.signature, scalar.name) ? 65536 : SCALAR_INPUTS;
    record.result_size = (uint32_t)scalar_result_size(scalar.signature);
    record.input_hash = golden_fnv_start;
    int operands = (int)strlen(scalar.signature) - 1;
    std::vector<uint32_t> inputs[3];
    uint32_t *device[3];
    for (int j = 0; j < 3; j++) {
      for (uint32_t i = 0; i < record.inputs; i++)
        inputs[j].push_back(j < operands ? scalar_input(scalar.signature, scalar.name, (int)i, j) : 0);
      record.input_hash = golden_fnv(record.input_hash, inputs[j].data(), inputs[j].size() * 4);
      device[j] = upload(inputs[j]);
    }
    std::vector<uint64_t> results(record.inputs);
    uint64_t *device_results;
    CHECK(cudaMalloc(&device_results, results.size() * 8));
    scalar_kernel<<<(record.inputs + 127) / 128, 128>>>(which, (int)record.inputs, device[0], device[1], device[2],
                                                        device_results);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(results.data(), device_results, results.size() * 8, cudaMemcpyDeviceToHost));
    write_bytes(file, &record, sizeof record);
    for (uint64_t result : results) write_bytes(file, &result, record.result_size);  // little-endian on both sides
    for (uint32_t *p : device) CHECK(cudaFree(p));
    CHECK(cudaFree(device_results));
  }
  if (fclose(file)) perror("record: cannot write"), exit(1);
  printf("%d scalar instructions recorded\n", (int)SCALAR_COUNT);
}

// ---- errors of the special functions over all inputs ----

// Monotonic in the float: neighbours differ by one, -0 and 0 by none.
__device__ static int64_t ordered(uint32_t bits) {
  int64_t magnitude = bits & 0x7fffffff;
  return bits >> 31 ? -magnitude : magnitude;
}

__device__ static double exact(int which, double x) {
  switch (which) {
  case 0:
  case 1: return exp2(x);
  case 2:
  case 3: return log2(x);
  case 4:
  case 5:
  case 6:
  case 7: return 1 / x;
  case 8:
  case 9:
  case 10: return sqrt(x);
  case 11:
  case 12: return 1 / sqrt(x);
  case 13:
  case 14: return sin(x);
  case 15:
  case 16: return cos(x);
  default: return tanh(x);
  }
}

static const char *const ulp_names[] = {
    "ex2.approx.f32",     "ex2.approx.ftz.f32", "lg2.approx.f32",       "lg2.approx.ftz.f32", "rcp.approx.f32",
    "rcp.approx.ftz.f32", "rcp.rn.f32",         "rcp.rn.ftz.f32",       "sqrt.approx.f32",    "sqrt.approx.ftz.f32",
    "sqrt.rn.f32",        "rsqrt.approx.f32",   "rsqrt.approx.ftz.f32", "sin.approx.f32",     "sin.approx.ftz.f32",
    "cos.approx.f32",     "cos.approx.ftz.f32", "tanh.approx.f32"};
enum { ULP_COUNT = sizeof ulp_names / sizeof *ulp_names, BUCKETS = 512, BLOCKS_PER_BUCKET = 32 };

// The largest error in a bucket (the inputs of one sign and exponent), in ulps of the correctly rounded result, with
// the worst input below it: error << 32 | input. 0xffffffff: one is NaN and the other not.
__global__ void ulp_kernel(int which, bool flush, unsigned long long *worst, unsigned long long *worst_absolute) {
  uint32_t bucket = blockIdx.x, inputs_per_block = (1u << 23) / BLOCKS_PER_BUCKET;
  uint64_t thread_worst = 0;
  float thread_absolute = 0;
  for (uint32_t i = threadIdx.x; i < inputs_per_block; i += blockDim.x) {
    uint32_t input = bucket << 23 | (blockIdx.y * inputs_per_block + i);
    uint32_t got = (uint32_t)scalar_result(which, input, 0, 0);
    uint32_t seen = flush && bucket % 256 == 0 ? input & 0x80000000u : input;
    float reference = (float)exact(which, (double)__uint_as_float(seen));
    uint32_t want = __float_as_uint(reference);
    if (flush && (want & 0x7fffffff) < 0x00800000) want &= 0x80000000u;
    bool got_nan = (got & 0x7fffffff) > 0x7f800000, want_nan = (want & 0x7fffffff) > 0x7f800000;
    uint64_t error;
    if (got_nan || want_nan)
      error = got_nan == want_nan ? 0 : 0xffffffffu;
    else
      error = (uint64_t)llabs(ordered(got) - ordered(want));
    if (error > 0xffffffffu) error = 0xfffffffeu;
    uint64_t packed = error << 32 | input;
    if (error && packed > thread_worst) thread_worst = packed;
    float absolute = fabsf(__uint_as_float(got) - reference);
    if (absolute > thread_absolute && absolute < 1e30f) thread_absolute = absolute;
  }
  atomicMax(&worst[bucket], (unsigned long long)thread_worst);
  atomicMax(&worst_absolute[bucket], (unsigned long long)__float_as_uint(thread_absolute));
}

static void record_ulps(const char *explore) {
  FILE *text = open_file(explore, "ulp.txt", "w"), *binary = open_file(explore, "ulp.bin", "wb");
  unsigned long long *device;
  CHECK(cudaMalloc(&device, 2 * BUCKETS * sizeof *device));
  for (int which = 0; which < ULP_COUNT; which++) {
    if (strcmp(ulp_names[which], scalars[which].name))
      fprintf(stderr, "record: ulp_names and SCALARS differ at %d\n", which), exit(1);
    CHECK(cudaMemset(device, 0, 2 * BUCKETS * sizeof *device));
    ulp_kernel<<<dim3(BUCKETS, BLOCKS_PER_BUCKET), 256>>>(which, strstr(ulp_names[which], "ftz") != NULL, device,
                                                          device + BUCKETS);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    unsigned long long worst[2 * BUCKETS];
    CHECK(cudaMemcpy(worst, device, sizeof worst, cudaMemcpyDeviceToHost));
    write_bytes(binary, worst, sizeof worst);
    // Neighbouring exponents with the same worst error share a line.
    fprintf(text, "%s\n", ulp_names[which]);
    unsigned long long moderate = 0;
    for (int first = 0, last; first < BUCKETS; first = last + 1) {
      for (last = first; last + 1 < BUCKETS && (last + 1) % 256 && worst[last + 1] >> 32 == worst[first] >> 32;) last++;
      uint32_t bits = (uint32_t)worst[BUCKETS + first];
      float absolute;
      memcpy(&absolute, &bits, sizeof absolute);
      fprintf(text, "  %c 2^%d..%d: %llu ulp, worst input %08llx, absolute %g\n", first < 256 ? '+' : '-',
              first % 256 - 127, last % 256 - 127, worst[first] >> 32, worst[first] & 0xffffffff, absolute);
    }
    for (int bucket = 0; bucket < BUCKETS; bucket++)
      if (bucket % 256 && bucket % 256 < 255 && worst[bucket] > moderate) moderate = worst[bucket];
    printf("%-22s worst over normal inputs %llu ulp at %08llx\n", ulp_names[which], moderate >> 32,
           moderate & 0xffffffff);
  }
  if (fclose(text) || fclose(binary)) perror("record: cannot write"), exit(1);
  CHECK(cudaFree(device));
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: record GOLDEN_DIRECTORY EXPLORE_DIRECTORY\n");
    return 2;
  }
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  int driver = 0;
  CHECK(cudaDriverGetVersion(&driver));
  printf("%s, compute capability %d.%d, driver for CUDA %d\n", properties.name, properties.major, properties.minor,
         driver);
  summary = open_file(argv[2], "summary.txt", "w");
  FILE *explore = open_file(argv[2], "explore.bin", "wb");
  const char *last_file = "";
  for (const Family &family : make_plan()) {
    record_family(family, !strcmp(family.file, last_file), argv[1], explore);
    last_file = family.file;
  }
  if (fclose(explore) || fclose(summary)) perror("record: cannot write"), exit(1);
  record_scalars(argv[1]);
  record_ulps(argv[2]);
  printf("done\n");
  return 0;
}
