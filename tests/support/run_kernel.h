// Runs whole kernels, written as PTX text, on the emulator: for the tests of instructions that need several threads.
//
// A text may hold two kernels in one, a faulty one and its repaired twin. A line that begins with "F:" is part of the faulty
// one alone, one with "R:" of the repaired one alone, and "// here" ends the line that the report must name, on either side.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/emulator.h"

enum { SCHEDULES = 7, MAX_ARGUMENTS = 8 };  // seeds 0 to 6

#define PTX_HEADER ".version 8.6\n.target sm_90a\n.address_size 64\n"

typedef struct Machine {
  Emulator *emulator;
  EmulatorModule *module;
  char *text;  // as it was loaded
} Machine;

typedef enum Variant { REPAIRED, FAULTY } Variant;

// An emulator with the kernel loaded; fails the test when the text does not decode.
Machine machine_open(const char *text, Variant variant, uint64_t schedule);
void machine_close(Machine *machine);
// Global memory with the bytes in it; NULL for memory that nobody has written.
uint64_t machine_upload(Machine *machine, const void *bytes, size_t size);
void machine_download(Machine *machine, void *bytes, uint64_t address, size_t size);
// Launches the only kernel, named "test": one grid dimension, one block dimension.
EmulatorStatus machine_launch(Machine *machine, unsigned grid, unsigned block, unsigned cluster, const void *const *arguments, int count);
// Fails the test, with the reports, when there is a hazard.
bool expect_clean(Machine *machine);
// Fails the test unless there is a hazard of the kind whose line, or that of its other side, is marked "// here", and whose
// detail contains the word.
bool expect_hazard(Machine *machine, HazardKind kind, const char *word);

// ---- pairs: a faulty kernel and its repaired twin in one text ----

// What every kernel of a pair begins with: 128 bytes of a tensor map over `in` (32 x 32 elements of u32, in boxes of 32 x 4),
// `in` with 4096 bytes, `out` with room for as many; %m %i %o are their addresses, %t the thread, %p whether it is the first.
// tile has 8 KiB, bar four mbarriers.
#define PAIR_PROLOGUE                                                                                                 \
  PTX_HEADER                                                                                                          \
  ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out) {\n"                          \
  ".reg .b64 %m, %i, %o, %s, %s1; .reg .b32 %t, %a, %v, %n, %c; .reg .b16 %h; .reg .pred %p, %q, %w0, %w1, %x;\n"     \
  ".shared .align 1024 .b8 tile[8192]; .shared .align 8 .b64 bar[4];\n"                                               \
  "mov.b64 %m, map; cvta.param.u64 %m, %m; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];\n"                          \
  "mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; setp.lt.u32 %w0, %t, 32; not.pred %w1, %w0;\n"
// One mbarrier, made by the first thread and known to all.
#define INIT(bar, count)                                                                  \
  "@%p mbarrier.init.shared::cta.b64 [" bar "], " count ";\n"                             \
  "@%p fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
#define EXPECT(bar, bytes) "@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [" bar "], " bytes ";\n"
#define LOAD(to, x, y, bar)                                                                                             \
  "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [%m, {" x ", " y "}], [" bar "];\n"
#define WAIT(label, bar, parity) \
  label ": mbarrier.try_wait.parity.shared::cta.b64 %q, [" bar "], " parity ";\n@!%q bra " label ";\n"
// Every thread stores word %t of the tile to out.
#define OUTPUT(tile)                                                                                                  \
  "mov.u32 %a, " tile "; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a];\n"                            \
  "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n"

typedef struct Pair {
  const char *name, *text;
  HazardKind kind;
  const char *word;  // of the report's detail
  unsigned grid, block, cluster;  // 0: one block of 64 threads, no cluster
  HazardKind or_kind;  // of two accesses without order, when the schedule lets the other one come first; 0: the same
} Pair;

// Runs both under every schedule: the faulty one must be reported at its line, the repaired one be silent and give the same
// output every time.
void run_pairs(const Pair *pairs, int count);
#define RUN_PAIRS(pairs) run_pairs(pairs, (int)(sizeof(pairs) / sizeof(pairs)[0]))

typedef struct Map {
  _Alignas(64) uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES];
} Map;

// A tensor map; fails the test when the encoder refuses.
Map make_map(const EmulatorTensorSpec *spec);
