// Counters: what workers counted per instruction, summed per source line.
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"

static const char *const names[COUNTER_KIND_COUNT] = {
    [COUNTER_INST_EXECUTED] = "smsp__inst_executed.sum",
    [COUNTER_THREAD_INST_EXECUTED] = "smsp__thread_inst_executed.sum",
    [COUNTER_THREAD_INST_EXECUTED_PRED_ON] = "smsp__thread_inst_executed_pred_on.sum",
    [COUNTER_INST_INTEGER] = "inst_integer",
    [COUNTER_INST_FP32] = "inst_fp32",
    [COUNTER_INST_FP64] = "inst_fp64",
    [COUNTER_INST_FP16] = "inst_fp16",
    [COUNTER_INST_SPECIAL] = "inst_special",
    [COUNTER_INST_CONVERT] = "inst_convert",
    [COUNTER_INST_MEMORY] = "inst_memory",
    [COUNTER_INST_CONTROL] = "inst_control",
    [COUNTER_INST_SYNCHRONISATION] = "inst_synchronisation",
    [COUNTER_INST_TENSOR] = "inst_tensor",
    [COUNTER_INST_ASYNC_COPY] = "inst_async_copy",
    [COUNTER_INST_OTHER] = "inst_other",
    [COUNTER_SHARED_LOADS] = "shared_load_requests",
    [COUNTER_SHARED_STORES] = "shared_store_requests",
    [COUNTER_SHARED_ATOMICS] = "shared_atomic_requests",
    [COUNTER_SHARED_LOAD_WAVEFRONTS] = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    [COUNTER_SHARED_STORE_WAVEFRONTS] = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    [COUNTER_SHARED_ATOMIC_WAVEFRONTS] = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    [COUNTER_SHARED_LOAD_BANK_CONFLICTS] = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    [COUNTER_SHARED_STORE_BANK_CONFLICTS] = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    [COUNTER_SHARED_ATOMIC_BANK_CONFLICTS] = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
    [COUNTER_GLOBAL_LOAD_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    [COUNTER_GLOBAL_STORE_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    [COUNTER_GLOBAL_ATOMIC_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    [COUNTER_GLOBAL_REDUCTION_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    [COUNTER_GLOBAL_COPY_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    [COUNTER_GLOBAL_LOAD_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    [COUNTER_GLOBAL_STORE_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    [COUNTER_GLOBAL_ATOMIC_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    [COUNTER_GLOBAL_REDUCTION_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    [COUNTER_GLOBAL_COPY_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    [COUNTER_GLOBAL_LOAD_BYTES] = "global_load_bytes",
    [COUNTER_GLOBAL_STORE_BYTES] = "global_store_bytes",
    [COUNTER_GLOBAL_ATOMIC_BYTES] = "global_atomic_bytes",
    [COUNTER_TENSOR_FLOPS] = "tensor_flops",
    [COUNTER_INST_MUFU] = "inst_mufu",
    [COUNTER_LOCAL_LOAD_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
    [COUNTER_LOCAL_STORE_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
    [COUNTER_LOCAL_LOAD_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    [COUNTER_LOCAL_STORE_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    [COUNTER_LOCAL_LOAD_BYTES] = "local_load_bytes",
    [COUNTER_LOCAL_STORE_BYTES] = "local_store_bytes",
    [COUNTER_WGMMA_SHARED_READ_BYTES] = "wgmma_shared_read_bytes",
    [COUNTER_CP_ASYNC_SHARED_WRITE_BYTES] = "cp_async_shared_write_bytes",
    [COUNTER_BULK_SHARED_WRITE_BYTES] = "bulk_shared_write_bytes",
    [COUNTER_BULK_SHARED_READ_BYTES] = "bulk_shared_read_bytes",
    [COUNTER_BULK_GLOBAL_READ_BYTES] = "bulk_global_read_bytes",
    [COUNTER_BULK_GLOBAL_WRITE_BYTES] = "bulk_global_write_bytes",
    [COUNTER_BULK_LOAD_SECTORS] = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",
    [COUNTER_BULK_STORE_SECTORS] = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
    [COUNTER_BULK_REDUCTION_SECTORS] = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red.sum",
    [COUNTER_BULK_CLUSTER_SECTORS] = "l1tex__m_l1tex2xbar_write_sectors_mem_dshared_op_tma_st.sum",
    [COUNTER_CLUSTER_LOAD_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_dshared_op_ld.sum",
    [COUNTER_CLUSTER_STORE_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_dshared_op_st.sum",
    [COUNTER_CLUSTER_ATOMIC_REQUESTS] = "l1tex__t_requests_pipe_lsu_mem_dshared_op_atom.sum",
    [COUNTER_CLUSTER_LOAD_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_dshared_op_ld.sum",
    [COUNTER_CLUSTER_STORE_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_dshared_op_st.sum",
    [COUNTER_CLUSTER_ATOMIC_SECTORS] = "l1tex__t_sectors_pipe_lsu_mem_dshared_op_atom.sum",
    [COUNTER_INST_UNDER_WGMMA] = "inst_under_wgmma",
    [COUNTER_FP32_UNDER_WGMMA] = "inst_fp32_under_wgmma",
    [COUNTER_MUFU_UNDER_WGMMA] = "inst_mufu_under_wgmma",
    [COUNTER_INST_UNDER_LOAD] = "inst_under_load",
    [COUNTER_FP32_UNDER_LOAD] = "inst_fp32_under_load",
    [COUNTER_MUFU_UNDER_LOAD] = "inst_mufu_under_load",
    [COUNTER_INST_IN_TURN] = "inst_in_turn",
    [COUNTER_FP32_IN_TURN] = "inst_fp32_in_turn",
    [COUNTER_MUFU_IN_TURN] = "inst_mufu_in_turn",
    [COUNTER_INST_UNTIL_ARRIVAL] = "inst_until_arrival",
    [COUNTER_FP32_UNTIL_ARRIVAL] = "inst_fp32_until_arrival",
    [COUNTER_MUFU_UNTIL_ARRIVAL] = "inst_mufu_until_arrival",
    [COUNTER_LOADS_UNDER_MUFU] = "loads_under_mufu",
    [COUNTER_INST_BARRIER] = "inst_barrier",
    [COUNTER_INST_SYNCHRONISATION_ONCE] = "inst_synchronisation_without_polls",
    [COUNTER_INST_UNDER_LOAD_ONCE] = "inst_under_load_without_polls",
    [COUNTER_INST_MUFU_SCALED] = "inst_mufu_scaled",
    [COUNTER_WAITS_AT_ONCE] = "waits_at_once",
    [COUNTER_LOADS_IN_FLIGHT] = "loads_in_flight",
    [COUNTER_SETMAXNREG_REGISTERS] = "setmaxnreg_registers",
    [COUNTER_REDUCTIONS_UNTIL_ARRIVAL] = "reductions_until_arrival",
};

const char *counter_name(CounterKind kind) { return names[kind]; }

// ---- what one instruction's counts mean as counters ----

typedef enum Operation { LOAD, STORE, ATOMIC, REDUCTION } Operation;

// Copies of cp.async count as loads.
static Operation operation_of(const Inst *inst) {
  switch (inst->row->memory) {
  case MEMORY_STORE: return STORE;
  case MEMORY_ATOMIC:
  case MEMORY_SWAP: return ATOMIC;
  case MEMORY_REDUCTION: return REDUCTION;
  default: return LOAD;
  }
}

// Shared memory has one kind of atomic operation. A compare-and-swap there takes two wavefronts instead of each.
static void add_shared_accesses(EmulatorCounters *c, const Inst *inst, const InstCounts *counts) {
  static const CounterKind kinds[][3] = {
      [LOAD] = {COUNTER_SHARED_LOADS, COUNTER_SHARED_LOAD_WAVEFRONTS, COUNTER_SHARED_LOAD_BANK_CONFLICTS},
      [STORE] = {COUNTER_SHARED_STORES, COUNTER_SHARED_STORE_WAVEFRONTS, COUNTER_SHARED_STORE_BANK_CONFLICTS},
      [ATOMIC] = {COUNTER_SHARED_ATOMICS, COUNTER_SHARED_ATOMIC_WAVEFRONTS, COUNTER_SHARED_ATOMIC_BANK_CONFLICTS},
      [REDUCTION] = {COUNTER_SHARED_ATOMICS, COUNTER_SHARED_ATOMIC_WAVEFRONTS, COUNTER_SHARED_ATOMIC_BANK_CONFLICTS},
  };
  const CounterKind *kind = kinds[operation_of(inst)];
  c->value[kind[0]] = counts->shared_requests;
  c->value[kind[1]] = counts->wavefronts * (inst->row->memory == MEMORY_SWAP ? 2 : 1);
  c->value[kind[2]] = counts->conflicts;
  c->value[COUNTER_SHARED_LOADS] += counts->loop_loads;
  c->value[COUNTER_SHARED_LOAD_WAVEFRONTS] += counts->loop_wavefronts;
  c->value[COUNTER_SHARED_LOAD_BANK_CONFLICTS] += counts->loop_conflicts;
}

// cp.async counts as a load, and what goes through the L1 cache (.ca) as a copy too.
static void add_global(EmulatorCounters *c, const Inst *inst, const InstCounts *counts) {
  static const CounterKind kinds[][3] = {
      [LOAD] = {COUNTER_GLOBAL_LOAD_REQUESTS, COUNTER_GLOBAL_LOAD_SECTORS, COUNTER_GLOBAL_LOAD_BYTES},
      [STORE] = {COUNTER_GLOBAL_STORE_REQUESTS, COUNTER_GLOBAL_STORE_SECTORS, COUNTER_GLOBAL_STORE_BYTES},
      [ATOMIC] = {COUNTER_GLOBAL_ATOMIC_REQUESTS, COUNTER_GLOBAL_ATOMIC_SECTORS, COUNTER_GLOBAL_ATOMIC_BYTES},
      [REDUCTION] = {COUNTER_GLOBAL_REDUCTION_REQUESTS, COUNTER_GLOBAL_REDUCTION_SECTORS, COUNTER_GLOBAL_ATOMIC_BYTES},
  };
  const CounterKind *kind = kinds[operation_of(inst)];
  c->value[kind[0]] = counts->global_requests;
  c->value[kind[1]] = counts->sectors;
  c->value[kind[2]] = counts->bytes;
  if (inst->row->memory != MEMORY_CACHED_COPY) return;
  c->value[COUNTER_GLOBAL_COPY_REQUESTS] = counts->global_requests;
  c->value[COUNTER_GLOBAL_COPY_SECTORS] = counts->sectors;
}

static void add_local(EmulatorCounters *c, const Inst *inst, const InstCounts *counts) {
  bool loads = operation_of(inst) == LOAD;
  c->value[loads ? COUNTER_LOCAL_LOAD_REQUESTS : COUNTER_LOCAL_STORE_REQUESTS] = counts->local_requests;
  c->value[loads ? COUNTER_LOCAL_LOAD_SECTORS : COUNTER_LOCAL_STORE_SECTORS] = counts->local_sectors;
  c->value[loads ? COUNTER_LOCAL_LOAD_BYTES : COUNTER_LOCAL_STORE_BYTES] = counts->local_bytes;
}

static void add_cluster(EmulatorCounters *c, const Inst *inst, const InstCounts *counts) {
  static const CounterKind kinds[][2] = {
      [LOAD] = {COUNTER_CLUSTER_LOAD_REQUESTS, COUNTER_CLUSTER_LOAD_SECTORS},
      [STORE] = {COUNTER_CLUSTER_STORE_REQUESTS, COUNTER_CLUSTER_STORE_SECTORS},
      [ATOMIC] = {COUNTER_CLUSTER_ATOMIC_REQUESTS, COUNTER_CLUSTER_ATOMIC_SECTORS},
      [REDUCTION] = {COUNTER_CLUSTER_ATOMIC_REQUESTS, COUNTER_CLUSTER_ATOMIC_SECTORS},
  };
  const CounterKind *kind = kinds[operation_of(inst)];
  c->value[kind[0]] = counts->cluster_requests;
  c->value[kind[1]] = counts->cluster_sectors;
}

// What units beside the warps' own loads and stores move.
static void add_asynchronous(EmulatorCounters *c, const Inst *inst, const InstCounts *counts) {
  static const CounterKind sectors[] = {
      [MEMORY_BULK_LOAD] = COUNTER_BULK_LOAD_SECTORS,
      [MEMORY_BULK_STORE] = COUNTER_BULK_STORE_SECTORS,
      [MEMORY_BULK_REDUCE] = COUNTER_BULK_REDUCTION_SECTORS,
      [MEMORY_BULK_CLUSTER] = COUNTER_BULK_CLUSTER_SECTORS,
  };
  MemoryUse memory = inst->row->memory;
  bool bulk = memory >= MEMORY_BULK_LOAD && memory <= MEMORY_BULK_CLUSTER;
  c->value[bulk ? COUNTER_BULK_SHARED_READ_BYTES : COUNTER_WGMMA_SHARED_READ_BYTES] = counts->shared_read;
  c->value[bulk ? COUNTER_BULK_SHARED_WRITE_BYTES : COUNTER_CP_ASYNC_SHARED_WRITE_BYTES] = counts->shared_written;
  c->value[COUNTER_BULK_GLOBAL_READ_BYTES] = counts->global_read;
  c->value[COUNTER_BULK_GLOBAL_WRITE_BYTES] = counts->global_written;
  if (bulk) c->value[sectors[memory]] = counts->bulk_sectors;
}

// Instructions of warps while a product or a load was in progress, during their turns, and until they arrived.
static void add_meanwhile(EmulatorCounters *c, const Inst *inst, const InstCounts *counts) {
  static const CounterKind kinds[MEANWHILE_KINDS][3] = {
      [MEANWHILE_WGMMA] = {COUNTER_INST_UNDER_WGMMA, COUNTER_FP32_UNDER_WGMMA, COUNTER_MUFU_UNDER_WGMMA},
      [MEANWHILE_LOAD] = {COUNTER_INST_UNDER_LOAD, COUNTER_FP32_UNDER_LOAD, COUNTER_MUFU_UNDER_LOAD},
      [MEANWHILE_TURN] = {COUNTER_INST_IN_TURN, COUNTER_FP32_IN_TURN, COUNTER_MUFU_IN_TURN},
      [MEANWHILE_HOLDING] = {COUNTER_INST_UNTIL_ARRIVAL, COUNTER_FP32_UNTIL_ARRIVAL, COUNTER_MUFU_UNTIL_ARRIVAL},
  };
  for (int i = 0; i < MEANWHILE_KINDS; i++) {
    c->value[kinds[i][0]] = counts->under[i];
    if (inst->row->counter == COUNTER_INST_FP32) c->value[kinds[i][1]] = counts->under[i];
    c->value[kinds[i][2]] = counts->under[i] * (unsigned)inst->row->mufu;
  }
  if (operation_of(inst) == REDUCTION && counts->global_requests)
    c->value[COUNTER_REDUCTIONS_UNTIL_ARRIVAL] = counts->under[MEANWHILE_HOLDING];
  c->value[COUNTER_LOADS_UNDER_MUFU] = counts->pending_loads * (unsigned)inst->row->mufu;
}

static EmulatorCounters as_counters(const Inst *inst, const InstCounts *counts) {
  EmulatorCounters c = {0};
  c.value[COUNTER_INST_EXECUTED] = counts->warps;
  c.value[COUNTER_THREAD_INST_EXECUTED] = counts->threads;
  c.value[COUNTER_THREAD_INST_EXECUTED_PRED_ON] = counts->enabled;
  c.value[inst->row->counter] += counts->warps;
  add_shared_accesses(&c, inst, counts);
  add_global(&c, inst, counts);
  add_cluster(&c, inst, counts);
  add_local(&c, inst, counts);
  add_asynchronous(&c, inst, counts);
  add_meanwhile(&c, inst, counts);
  c.value[COUNTER_INST_MUFU] = counts->warps * (unsigned)inst->row->mufu;
  if (inst->row->scaled) c.value[COUNTER_INST_MUFU_SCALED] = counts->warps;
  c.value[COUNTER_WAITS_AT_ONCE] = counts->at_once;
  c.value[COUNTER_TENSOR_FLOPS] = counts->flops;
  c.value[COUNTER_LOADS_IN_FLIGHT] = counts->loads_in_flight;
  c.value[COUNTER_SETMAXNREG_REGISTERS] = counts->registers;
  if (inst->row->orders == ORDERS_BLOCK) c.value[COUNTER_INST_BARRIER] = counts->warps;
  c.value[COUNTER_INST_SYNCHRONISATION_ONCE] = c.value[COUNTER_INST_SYNCHRONISATION] - counts->failed_polls;
  c.value[COUNTER_INST_UNDER_LOAD_ONCE] = c.value[COUNTER_INST_UNDER_LOAD] - counts->failed_polls_under_load;
  return c;
}

// ---- sums ----

static void add_counters(EmulatorCounters *to, const EmulatorCounters *from) {
  for (int k = 0; k < COUNTER_KIND_COUNT; k++) to->value[k] += from->value[k];
}

static int compare_files(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

static LineCounters *line_entry(LineTable *table, const char *file, int line) {
  for (int i = 0; i < table->count; i++) {
    LineCounters *entry = &table->items[i];
    if (entry->line == line && !compare_files(entry->file, file)) return entry;
  }
  table->items = host_grow(table->items, table->count, &table->capacity, sizeof *table->items);
  LineCounters *entry = &table->items[table->count++];
  *entry = (LineCounters){.file = file, .line = line};
  return entry;
}

// All counts are numbers of 64 bits.
static void add_counts(InstCounts *to, const InstCounts *from) {
  uint64_t *sums = (uint64_t *)to;
  const uint64_t *counts = (const uint64_t *)from;
  for (size_t i = 0; i < sizeof *to / sizeof *sums; i++) sums[i] += counts[i];
}

void counters_collect(Emulator *emulator, const Program *program, Worker *workers, int worker_count) {
  for (uint32_t i = 0; i < program->count; i++) {
    InstCounts sum = {0};
    for (int w = 0; w < worker_count; w++) add_counts(&sum, &workers[w].counts[i]);
    if (!sum.warps) continue;
    const char *file;
    int line;
    instruction_line(program->module, program->code[i].source, &file, &line);
    EmulatorCounters counters = as_counters(&program->code[i], &sum);
    add_counters(&emulator->counters, &counters);
    add_counters(&line_entry(&emulator->lines, file, line)->counters, &counters);
  }
}

EmulatorCounters emulator_counters(const Emulator *emulator) { return emulator->counters; }

// No two are equal, or else their order would be the library's.
static int most_instructions_first(const void *left, const void *right) {
  const LineCounters *a = left, *b = right;
  uint64_t x = a->counters.value[COUNTER_INST_EXECUTED], y = b->counters.value[COUNTER_INST_EXECUTED];
  if (x != y) return (x < y) - (x > y);
  return a->line != b->line ? a->line - b->line : compare_files(a->file, b->file);
}

const LineCounters *emulator_line_counters(const Emulator *emulator, int *count) {
  const LineTable *lines = &emulator->lines;
  if (lines->count) qsort(lines->items, (size_t)lines->count, sizeof *lines->items, most_instructions_first);
  *count = lines->count;
  return lines->items;
}

void emulator_clear_counters(Emulator *emulator) {
  memset(&emulator->counters, 0, sizeof emulator->counters);
  emulator->lines.count = 0;
}
