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

// ---- atomic operations on vectors: of four threads one, or all, on their 16 bytes together ----

// What each word of the vector holds before; the number that its numbers are combined with; what the word holds then.
typedef struct VectorCase {
  const char *type;
  int count;  // elements
  const char *operation, *other;
  uint32_t before, after;
} VectorCase;

static const VectorCase vectors[] = {
    {"f32", 4, "add", "0f3F800000", 0x40000000, 0x40400000},  // 2 + 1
    {"f32", 2, "add", "0fC0000000", 0x3f800000, 0xbf800000},  // 1 - 2
    {"f16x2", 4, "add.noftz", "0x3c003c00", 0x40003c00, 0x42004000},
    {"f16x2", 2, "min.noftz", "0x3e003e00", 0x40003c00, 0x3e003c00},  // 1.5 with 1 and with 2
    {"f16x2", 4, "max.noftz", "0x3e003e00", 0x40003c00, 0x40003e00},
    {"bf16x2", 4, "add.noftz", "0x3f803f80", 0x40003f80, 0x40404000},
    {"bf16x2", 4, "min.noftz", "0xbf803fc0", 0x40003f80, 0xbf803f80},  // 1.5 with 1, -1 with 2
    {"bf16x2", 2, "max.noftz", "0x3fc03fc0", 0x40003f80, 0x40003fc0},
    {"f16", 8, "add.noftz", "0x3c00", 0x40003c00, 0x42004000},
    {"f16", 4, "max.noftz", "0x3e00", 0x40003c00, 0x40003e00},
    {"f16", 2, "min.noftz", "0x3e00", 0x40003c00, 0x3e003c00},
    {"bf16", 8, "max.noftz", "0x3fc0", 0x40003f80, 0x40003fc0},
    {"bf16", 8, "add.noftz", "0x3f80", 0x40003f80, 0x40404000},
    {"bf16", 4, "min.noftz", "0x3fc0", 0x40003f80, 0x3fc03f80},
};

// "{%x0, %x1}"
static const char *registers(const char *name, int count) {
  static char texts[2][100];
  static int turn;
  char *text = texts[turn ^= 1], *end = text + sprintf(text, "{");
  for (int i = 0; i < count; i++) end += sprintf(end, "%s%s%d", i ? ", " : "", name, i);
  sprintf(end, "}");
  return text;
}

static void run_vector(const VectorCase *vector, bool returns) {
  char body[2000], *end = body;
  const char *bits = strstr(vector->type, "x2")                         ? "b32"
                     : vector->type[0] == 'f' && vector->type[1] == '3' ? "f32"
                                                                        : "b16";
  int words = !strcmp(bits, "b16") ? vector->count / 2 : vector->count;
  for (int t = 0; t < THREADS; t++) in[t] = vector->before;
  end += sprintf(end, ".reg .%s %%x<8>, %%y<8>; and.b32 %%r, %%t, 3; setp.eq.u32 %%p, %%r, 0;\n", bits);
  for (int i = 0; i < 8; i++) end += sprintf(end, "mov.%s %%y%d, %s; ", bits, i, vector->other);
  end += sprintf(end, "\n@%%p %s.global.%s.v%d.%s ", returns ? "atom" : "red", vector->operation, vector->count,
                 vector->type);
  if (returns) end += sprintf(end, "%s, ", registers("%x", vector->count));
  end += sprintf(end, "[%%i], %s;\n", registers("%y", vector->count));
  for (int i = 0; i < words && returns; i++)
    end += words == vector->count ? sprintf(end, "mov.b32 %%v%d, %%x%d; ", i, i)
                                  : sprintf(end, "mov.b32 %%v%d, {%%x%d, %%x%d}; ", i, 2 * i, 2 * i + 1);
  run(body);
  for (int t = 0; t < THREADS; t++) {
    uint32_t expected = t % 4 < words ? vector->after : vector->before;
    cr_expect_eq(in[t], expected, "%s.v%d.%s: word %d is %08x", vector->operation, vector->count, vector->type, t,
                 in[t]);
    for (int i = 0; i < words && returns && t % 4 == 0; i++)
      cr_expect_eq(out[t][i], vector->before, "%s.v%d.%s: thread %d was told %08x", vector->operation, vector->count,
                   vector->type, t, out[t][i]);
  }
}

Test(instructions, atomics_on_vectors) {
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    run_vector(&vectors[i], false);
    run_vector(&vectors[i], true);
  }
}

// Each element is atomic: what four threads add to the same vector is all there.
Test(instructions, threads_add_to_one_vector) {
  for (uint32_t t = 0; t < THREADS; t++) in[t] = 0;
  run(".reg .f32 %f<4>; and.b64 %i, %i, -16;\n"
      "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;\n"
      "red.relaxed.gpu.global.add.v4.f32 [%i], {%f0, %f1, %f2, %f3};");
  static const uint32_t sums[] = {0x40800000, 0x41000000, 0x41400000, 0x41800000};  // 4, 8, 12, 16
  for (uint32_t t = 0; t < THREADS; t++) cr_expect_eq(in[t], sums[t % 4], "word %u: %08x", t, in[t]);
}

Test(instructions, atomics_on_128_bits) {
  static const char *const bodies[] = {
      "atom.global.exch.b128 %q0, [%i], %q1;",
      "atom.global.cas.b128 %q0, [%i], %q2, %q1;",              // they differ in the highest byte
      "atom.relaxed.gpu.global.cas.b128 %q0, [%i], %q0, %q1;",  // they are equal
      "st.shared.b128 [%s], %q0; atom.shared.exch.b128 %q0, [%s], %q1; ld.shared.b128 %q1, [%s]; "
      "@%p st.global.b128 [%i], %q1;",
  };
  for (int i = 0; i < 4; i++) {
    char body[1000];
    for (uint32_t t = 0; t < THREADS; t++) in[t] = t;
    snprintf(body, sizeof body,
             ".reg .b128 %%q<3>; .reg .b64 %%d<2>; and.b32 %%r, %%t, 3; setp.eq.u32 %%p, %%r, 0;\n"
             "mov.u32 %%s, tile; mad.lo.u32 %%s, %%t, 16, %%s; @!%%p bra END;\n"
             "ld.global.b128 %%q0, [%%i]; mov.b128 {%%d0, %%d1}, %%q0; xor.b64 %%d1, %%d1, 0x100000000000000;\n"
             "mov.b128 %%q2, {%%d0, %%d1}; mov.b64 %%d0, 0x0000000200000001; mov.b64 %%d1, 0x0000000400000003;\n"
             "mov.b128 %%q1, {%%d0, %%d1};\n%s\n"
             "mov.b128 {%%d0, %%d1}, %%q0; mov.b64 {%%v0, %%v1}, %%d0; mov.b64 {%%v2, %%v3}, %%d1;\nEND:",
             bodies[i]);
    run(body);
    for (uint32_t t = 0; t < THREADS; t++) {
      uint32_t expected = i == 1 ? t : t % 4 + 1;
      cr_expect_eq(in[t], expected, "case %d: word %u is %u", i, t, in[t]);
      if (t % 4 == 0)
        for (uint32_t w = 0; w < 4; w++) cr_expect_eq(out[t][w], t + w, "case %d: %u of %u", i, out[t][w], t);
    }
  }
}

// ---- bytes in registers ----

Test(instructions, bytes_of_a_word) {
  for (uint32_t t = 0; t < THREADS; t++) in[t] = t * 0x01010101 + 0x80402010;
  run(".reg .b8 %y<4>; .reg .b16 %h; ld.global.u32 %r, [%i];\n"
      "mov.b32 {%y0, %y1, %y2, %y3}, %r; mov.b32 %v0, {%y3, %y2, %y1, %y0}; mov.b16 %h, {%y0, %y3};\n"
      "cvt.u32.u16 %v1, %h; mov.b16 {%y1, _}, %h; cvt.u32.u8 %v2, %y1; cvt.s32.s8 %v3, %y3;");
  for (uint32_t t = 0; t < THREADS; t++) {
    uint32_t word = in[t], low = word & 255, high = word >> 24;
    cr_expect_eq(out[t][0], __builtin_bswap32(word), "%08x", out[t][0]);
    cr_expect_eq(out[t][1], high << 8 | low, "%08x", out[t][1]);
    cr_expect_eq(out[t][2], low, "%08x", out[t][2]);
    cr_expect_eq(out[t][3], (uint32_t)(int8_t)high, "%08x", out[t][3]);
  }
}

// ---- addresses of variables ----

// What ptxas makes of name[5]: five numbers of the variable's type, also where it is a vector or has rows.
Test(instructions, addresses_of_elements) {
  run(".shared .align 16 .b32 row[64]; .shared .align 16 .b16 two[4][8]; .shared .align 16 .v4 .b32 vector[4];\n"
      "mov.u32 %v0, row[5]; mov.u32 %r, row; sub.u32 %v0, %v0, %r; mov.u64 %w, two[3]; cvt.u32.u64 %v1, %w;\n"
      "mov.u32 %r, two; sub.u32 %v1, %v1, %r; mov.u32 %v2, vector[2]; mov.u32 %r, vector; sub.u32 %v2, %v2, %r;");
  for (int t = 0; t < THREADS; t++) cr_expect(out[t][0] == 20 && out[t][1] == 6 && out[t][2] == 8, "thread %d", t);
}

// LLVM keeps the address of its stack in 32 bits.
Test(instructions, addresses_of_local_variables) {
  run(".local .align 8 .b8 depot[24]; .reg .u64 %d; st.local.u32 [depot+16], %t;\n"
      "mov.b32 %s, depot; ld.local.u32 %v0, [%s+16]; mov.b64 %d, depot; ld.local.u32 %v1, [%d+16];\n"
      "mov.u32 %s, depot+16; cvt.u64.u32 %d, %s; cvta.local.u64 %d, %d; ld.u32 %v2, [%d];");
  for (uint32_t t = 0; t < THREADS; t++) cr_expect(out[t][0] == t && out[t][1] == t && out[t][2] == t, "thread %u", t);
}

// ---- memory of the stack: a function takes some, and gives it back when it returns ----

static const char stack_body[] =
    ".reg .u64 %d<4>; .reg .u32 %x, %n;\n"
    "stacksave.u64 %d0; mov.u64 %d3, %d0; mov.u32 %n, 0;\n"
    "LOOP: add.u32 %x, %t, 32; cvt.u64.u32 %d1, %x; alloca.u64 %d1, %d1, 64;\n"  // of another size in each thread
    "and.b64 %d2, %d1, 63; cvt.u32.u64 %r, %d2; add.u32 %v0, %v0, %r;\n"         // aligned
    "st.local.u32 [%d1], %t; alloca.u64 %d2, 16; st.local.u32 [%d2], 7; ld.local.u32 %r, [%d1]; add.u32 %v1, %v1, %r;\n"
    "sub.u64 %d3, %d3, %d1; cvt.u32.u64 %v2, %d3;\n"
    "stackrestore.u64 %d0; stacksave.u64 %d3; setp.eq.u64 %p, %d3, %d0; selp.u32 %v3, 1, 0, %p;\n"
    "add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 1000; @%p bra LOOP;";

Test(instructions, memory_of_the_stack) {
  run(stack_body);
  for (uint32_t t = 0; t < THREADS; t++)
    cr_expect(out[t][0] == 0 && out[t][1] == 1000 * t && out[t][2] == (t + 32 + 63) / 64 * 64 && out[t][3] == 1,
              "thread %u: %u %u %u %u", t, out[t][0], out[t][1], out[t][2], out[t][3]);
}

// 1000 calls of a function that takes 1000 bytes each: more than there is.
Test(instructions, a_return_gives_the_stack_back) {
  static const char text[] = PTX_HEADER
      ".func taking(.param .b32 x) { .reg .u64 %d; .reg .u32 %r; ld.param.b32 %r, [x]; alloca.u64 %d, 1000;\n"
      "st.local.u32 [%d], %r; ret; }\n"
      ".visible .entry test(.param .u64 in, .param .u64 out) { .reg .u32 %n; .reg .pred %p; mov.u32 %n, 0;\n"
      "LOOP: { .param .b32 x; st.param.b32 [x], %n; call taking, (x); }\n"
      "add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 1000; @%p bra LOOP; ret; }\n";
  Machine machine = machine_open(text, 0);
  uint64_t none = 0;
  cr_expect_eq(machine_launch(&machine, (Shape){1, THREADS, 0}, (const void *[]){&none, &none}, 2), EMULATOR_OK);
  expect_clean(&machine);
  machine_close(&machine);
}

Test(instructions, the_stack_ends) {
  static const char text[] = PTX_HEADER
      ".visible .entry test(.param .u64 in, .param .u64 out) { .reg .u64 %d; .reg .u32 %n; .reg .pred %p;\n"
      "mov.u32 %n, 0; LOOP: alloca.u64 %d, 1000; add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 1000; @%p bra LOOP; ret; }\n";
  Machine machine = machine_open(text, 0);
  uint64_t none = 0;
  int count;
  cr_expect_eq(machine_launch(&machine, (Shape){1, 32, 0}, (const void *[]){&none, &none}, 2), EMULATOR_FAULT);
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  cr_expect(count == 1 && strstr(hazards[0].detail, "stack overflow: 1000 bytes"), "%d hazards", count);
  machine_close(&machine);
}

// ---- threads that exit: tests/pairs/exit.pairs ----

Test(instructions, exits_before_a_barrier) { run_pairs("exit"); }

// ---- elements of a vector that nobody reads: tests/pairs/vectors.pairs ----

Test(instructions, reads_no_dead_elements) { run_pairs("vectors"); }

// 44 bytes: the vector's last element lies beyond their end.
static void expect_of_vector(const char *address, const char *read, const char *hazard) {
  char text[1000];
  uint8_t bytes[44] = {0};
  int count;
  snprintf(text, sizeof text,
           PTX_HEADER ".visible .entry test(.param .u64 in, .param .u64 out) {\n"
                      ".reg .u64 %%i, %%o; .reg .u32 %%x<5>;\n"
                      "ld.param.u64 %%i, [in]; ld.param.u64 %%o, [out];\n"
                      "ld.global.v4.u32 {%%x0, %%x1, %%x2, %%x3}, [%%i+%s];\n"
                      "add.u32 %%x4, %%x0, %s; st.global.u32 [%%o], %%x4; ret;\n}\n",
           address, read);
  Machine machine = machine_open(text, 0);
  uint64_t from = machine_upload(&machine, bytes, sizeof bytes), to = machine_upload(&machine, NULL, 4);
  machine_launch(&machine, (Shape){1, 1, 0}, (const void *[]){&from, &to}, 2);
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  cr_expect_eq(count, hazard != NULL, "%s %s", address, read);
  if (hazard && count) cr_expect_str_eq(hazard_name(hazards[0].kind), hazard, "%s %s", address, read);
  machine_close(&machine);
}

Test(instructions, dead_elements_have_no_bounds) {
  expect_of_vector("32", "%x2", NULL);
  expect_of_vector("32", "%x1", NULL);
  expect_of_vector("32", "%x3", "out-of-bounds access");
  expect_of_vector("48", "%x1", "out-of-bounds access");
  expect_of_vector("4", "%x2", "misaligned access");
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

// Two launches of one kernel; the second is grid 2. Block i runs on SM i.
Test(instructions, registers_of_the_launch) {
  run("mov.u32 %v0, %smid; mov.u32 %v1, %nsmid; mov.u32 %v2, %total_smem_size; mov.u32 %v3, %aggr_smem_size;");
  cr_expect(out[5][0] == 0 && out[5][1] == 132, "SM %u of %u", out[5][0], out[5][1]);
  cr_expect(out[5][2] == 1024 && out[5][3] == 2048, "%u and %u bytes", out[5][2], out[5][3]);
  run(".reg .u16 %h; .reg .u64 %g; mov.u16 %h, %tid.x; cvt.u32.u16 %v0, %h; mov.u64 %g, %gridid; cvt.u32.u64 %v1, %g;\n"
      "mov.pred %p, %is_explicit_cluster; selp.u32 %v2, 1, 2, %p; mov.b32 %v3, %envreg3;");
  for (uint32_t t = 0; t < THREADS; t++)
    cr_expect(out[t][0] == t && out[t][1] == 1 && out[t][2] == 2 && out[t][3] == 0, "thread %u: %u %u %u %u", t,
              out[t][0], out[t][1], out[t][2], out[t][3]);
}

// The system's 1024 bytes in front of a block's shared memory, of which cooperative_groups uses 288 from offset 1 on. A
// program that does not ask for offset 1 cannot reach them.
Test(instructions, reserved_shared_memory) {
  run("mov.b32 %v0, %reserved_smem_offset_begin; mov.b32 %v1, %reserved_smem_offset_end;\n"
      "mov.b32 %v2, %reserved_smem_offset_cap; mov.b32 %v3, %reserved_smem_offset_0;");
  cr_expect(out[5][0] == 0 && out[5][1] == 1024 && out[5][2] == 1024 && out[5][3] == 0, "%u %u %u %u", out[5][0],
            out[5][1], out[5][2], out[5][3]);
  for (uint32_t t = 0; t < THREADS; t++) in[t] = 3 * t;
  run("mov.b32 %v0, %reserved_smem_offset_1; mad.lo.u32 %s, %t, 4, %v0; ld.global.u32 %v1, [%i];\n"
      "red.shared.and.b32 [%s], 0; red.shared.or.b32 [%s], %v1; ld.shared.u32 %v2, [%s]; mov.u32 %v3, tile;");
  for (uint32_t t = 0; t < THREADS; t++)
    cr_expect(out[t][0] + 288 <= 1024 && out[t][2] == 3 * t && out[t][3] == 1024, "thread %u: %u %u %u", t, out[t][0],
              out[t][2], out[t][3]);
  static const char text[] = PTX_HEADER ".visible .entry test() { .reg .u32 %r; ld.shared.u32 %r, [1020]; ret; }\n";
  Machine machine = machine_open(text, 0);
  int count;
  cr_expect_eq(machine_launch(&machine, (Shape){1, 32, 0}, NULL, 0), EMULATOR_FAULT);
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  cr_expect(count == 1 && strstr(hazards[0].detail, "byte -4 of a block's 0 bytes"), "%d hazards", count);
  machine_close(&machine);
}

// Clocks count what the cluster executes: they mean no time, and go on.
Test(instructions, clocks_go_on) {
  run("mov.u32 %v0, %clock; mov.u32 %v1, %clock; mov.u32 %v2, %globaltimer_lo; mov.u32 %v3, %clock_hi;");
  for (uint32_t t = 0; t < THREADS; t++)
    cr_expect(out[t][0] < out[t][1] && out[t][1] < out[t][2] && out[t][3] == 0, "thread %u: %u %u %u %u", t, out[t][0],
              out[t][1], out[t][2], out[t][3]);
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
