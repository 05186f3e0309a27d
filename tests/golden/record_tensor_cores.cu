// Records the tensor cores: mma.sync, wmma and wgmma on the tiles of vectors.h, and where tensor_core.c differs from
// them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdlib>

extern "C" {
#include "tensor_core.h"
}
#include "record.h"
#include "vectors.h"

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

static Inputs make_inputs(const Family &family) {
  Inputs inputs = {std::vector<GoldenTile>(TILES), FNV1A_START, {}};
  std::vector<uint16_t> a, b, c16;
  std::vector<uint32_t> c32;
  for (int t = 0; t < TILES; t++) {
    GoldenTile &tile = inputs.tiles[t];
    golden_tile(family.format, family.accumulator, family.depth, t, &tile);
    inputs.hash = fnv1a(inputs.hash, &tile, sizeof tile);
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
    uint64_t hash = fnv1a(FNV1A_START, results.data() + t * tile_size, tile_size);
    write_bytes(file, &hash, sizeof hash);
  }
  write_bytes(file, results.data(), full * tile_size);
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
  close_file(file);
  CHECK(cudaFree((void *)inputs.device.a));
  CHECK(cudaFree((void *)inputs.device.b));
  CHECK(cudaFree((void *)inputs.device.c));
  CHECK(cudaFree(inputs.device.d));
}

// The families that share a file follow each other.
void record_tensor_cores(const char *golden, const char *explore_directory) {
  summary = open_file(explore_directory, "summary.txt", "w");
  FILE *explore = open_file(explore_directory, "explore.bin", "wb");
  const char *last_file = "";
  for (const Family &family : make_plan()) {
    record_family(family, !strcmp(family.file, last_file), golden, explore);
    last_file = family.file;
  }
  close_file(explore);
  close_file(summary);
}
