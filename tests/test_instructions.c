// Instructions of a single thread that the tables of the other tests have no place for: atomic operations, copies of
// cp.async, the special registers that tell lanes apart. Each of 64 threads has a word of `in` and four of `out`.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/run_kernel.h"

enum { THREADS = 64, WORDS = 4 };

static uint32_t in[THREADS], out[THREADS][WORDS];

// Runs a body with %t, the thread, %i and %o, the addresses of its words; %v0 to %v3 go to `out` in the end. %r, %s, %p
// and tile, 16 bytes of shared memory for each thread, are free.
static void run(const char *body) {
  char text[2000];
  snprintf(text, sizeof text,
           PTX_HEADER ".visible .entry test(.param .u64 in, .param .u64 out) {\n"
                      ".reg .u64 %%i, %%o, %%w; .reg .u32 %%t, %%r, %%s, %%v<4>; .reg .pred %%p;\n"
                      ".shared .align 16 .b8 tile[1024];\n"
                      "mov.u32 %%t, %%tid.x; ld.param.u64 %%i, [in]; ld.param.u64 %%o, [out];\n"
                      "mul.wide.u32 %%w, %%t, 4; add.u64 %%i, %%i, %%w; shl.b64 %%w, %%w, 2; add.u64 %%o, %%o, %%w;\n"
                      "mov.u32 %%v0, 0; mov.u32 %%v1, 0; mov.u32 %%v2, 0; mov.u32 %%v3, 0;\n"
                      "%s\nst.global.v4.u32 [%%o], {%%v0, %%v1, %%v2, %%v3};\nret;\n}\n",
           body);
  Machine machine = machine_open(text, 0);
  uint64_t from = machine_upload(&machine, in, sizeof in), to = machine_upload(&machine, NULL, sizeof out);
  cr_expect_eq(machine_launch(&machine, (Shape){1, THREADS, 0}, (const void *[]){&from, &to}, 2), EMULATOR_OK);
  expect_clean(&machine);
  machine_download(&machine, in, from, sizeof in);
  machine_download(&machine, out, to, sizeof out);
  machine_close(&machine);
}

// ---- atomic operations with the number 20, and of cas with 20 and 99 ----

static uint32_t after(const char *operation, uint32_t old) {
  if (!strcmp(operation, "inc.u32")) return old >= 20 ? 0 : old + 1;
  if (!strcmp(operation, "dec.u32")) return old == 0 || old > 20 ? 20 : old - 1;
  if (!strcmp(operation, "add.u32")) return old + 20;
  if (!strcmp(operation, "min.u32")) return old < 20 ? old : 20;
  if (!strcmp(operation, "max.u32")) return old > 20 ? old : 20;
  if (!strcmp(operation, "min.s32")) return (int32_t)old < 20 ? old : 20;
  if (!strcmp(operation, "max.s32")) return (int32_t)old > 20 ? old : 20;
  if (!strcmp(operation, "and.b32")) return old & 20;
  if (!strcmp(operation, "or.b32")) return old | 20;
  if (!strcmp(operation, "xor.b32")) return old ^ 20;
  if (!strcmp(operation, "exch.b32")) return 20;
  return old == 20 ? 99 : old;  // cas
}

Test(instructions, atomics) {
  static const char *const operations[] = {"inc.u32", "dec.u32", "add.u32", "min.u32", "max.u32",  "min.s32",
                                           "max.s32", "and.b32", "or.b32",  "xor.b32", "exch.b32", "cas.b32"};
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    const char *operation = operations[i];
    char body[100];
    uint32_t old[THREADS];
    for (uint32_t t = 0; t < THREADS; t++) old[t] = in[t] = t < 32 ? t : 0u - t;
    snprintf(body, sizeof body, "atom.global.%s %%v0, [%%i], 20%s;", operation, operation[0] == 'c' ? ", 99" : "");
    run(body);
    for (int t = 0; t < THREADS; t++) {
      cr_expect_eq(out[t][0], old[t], "%s of %u gave %u", operation, old[t], out[t][0]);
      cr_expect_eq(in[t], after(operation, old[t]), "%s made %u of %u", operation, in[t], old[t]);
    }
  }
}

// ---- special registers ----

Test(instructions, lanes_of_a_warp) {
  run("mov.u32 %v0, %lanemask_lt; mov.u32 %v1, %lanemask_le; mov.u32 %v2, %lanemask_ge; mov.u32 %v3, %lanemask_gt;");
  for (int t = 0; t < THREADS; t++) {
    uint32_t own = 1u << t % 32, below = own - 1;
    cr_expect(out[t][0] == below && out[t][1] == (below | own) && out[t][2] == ~below && out[t][3] == ~(below | own),
              "thread %d: %08x %08x %08x %08x", t, out[t][0], out[t][1], out[t][2], out[t][3]);
  }
  run("mov.u32 %v0, %lanemask_eq; mov.u32 %v1, %laneid; mov.u32 %v2, %warpid; mov.u32 %v3, %nwarpid;");
  for (uint32_t t = 0; t < THREADS; t++)
    cr_expect(out[t][0] == 1u << t % 32 && out[t][1] == t % 32 && out[t][2] == t / 32 && out[t][3] == 2, "thread %u",
              t);
}

// ---- cp.async: the source may be ignored, and then the copy is zeros ----

Test(instructions, copies_with_a_predicate) {
  for (int negated = 0; negated < 2; negated++) {
    char body[300];
    for (uint32_t t = 0; t < THREADS; t++) in[t] = t + 1;
    snprintf(body, sizeof body,
             "and.b32 %%r, %%t, 1; setp.ne.u32 %%p, %%r, 0; mov.u32 %%s, tile; mad.lo.u32 %%s, %%t, 16, %%s;\n"
             "cp.async.ca.shared.global [%%s], [%%i], 4, %s%%p; cp.async.wait_all; ld.shared.u32 %%v0, [%%s];",
             negated ? "!" : "");
    run(body);
    for (uint32_t t = 0; t < THREADS; t++)
      cr_expect_eq(out[t][0], t % 2 != (uint32_t)negated ? 0 : t + 1, "%sp, thread %u: %u", negated ? "!" : "", t,
                   out[t][0]);
  }
}
