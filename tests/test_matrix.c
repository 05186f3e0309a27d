// ldmatrix, stmatrix, movmatrix, mma.sync: every lane and register against the layouts of PTX ISA 9.7.15.5, exact
// products of small integers, and what a kernel may do wrong with them. wmma: test_wmma.c.
#include <criterion/criterion.h>
#include <string.h>

#include "support/matrix_kernel.h"
#include "support/run_ptx.h"

TestSuite(matrix, .timeout = 60);

// ---- ldmatrix, stmatrix, movmatrix ----

static uint16_t half_of(uint32_t word, int which) { return (uint16_t)(word >> (16 * which)); }

typedef struct MoveInput {
  uint32_t offsets[WARP];  // of the rows in shared memory
  uint32_t registers[WARP][4];
  uint16_t tile[TILE_BYTES / 2];
} MoveInput;

// Rows anywhere, in no order and without overlap; lanes whose address is not used give one that is no address.
static void fill_move_input(MoveInput *input, int count) {
  for (int lane = 0; lane < WARP; lane++) {
    input->offsets[lane] = lane < 8 * count ? (uint32_t)((lane * 37 + 11) % 1024 * 16) : 0x7ffff1;
    for (int i = 0; i < 4; i++) input->registers[lane][i] = (uint32_t)(lane * 4 + i) * 0x20002 + 0x10000;
  }
  for (int i = 0; i < TILE_BYTES / 2; i++) input->tile[i] = (uint16_t)(i * 3);
}

static const char *const forms[] = {".shared", ".shared::cta", ""};

// The address operand for a form; the row's offset is in %r2 and, generic, in %rd3.
static const char *form_address(int form) { return form < 2 ? "[%r2]" : "[%rd3]"; }

static void append_row_address(KernelText *text) {
  append_text(text, "mul.wide.u32 %%rd8, %%r0, 4; add.u64 %%rd8, %%rd8, %%rd0; ld.global.u32 %%r2, [%%rd8];\n"
                    "cvt.u64.u32 %%rd3, %%r2; add.u64 %%rd3, %%rd3, %%rd2; add.u32 %%r2, %%r2, %%r1;\n"
                    "add.u64 %%rd4, %%rd0, 128;\n");
}

// Register i of lane l holds, of matrix i, row l / 4, columns 2 * (l % 4) and the next; transposed, the same of the
// transposed matrix. PTX ISA 9.7.15.5, ldmatrix.
static void check_loaded(const MoveInput *input, int count, bool trans, uint32_t out[WARP][4]) {
  for (int lane = 0; lane < WARP; lane++)
    for (int i = 0; i < count; i++)
      for (int h = 0; h < 2; h++) {
        int row = trans ? 2 * (lane % 4) + h : lane / 4, column = trans ? lane / 4 : 2 * (lane % 4) + h;
        uint16_t want = input->tile[input->offsets[8 * i + row] / 2 + (uint32_t)column];
        cr_assert_eq(half_of(out[lane][i], h), want, "x%d%s: lane %d register %d half %d is %u, expected %u", count,
                     trans ? ".trans" : "", lane, i, h, half_of(out[lane][i], h), want);
      }
}

Test(matrix, ldmatrix_fills_every_register) {
  static MoveInput input;
  for (int count = 1; count <= 4; count *= 2)
    for (int trans = 0; trans < 2; trans++)
      for (int form = 0; form < 3; form++) {
        KernelText text = {.used = 0};
        uint32_t out[WARP][4];
        fill_move_input(&input, count);
        append_row_address(&text);
        append_text(&text, "ldmatrix.sync.aligned.m8n8.x%d%s%s.b16 ", count, trans ? ".trans" : "", forms[form]);
        append_vector(&text, 'r', 8, count);
        append_text(&text, ", %s;\n", form_address(form));
        append_registers(&text, false, "%rd1", 'r', 8, 4);
        KernelRun r = {.body = text.text,
                       .in = &input,
                       .in_size = sizeof input,
                       .shared = true,
                       .out = out,
                       .out_size = sizeof out};
        run_kernel_clean(&r);
        check_loaded(&input, count, trans, out);
      }
}

Test(matrix, stmatrix_writes_every_element) {
  static MoveInput input;
  static uint16_t out[TILE_BYTES / 2], want[TILE_BYTES / 2];
  for (int count = 1; count <= 4; count *= 2)
    for (int trans = 0; trans < 2; trans++)
      for (int form = 0; form < 3; form++) {
        KernelText text = {.used = 0};
        fill_move_input(&input, count);
        append_row_address(&text);
        append_registers(&text, true, "%rd4", 'r', 8, 4);
        append_text(&text, "stmatrix.sync.aligned.m8n8.x%d%s%s.b16 %s, ", count, trans ? ".trans" : "", forms[form],
                    form_address(form));
        append_vector(&text, 'r', 8, count);
        append_text(&text, ";\nbar.sync 0;\nmov.u32 %%r3, 0;\n"
                           "copy:\nmad.lo.u32 %%r4, %%r3, 32, %%r0; shl.b32 %%r4, %%r4, 2; cvt.u64.u32 %%rd5, %%r4;\n"
                           "add.u32 %%r5, %%r1, %%r4; ld.shared.b32 %%r6, [%%r5]; add.u64 %%rd5, %%rd5, %%rd1;\n"
                           "st.global.b32 [%%rd5], %%r6;\n"
                           "add.u32 %%r3, %%r3, 1; setp.lt.u32 %%p0, %%r3, 128; @%%p0 bra copy;\n");
        KernelRun r = {.body = text.text,
                       .in = &input,
                       .in_size = sizeof input,
                       .shared = true,
                       .out = out,
                       .out_size = sizeof out};
        run_kernel_clean(&r);
        memcpy(want, input.tile, sizeof want);
        for (int i = 0; i < count; i++)
          for (int row = 0; row < 8; row++)
            for (int column = 0; column < 8; column++) {
              int lane = trans ? 4 * column + row / 2 : 4 * row + column / 2, h = trans ? row % 2 : column % 2;
              want[input.offsets[8 * i + row] / 2 + (uint32_t)column] = half_of(input.registers[lane][i], h);
            }
        for (int i = 0; i < TILE_BYTES / 2; i++)
          cr_assert_eq(out[i], want[i], "x%d%s%s: half %d is %u, expected %u", count, trans ? ".trans" : "",
                       forms[form], i, out[i], want[i]);
      }
}

Test(matrix, movmatrix_transposes) {
  uint32_t in[WARP], out[WARP];
  for (uint32_t lane = 0; lane < WARP; lane++) in[lane] = 0x10000 * (2 * lane + 1) + 2 * lane;  // element e holds e
  KernelText text = {.used = 0};
  append_registers(&text, true, "%rd0", 'r', 2, 1);
  append_text(&text, "movmatrix.sync.aligned.m8n8.trans.b16 %%r2, %%r2;\n");
  append_registers(&text, false, "%rd1", 'r', 2, 1);
  KernelRun r = {.body = text.text, .in = in, .in_size = sizeof in, .out = out, .out_size = sizeof out};
  run_kernel_clean(&r);
  for (int lane = 0; lane < WARP; lane++)
    for (int h = 0; h < 2; h++) cr_assert_eq(half_of(out[lane], h), (2 * (lane % 4) + h) * 8 + lane / 4);
}

// ---- mma.sync ----

typedef struct MmaInput {
  uint32_t a[WARP][4], b[WARP][2], c[WARP][4];
} MmaInput;

// Puts element i of a lane's fragment into its registers.
static void put_element(uint32_t *registers, Type type, int i, double value) {
  uint32_t bits = bits_of(type, value);
  if (type == F32)
    registers[i] = bits;
  else
    registers[i / 2] |= bits << (16 * (i % 2));
}

static double get_element(const uint32_t *registers, Type type, int i) {
  return value_of(type, type == F32 ? registers[i] : half_of(registers[i / 2], i % 2));
}

// The figures of PTX ISA 9.7.15.5, matrix fragments for mma.m16n8k8 and mma.m16n8k16, as formulas: with
// g = lane / 4 and t = lane % 4,
//   a_i: row g, or g + 8 when i / 2 is odd; column 2t + i % 2, and 8 more from a_4 on
//   b_i: row 2t + i % 2, and 8 more from b_2 on; column g
//   c_i: row g, and 8 more from c_2 on; column 2t + i % 2
static MmaInput lay_out(const Problem *p, Type input, Type accumulator) {
  MmaInput in;
  memset(&in, 0, sizeof in);
  for (int lane = 0; lane < WARP; lane++) {
    int g = lane / 4, t = lane % 4;
    for (int i = 0; i < p->k / 2; i++)
      put_element(in.a[lane], input, i, p->a[g + i / 2 % 2 * 8][2 * t + i % 2 + i / 4 * 8]);
    for (int i = 0; i < p->k / 4; i++) put_element(in.b[lane], input, i, p->b[2 * t + i % 2 + i / 2 * 8][g]);
    for (int i = 0; i < 4; i++) put_element(in.c[lane], accumulator, i, p->c[g + i / 2 * 8][2 * t + i % 2]);
  }
  return in;
}

static void test_mma(int k, Type input, Type accumulator) {
  Problem p = make_problem(16, 8, k);
  MmaInput in = lay_out(&p, input, accumulator);
  uint32_t out[WARP][4];
  int count = accumulator == F32 ? 4 : 2;
  char kind = accumulator == F32 ? 'f' : 'r';
  const char *d_type = type_names[accumulator], *type = type_names[input];
  KernelText text = {.used = 0};
  append_text(&text, "add.u64 %%rd4, %%rd0, %d; add.u64 %%rd5, %%rd0, %d;\n", (int)sizeof in.a,
              (int)(sizeof in.a + sizeof in.b));
  append_registers(&text, true, "%rd0", 'r', 8, 4);
  append_registers(&text, true, "%rd4", 'r', 12, 2);
  append_registers(&text, true, "%rd5", kind, 16, 4);
  append_text(&text, "mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s ", k, d_type, type, type, d_type);
  append_vector(&text, kind, 20, count);
  append_text(&text, ", ");
  append_vector(&text, 'r', 8, k / 4);
  append_text(&text, ", ");
  append_vector(&text, 'r', 12, k / 8);
  append_text(&text, ", ");
  append_vector(&text, kind, 16, count);
  append_text(&text, ";\n");
  append_registers(&text, false, "%rd1", kind, 20, 4);
  KernelRun r = {.body = text.text, .in = &in, .in_size = sizeof in, .out = out, .out_size = sizeof out};
  run_kernel_clean(&r);
  cr_expect_eq(r.counters.value[COUNTER_TENSOR_FLOPS], 2u * 16 * 8 * (unsigned)k);
  cr_expect_eq(r.counters.value[COUNTER_INST_TENSOR], 1);
  for (int lane = 0; lane < WARP; lane++)
    for (int i = 0; i < 4; i++) {
      double got = get_element(out[lane], accumulator, i), want = p.d[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
      cr_assert(got == want, "k%d %s %s: lane %d d%d is %g, expected %g", k, d_type, type, lane, i, got, want);
    }
}

Test(matrix, mma_puts_every_element_in_its_place) {
  for (int k = 8; k <= 16; k += 8) {
    test_mma(k, F16, F32);
    test_mma(k, F16, F16);
    test_mma(k, BF16, F32);
  }
}

// D may be C's registers, and C may be constants.
Test(matrix, mma_in_place_and_with_constants) {
  Problem p = make_problem(16, 8, 16);
  MmaInput in = lay_out(&p, F16, F32);
  float out[WARP][4];
  KernelText text = {.used = 0};
  append_text(&text, "add.u64 %%rd4, %%rd0, %d;\n", (int)sizeof in.a);
  append_registers(&text, true, "%rd0", 'r', 8, 4);
  append_registers(&text, true, "%rd4", 'r', 12, 2);
  append_text(&text,
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%%f0, %%f1, %%f2, %%f3}, {%%r8, %%r9, %%r10, %%r11}, "
              "{%%r12, %%r13}, {0f41200000, 0f41200000, 0f41200000, 0f41200000};\n"
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%%f0, %%f1, %%f2, %%f3}, {%%r8, %%r9, %%r10, %%r11}, "
              "{%%r12, %%r13}, {%%f0, %%f1, %%f2, %%f3};\n");
  append_registers(&text, false, "%rd1", 'f', 0, 4);
  KernelRun r = {.body = text.text, .in = &in, .in_size = sizeof in, .out = out, .out_size = sizeof out};
  run_kernel_clean(&r);
  for (int lane = 0; lane < WARP; lane++)
    for (int i = 0; i < 4; i++) {
      int m = lane / 4 + i / 2 * 8, n = 2 * (lane % 4) + i % 2;
      cr_assert_eq(out[lane][i], (float)(10 + 2 * (p.d[m][n] - p.c[m][n])), "lane %d d%d", lane, i);
    }
}

// ---- counters ----

// ldmatrix reads a matrix's 8 rows in one wavefront when they lie in different banks.
static EmulatorCounters count_ldmatrix(int row_bytes, int count) {
  static uint8_t in[TILE_BYTES];
  KernelText text = {.used = 0};
  append_text(&text, "mad.lo.u32 %%r2, %%r0, %d, %%r1;\nldmatrix.sync.aligned.m8n8.x%d.shared.b16 ", row_bytes, count);
  append_vector(&text, 'r', 8, count);
  append_text(&text, ", [%%r2];\n");
  KernelRun r = {.body = text.text, .in = in, .in_size = sizeof in, .shared = true};
  run_kernel_clean(&r);
  KernelRun nothing = {.body = "", .in = in, .in_size = sizeof in, .shared = true};
  run_kernel_clean(&nothing);
  for (int i = 0; i < COUNTER_KIND_COUNT; i++) r.counters.value[i] -= nothing.counters.value[i];
  return r.counters;
}

Test(matrix, ldmatrix_counts_wavefronts) {
  static const struct {
    int row_bytes, count;
    uint64_t wavefronts, conflicts;
  } cases[] = {{16, 4, 4, 0}, {16, 1, 1, 0}, {128, 4, 32, 28}, {144, 4, 4, 0}, {64, 2, 8, 6}, {32, 1, 2, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    EmulatorCounters counters = count_ldmatrix(cases[i].row_bytes, cases[i].count);
    cr_expect_eq(counters.value[COUNTER_SHARED_LOADS], 1);
    cr_expect_eq(counters.value[COUNTER_SHARED_STORES], 0);
    cr_expect_eq(counters.value[COUNTER_INST_MEMORY], 1);
    cr_expect_eq(counters.value[COUNTER_SHARED_LOAD_WAVEFRONTS], cases[i].wavefronts, "pitch %d", cases[i].row_bytes);
    cr_expect_eq(counters.value[COUNTER_SHARED_LOAD_BANK_CONFLICTS], cases[i].conflicts, "pitch %d",
                 cases[i].row_bytes);
  }
}

// ---- hazards ----

#define LDMATRIX_X1 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, "
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r8,%r9}, {%r10}, {%f0,%f1,%f2,%f3};"
#define LANE_ROWS "and.b32 %r2, %r0, 31; shl.b32 %r2, %r2, 4; add.u32 %r2, %r2, %r1;\n"  // lane l: row l of 16 bytes
#define WARP_OF "shr.u32 %r3, %r0, 5; setp.eq.u32 %p0, %r3, 0;\n"                        // p0: the first warp

Test(matrix, addresses_are_checked) {
  static const HazardTest tests[] = {
      {LANE_ROWS LDMATRIX_X1 "[%r2+8];", HAZARD_MISALIGNED, 0, 0, true, "not a multiple of 16"},
      {LANE_ROWS LDMATRIX_X1 "[%r2+16];", HAZARD_KIND_COUNT, 0, 0, false, NULL},
      {LANE_ROWS "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2+2], {%r8};", HAZARD_MISALIGNED, 0, 0, true, NULL},
      {LANE_ROWS LDMATRIX_X1 "[%r2+16400];", HAZARD_OUT_OF_BOUNDS, 0, 0, true, "shared memory"},
      // Rows 0 to 6 are the end of the tile, row 7 lies behind it, where nothing was written.
      {LANE_ROWS LDMATRIX_X1 "[%r2+16272];", HAZARD_UNINITIALISED_READ, 0, 0, false, NULL},
      {LANE_ROWS LDMATRIX_X1 "[%r2+16256];", HAZARD_KIND_COUNT, 0, 0, false, NULL},
      // Global memory, another kind of wrong address.
      {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r8}, [%rd0];", HAZARD_OUT_OF_BOUNDS, 0, 0, true, "own block"},
      {"stmatrix.sync.aligned.m8n8.x1.b16 [%rd1], {%r8};", HAZARD_OUT_OF_BOUNDS, 0, 0, true, "own block"},
  };
  EXPECT_HAZARDS(tests);
}

Test(matrix, the_whole_warp_takes_part) {
  static const HazardTest tests[] = {
      {LANE_ROWS "setp.lt.u32 %p0, %r0, 16; @%p0 " LDMATRIX_X1 "[%r2];", HAZARD_DIVERGENT_ALIGNED, 0, 0, false, NULL},
      {"setp.lt.u32 %p0, %r0, 31; @%p0 " MMA, HAZARD_DIVERGENT_ALIGNED, 0, 0, false, NULL},
      {"setp.lt.u32 %p0, %r0, 32; @%p0 " MMA, HAZARD_KIND_COUNT, 64, 0, false, NULL},
      {"setp.eq.u32 %p0, %r0, 5; @%p0 ret; " MMA, HAZARD_DIVERGENT_ALIGNED, 0, 0, false, "lanes 0x00000020"},
      {MMA, HAZARD_DIVERGENT_ALIGNED, 48, 0, false, "lanes 0xffff0000"},
      {"movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r3;", HAZARD_DIVERGENT_ALIGNED, 8, 0, false, "lanes 0xffffff00"},
      {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r8};", HAZARD_DIVERGENT_ALIGNED, 8, 0, false, NULL},
  };
  EXPECT_HAZARDS(tests);
}

// Two warps: one writes, the other reads or writes, with and without a barrier between them.
#define SECOND_STORES WARP_OF "@%p0 bra skip; st.shared.b32 [%r1+4], 1; skip:\n"
#define FIRST_LOADS_MATRIX LANE_ROWS WARP_OF "@!%p0 bra done; " LDMATRIX_X1 "[%r2]; done:\n"
#define FIRST_STORES_MATRIX                                                                                            \
  LANE_ROWS WARP_OF "@!%p0 bra done; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r0}; done:\n"
#define BARRIER "bar.sync 0;\n"

Test(matrix, races_are_found) {
  static const HazardTest tests[] = {
      {SECOND_STORES FIRST_LOADS_MATRIX, HAZARD_SHARED_RACE, 64, 0, false, NULL},
      {SECOND_STORES BARRIER FIRST_LOADS_MATRIX, HAZARD_KIND_COUNT, 64, 0, false, NULL},
      {FIRST_LOADS_MATRIX SECOND_STORES, HAZARD_SHARED_RACE, 64, 0, false, NULL},
      {FIRST_LOADS_MATRIX BARRIER SECOND_STORES, HAZARD_KIND_COUNT, 64, 0, false, NULL},
      {FIRST_STORES_MATRIX SECOND_STORES, HAZARD_SHARED_RACE, 64, 0, false, NULL},
      {FIRST_STORES_MATRIX BARRIER SECOND_STORES, HAZARD_KIND_COUNT, 64, 0, false, NULL},
  };
  EXPECT_HAZARDS(tests);
}

// ---- malformed ----

Test(matrix, other_forms_are_refused) {
  static const RefusedTest tests[] = {
      {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r0,%r1,%r2}, [%r4]", "one of .x1 .x2 .x4"},
      {"ldmatrix.sync.aligned.m8n8.x1.x2.shared.b16 {%r0}, [%r4]", "one of .x1 .x2 .x4"},
      {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r4]", "vector of 2 registers"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r0, [%r4]", "vector of 1 register"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%h0}, [%r4]", ".b32"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {0}, [%r4]", "must be a register"},
      {"ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%rd4]", "unknown modifier .global"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {%r0}, [%r4]", "unknown modifier .shared::cluster"},
      {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%r4]", "64-bit"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, %r4", "address in brackets"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}", "operand"},
      {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r4]", ".m8n8 and .b16 only"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r0}, [%r4]", ".m8n8 and .b16 only"},
      {"ldmatrix.sync.m8n8.x1.shared.b16 {%r0}, [%r4]", ".sync.aligned"},
      {"stmatrix.aligned.m8n8.x1.shared.b16 [%r4], {%r0}", ".sync.aligned"},
      {"stmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r4]", "vector of 1 register"},
      {"movmatrix.sync.aligned.m8n8.b16 %r0, %r1", "movmatrix.sync.aligned.m8n8.trans.b16"},
      {"movmatrix.sync.aligned.m8n8.trans.b16 %r0, %rd1", ".b32"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%f0,%f1,%f2,%f3}",
       "shape must be .m16n8k4 or .m16n8k8"},
      {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s4.s32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%r0,%r1,%r2,%r3}",
       "no product with these types"},
      {"mma.sync.aligned.m16n8k32.row.col.f32.s8.s8.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%f0,%f1,%f2,%f3}",
       "no product with these types"},
      {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32.and.popc {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%r0,%r1,%r2,%r3}",
       ".xor.popc or .and.popc for .b1"},
      {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {%r0,%r1}, {%r0}, {%r4}, {%r0,%r1}",
       ".xor.popc or .and.popc for .b1"},
      {"mma.sync.aligned.m8n8k8.row.col.f64.f64.f64.f64 {%fd0,%fd1}, {%fd0}, {%fd2}, {%fd0,%fd1}", "shape must be"},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0,%fd1}, {%fd0,%fd1}, {%fd2}, {%fd0,%fd1}",
       "operand 2 must be a vector of 1 register, has 2"},
      {"mma.sync.aligned.m8n8k4.row.row.f64.f64.f64.f64 {%fd0,%fd1}, {%fd0}, {%fd2}, {%fd0,%fd1}", "layouts must be"},
      {"mma.sp.sync.aligned.m16n8k64.row.col.f16.e4m3.e4m3.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, "
       "{%r0,%r1}, %r2, 0",
       "no product with these types"},
      {"mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, {%r4,%r5}, {%r0,%r1}, %r2, 4",
       "selector is an immediate from 0 to 3"},
      {"mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r4,%r5}, "
       "{%r0,%r1,%r2,%r3}, %r2, %r3",
       "selector is an immediate from 0 to 1"},
      {"mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, {%r4,%r5}, {%r0,%r1}", "operands"},
      {"mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r0,%r1}",
       "no product with these types"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%f0,%f1,%f2,%f3}",
       "no product with these types"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r0,%r1}",
       "no product with these types"},
      {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "shape must be"},
      {"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%f0,%f1,%f2,%f3}",
       "layouts must be"},
      {"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%f0,%f1,%f2,%f3}",
       "layouts must be"},
      {"mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
       "{%f0,%f1,%f2,%f3}",
       ".satfinite is for integers"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "operand 2 must be a vector of 4 registers, has 2"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, %r4, {%f0,%f1,%f2,%f3}",
       "operand 3"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4}, {%f0,%f1,%f2}",
       "operand 4"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%fd3}, {%r0,%r1}, {%r4}, {%f0,%f1,%f2,%f3}",
       ".f32"},
      {"mma.sync.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4}, {%f0,%f1,%f2,%f3}",
       ".sync.aligned"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4}", "operands"},
  };
  RUN_REFUSED_TESTS(tests);
}
