// The totals of a run in a few lines, which --counters prints first.
#include "counters.h"

#include <inttypes.h>

const char *format_count(char text[32], uint64_t count) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%" PRIu64, count), out = 0;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) text[out++] = ',';
    text[out++] = digits[i];
  }
  text[out] = 0;
  return text;
}

// "fp32 41 %, memory 22 %, ...": the share of each class of warp instructions; classes below 0.5 % are left out.
static void print_classes(FILE *out, const EmulatorCounters *counters) {
  static const struct {
    CounterKind kind;
    const char *name;
  } classes[] = {
      {COUNTER_INST_INTEGER, "integer"}, {COUNTER_INST_FP32, "fp32"},       {COUNTER_INST_FP64, "fp64"},
      {COUNTER_INST_FP16, "fp16"},       {COUNTER_INST_SPECIAL, "special"}, {COUNTER_INST_CONVERT, "convert"},
      {COUNTER_INST_MEMORY, "memory"},   {COUNTER_INST_CONTROL, "control"}, {COUNTER_INST_SYNCHRONISATION, "barrier"},
      {COUNTER_INST_TENSOR, "tensor"},   {COUNTER_INST_ASYNC_COPY, "copy"}, {COUNTER_INST_OTHER, "other"},
  };
  double total = (double)counters->value[COUNTER_INST_EXECUTED];
  const char *separator = "";
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    double share = 100 * (double)counters->value[classes[i].kind] / total;
    if (share < 0.5) continue;
    fprintf(out, "%s%s %.0f %%", separator, classes[i].name, share);
    separator = ", ";
  }
}

// "1,234 loads of 4.0 sectors, 98,304 bytes asked for"
static void print_global(FILE *out, const char *what, uint64_t requests, uint64_t sectors, uint64_t bytes) {
  char text[32], byte_text[32];
  fprintf(out, "%s %s%s", format_count(text, requests), what, plural(requests));
  if (requests)
    fprintf(out, " of %.1f sectors, %s bytes", (double)sectors / (double)requests, format_count(byte_text, bytes));
}

// Atomics that return the old value (atom) and those that do not (red), together.
static void print_global_atomics(FILE *out, const uint64_t *value) {
  uint64_t requests = value[COUNTER_GLOBAL_ATOMIC_REQUESTS] + value[COUNTER_GLOBAL_REDUCTION_REQUESTS];
  uint64_t sectors = value[COUNTER_GLOBAL_ATOMIC_SECTORS] + value[COUNTER_GLOBAL_REDUCTION_SECTORS];
  if (!requests) return;
  fprintf(out, "; ");
  print_global(out, "atomic", requests, sectors, value[COUNTER_GLOBAL_ATOMIC_BYTES]);
}

static void print_shared(FILE *out, const char *what, uint64_t requests, uint64_t conflicts) {
  char text[32], conflict_text[32];
  fprintf(out, "%s %s%s with %s bank conflict%s", format_count(text, requests), what, plural(requests),
          format_count(conflict_text, conflicts), plural(conflicts));
}

// "besides: wgmma read 4,096 bytes of shared memory; ...": counters other than loads and stores of warps, if not 0.
static void print_besides(FILE *out, const uint64_t *value) {
  static const struct {
    CounterKind kind;
    const char *what;
  } parts[] = {
      {COUNTER_WGMMA_SHARED_READ_BYTES, "wgmma read %s bytes of shared memory"},
      {COUNTER_CP_ASYNC_SHARED_WRITE_BYTES, "cp.async wrote %s bytes of shared memory"},
      {COUNTER_BULK_SHARED_WRITE_BYTES, "bulk copies wrote %s bytes of shared memory"},
      {COUNTER_BULK_SHARED_READ_BYTES, "bulk copies read %s bytes of shared memory"},
      {COUNTER_BULK_GLOBAL_READ_BYTES, "bulk copies read %s bytes of global memory"},
      {COUNTER_BULK_GLOBAL_WRITE_BYTES, "bulk copies wrote %s bytes of global memory"},
      {COUNTER_CLUSTER_LOAD_SECTORS, "%s sectors loaded from other blocks' shared memory"},
      {COUNTER_CLUSTER_STORE_SECTORS, "%s sectors stored in other blocks' shared memory"},
      {COUNTER_CLUSTER_ATOMIC_SECTORS, "%s sectors of atomics in other blocks' shared memory"},
      {COUNTER_LOCAL_LOAD_BYTES, "%s bytes of local memory loaded"},
      {COUNTER_LOCAL_STORE_BYTES, "%s bytes of local memory stored"},
      {COUNTER_INST_MUFU, "%s special functions (MUFU)"},
  };
  const char *before = "\n          besides: ";
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    char text[32];
    if (!value[parts[i].kind]) continue;
    fprintf(out, "%s", before);
    fprintf(out, parts[i].what, format_count(text, value[parts[i].kind]));
    before = "; ";
  }
}

void print_counters(FILE *out, const EmulatorCounters *counters) {
  const uint64_t *value = counters->value;
  char text[32];
  if (!value[COUNTER_INST_EXECUTED]) return;
  fprintf(out, "counters  %s warp instructions: ", format_count(text, value[COUNTER_INST_EXECUTED]));
  print_classes(out, counters);
  fprintf(out, "\n          global memory: ");
  print_global(out, "load", value[COUNTER_GLOBAL_LOAD_REQUESTS], value[COUNTER_GLOBAL_LOAD_SECTORS],
               value[COUNTER_GLOBAL_LOAD_BYTES]);
  fprintf(out, "; ");
  print_global(out, "store", value[COUNTER_GLOBAL_STORE_REQUESTS], value[COUNTER_GLOBAL_STORE_SECTORS],
               value[COUNTER_GLOBAL_STORE_BYTES]);
  print_global_atomics(out, value);
  fprintf(out, "\n          shared memory: ");
  print_shared(out, "load", value[COUNTER_SHARED_LOADS], value[COUNTER_SHARED_LOAD_BANK_CONFLICTS]);
  fprintf(out, "; ");
  print_shared(out, "store", value[COUNTER_SHARED_STORES], value[COUNTER_SHARED_STORE_BANK_CONFLICTS]);
  if (value[COUNTER_SHARED_ATOMICS]) {
    fprintf(out, "; ");
    print_shared(out, "atomic", value[COUNTER_SHARED_ATOMICS], value[COUNTER_SHARED_ATOMIC_BANK_CONFLICTS]);
  }
  if (value[COUNTER_TENSOR_FLOPS])
    fprintf(out, "\n          tensor cores: %s FLOP", format_count(text, value[COUNTER_TENSOR_FLOPS]));
  print_besides(out, value);
  fprintf(out, "\n");
}
