// The launches whose counters are compared: which kernel of patterns.cu, at which addresses. The recorder on the GPU
// and the test on the emulator both walk this list, so that the recorded numbers need no inputs beside them.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "async_cases.h"
#include "offsets.h"

typedef struct CounterCase {
  char name[80];  // "ld_shared_b32 stride 2"
  const char *kernel;
  unsigned blocks, threads;
  int size;  // bytes that a lane accesses; 0 of what is no access
  Offsets offsets;
  CaseTensor tensor;  // what the kernel's third argument, a tensor map, shows; without a width there is none
} CounterCase;

// ---- patterns: a lane's offset in bytes, or -1 when the lane takes no part ----

typedef struct Lane {
  int lane, row, size;  // size: bytes of one access
} Lane;

typedef struct Pattern {
  const char *name;
  int (*offset)(Lane at, int n);
  int n;
  int rows;  // blocks, each with addresses of its own; 0 means 1
} Pattern;

// A finaliser of the murmur kind: 32 bits that depend on all of x.
static inline unsigned case_hash(unsigned x) {
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}
static inline unsigned lane_hash(Lane at, int n) {
  return case_hash((unsigned)n << 24 ^ (unsigned)at.size << 16 ^ (unsigned)at.row << 8 ^ (unsigned)at.lane);
}
static inline unsigned row_hash(Lane at, int n) { return case_hash(0x5a5a0000u ^ (unsigned)n << 8 ^ (unsigned)at.row); }

static inline int stride(Lane at, int n) { return at.lane * n * at.size; }
static inline int broadcast(Lane at, int n) { return (void)at, n; }
static inline int reversed(Lane at, int n) { return (n - at.lane) * at.size; }
static inline int rotated(Lane at, int n) { return (at.lane + n) % 32 * at.size; }
static inline int shifted(Lane at, int n) { return at.lane * at.size + n; }
static inline int shifted_elements(Lane at, int n) { return (at.lane + n) * at.size; }
static inline int shuffled(Lane at, int n) { return (at.lane * n + 7) % 32 * at.size; }

// Lanes share addresses: as many neighbours, lanes that differ in the bits n, the lanes of each n.
static inline int neighbours(Lane at, int n) { return at.lane / n * at.size; }
static inline int without_bits(Lane at, int n) { return (at.lane & ~n) * at.size; }
static inline int repeated(Lane at, int n) { return at.lane % n * at.size; }

// A column of a row-major tile: rows of n bytes. Swizzled: the column's place in its row is exclusive-ored with the
// row.
static inline int column(Lane at, int n) { return at.lane * n; }
static inline int column_swizzled(Lane at, int n) {
  int chunks = n / at.size;
  return at.lane * n + ((at.lane ^ 5) % chunks) * at.size;
}
// The fragment of mma.sync: lane l has row l / 4, element l % 4.
static inline int fragment(Lane at, int n) { return at.lane / 4 * n + at.lane % 4 * at.size; }

// Some lanes alone; the others take no part.
static inline int only(Lane at, unsigned mask, int offset) { return mask >> at.lane & 1 ? offset : -1; }
static inline int masked(Lane at, int n) { return only(at, (unsigned)n, stride(at, 1)); }
static inline int masked_column(Lane at, int n) { return only(at, (unsigned)n, column(at, 128)); }

// Random elements: of n, then with a random set of lanes alone, then with lanes that share addresses or not in a
// regular way, which tells models of merging apart.
static inline int random_of(Lane at, int n) { return (int)(lane_hash(at, n) % (unsigned)n) * at.size; }
static inline int random_masked(Lane at, int n) {
  return only(at, row_hash(at, 1) & row_hash(at, 2), random_of(at, n));
}
static inline int random_regular(Lane at, int n) {
  unsigned hash = row_hash(at, n);
  int lane = at.lane & (int)(hash & 31), factor = 1 << (hash >> 8) % 4, swap = (int)(hash >> 16) & 31;
  return (lane ^ swap) * factor * at.size;
}

// Rows of 16 bytes for ldmatrix and stmatrix. Side by side: matrix m is columns 8m .. 8m+7 of a tile with rows of n
// bytes. Tile: matrices 0 and 1 are rows 0-7 and 8-15 of the first columns, 2 and 3 of the next.
static inline int side_by_side(Lane at, int n) { return at.lane % 8 * n + at.lane / 8 * 16; }
static inline int tile16(Lane at, int n) { return at.lane % 16 * n + at.lane / 16 * 16; }
static inline int tile16_swizzled(Lane at, int n) {
  int row = at.lane % 16, chunk = at.lane / 16, swizzle = n == 128 ? row % 8 : row / 2 % 4;
  return row * n + (chunk ^ swizzle) * 16;
}
static inline int random_rows(Lane at, int n) { return (int)(lane_hash(at, n) % (unsigned)n) * 16; }

static inline int elements(Lane at, int n) { return (void)at, n; }
static inline int trips(Lane at, int n) { return (void)at, n; }
static inline int trips_per_lane(Lane at, int n) { return n * (1 + at.lane % 8); }

// ---- lists of patterns ----

#define STRIDES_SHORT                                                                                                  \
  {"stride 1", stride, 1, 0}, {"stride 2", stride, 2, 0}, { "stride 3", stride, 3, 0 }
#define STRIDES                                                                                                        \
  STRIDES_SHORT, {"stride 4", stride, 4, 0}, { "stride 8", stride, 8, 0 }
#define RANDOM                                                                                                         \
  {"random of 1024", random_of, 1024, 32}, {"random of 40", random_of, 40, 32},                                        \
      {"random masked", random_masked, 256, 32}, {                                                                     \
    "random regular", random_regular, 1, 32                                                                            \
  }

static const Pattern shared_wide[] = {
    STRIDES,
    {"stride 17", stride, 17, 0},
    {"stride 32", stride, 32, 0},
    {"stride 33", stride, 33, 0},
    {"broadcast", broadcast, 64, 0},
    {"reversed", reversed, 31, 0},
    {"shuffled", shuffled, 11, 0},
    {"pairs", neighbours, 2, 0},
    {"fours", neighbours, 4, 0},
    {"lanes equal but for bit 1", without_bits, 2, 0},
    {"lanes equal but for bit 2", without_bits, 4, 0},
    {"halves repeat", repeated, 16, 0},
    {"quarters repeat", repeated, 8, 0},
    {"column of 128-byte rows", column, 128, 0},
    {"column of 128-byte rows swizzled", column_swizzled, 128, 0},
    {"fragment of 128-byte rows", fragment, 128, 0},
    {"fragment of 144-byte rows", fragment, 144, 0},
    {"even lanes", masked, 0x55555555, 0},
    {"first half", masked, 0xffff, 0},
    {"lanes 0-7", masked, 0xff, 0},
    {"lane 3", masked, 8, 0},
    {"column of even lanes", masked_column, 0x55555555, 0},
    {"random regular 2", random_regular, 2, 0},
    {"random regular 3", random_regular, 3, 0},
    RANDOM,
};
static const Pattern shared_store[] = {
    STRIDES,
    {"stride 17", stride, 17, 0},
    {"stride 32", stride, 32, 0},
    {"broadcast", broadcast, 64, 0},
    {"pairs", neighbours, 2, 0},
    {"fours", neighbours, 4, 0},
    {"halves repeat", repeated, 16, 0},
    {"quarters repeat", repeated, 8, 0},
    {"column of 128-byte rows swizzled", column_swizzled, 128, 0},
    {"fragment of 144-byte rows", fragment, 144, 0},
    {"even lanes", masked, 0x55555555, 0},
    {"lane 3", masked, 8, 0},
    RANDOM,
};
static const Pattern shared_narrow[] = {
    STRIDES_SHORT,
    {"broadcast", broadcast, 64, 0},
    {"column of 128-byte rows", column, 128, 0},
    {"random of 1024", random_of, 1024, 32},
};
static const Pattern matrix_all[] = {
    {"rows of 16 bytes", side_by_side, 16, 0},
    {"side by side in 128-byte rows", side_by_side, 128, 0},
    {"tile of 48-byte rows", tile16, 48, 0},
    {"tile of 64-byte rows", tile16, 64, 0},
    {"tile of 128-byte rows", tile16, 128, 0},
    {"tile of 144-byte rows", tile16, 144, 0},
    {"tile of 256-byte rows", tile16, 256, 0},
    {"tile of 64-byte rows swizzled", tile16_swizzled, 64, 0},
    {"tile of 128-byte rows swizzled", tile16_swizzled, 128, 0},
    {"one row", broadcast, 64, 0},
    {"random rows", random_rows, 256, 32},
    {"random rows of 12", random_rows, 12, 32},
};
static const Pattern matrix_few[] = {
    {"rows of 16 bytes", side_by_side, 16, 0},
    {"tile of 128-byte rows", tile16, 128, 0},
    {"tile of 128-byte rows swizzled", tile16_swizzled, 128, 0},
    {"one row", broadcast, 64, 0},
    {"random rows", random_rows, 256, 32},
};
#define GLOBAL                                                                                                         \
  STRIDES_SHORT, {"stride 8", stride, 8, 0}, {"stride 32", stride, 32, 0}, {"broadcast", broadcast, 64, 0},            \
      {"shifted by an element", shifted_elements, 1, 0}, {                                                             \
    "random of 1024", random_of, 1024, 32                                                                              \
  }
static const Pattern global_few[] = {GLOBAL};
static const Pattern global_all[] = {
    GLOBAL,
    {"stride 4", stride, 4, 0},
    {"shifted by 16 bytes", shifted, 16, 0},
    {"shuffled", shuffled, 11, 0},
    {"halves repeat", repeated, 16, 0},
    {"quarters repeat", repeated, 8, 0},
    {"even lanes", masked, 0x55555555, 0},
    {"random masked", random_masked, 256, 32},
};
static const Pattern global_variant[] = {
    {"stride 1", stride, 1, 0},
    {"stride 3", stride, 3, 0},
    {"broadcast", broadcast, 64, 0},
    {"random of 1024", random_of, 1024, 32},
};
static const Pattern atomic[] = {
    {"stride 1", stride, 1, 0},      {"stride 2", stride, 2, 0},  {"stride 32", stride, 32, 0},
    {"broadcast", broadcast, 64, 0}, {"pairs", neighbours, 2, 0}, {"random of 40", random_of, 40, 32},
};
static const Pattern copy[] = {
    {"stride 1", stride, 1, 0},
    {"stride 2", stride, 2, 0},
    {"stride 8", stride, 8, 0},
    {"pairs", neighbours, 2, 0},
    {"column of 128-byte rows swizzled", column_swizzled, 128, 0},
    {"even lanes", masked, 0x55555555, 0},
};
static const Pattern local[] = {
    {"same place", broadcast, 64, 0},      {"stride 1", stride, 1, 0},
    {"pairs", neighbours, 2, 0},           {"halves repeat", repeated, 16, 0},
    {"even lanes", masked, 0x55555555, 0}, {"lanes 0-7", masked, 0xff, 0},
    {"random of 40", random_of, 40, 32},
};
static const Pattern cluster[] = {
    {"stride 1", stride, 1, 2},      {"stride 2", stride, 2, 2},  {"stride 32", stride, 32, 2},
    {"broadcast", broadcast, 64, 2}, {"pairs", neighbours, 2, 2},
};
static const Pattern wmma[] = {
    {"rows of 16", elements, 16, 0},
    {"rows of 24", elements, 24, 0},
    {"rows of 64", elements, 64, 0},
    {"rows of 72", elements, 72, 0},
};
static const Pattern copy_zeros[] = {{"stride 1", stride, 1, 0}, {"stride 2", stride, 2, 0}};
static const Pattern loop[] = {{"8 trips", trips, 8, 0}, {"16 trips", trips, 16, 0}};
static const Pattern loop_blocks[] = {{"3 blocks of 8 trips", trips, 8, 3}, {"3 blocks of 16 trips", trips, 16, 3}};
static const Pattern loop_per_lane[] = {{"8 trips", trips_per_lane, 8, 0}, {"16 trips", trips_per_lane, 16, 0}};

// ---- kernels and their patterns ----

typedef struct CaseGroup {
  const char *kernel;
  int size;  // bytes of one access
  unsigned threads;
  const Pattern *patterns;
  int count;
} CaseGroup;

#define GROUP(kernel, size, threads, list)                                                                             \
  { kernel, size, threads, list, (int)(sizeof(list) / sizeof(list)[0]) }
#define ACCESS(kernel, size, list) GROUP(kernel, size, WARP_LANES, list)
#define REPEATED(kernel) GROUP(kernel, 0, WARP_LANES, loop)

static const CaseGroup case_groups[] = {
    ACCESS("ld_shared_b8", 1, shared_narrow),
    ACCESS("ld_shared_b16", 2, shared_narrow),
    ACCESS("ld_shared_b32", 4, shared_wide),
    ACCESS("ld_shared_b64", 8, shared_wide),
    ACCESS("ld_shared_b128", 16, shared_wide),
    ACCESS("st_shared_b8", 1, shared_narrow),
    ACCESS("st_shared_b16", 2, shared_narrow),
    ACCESS("st_shared_b32", 4, shared_store),
    ACCESS("st_shared_b64", 8, shared_store),
    ACCESS("st_shared_b128", 16, shared_store),
    ACCESS("ldmatrix_x1", 16, matrix_few),
    ACCESS("ldmatrix_x2", 16, matrix_few),
    ACCESS("ldmatrix_x4", 16, matrix_all),
    ACCESS("ldmatrix_x4_trans", 16, matrix_few),
    ACCESS("stmatrix_x1", 16, matrix_few),
    ACCESS("stmatrix_x2", 16, matrix_few),
    ACCESS("stmatrix_x4", 16, matrix_few),
    ACCESS("stmatrix_x4_trans", 16, matrix_few),
    ACCESS("ld_global_b8", 1, global_few),
    ACCESS("ld_global_b16", 2, global_few),
    ACCESS("ld_global_b32", 4, global_all),
    ACCESS("ld_global_b64", 8, global_all),
    ACCESS("ld_global_b128", 16, global_all),
    ACCESS("ld_global_nc_b32", 4, global_variant),
    ACCESS("ld_global_nc_b128", 16, global_variant),
    ACCESS("ld_global_cg_b32", 4, global_variant),
    ACCESS("ld_global_cg_b128", 16, global_variant),
    ACCESS("ld_volatile_b32", 4, global_variant),
    ACCESS("st_global_b8", 1, global_variant),
    ACCESS("st_global_b16", 2, global_variant),
    ACCESS("st_global_b32", 4, global_all),
    ACCESS("st_global_b64", 8, global_few),
    ACCESS("st_global_b128", 16, global_all),
    ACCESS("atom_shared_add", 4, atomic),
    ACCESS("atom_shared_cas", 4, atomic),
    ACCESS("red_shared_add", 4, atomic),
    ACCESS("atom_global_add", 4, atomic),
    ACCESS("atom_global_cas", 4, atomic),
    ACCESS("red_global_add", 4, atomic),
    ACCESS("cp_async_ca_4_gather", 4, copy),
    ACCESS("cp_async_ca_8_gather", 8, copy),
    ACCESS("cp_async_ca_16_gather", 16, copy),
    ACCESS("cp_async_cg_16_gather", 16, copy),
    ACCESS("cp_async_ca_4_scatter", 4, copy),
    ACCESS("cp_async_cg_16_scatter", 16, copy),
    ACCESS("cp_async_cg_16_zeros", 16, copy_zeros),
    ACCESS("atom_shared_exch_b64", 8, atomic),
    ACCESS("atom_global_add_u64", 8, atomic),
    ACCESS("red_global_add_u64", 8, atomic),
    ACCESS("red_global_add_f32", 4, atomic),
    ACCESS("local_b8", 1, local),
    ACCESS("local_b16", 2, local),
    ACCESS("local_b32", 4, local),
    ACCESS("local_b64", 8, local),
    ACCESS("local_b128", 16, local),
    ACCESS("ld_cluster_b32", 4, cluster),
    ACCESS("st_cluster_b32", 4, cluster),
    ACCESS("ld_cluster_own_b32", 4, cluster),
    ACCESS("st_cluster_own_b32", 4, cluster),
    ACCESS("atom_cluster_add", 4, cluster),
    ACCESS("atom_shared_add_f32", 4, atomic),
    ACCESS("ld_generic_mixed", 4, copy_zeros),
    GROUP("wmma_load_a_shared", 0, WARP_LANES, wmma),
    GROUP("wmma_load_b_shared", 0, WARP_LANES, wmma),
    GROUP("wmma_load_b_row_shared", 0, WARP_LANES, wmma),
    GROUP("wmma_load_a_global", 0, WARP_LANES, wmma),
    GROUP("wmma_store_shared", 0, WARP_LANES, wmma),
    GROUP("wmma_store_global", 0, WARP_LANES, wmma),
    REPEATED("repeat_fma_f32"),
    GROUP("repeat_fma_f32", 0, 100, loop_blocks),
    REPEATED("repeat_mul_f32"),
    REPEATED("repeat_add_f32"),
    REPEATED("repeat_max_f32"),
    REPEATED("repeat_fma_f64"),
    REPEATED("repeat_fma_f16x2"),
    REPEATED("repeat_mad_s32"),
    REPEATED("repeat_lop3"),
    REPEATED("repeat_shift"),
    REPEATED("repeat_popc"),
    REPEATED("repeat_ex2_ftz"),
    REPEATED("repeat_rcp_ftz"),
    REPEATED("repeat_shfl"),
    REPEATED("repeat_ballot"),
    REPEATED("repeat_bar_sync"),
    REPEATED("repeat_setp_selp"),
    REPEATED("repeat_guard_32"),
    REPEATED("repeat_guard_16"),
    REPEATED("repeat_guard_0"),
    REPEATED("repeat_branch"),
    GROUP("repeat_trips_per_lane", 0, WARP_LANES, loop_per_lane),
    REPEATED("repeat_ex2"),
    REPEATED("repeat_div"),
    REPEATED("repeat_add_u64"),
    REPEATED("repeat_mul_u64"),
    REPEATED("repeat_mul_wide"),
    REPEATED("repeat_div_u32"),
    REPEATED("repeat_cvt_f16x2"),
    REPEATED("repeat_ld_shared"),
    REPEATED("repeat_lg2_ftz"),
    REPEATED("repeat_lg2"),
    REPEATED("repeat_rsqrt_ftz"),
    REPEATED("repeat_sqrt_ftz"),
    REPEATED("repeat_sqrt_rn"),
    REPEATED("repeat_rcp_rn"),
    REPEATED("repeat_sin"),
    REPEATED("repeat_cos"),
    REPEATED("repeat_tanh"),
    REPEATED("repeat_tanh_f16x2"),
    REPEATED("repeat_ex2_f16x2"),
    REPEATED("repeat_ex2_bf16x2"),
    REPEATED("repeat_div_full"),
    REPEATED("repeat_div_f64"),
    REPEATED("repeat_rcp_f64"),
    REPEATED("repeat_rem_s32"),
    REPEATED("repeat_div_u64"),
    REPEATED("repeat_cvt_s32_f32"),
    REPEATED("repeat_cvt_f32_s32"),
    REPEATED("repeat_cvt_f32_f16"),
    REPEATED("repeat_clz"),
    REPEATED("repeat_mma_m16n8k16"),
    REPEATED("repeat_mma_m16n8k8"),
    REPEATED("repeat_mma_bf16"),
    GROUP("repeat_wgmma", 0, 128, loop),
};

// Case number `*index` of case_groups; subtracts those that are there when it is beyond them.
static inline bool pattern_case(int *index, CounterCase *made) {
  for (int g = 0; g < (int)(sizeof case_groups / sizeof *case_groups); *index -= case_groups[g++].count) {
    const CaseGroup *group = &case_groups[g];
    if (*index >= group->count) continue;
    const Pattern *pattern = &group->patterns[*index];
    *made = (CounterCase){.kernel = group->kernel,
                          .blocks = pattern->rows ? (unsigned)pattern->rows : 1,
                          .threads = group->threads,
                          .size = group->size};
    snprintf(made->name, sizeof made->name, "%s %s", group->kernel, pattern->name);
    for (int row = 0; row < MAX_ROWS; row++)
      for (int lane = 0; lane < WARP_LANES; lane++)
        made->offsets.of[row][lane] = (uint16_t)pattern->offset((Lane){lane, row, group->size}, pattern->n);
    return true;
  }
  return false;
}

// The same of async_groups, each launch with each number of trips. Every block reads the same arguments.
static inline bool async_case(int index, CounterCase *made) {
  for (int g = 0; g < (int)(sizeof async_groups / sizeof *async_groups); g++) {
    const AsyncGroup *group = &async_groups[g];
    int count = group->count * group->trip_counts;
    if (index >= count) {
      index -= count;
      continue;
    }
    const AsyncLaunch *launch = &group->launches[index / group->trip_counts];
    int trips = index % group->trip_counts ? 16 : 8;
    *made = (CounterCase){
        .kernel = group->kernel, .blocks = group->blocks, .threads = group->threads, .tensor = launch->tensor};
    int length = snprintf(made->name, sizeof made->name, "%s %s", group->kernel, launch->name);
    if (group->trip_counts > 1) snprintf(made->name + length, sizeof made->name - (size_t)length, ": %d trips", trips);
    for (int row = 0; row < MAX_ROWS; row++) {
      for (int i = 0; i < ASYNC_ARGS; i++) made->offsets.of[row][i] = launch->argument[i];
      made->offsets.of[row][ARG_TRIPS] = (uint16_t)trips;
    }
    return true;
  }
  return false;
}

// Case number `index`; false beyond the last.
static inline bool counter_case(int index, CounterCase *made) {
  return pattern_case(&index, made) || async_case(index, made);
}
