// The emulator's counters against Nsight Compute's on an H200, for every launch of tests/counters/cases.h. The recorded
// numbers are in tests/counters/h200.csv; notes/counters.md says what they mean and where the two must differ.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/counter_runs.h"
#include "support/counter_tables.h"
#include "support/program.h"
#include "support/run_kernel.h"
#include "support/sanitized.h"

TestSuite(counters, .timeout = 60);

// Each test runs all launches, and compares other counters of them.
static void plain_only(void) {
  if (SANITIZED) cr_skip_test("counters/memory runs the same C code");
}

static bool starts_with(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

// ---- memory ----

// The sectors that ncu counts for cp.async.cg, which goes past the L1 cache: of each 128-byte line that it reads, the
// sectors that it writes in shared memory. The emulator counts the sectors of global memory.
static uint64_t sectors_of_bypassing_copy(const CounterCase *c) {
  enum { SIZE = 16, LINE = 128, SECTOR = 32 };
  bool scatters = strstr(c->kernel, "scatter") != NULL, zeros = strstr(c->kernel, "zeros") != NULL;
  bool seen[MEMORY_BYTES / LINE][SHARED_BYTES / SECTOR] = {{false}};
  uint64_t count = 0;
  for (int lane = 0; lane < WARP_LANES; lane++) {
    int offset = c->offsets.of[0][lane], packed = lane * SIZE;
    if (offset == INACTIVE || (zeros && lane % 2 == 0)) continue;
    bool *sector = &seen[(scatters ? packed : offset) / LINE][(scatters ? offset : packed) / SECTOR];
    count += !*sector;
    *sector = true;
  }
  return count;
}

// What the emulator does to the banks of shared memory, and the sectors of all other, in every launch.
Test(counters, memory) {
  CounterRuns runs = counter_runs();
  int compared = 0, bypassing = 0, different = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *run = &runs.items[i];
    bool bypasses = starts_with(run->c.kernel, "cp_async_cg");
    for (int k = 0; k < COUNTER_KIND_COUNT; k++) {
      if (!counter_is_of_memory((CounterKind)k)) continue;
      const char *name = counter_name((CounterKind)k);
      uint64_t want = counter_recorded(&runs, run, name), have = run->emulator.value[k];
      if (bypasses && k == COUNTER_GLOBAL_LOAD_SECTORS) {
        cr_expect_eq(want, sectors_of_bypassing_copy(&run->c), "%s: no longer explained", run->c.name);
        different += want != have;
        bypassing++;
        continue;
      }
      cr_expect_eq(have, want, "%s: %s is %llu, ncu says %llu", run->c.name, name, (unsigned long long)have,
                   (unsigned long long)want);
      compared += want != 0;
    }
  }
  cr_expect(compared > 1000, "only %d numbers that are not 0", compared);
  cr_expect(bypassing == 14 && different == 6, "%d of %d launches of cp.async.cg differ", different, bypassing);
  counter_runs_free(&runs);
}

// A counter that ncu does not know, or that no launch moves, would be "equal" everywhere.
Test(counters, every_compared_counter_was_recorded, .init = plain_only) {
  CounterRuns runs = counter_runs();
  for (int k = 0; k < COUNTER_KIND_COUNT; k++) {
    bool recorded = !counter_is_of_memory((CounterKind)k);
    for (int i = 0; i < runs.count; i++)
      recorded |= counter_recorded(&runs, &runs.items[i], counter_name((CounterKind)k)) > 0;
    cr_expect(recorded, "h200.csv has no launch that moves %s", counter_name((CounterKind)k));
  }
  counter_runs_free(&runs);
}

// Bytes that the lanes ask for, and bytes that they ask for at least once.
static void bytes_of(const CounterCase *c, uint64_t *asked, uint64_t *distinct) {
  *asked = *distinct = 0;
  for (unsigned row = 0; row < c->blocks; row++) {
    bool seen[MEMORY_BYTES] = {false};
    for (int lane = 0; lane < WARP_LANES; lane++) {
      if (c->offsets.of[row][lane] == INACTIVE) continue;
      *asked += (uint64_t)c->size;
      for (int i = 0; i < c->size; i++) {
        bool *byte = &seen[c->offsets.of[row][lane] + i];
        *distinct += !*byte;
        *byte = true;
      }
    }
  }
}

// ncu counts a byte once that several lanes of a warp ask for, the emulator counts it for each.
Test(counters, bytes, .init = plain_only) {
  CounterRuns runs = counter_runs();
  int equal = 0, shared = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *run = &runs.items[i];
    const uint64_t *value = run->emulator.value;
    bool is_local = starts_with(run->c.kernel, "local_");
    const char *name = is_local ? "smsp__sass_data_bytes_mem_local.sum" : "smsp__sass_data_bytes_mem_global.sum";
    uint64_t ncu = counter_recorded(&runs, run, name), asked, distinct;
    if (!ncu || strstr(run->c.kernel, "scatter") || strstr(run->c.kernel, "zeros")) continue;
    uint64_t have = is_local ? value[COUNTER_LOCAL_LOAD_BYTES] + value[COUNTER_LOCAL_STORE_BYTES]
                             : value[COUNTER_GLOBAL_LOAD_BYTES] + value[COUNTER_GLOBAL_STORE_BYTES] +
                                   value[COUNTER_GLOBAL_ATOMIC_BYTES];
    if (starts_with(run->c.kernel, "wmma_") || !strcmp(run->c.kernel, "ld_generic_mixed")) {
      cr_expect_eq(have, ncu, "%s: %llu bytes", run->c.name, (unsigned long long)have);
      continue;
    }
    bytes_of(&run->c, &asked, &distinct);
    cr_expect_eq(have, (is_local + 1) * asked, "%s: %llu bytes asked for", run->c.name, (unsigned long long)have);
    cr_expect_eq(ncu, (is_local + 1) * distinct, "%s: %llu bytes in ncu", run->c.name, (unsigned long long)ncu);
    equal += have == ncu;
    shared += have != ncu;
  }
  cr_expect(equal > 80 && shared > 20, "%d launches equal, %d not", equal, shared);
  counter_runs_free(&runs);
}

static bool is_wgmma(const CounterCase *c) {
  return starts_with(c->kernel, "wgmma") || starts_with(c->kernel, "repeat_wgmma");
}

// ncu has one number for loads, stores, atomics and matrices, and for the four instructions of a wgmma.
Test(counters, shared_requests, .init = plain_only) {
  CounterRuns runs = counter_runs();
  const char *name = "smsp__sass_inst_executed_op_shared.sum";
  int compared = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *run = &runs.items[i];
    const uint64_t *value = run->emulator.value;
    if (!counter_was_asked(&runs, run, name)) continue;
    uint64_t have = value[COUNTER_SHARED_LOADS] + value[COUNTER_SHARED_STORES] + value[COUNTER_SHARED_ATOMICS] +
                    (is_wgmma(&run->c) ? value[COUNTER_INST_TENSOR] : 0);
    cr_expect_eq(have, counter_recorded(&runs, run, name), "%s: %llu requests", run->c.name, (unsigned long long)have);
    compared += have != 0;
  }
  cr_expect(compared > 90, "only %d launches with requests", compared);
  counter_runs_free(&runs);
}

// ---- copies ----

static bool is_copy(const CounterCase *c) {
  return starts_with(c->kernel, "bulk_") || starts_with(c->kernel, "tensor_");
}

static bool has_parts_outside(const CounterCase *c) {
  const CaseTensor *t = &c->tensor;
  int x = (int16_t)c->offsets.of[0][ARG_X], y = (int16_t)c->offsets.of[0][ARG_Y];
  return t->width && (x < 0 || y < 0 || x + t->box_width > t->width || y + t->box_height > t->height);
}

// Rows of more than one line of shared memory: neighbouring lines may want the same sector.
static bool has_long_rows(const CounterCase *c) { return c->tensor.box_width * c->tensor.element_bytes > 128; }

static uint64_t sectors_of_prefetch(const CounterCase *c) {
  enum { SECTOR = 32 };
  unsigned first = c->offsets.of[0][ARG_GLOBAL], end = first + c->offsets.of[0][ARG_BYTES];
  return (uint64_t)c->offsets.of[0][ARG_TRIPS] * ((end - 1) / SECTOR - first / SECTOR + 1);
}

// The L2 cache serves the sectors that the copies move, once for all blocks of a multicast. What it does about a load's
// parts outside the tensor is less, and varies; so is what two lines of a row both ask for.
Test(counters, copies_reach_the_l2_cache, .init = plain_only) {
  CounterRuns runs = counter_runs();
  int equal = 0, less = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *run = &runs.items[i];
    if (!is_copy(&run->c)) continue;
    const uint64_t *value = run->emulator.value;
    uint64_t ncu = counter_recorded(&runs, run, "lts__t_sectors_srcunit_tex.sum");
    uint64_t have = value[COUNTER_BULK_LOAD_SECTORS] / run->c.blocks + value[COUNTER_BULK_STORE_SECTORS] +
                    value[COUNTER_BULK_REDUCTION_SECTORS];
    if (!strcmp(run->c.kernel, "bulk_prefetch")) have = sectors_of_prefetch(&run->c);
    bool varies = value[COUNTER_BULK_LOAD_SECTORS] && (has_parts_outside(&run->c) || has_long_rows(&run->c));
    cr_expect(ncu == have || (varies && ncu < have), "%s: %llu sectors, in ncu %llu", run->c.name,
              (unsigned long long)have, (unsigned long long)ncu);
    equal += ncu == have;
    less += ncu != have;
  }
  cr_expect(equal == 78 && less == 5, "%d launches equal, %d with less", equal, less);
  counter_runs_free(&runs);
}

// The words that the banks of shared memory read and write. 16 bytes more are not the copies': read by a launch without
// a cluster, written by one with.
Test(counters, copies_in_shared_memory, .init = plain_only) {
  enum { WORD = 4, OTHER_BYTES = 16 };
  CounterRuns runs = counter_runs();
  const char *reads = "l1tex__data_bank_reads.sum", *writes = "l1tex__data_bank_writes.sum";
  int compared = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *run = &runs.items[i];
    if (!counter_was_asked(&runs, run, reads)) continue;
    bool in_cluster = run->c.blocks > 1;
    const uint64_t *value = run->emulator.value;
    cr_expect_eq(value[COUNTER_BULK_SHARED_READ_BYTES] + (in_cluster ? 0 : OTHER_BYTES),
                 WORD * counter_recorded(&runs, run, reads), "%s: read", run->c.name);
    cr_expect_eq(value[COUNTER_BULK_SHARED_WRITE_BYTES] + (in_cluster ? OTHER_BYTES : 0),
                 WORD * counter_recorded(&runs, run, writes), "%s: written", run->c.name);
    compared++;
  }
  cr_expect_eq(compared, 50);
  counter_runs_free(&runs);
}

// ---- instructions ----

// What more trips add to a counter of the emulator, and to one that was recorded.
static uint64_t more_emulated(const CounterRun *few, const CounterRun *many, CounterKind kind) {
  return many->emulator.value[kind] - few->emulator.value[kind];
}

static uint64_t more_recorded(const CounterRuns *runs, const CounterRun *few, const CounterRun *many,
                              const char *name) {
  return counter_recorded(runs, many, name) - counter_recorded(runs, few, name);
}

// Where PTX and machine code correspond the counts are equal; where not, notes/counters.md says why, and they are not.
Test(counters, instructions, .init = plain_only) {
  static const CounterKind kinds[] = {COUNTER_INST_EXECUTED, COUNTER_THREAD_INST_EXECUTED,
                                      COUNTER_THREAD_INST_EXECUTED_PRED_ON};
  CounterRuns runs = counter_runs();
  int equal = 0, explained = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *few = &runs.items[i], *many = counter_run_with_more_trips(&runs, few);
    if (!many) continue;
    bool corresponds = !counter_why_sass_differs(few->c.kernel);
    for (int k = 0; k < 3; k++) {
      uint64_t emulator = more_emulated(few, many, kinds[k]);
      uint64_t ncu = more_recorded(&runs, few, many, counter_name(kinds[k]));
      cr_expect((emulator == ncu) == corresponds, "%s: %s grows by %llu, in ncu by %llu", few->c.name,
                counter_name(kinds[k]), (unsigned long long)emulator, (unsigned long long)ncu);
    }
    equal += corresponds;
    explained += !corresponds;
  }
  cr_expect(equal == 27 && explained == 85, "%d launches equal, %d explained", equal, explained);
  counter_runs_free(&runs);
}

// ncu's classes beside the emulator's. fp16 and conversions together: cvt.f32.f16 is an addition of f16 to the machine.
typedef struct InstructionClass {
  const char *ncu[2];
  CounterKind emulator[2];
} InstructionClass;

static void expect_class(const CounterRuns *runs, const CounterRun *few, const CounterRun *many,
                         const InstructionClass *class) {
  uint64_t emulator = 0, ncu = 0;
  for (int i = 0; i < 2; i++) {
    char name[100];
    if (class->emulator[i]) emulator += more_emulated(few, many, class->emulator[i]);
    if (!class->ncu[i]) continue;
    snprintf(name, sizeof name, "smsp__sass_thread_inst_executed_op_%s_pred_on.sum", class->ncu[i]);
    ncu += more_recorded(runs, few, many, name);
  }
  cr_expect_eq(WARP_LANES * emulator, ncu, "%s: %llu instructions of class %s, in ncu %llu by its lanes", few->c.name,
               (unsigned long long)emulator, class->ncu[0], (unsigned long long)ncu);
}

Test(counters, instruction_classes, .init = plain_only) {
  static const InstructionClass classes[] = {
      {{"integer", "bit"}, {COUNTER_INST_INTEGER}},
      {{"fp32"}, {COUNTER_INST_FP32, COUNTER_INST_SPECIAL}},
      {{"fp64"}, {COUNTER_INST_FP64}},
      {{"fp16", "conversion"}, {COUNTER_INST_FP16, COUNTER_INST_CONVERT}},
      {{"memory"}, {COUNTER_INST_MEMORY}},
      {{"control"}, {COUNTER_INST_CONTROL}},
      {{"inter_thread_communication", "misc"}, {COUNTER_INST_SYNCHRONISATION}},
  };
  CounterRuns runs = counter_runs();
  int compared = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *few = &runs.items[i], *many = counter_run_with_more_trips(&runs, few);
    if (!many || counter_why_sass_differs(few->c.kernel)) continue;
    if (more_emulated(few, many, COUNTER_THREAD_INST_EXECUTED_PRED_ON) !=
        WARP_LANES * more_emulated(few, many, COUNTER_INST_EXECUTED))
      continue;  // ncu counts lanes, the emulator warps
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++) expect_class(&runs, few, many, &classes[c]);
    compared++;
  }
  cr_expect(compared > 20, "only %d kernels", compared);
  counter_runs_free(&runs);
}

// ncu's pipe "xu" executes the special functions, and conversions, popc and clz.
Test(counters, special_function_pipe, .init = plain_only) {
  CounterRuns runs = counter_runs();
  int equal = 0, decided = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *few = &runs.items[i], *many = counter_run_with_more_trips(&runs, few);
    if (!many || !starts_with(few->c.kernel, "repeat_")) continue;
    const OnPipe *others = counter_others_on_pipe(few->c.kernel);
    uint64_t trips = many->c.offsets.of[0][0] - few->c.offsets.of[0][0];
    uint64_t mufu = more_emulated(few, many, COUNTER_INST_MUFU);
    uint64_t ncu = more_recorded(&runs, few, many, "smsp__inst_executed_pipe_xu.sum");
    if (others && others->instructions == OPERANDS_DECIDE) {
      cr_expect(ncu > mufu, "%s: no longer explained", few->c.name);
      decided++;
      continue;
    }
    uint64_t have = mufu + (others ? trips * (uint64_t)others->instructions : 0);
    cr_expect_eq(have, ncu, "%s: %llu on the pipe, in ncu %llu", few->c.name, (unsigned long long)have,
                 (unsigned long long)ncu);
    equal += ncu != 0;
  }
  cr_expect(equal == 22 && decided == 3, "%d kernels equal, %d with operands that decide", equal, decided);
  counter_runs_free(&runs);
}

// A wgmma is four instructions of the tensor pipe, one for each warp. ncu counts operations of bf16 alone. The
// wavefronts of shared memory that it counts for a wgmma, of no kind, are its operands' bytes.
Test(counters, tensor, .init = plain_only) {
  enum { M = 64, K = 16, WARPS = 4, WAVEFRONT = 128 };
  CounterRuns runs = counter_runs();
  int kernels = 0;
  for (int i = 0; i < runs.count; i++) {
    const CounterRun *few = &runs.items[i], *many = counter_run_with_more_trips(&runs, few);
    bool wgmma = is_wgmma(&few->c);
    if (!many || (!wgmma && !starts_with(few->c.kernel, "repeat_mma"))) continue;
    uint64_t instructions = more_recorded(&runs, few, many,
                                          wgmma ? "sm__inst_executed_pipe_tensor_op_gmma.sum"
                                                : "sm__inst_executed_pipe_tensor_op_hmma.sum");
    uint64_t flops = more_recorded(&runs, few, many, "sm__ops_path_tensor_src_bf16_dst_fp32.sum");
    uint64_t wavefronts = more_recorded(&runs, few, many, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum");
    uint64_t have = more_emulated(few, many, COUNTER_TENSOR_FLOPS);
    int n = 8;
    sscanf(few->c.kernel, "wgmma_n%d", &n);
    cr_expect(instructions > 0);
    cr_expect_eq(more_emulated(few, many, COUNTER_INST_TENSOR), instructions, "%s", few->c.name);
    cr_expect_eq(more_emulated(few, many, COUNTER_WGMMA_SHARED_READ_BYTES), WAVEFRONT * wavefronts, "%s", few->c.name);
    cr_expect_eq(wavefronts > 0, wgmma, "%s", few->c.name);
    if (strstr(few->c.kernel, "bf16")) cr_expect(flops > 0 && have == flops, "%s", few->c.name);
    if (wgmma) cr_expect_eq(have, instructions / WARPS * 2 * M * (uint64_t)n * K, "%s", few->c.name);
    kernels++;
  }
  cr_expect_eq(kernels, 61);
  counter_runs_free(&runs);
}

// ---- the notes ----

static const char begin_mark[] = "<!-- tables: begin -->\n", end_mark[] = "<!-- tables: end -->";

static void write_notes(const char *path, const char *notes, size_t before, const char *tables, const char *after) {
  FILE *file = fopen(path, "w");
  cr_assert(file, "%s cannot be written", path);
  fprintf(file, "%.*s%s%s", (int)before, notes, tables, after);
  cr_assert_eq(fclose(file), 0);
}

// The tables in notes/counters.md are those that the recording and the emulator give now.
Test(counters, notes_show_these_tables, .init = plain_only) {
  CounterRuns runs = counter_runs();
  char path[1000], *tables = NULL;
  size_t size = 0;
  snprintf(path, sizeof path, "%s/notes/counters.md", root_path());
  char *notes = read_whole(path, &size);
  cr_assert(notes, "%s is missing", path);
  char *begin = strstr(notes, begin_mark), *end = begin ? strstr(begin, end_mark) : NULL;
  cr_assert(end, "%s has no marks for the tables", path);
  begin += sizeof begin_mark - 1;

  FILE *out = open_memstream(&tables, &size);
  cr_assert(out);
  print_counter_tables(out, &runs);
  cr_assert_eq(fclose(out), 0);
  bool same = size == (size_t)(end - begin) && !memcmp(begin, tables, size);
  if (!same && getenv("WRITE_NOTES"))
    write_notes(path, notes, (size_t)(begin - notes), tables, end);
  else
    cr_expect(same, "the tables of %s are not those of today: WRITE_NOTES=1 make test TESTS='counters/*'", path);
  free(tables);
  free(notes);
  counter_runs_free(&runs);
}
