#include "workloads.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 64, THREADS = 256, REPEATS = 8, TEXT_SIZE = 1 << 17, TILE_ROWS = 64, TILE_COLUMNS = 64, TILES = 16 };

// ---- the workloads ----
//
// %t is the thread, %n the number of its first element in the grid. %rd1 is the address of that element in `out`, %rd2
// of element %t in shared memory, %rd3 and %rd4 those of the thread 32 further or back; %rd5 of element %t in `in`.

// A mix of instructions without memory, or with a word of it.
#define MIX(title, text) MIX_FROM(title, "", text)
#define MIX_FROM(title, start, text)                                                                                   \
  {                                                                                                                    \
    .name = title, .work = COUNTER_THREAD_INST_EXECUTED, .blocks = BLOCKS, .threads = THREADS, .element = 4,           \
    .elements = 1, .uses = OUT, .setup = start, .body = text, .repeats = REPEATS                                       \
  }

// Accesses to a thread's elements one after the other.
#define ACCESSES(title, bytes, memory, text)                                                                           \
  {                                                                                                                    \
    .name = title, .work = COUNTER_THREAD_INST_EXECUTED, .blocks = BLOCKS, .threads = THREADS, .element = bytes,       \
    .elements = REPEATS, .uses = memory, .body = text, .repeats = REPEATS                                              \
  }

// All threads write an element, and then read that of another warp's thread.
#define EXCHANGE(space, type, registers, own, other)                                                                   \
  "st." space "." type " [" own "+#], " registers ";\nbar.sync 0;\n"                                                   \
  "ld." space "." type " " registers ", [" other "+#];\nbar.sync 0;\n"
#define SHARED(title, type, bytes, registers)                                                                          \
  ACCESSES("shared, " title, bytes, NEITHER, EXCHANGE("shared", type, registers, "%rd2", "%rd3"))
#define GLOBAL(title, type, bytes, registers)                                                                          \
  ACCESSES("global, " title, bytes, OUT, EXCHANGE("global", type, registers, "%rd1", "%rd4"))

// All blocks read the same elements.
#define SAME(title, type, bytes, registers)                                                                            \
  ACCESSES("read by all blocks, " title, bytes, IN, "ld.global." type " " registers ", [%rd5+#];\n")

#define FOUR_WORDS "{%r1, %r2, %r3, %r4}"

// The same instruction for elements one after the other, each thread's 32 bytes apart from the next one's.
#define EIGHT_WORDS(title, memory, start, before, after)                                                               \
  {                                                                                                                    \
    .name = title, .work = COUNTER_THREAD_INST_EXECUTED, .blocks = BLOCKS, .threads = THREADS, .element = 4,           \
    .elements = 8, .uses = memory, .setup = start, .repeats = 1,                                                       \
    .body = before "]" after before "+4]" after before "+8]" after before "+12]" after before "+16]" after before      \
                   "+20]" after before "+24]" after before "+28]" after                                                \
  }
#define STRIDED "mul.wide.u32 %rd6, %t, 28;\nadd.u64 %rd6, %rd6, %rd1;\n"

// clang-format off
#define WGMMA(k) \
  "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9, %f10, %f11, " \
  "%f12, %f13, %f14, %f15, %f16, %f17, %f18, %f19, %f20, %f21, %f22, %f23, %f24, %f25, %f26, %f27, %f28, %f29, %f30, " \
  "%f31}, %a" #k ", %b" #k ", 1, 1, 1, 0, 0;\n"
// clang-format on

const Workload workloads[] = {
    MIX("fp32", "fma.rn.f32 %f1, %f1, %f2, %f3;\nadd.f32 %f4, %f4, %f1;\n"),
    MIX("integer",
        "mad.lo.s32 %r1, %r1, %r2, %r3;\nadd.s32 %r4, %r4, %r1;\nshl.b32 %r5, %r4, 3;\nxor.b32 %r2, %r2, %r5;\n"),
    MIX("compare", "setp.lt.s32 %p1, %r1, %r2;\nselp.b32 %r3, %r1, %r2, %p1;\n"),
    MIX("fp16 pairs", "fma.rn.f16x2 %r1, %r2, %r3, %r1;\n"),
    MIX("conversion", "cvt.rn.f16x2.f32 %r1, %f1, %f2;\ncvt.f32.f16 %f3, %h1;\n"),
    MIX("exponential", "ex2.approx.ftz.f32 %f1, %f2;\nfma.rn.f32 %f2, %f1, %f3, %f4;\n"),
    MIX("shared memory", "st.shared.f32 [%rd2], %f1;\nld.shared.f32 %f2, [%rd2];\nfma.rn.f32 %f1, %f1, %f2, %f3;\n"),
    MIX("global memory", "ld.global.f32 %f1, [%rd1];\nfma.rn.f32 %f1, %f1, %f2, %f3;\nst.global.f32 [%rd1], %f1;\n"),
    SHARED("1 byte", "u8", 1, "%r1"),
    SHARED("2 bytes", "u16", 2, "%h1"),
    SHARED("4 bytes", "u32", 4, "%r1"),
    SHARED("8 bytes", "u64", 8, "%rd7"),
    SHARED("16 bytes", "v4.u32", 16, FOUR_WORDS),
    GLOBAL("1 byte", "u8", 1, "%r1"),
    GLOBAL("2 bytes", "u16", 2, "%h1"),
    GLOBAL("4 bytes", "u32", 4, "%r1"),
    GLOBAL("16 bytes", "v4.u32", 16, FOUR_WORDS),
    ACCESSES("global loads, 4 bytes", 4, OUT, "ld.global.f32 %f4, [%rd1+#];\n"),
    ACCESSES("global stores, 4 bytes", 4, OUT, "st.global.f32 [%rd1+#], %f4;\n"),
    EIGHT_WORDS("global loads, strided", OUT, STRIDED, "ld.global.f32 %f4, [%rd6", ";\n"),
    EIGHT_WORDS("global stores, strided", OUT, STRIDED, "st.global.f32 [%rd6", ", %f4;\n"),
    MIX_FROM("global loads, one address", "mul.wide.u32 %rd6, %t, 4;\nsub.u64 %rd6, %rd1, %rd6;\n",
             "ld.global.f32 %f4, [%rd6];\n"),
    MIX_FROM("shared loads, 4 bytes", "st.shared.f32 [%rd2], %f4;\n", "ld.shared.f32 %f4, [%rd2];\n"),
    ACCESSES("shared stores, 4 bytes", 4, NEITHER, "st.shared.f32 [%rd2+#], %f4;\n"),
    SAME("1 byte", "u8", 1, "%r1"),
    SAME("2 bytes", "u16", 2, "%h1"),
    SAME("16 bytes", "v4.u32", 16, FOUR_WORDS),
    ACCESSES("atomics, 4 bytes", 4, IN, "red.global.add.u32 [%rd5+#], 1;\n"),
    // Two 64 x 64 tiles of fp16 in shared memory, under a 128B swizzle, multiplied by one warpgroup.
    {.name = "wgmma m64n64k16",
     .work = COUNTER_TENSOR_FLOPS,
     .blocks = 1,
     .threads = 128,
     .declarations = ".shared .align 1024 .b8 tiles[16384];\n.reg .b64 %a<4>, %b<4>, %d;\n",
     .setup =
         "mov.u64 %d, tiles;\nmul.wide.u32 %rd6, %t, 16;\nadd.u64 %rd6, %rd6, %d;\nmov.u32 %r1, 0x3c003c00;\nfill:\n"
         "st.shared.v4.u32 [%rd6], {%r1, %r1, %r1, %r1};\nadd.u64 %rd6, %rd6, 2048;\nadd.u64 %rd7, %d, 16384;\n"
         "setp.lt.u64 %p1, %rd6, %rd7;\n@%p1 bra fill;\nfence.proxy.async;\nbar.sync 0;\n"
         "shr.u64 %a0, %d, 4;\nor.b64 %a0, %a0, 0x4000004000010000;\nadd.u64 %a1, %a0, 2;\nadd.u64 %a2, %a0, 4;\n"
         "add.u64 %a3, %a0, 6;\nadd.u64 %b0, %a0, 512;\nadd.u64 %b1, %b0, 2;\nadd.u64 %b2, %b0, 4;\nadd.u64 %b3, %b0, "
         "6;\n",
     .body = "wgmma.fence.sync.aligned;\n" WGMMA(0) WGMMA(1) WGMMA(2)
         WGMMA(3) "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
     .repeats = 1},
    // A tile of 64 x 64 elements of fp16 after the other, under a 128B swizzle, of which each thread reads some.
    {.name = "TMA",
     .work = COUNTER_BULK_GLOBAL_READ_BYTES,
     .blocks = 4,
     .threads = 128,
     .uses = IN,
     .declarations =
         ".shared .align 1024 .b8 tiles[8192];\n.shared .align 8 .b64 full;\n.reg .b32 %y, %phase;\n.reg .b64 %m;\n",
     .setup = "mov.u64 %m, map;\ncvta.param.u64 %m, %m;\nmov.u64 %rd6, tiles;\nmul.wide.u32 %rd7, %t, 16;\n"
              "add.u64 %rd6, %rd6, %rd7;\nmov.u32 %y, 0;\nmov.u32 %phase, 0;\nsetp.eq.u32 %p0, %t, 0;\n"
              "@%p0 mbarrier.init.shared::cta.b64 [full], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n",
     .body = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 8192;\n"
             "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tiles], [%m, {0, "
             "%y}], "
             "[full];\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [full], %phase;\n@!%p1 bra wait;\n"
             "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%rd6];\nld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%rd6+2048];\n"
             "bar.sync 0;\nxor.b32 %phase, %phase, 1;\nadd.u32 %y, %y, 64;\nand.b32 %y, %y, 1023;\n",
     .repeats = 1},
};

const int workload_count = sizeof workloads / sizeof workloads[0];

// ---- their PTX ----

typedef struct Text {
  char bytes[TEXT_SIZE];
  size_t length;
} Text;

static void add(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  text->length += (size_t)vsnprintf(text->bytes + text->length, TEXT_SIZE - text->length, format, arguments);
  va_end(arguments);
}

static void add_body(Text *text, const Workload *workload, int offset) {
  for (const char *at = workload->body; *at; at++) {
    if (*at == '#')
      add(text, "%d", offset);
    else
      add(text, "%c", *at);
  }
}

// What a block's threads have together: bytes.
static int block_bytes(const Workload *w) { return (int)w->threads * w->element * w->elements; }

// The same in shared memory. A mix has a word there besides; where no thread uses any there is still a name.
static int shared_bytes(const Workload *w) {
  bool used = block_bytes(w) && (w->uses == NEITHER || w->elements == 1);
  return used ? block_bytes(w) : 16;
}

static void write_kernel(Text *text, const Workload *w) {
  text->length = 0;
  add(text,
      ".version 8.6\n.target sm_90a\n.address_size 64\n"
      ".visible .entry work(.param .u64 out, .param .u64 in, .param .u32 steps, .param .align 64 .b8 map[128]) {\n"
      ".reg .pred %%p<4>;\n.reg .b16 %%h<4>;\n.reg .b32 %%r<8>, %%t, %%n, %%s;\n.reg .f32 %%f<32>;\n.reg .b64 "
      "%%rd<8>;\n"
      ".shared .align 16 .b8 elements[%d];\n%s",
      shared_bytes(w), w->declarations ? w->declarations : "");
  add(text,
      "mov.u32 %%t, %%tid.x;\nxor.b32 %%s, %%t, 32;\nmov.u64 %%rd7, elements;\n"
      "mul.wide.u32 %%rd2, %%t, %d;\nadd.u64 %%rd2, %%rd2, %%rd7;\nmul.wide.u32 %%rd3, %%s, %d;\n"
      "add.u64 %%rd3, %%rd3, %%rd7;\nmov.u32 %%n, %%ctaid.x;\nmul.lo.u32 %%n, %%n, %d;\n"
      "ld.param.u64 %%rd7, [out];\nadd.u32 %%s, %%s, %%n;\nadd.u32 %%n, %%t, %%n;\nmul.wide.u32 %%rd1, %%n, %d;\n"
      "add.u64 %%rd1, %%rd1, %%rd7;\nmul.wide.u32 %%rd4, %%s, %d;\nadd.u64 %%rd4, %%rd4, %%rd7;\n"
      "ld.param.u64 %%rd7, [in];\nmul.wide.u32 %%rd5, %%t, %d;\nadd.u64 %%rd5, %%rd5, %%rd7;\n",
      w->element, w->element, (int)w->threads * w->elements, w->element, w->element, w->element);
  add(text, "mov.u32 %%r1, %%t;\nmov.u32 %%r2, 7;\nmov.u32 %%r3, 5;\nmov.u32 %%r4, 0;\nmov.u32 %%r5, 0;\n"
            "mov.b16 %%h1, 0x3c00;\nmov.f32 %%f1, 0f3F000000;\nmov.f32 %%f2, 0f3F000000;\nmov.f32 %%f3, 0f3E800000;\n");
  for (int i = 0; i < 32; i++)
    if (i == 0 || i > 3) add(text, "mov.f32 %%f%d, 0f00000000;\n", i);
  add(text, "%sld.param.u32 %%s, [steps];\nloop:\n", w->setup ? w->setup : "");
  for (int i = 0; i < w->repeats; i++) add_body(text, w, i * (int)w->threads * w->element);
  add(text, "sub.u32 %%s, %%s, 1;\nsetp.ne.u32 %%p2, %%s, 0;\n@%%p2 bra loop;\nret;\n}\n");
}

// ---- running one ----

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const Workload *workload, const EmulatorError *error) {
  fprintf(stderr, "workload %s: line %d: %s\n", workload->name, error->line, error->message);
  exit(1);
}

// Memory with zeros in it.
static uint64_t zeros(Emulator *emulator, size_t size) {
  uint64_t address = emulator_alloc(emulator, size);
  if (address) emulator_fill(emulator, address, 0, size);
  return address;
}

// Rows of 64 elements of fp16, in boxes of 64 x 64.
static void describe_tiles(uint64_t in, uint8_t map[EMULATOR_TENSOR_MAP_BYTES], const Workload *workload) {
  EmulatorError error = {0};
  const EmulatorTensorSpec spec = {.type = EMULATOR_TENSOR_F16,
                                   .rank = 2,
                                   .address = in,
                                   .size = {TILE_COLUMNS, TILE_ROWS * TILES},
                                   .stride = {0, 2 * TILE_COLUMNS},
                                   .box = {TILE_COLUMNS, TILE_ROWS},
                                   .swizzle = EMULATOR_SWIZZLE_128B};
  if (!emulator_tensor_map(&spec, map, &error)) fail(workload, &error);
}

WorkloadRun workload_run(const Workload *workload, const EmulatorOptions *options, int steps) {
  static Text text;
  write_kernel(&text, workload);
  EmulatorError error = {.message = "no memory"};
  Emulator *emulator = emulator_open(options);
  EmulatorModule *module = emulator ? emulator_load(emulator, text.bytes, text.length, &error) : NULL;
  if (!module) fail(workload, &error);
  bool tiled = workload->work == COUNTER_BULK_GLOBAL_READ_BYTES;
  size_t block = (size_t)block_bytes(workload), in_size = tiled ? TILES * TILE_ROWS * TILE_COLUMNS * 2 : block;
  uint64_t out = workload->uses == OUT ? zeros(emulator, block * workload->blocks) : 0;
  uint64_t in = workload->uses == IN ? zeros(emulator, in_size) : 0;
  _Alignas(64) uint8_t map[EMULATOR_TENSOR_MAP_BYTES] = {0};
  if (tiled) describe_tiles(in, map, workload);
  const EmulatorLaunch launch = {.kernel = "work",
                                 .grid = {workload->blocks, 1, 1},
                                 .block = {workload->threads, 1, 1},
                                 .arguments = (const void *const[]){&out, &in, &steps, map},
                                 .argument_count = 4};
  WorkloadRun run = {0};
  double start = seconds();
  if (emulator_launch(emulator, module, &launch, &error) != EMULATOR_OK) fail(workload, &error);
  run.seconds = seconds() - start;
  run.work = emulator_counters(emulator).value[workload->work];
  run.memory = emulator_memory(emulator);
  emulator_hazards(emulator, &run.hazards);
  emulator_close(emulator);
  return run;
}
