#include "counter_tables.h"

#include <string.h>

enum { MAX_ROWS_OF_TABLE = 64, MAX_CELL = 80 };

static const struct {
  const char *kernel, *why;
} differences[] = {
    {"repeat_branch",
     "a `BSSY` before and a `BSYNC` after each side; a `setp` leaves the loop and a `bra.uni` is gone"},
    {"repeat_ex2", "without `.ftz` an `ex2` scales subnormals: `FSETP`, two `FMUL` under its guard, `MUFU.EX2`"},
    {"repeat_div", "a rounded division is a subroutine's worth of `FFMA`, and slower for some operands"},
    {"repeat_mul_u64", "64 bits are made of 32: `IMAD.WIDE.U32`, `IMAD`, `IADD3`"},
    {"repeat_mul_wide", "the `mov.b64` that takes a register apart is no instruction: registers are 32 bits wide"},
    {"repeat_div_u32", "an integer division is about 18 instructions"},
    {"repeat_cvt_f16x2", "the `mov.b32` between types is no instruction: registers have none"},
    {"repeat_ld_shared", "`IADD3` does two of the additions"},
    {"repeat_lg2", "without `.ftz` an `lg2` scales subnormals: `FSETP`, `FMUL` under its guard, `MUFU.LG2`, `FADD`"},
    {"repeat_sqrt_rn", "a rounded root is a `MUFU.RSQ` and a correction, and slower for some operands"},
    {"repeat_rcp_rn", "a rounded reciprocal is a `MUFU.RCP` and a correction, and slower for some operands"},
    {"repeat_rcp_f64", "`MUFU.RCP64H`, then Newton's method in `DFMA`"},
    {"repeat_div_f64", "`MUFU.RCP64H`, then Newton's method in `DFMA`, and slower for some operands"},
    {"repeat_div_full", "`FSETP`, `FSEL` and two `FMUL` scale the operands of `MUFU.RCP`"},
    {"repeat_sin", "`FMUL.RZ` makes turns of the angle"},
    {"repeat_cos", "`FMUL.RZ` makes turns of the angle"},
    {"repeat_tanh_f16x2", "a `MUFU` for each half, and a `PRMT` that packs them"},
    {"repeat_ex2_f16x2", "a `MUFU` for each half, and a `PRMT` that packs them"},
    {"repeat_ex2_bf16x2", "a `MUFU` for each half, and a `PRMT` that packs them"},
    {"repeat_rem_s32", "an integer division is about 20 instructions"},
    {"repeat_div_u64", "a division of 64-bit integers is a subroutine of about 70 instructions"},
    {"repeat_cvt_s32_f32", "the `mov.b32` between types is no instruction: registers have none"},
    {"repeat_cvt_f32_s32", "the `mov.b32` between types is no instruction: registers have none"},
    {"repeat_clz", "`FLO` finds the first one from the other side, and `IADD3` turns that round"},
    {"repeat_mma_m16n8k16", "`MOV`s bring operands into neighbouring registers, and a `NOP` follows most `HMMA`"},
    {"repeat_mma_m16n8k8", "`MOV`s bring operands into neighbouring registers, and a `NOP` follows most `HMMA`"},
    {"repeat_mma_bf16", "`MOV`s bring operands into neighbouring registers, and a `NOP` follows most `HMMA`"},
    {"repeat_wgmma", "`UMOV`s bring the descriptors into uniform registers; the commit is part of the last `HGMMA`"},
    {"wgmma_n8_a_registers", "the commit is part of the last `HGMMA`, and `LDC` fills A's registers again and again"},
    {"wgmma_n64_a_registers", "the commit is part of the last `HGMMA`, and `LDC` fills A's registers again and again"},
    {"wgmma_n128_a_registers", "the commit is part of the last `HGMMA`, and `LDC` fills A's registers again and again"},
    {"wgmma_n256_a_registers", "the same, and a `NOP` between each two"},
    {"wgmma_n64_a_registers_mn_major", "as with a K-major B"},
    {"wgmma_n192", "the commit is part of the last `HGMMA`, and a `NOP` is between each two"},
    {"wgmma_n256", "the commit is part of the last `HGMMA`, and a `NOP` is between each two"},
    {"wgmma_n256_mn_major", "the commit is part of the last `HGMMA`, and a `NOP` is between each two"},
};

const char *counter_why_sass_differs(const char *kernel) {
  for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
    if (!strcmp(differences[i].kernel, kernel)) return differences[i].why;
  return strncmp(kernel, "wgmma_", 6) ? NULL : "the commit is part of the last `HGMMA`";
}

const OnPipe *counter_others_on_pipe(const char *kernel) {
  static const char slow[] = "some operands take a slower path, which has one more, or two";
  static const OnPipe others[] = {
      {"repeat_popc", 8, "`POPC`"},
      {"repeat_clz", 8, "`FLO`"},
      {"repeat_cvt_s32_f32", 8, "`F2I`; the other way is `I2FP`, of another pipe"},
      {"repeat_div_u32", 16, "`I2F` and `F2I`"},
      {"repeat_rem_s32", 16, "`I2F` and `F2I`"},
      {"repeat_div_u64", 16, "`I2F` and `F2I`"},
      {"repeat_div", OPERANDS_DECIDE, slow},
      {"repeat_rcp_rn", OPERANDS_DECIDE, slow},
      {"repeat_div_f64", OPERANDS_DECIDE, slow},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(others[i].kernel, kernel)) return &others[i];
  return NULL;
}

// ---- cells ----

typedef struct Pair {
  uint64_t emulator, ncu;
} Pair;

static Pair pair(const CounterRuns *runs, const CounterRun *run, CounterKind kind) {
  return (Pair){run->emulator.value[kind], counter_recorded(runs, run, counter_name(kind))};
}

// One number where the two agree, "emulator, ncu N" where not.
static void put(char cell[MAX_CELL], Pair a, double divisor) {
  if (a.emulator == a.ncu)
    snprintf(cell, MAX_CELL, "%.5g", (double)a.ncu / divisor);
  else
    snprintf(cell, MAX_CELL, "**%.5g, ncu %.5g**", (double)a.emulator / divisor, (double)a.ncu / divisor);
}

typedef void Cell(char cell[MAX_CELL], const CounterRuns *runs, const CounterRun *run);

// "4 (3)": wavefronts, and bank conflicts among them, of one warp access on average.
static void wavefronts_cell(char cell[MAX_CELL], const CounterRuns *runs, const CounterRun *run) {
  static const CounterKind kinds[][2] = {
      {COUNTER_SHARED_LOAD_WAVEFRONTS, COUNTER_SHARED_LOAD_BANK_CONFLICTS},
      {COUNTER_SHARED_STORE_WAVEFRONTS, COUNTER_SHARED_STORE_BANK_CONFLICTS},
      {COUNTER_SHARED_ATOMIC_WAVEFRONTS, COUNTER_SHARED_ATOMIC_BANK_CONFLICTS},
  };
  char wavefronts[MAX_CELL], conflicts[MAX_CELL];
  for (int k = 0; k < 3; k++) {
    if (!pair(runs, run, kinds[k][0]).ncu) continue;
    put(wavefronts, pair(runs, run, kinds[k][0]), run->c.blocks);
    put(conflicts, pair(runs, run, kinds[k][1]), run->c.blocks);
    snprintf(cell, MAX_CELL, strcmp(conflicts, "0") ? "%.30s (%.30s)" : "%.30s", wavefronts, conflicts);
  }
}

// Sectors of one request on average.
static void sectors_cell(char cell[MAX_CELL], const CounterRuns *runs, const CounterRun *run) {
  static const CounterKind kinds[] = {COUNTER_GLOBAL_LOAD_SECTORS,   COUNTER_GLOBAL_STORE_SECTORS,
                                      COUNTER_GLOBAL_ATOMIC_SECTORS, COUNTER_GLOBAL_REDUCTION_SECTORS,
                                      COUNTER_CLUSTER_LOAD_SECTORS,  COUNTER_CLUSTER_STORE_SECTORS,
                                      COUNTER_CLUSTER_ATOMIC_SECTORS};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    if (pair(runs, run, kinds[k]).ncu) put(cell, pair(runs, run, kinds[k]), run->c.blocks);
}

// "64, loads 528 (496)": wavefronts of the compare-and-swaps of a loop, of its loads, and bank conflicts of these.
static void loop_cell(char cell[MAX_CELL], const CounterRuns *runs, const CounterRun *run) {
  char swaps[MAX_CELL], loads[MAX_CELL], conflicts[MAX_CELL];
  put(swaps, pair(runs, run, COUNTER_SHARED_ATOMIC_WAVEFRONTS), run->c.blocks);
  put(loads, pair(runs, run, COUNTER_SHARED_LOAD_WAVEFRONTS), run->c.blocks);
  put(conflicts, pair(runs, run, COUNTER_SHARED_LOAD_BANK_CONFLICTS), run->c.blocks);
  snprintf(cell, MAX_CELL, "%.20s, loads %.20s (%.20s)", swaps, loads, conflicts);
}

// "64 (2)": sectors of a load on average, and requests. The kernels store as much.
static void local_cell(char cell[MAX_CELL], const CounterRuns *runs, const CounterRun *run) {
  char sectors[MAX_CELL], requests[MAX_CELL];
  put(sectors, pair(runs, run, COUNTER_LOCAL_LOAD_SECTORS), run->c.blocks);
  put(requests, pair(runs, run, COUNTER_LOCAL_LOAD_REQUESTS), run->c.blocks);
  snprintf(cell, MAX_CELL, "%.30s (%.30s)", sectors, requests);
}

// ---- tables ----

static const char *pattern_of(const CounterRun *run) { return run->c.name + strlen(run->c.kernel) + 1; }

static const CounterRun *find_run(const CounterRuns *runs, const char *kernel, const char *pattern) {
  for (int i = 0; i < runs->count; i++)
    if (!strcmp(runs->items[i].c.kernel, kernel) && !strcmp(pattern_of(&runs->items[i]), pattern))
      return &runs->items[i];
  return NULL;
}

// The patterns of the kernels, in the order of the cases.
static int list_patterns(const CounterRuns *runs, const char *const *kernels, const char *patterns[MAX_ROWS_OF_TABLE]) {
  int count = 0;
  for (int k = 0; kernels[k]; k++)
    for (int i = 0; i < runs->count; i++) {
      const char *pattern = pattern_of(&runs->items[i]);
      int seen = 0;
      if (strcmp(runs->items[i].c.kernel, kernels[k])) continue;
      while (seen < count && strcmp(patterns[seen], pattern)) seen++;
      if (seen == count && count < MAX_ROWS_OF_TABLE) patterns[count++] = pattern;
    }
  return count;
}

// A row for each pattern, a column for each kernel.
static void print_patterns(FILE *out, const CounterRuns *runs, const char *const *kernels, Cell *make_cell) {
  const char *patterns[MAX_ROWS_OF_TABLE];
  int count = list_patterns(runs, kernels, patterns);
  fprintf(out, "| addresses |");
  for (int k = 0; kernels[k]; k++) fprintf(out, " %s |", kernels[k]);
  fprintf(out, "\n|---|");
  for (int k = 0; kernels[k]; k++) fprintf(out, "---:|");
  for (int p = 0; p < count; p++) {
    fprintf(out, "\n| %s |", patterns[p]);
    for (int k = 0; kernels[k]; k++) {
      char cell[MAX_CELL] = "";
      const CounterRun *run = find_run(runs, kernels[k], patterns[p]);
      if (run) make_cell(cell, runs, run);
      fprintf(out, " %s |", cell);
    }
  }
  fprintf(out, "\n\n");
}

// Sums over all launches of a kind: how many were compared, and how the numbers stand in all.
static void print_sums(FILE *out, const CounterRuns *runs) {
  fprintf(out, "| counter | launches where it is not 0 | of these equal | emulator, all | ncu, all "
               "|\n|---|---:|---:|---:|---:|\n");
  for (int k = 0; k < COUNTER_KIND_COUNT; k++) {
    Pair sum = {0};
    int launches = 0, equal = 0;
    if (!counter_is_of_memory((CounterKind)k)) continue;
    for (int i = 0; i < runs->count; i++) {
      Pair a = pair(runs, &runs->items[i], (CounterKind)k);
      sum.emulator += a.emulator;
      sum.ncu += a.ncu;
      launches += a.emulator || a.ncu;
      equal += (a.emulator || a.ncu) && a.emulator == a.ncu;
    }
    fprintf(out, "| `%s` | %d | %d | %llu | %llu |\n", counter_name((CounterKind)k), launches, equal,
            (unsigned long long)sum.emulator, (unsigned long long)sum.ncu);
  }
  fprintf(out, "\n");
}

static void print_thread_copies(FILE *out, const CounterRuns *runs) {
  fprintf(out, "| launch | sectors of global memory: emulator | ncu | wavefronts, ncu | bank conflicts, ncu |\n"
               "|---|---:|---:|---:|---:|\n");
  for (int i = 0; i < runs->count; i++) {
    const CounterRun *run = &runs->items[i];
    if (strncmp(run->c.kernel, "cp_async", 8)) continue;
    Pair sectors = pair(runs, run, COUNTER_GLOBAL_LOAD_SECTORS);
    fprintf(out, "| %s | %llu | %llu | %llu | %llu |\n", run->c.name, (unsigned long long)sectors.emulator,
            (unsigned long long)sectors.ncu,
            (unsigned long long)counter_recorded(runs, run, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
            (unsigned long long)counter_recorded(runs, run, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"));
  }
  fprintf(out, "\n");
}

enum { TRIPS = 8 };  // of a copy's launch, and more in the second launch of a repeated instruction than in the first

// Bytes of shared memory that a copy reads or writes: ncu counts words, and 16 bytes in each launch that are not the
// copies'. Empty where it was not asked.
static void shared_bytes_cell(char cell[MAX_CELL], const CounterRuns *runs, const CounterRun *run) {
  enum { WORD = 4, OTHER_BYTES = 16 };
  const uint64_t *value = run->emulator.value;
  const char *reads = "l1tex__data_bank_reads.sum", *writes = "l1tex__data_bank_writes.sum";
  uint64_t words = counter_recorded(runs, run, reads) + counter_recorded(runs, run, writes);
  cell[0] = '\0';
  if (counter_was_asked(runs, run, reads))
    put(cell,
        (Pair){value[COUNTER_BULK_SHARED_READ_BYTES] + value[COUNTER_BULK_SHARED_WRITE_BYTES],
               WORD * words - OTHER_BYTES},
        TRIPS);
}

// Of one copy, all blocks together: what it moves outside the SM, and in shared memory.
static void print_copies(FILE *out, const CounterRuns *runs) {
  static const CounterKind kinds[] = {COUNTER_BULK_LOAD_SECTORS, COUNTER_BULK_STORE_SECTORS,
                                      COUNTER_BULK_REDUCTION_SECTORS, COUNTER_BULK_CLUSTER_SECTORS};
  fprintf(out, "| launch | sectors to or from the SM | sectors of the L2 cache, ncu | bytes of global memory, emulator "
               "| bytes of shared memory |\n|---|---:|---:|---:|---:|\n");
  for (int i = 0; i < runs->count; i++) {
    const CounterRun *run = &runs->items[i];
    const uint64_t *value = run->emulator.value;
    if (strncmp(run->c.kernel, "bulk_", 5) && strncmp(run->c.kernel, "tensor_", 7)) continue;
    Pair all = {0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      Pair one = pair(runs, run, kinds[k]);
      all = (Pair){all.emulator + one.emulator, all.ncu + one.ncu};
    }
    char sectors[MAX_CELL], bytes[MAX_CELL];
    put(sectors, all, TRIPS);
    shared_bytes_cell(bytes, runs, run);
    fprintf(out, "| %s | %s | %llu | %llu | %s |\n", run->c.name, sectors,
            (unsigned long long)counter_recorded(runs, run, "lts__t_sectors_srcunit_tex.sum") / TRIPS,
            (unsigned long long)(value[COUNTER_BULK_GLOBAL_READ_BYTES] + value[COUNTER_BULK_GLOBAL_WRITE_BYTES]) /
                TRIPS,
            bytes);
  }
  fprintf(out, "\n");
}

// What a trip of the loop adds to a counter.
static void put_per_trip(char cell[MAX_CELL], const CounterRuns *runs, const CounterRun *few, const CounterRun *many,
                         CounterKind kind) {
  Pair a = pair(runs, few, kind), b = pair(runs, many, kind);
  put(cell, (Pair){b.emulator - a.emulator, b.ncu - a.ncu}, TRIPS);
}

// Whether an earlier launch of the same kernel, as large, has told it already: layouts and places do not change it.
static bool is_told(const CounterRuns *runs, const CounterRun *run) {
  const CounterRun *before = run - 2;
  return before >= runs->items && !strcmp(before->c.kernel, run->c.kernel) && before->c.threads == run->c.threads;
}

static void print_instructions(FILE *out, const CounterRuns *runs) {
  fprintf(out,
          "| kernel | warp instructions | thread instructions | with a true guard | why |\n|---|---:|---:|---:|---|\n");
  for (int i = 0; i < runs->count; i++) {
    const CounterRun *few = &runs->items[i], *many = counter_run_with_more_trips(runs, few);
    if (!many || is_told(runs, few)) continue;
    char warps[MAX_CELL], threads[MAX_CELL], enabled[MAX_CELL];
    put_per_trip(warps, runs, few, many, COUNTER_INST_EXECUTED);
    put_per_trip(threads, runs, few, many, COUNTER_THREAD_INST_EXECUTED);
    put_per_trip(enabled, runs, few, many, COUNTER_THREAD_INST_EXECUTED_PRED_ON);
    const char *why = counter_why_sass_differs(few->c.kernel);
    fprintf(out, "| %s%s%s | %s | %s | %s | %s |\n", few->c.kernel,
            few->c.blocks > 1 ? ", 3 blocks of 100 threads" : "", few->c.threads > 128 ? ", two warpgroups" : "", warps,
            threads, enabled, why ? why : "");
  }
  fprintf(out, "\n");
}

static uint64_t recorded_per_trip(const CounterRuns *runs, const CounterRun *few, const CounterRun *many,
                                  const char *name) {
  return (counter_recorded(runs, many, name) - counter_recorded(runs, few, name)) / TRIPS;
}

static uint64_t emulated_per_trip(const CounterRun *few, const CounterRun *many, CounterKind kind) {
  return (many->emulator.value[kind] - few->emulator.value[kind]) / TRIPS;
}

// The kernels of which something is on the pipe.
static void print_special_functions(FILE *out, const CounterRuns *runs) {
  fprintf(out, "| kernel | MUFU, emulator | pipe xu, ncu | others on the pipe |\n|---|---:|---:|---|\n");
  for (int i = 0; i < runs->count; i++) {
    const CounterRun *few = &runs->items[i], *many = counter_run_with_more_trips(runs, few);
    if (!many || few->c.threads > WARP_LANES) continue;
    uint64_t mufu = many->emulator.value[COUNTER_INST_MUFU] - few->emulator.value[COUNTER_INST_MUFU];
    const char *pipe = "smsp__inst_executed_pipe_xu.sum";
    uint64_t ncu = counter_recorded(runs, many, pipe) - counter_recorded(runs, few, pipe);
    const OnPipe *others = counter_others_on_pipe(few->c.kernel);
    if (!mufu && !ncu) continue;
    fprintf(out, "| %s | %.5g | %.5g | ", few->c.kernel, (double)mufu / TRIPS, (double)ncu / TRIPS);
    if (others && others->instructions > 0) fprintf(out, "%d: ", others->instructions);
    fprintf(out, "%s |\n", others ? others->why : "");
  }
  fprintf(out, "\n");
}

static void print_mma(FILE *out, const CounterRuns *runs) {
  fprintf(out, "| kernel | tensor instructions: emulator | ncu | FLOP: emulator | ncu |\n|---|---:|---:|---:|---:|\n");
  for (int i = 0; i < runs->count; i++) {
    const CounterRun *few = &runs->items[i], *many = counter_run_with_more_trips(runs, few);
    if (!many || strncmp(few->c.kernel, "repeat_mma", 10)) continue;
    uint64_t flops = recorded_per_trip(runs, few, many, "sm__ops_path_tensor_src_bf16_dst_fp32.sum");
    char text[32] = "not recorded";
    if (flops) snprintf(text, sizeof text, "%llu", (unsigned long long)flops);
    fprintf(out, "| %s | %llu | %llu | %llu | %s |\n", few->c.kernel,
            (unsigned long long)emulated_per_trip(few, many, COUNTER_INST_TENSOR),
            (unsigned long long)recorded_per_trip(runs, few, many, "sm__inst_executed_pipe_tensor_op_hmma.sum"),
            (unsigned long long)emulated_per_trip(few, many, COUNTER_TENSOR_FLOPS), text);
  }
  fprintf(out, "\n");
}

// Of one wgmma of one warpgroup.
static void print_wgmma(FILE *out, const CounterRuns *runs) {
  enum { INSTRUCTIONS = 8, WARPGROUP = 128, WAVEFRONT = 128 };
  fprintf(out, "| launch | instructions of the tensor pipe | wavefronts of shared memory |\n|---|---:|---:|\n");
  for (int i = 0; i < runs->count; i++) {
    const CounterRun *few = &runs->items[i], *many = counter_run_with_more_trips(runs, few);
    if (!many || few->c.threads < WARPGROUP) continue;
    char tensor[MAX_CELL], wavefronts[MAX_CELL];
    double each = (double)INSTRUCTIONS * few->c.threads / WARPGROUP;
    put(tensor,
        (Pair){emulated_per_trip(few, many, COUNTER_INST_TENSOR),
               recorded_per_trip(runs, few, many, "sm__inst_executed_pipe_tensor_op_gmma.sum")},
        each);
    put(wavefronts,
        (Pair){emulated_per_trip(few, many, COUNTER_WGMMA_SHARED_READ_BYTES) / WAVEFRONT,
               recorded_per_trip(runs, few, many, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")},
        each);
    int length = (int)(strstr(few->c.name, " 8 trips") - few->c.name);
    if (few->c.name[length - 1] == ':') length--;
    fprintf(out, "| %.*s | %s | %s |\n", length, few->c.name, tensor, wavefronts);
  }
}

#define KERNELS(...) ((const char *const[]){__VA_ARGS__, NULL})

void print_counter_tables(FILE *out, const CounterRuns *runs) {
  fprintf(out, "Recorded on: %s. %d launches.\n\n### All memory counters\n\n", runs->origin, runs->count);
  print_sums(out, runs);
  fprintf(out, "### Shared memory: loads and stores, wavefronts (bank conflicts)\n\n");
  print_patterns(out, runs,
                 KERNELS("ld_shared_b8", "ld_shared_b16", "ld_shared_b32", "ld_shared_b64", "ld_shared_b128"),
                 wavefronts_cell);
  print_patterns(out, runs,
                 KERNELS("st_shared_b8", "st_shared_b16", "st_shared_b32", "st_shared_b64", "st_shared_b128"),
                 wavefronts_cell);
  fprintf(out, "### Shared memory: matrices and atomics, wavefronts (bank conflicts)\n\n");
  print_patterns(out, runs, KERNELS("ldmatrix_x1", "ldmatrix_x2", "ldmatrix_x4", "ldmatrix_x4_trans"), wavefronts_cell);
  print_patterns(out, runs, KERNELS("stmatrix_x1", "stmatrix_x2", "stmatrix_x4", "stmatrix_x4_trans"), wavefronts_cell);
  print_patterns(out, runs, KERNELS("atom_shared_add", "atom_shared_cas", "red_shared_add", "atom_shared_exch_b64"),
                 wavefronts_cell);
  print_patterns(out, runs, KERNELS("atom_shared_add_f32"), loop_cell);
  print_patterns(out, runs, KERNELS("ld_cluster_own_b32", "st_cluster_own_b32"), wavefronts_cell);
  fprintf(out, "### Global memory: sectors per request\n\n");
  print_patterns(out, runs,
                 KERNELS("ld_global_b8", "ld_global_b16", "ld_global_b32", "ld_global_b64", "ld_global_b128"),
                 sectors_cell);
  print_patterns(out, runs,
                 KERNELS("st_global_b8", "st_global_b16", "st_global_b32", "st_global_b64", "st_global_b128"),
                 sectors_cell);
  print_patterns(
      out, runs,
      KERNELS("ld_global_nc_b32", "ld_global_nc_b128", "ld_global_cg_b32", "ld_global_cg_b128", "ld_volatile_b32"),
      sectors_cell);
  print_patterns(out, runs,
                 KERNELS("atom_global_add", "atom_global_cas", "red_global_add", "atom_global_add_u64",
                         "red_global_add_u64", "red_global_add_f32"),
                 sectors_cell);
  fprintf(out, "### Another block's shared memory: sectors per request\n\n");
  print_patterns(out, runs, KERNELS("ld_cluster_b32", "st_cluster_b32", "atom_cluster_add"), sectors_cell);
  fprintf(out, "### wmma: wavefronts of shared memory (bank conflicts), sectors of global memory\n\n");
  print_patterns(out, runs,
                 KERNELS("wmma_load_a_shared", "wmma_load_b_shared", "wmma_load_b_row_shared", "wmma_store_shared"),
                 wavefronts_cell);
  print_patterns(out, runs, KERNELS("wmma_load_a_global", "wmma_store_global"), sectors_cell);
  fprintf(out, "### Half the lanes to shared memory, half to global: wavefronts (bank conflicts), sectors\n\n");
  print_patterns(out, runs, KERNELS("ld_generic_mixed"), wavefronts_cell);
  print_patterns(out, runs, KERNELS("ld_generic_mixed"), sectors_cell);
  fprintf(out, "### Local memory: sectors (requests) of one access\n\n");
  print_patterns(out, runs, KERNELS("local_b8", "local_b16", "local_b32", "local_b64", "local_b128"), local_cell);
  fprintf(out, "### cp.async\n\n");
  print_thread_copies(out, runs);
  fprintf(out, "### Bulk and tensor copies, one of them\n\n");
  print_copies(out, runs);
  fprintf(out, "### Instructions of one trip of the loop\n\n");
  print_instructions(out, runs);
  fprintf(out, "### Special functions, one trip of the loop\n\n");
  print_special_functions(out, runs);
  fprintf(out, "### Tensor cores: mma, one trip of the loop\n\n");
  print_mma(out, runs);
  fprintf(out, "### Tensor cores: one wgmma\n\n");
  print_wgmma(out, runs);
}
