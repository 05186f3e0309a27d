// wmma.load, wmma.mma, wmma.store: exact products of small integers in every shape, type, layout and space, and what a
// kernel may do wrong with them.
#include <criterion/criterion.h>
#include <string.h>

#include "support/matrix_kernel.h"
#include "support/run_ptx.h"

TestSuite(wmma, .timeout = 60);

// ---- wmma ----

typedef enum Space { GLOBAL, SHARED, GENERIC_GLOBAL, GENERIC_SHARED, SPACE_COUNT } Space;

typedef struct Wmma {
  int m, n;
  bool a_row, b_row, c_row, d_row;  // else column-major
  Type input, c, d;
  Space space;
  bool packed;         // no stride operand
  int a_stride_error;  // elements added to the stride that the kernel gives
} Wmma;

enum { B_AT = 4096, C_AT = 8192, D_AT = 12288 };

static int size_of(Type type) { return type == F32 ? 4 : 2; }

// Elements from one row (or column) to the next: with some padding, unless packed.
static int pitch_of(const Wmma *w, Type type, bool row, int rows, int columns) {
  return (row ? columns : rows) + (w->packed ? 0 : 16 / size_of(type));
}

static size_t place(Type type, bool row, int pitch, int i, int j) {
  return (size_t)(row ? i * pitch + j : j * pitch + i) * (size_t)size_of(type);
}

static void put_matrix(uint8_t *at, const double *values, int value_pitch, Type type, bool row, int pitch, int rows,
                       int columns) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      uint32_t bits = bits_of(type, values[i * value_pitch + j]);
      memcpy(at + place(type, row, pitch, i, j), &bits, (size_t)size_of(type));
    }
}

// The registers that nvcc declares for A (m x 16) or B (n x 16), and for C and D.
static int input_registers(const Wmma *w, int lines) { return w->input == F16 ? 8 : lines / 4; }
static int accumulator_registers(Type type) { return type == F32 ? 8 : 4; }
static char accumulator_kind(Type type) { return type == F32 ? 'f' : 'r'; }

static const char *layout_name(bool row) { return row ? "row" : "col"; }

// "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", and the address and stride in *address.
static void append_move(KernelText *text, const Wmma *w, const char *what, bool row, Type type) {
  static const char *const spaces[] = {".global", ".shared", "", ""};
  append_text(text, "wmma.%s.sync.aligned.%s.m%dn%dk16%s.%s ", what, layout_name(row), w->m, w->n, spaces[w->space],
              type_names[type]);
}

static void append_place(KernelText *text, const Wmma *w, int offset) {
  static const char *const bases[] = {"%rd0", "%r1", "%rd0", "%rd2"};
  append_text(text, "[%s+%d]",
              offset == D_AT && (w->space == GLOBAL || w->space == GENERIC_GLOBAL) ? "%rd1" : bases[w->space],
              offset == D_AT && (w->space == GLOBAL || w->space == GENERIC_GLOBAL) ? 0 : offset);
}

static void append_stride(KernelText *text, const Wmma *w, int pitch) {
  if (!w->packed) append_text(text, ", %d", pitch);
}

static void append_load(KernelText *text, const Wmma *w, const char *what, bool row, Type type, char kind, int first,
                        int count, int offset, int pitch) {
  append_move(text, w, what, row, type);
  append_vector(text, kind, first, count);
  append_text(text, ", ");
  append_place(text, w, offset);
  append_stride(text, w, pitch);
  append_text(text, ";\n");
}

static void append_multiply(KernelText *text, const Wmma *w) {
  append_text(text, "wmma.mma.sync.aligned.%s.%s.m%dn%dk16.%s%s.%s ", layout_name(w->a_row), layout_name(w->b_row),
              w->m, w->n, type_names[w->d], w->input == BF16 ? ".bf16.bf16" : "", type_names[w->c]);
  append_vector(text, accumulator_kind(w->d), 24, accumulator_registers(w->d));
  append_text(text, ", ");
  append_vector(text, 'r', 8, input_registers(w, w->m));
  append_text(text, ", ");
  append_vector(text, 'r', 16, input_registers(w, w->n));
  append_text(text, ", ");
  append_vector(text, accumulator_kind(w->c), 32, accumulator_registers(w->c));
  append_text(text, ";\n");
}

// Copies D's 4 KiB of shared memory to out.
static const char copy_out[] = "bar.sync 0;\nmov.u32 %r3, 0;\n"
                               "copy:\nmad.lo.u32 %r4, %r3, 32, %r0; shl.b32 %r4, %r4, 2; cvt.u64.u32 %rd5, %r4;\n"
                               "add.u32 %r5, %r1, %r4; ld.shared.b32 %r6, [%r5+12288]; add.u64 %rd5, %rd5, %rd1;\n"
                               "st.global.b32 [%rd5], %r6;\n"
                               "add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 32; @%p0 bra copy;\n";

// Runs load a, b, c, mma, store d. want is what D's 4 KiB should be.
static KernelRun run_wmma(const Wmma *w, uint8_t out[4096], uint8_t want[4096]) {
  static uint8_t in[TILE_BYTES];
  static KernelText text;
  Problem p = make_problem(w->m, w->n, 16);
  int a_pitch = pitch_of(w, w->input, w->a_row, w->m, 16), b_pitch = pitch_of(w, w->input, w->b_row, 16, w->n);
  int c_pitch = pitch_of(w, w->c, w->c_row, w->m, w->n), d_pitch = pitch_of(w, w->d, w->d_row, w->m, w->n);
  bool shared = w->space == SHARED || w->space == GENERIC_SHARED;
  memset(in, 0, sizeof in);
  memset(want, 0, 4096);
  put_matrix(in, p.a[0], MAX_K, w->input, w->a_row, a_pitch, w->m, 16);
  put_matrix(in + B_AT, p.b[0], MAX_N, w->input, w->b_row, b_pitch, 16, w->n);
  put_matrix(in + C_AT, p.c[0], MAX_N, w->c, w->c_row, c_pitch, w->m, w->n);
  put_matrix(want, p.d[0], MAX_N, w->d, w->d_row, d_pitch, w->m, w->n);
  text.used = 0;
  append_load(&text, w, "load.a", w->a_row, w->input, 'r', 8, input_registers(w, w->m), 0, a_pitch + w->a_stride_error);
  append_load(&text, w, "load.b", w->b_row, w->input, 'r', 16, input_registers(w, w->n), B_AT, b_pitch);
  append_load(&text, w, "load.c", w->c_row, w->c, accumulator_kind(w->c), 32, accumulator_registers(w->c), C_AT,
              c_pitch);
  append_multiply(&text, w);
  append_move(&text, w, "store.d", w->d_row, w->d);
  append_place(&text, w, D_AT);
  append_text(&text, ", ");
  append_vector(&text, accumulator_kind(w->d), 24, accumulator_registers(w->d));
  append_stride(&text, w, d_pitch);
  append_text(&text, ";\n%s", shared ? copy_out : "");
  KernelRun r = {.body = text.text, .in = in, .in_size = sizeof in, .shared = shared, .out = out, .out_size = 4096};
  run_kernel_clean(&r);
  return r;
}

static void test_wmma(const Wmma *w) {
  uint8_t out[4096], want[4096];
  KernelRun r = run_wmma(w, out, want);
  cr_expect_eq(r.counters.value[COUNTER_TENSOR_FLOPS], 8192);
  for (int i = 0; i < 4096; i += size_of(w->d)) {
    uint32_t got = 0, expected = 0;
    memcpy(&got, out + i, (size_t)size_of(w->d));
    memcpy(&expected, want + i, (size_t)size_of(w->d));
    cr_assert_eq(got, expected, "byte %d is %g, expected %g in\n%s", i, value_of(w->d, got), value_of(w->d, expected),
                 r.body);
  }
}

static const int wmma_shapes[][2] = {{16, 16}, {32, 8}, {8, 32}};

// Every shape, type and layout, in every space.
Test(wmma, multiplies_in_every_layout) {
  static const Type types[][3] = {{F16, F32, F32}, {F16, F16, F16}, {F16, F16, F32}, {F16, F32, F16}, {BF16, F32, F32}};
  for (int shape = 0; shape < 3; shape++)
    for (int layout = 0; layout < 16; layout++)
      for (int type = 0; type < 5; type++)
        for (int space = 0; space < SPACE_COUNT; space++) {
          Wmma w = {.m = wmma_shapes[shape][0],
                    .n = wmma_shapes[shape][1],
                    .a_row = layout & 1,
                    .b_row = layout & 2,
                    .c_row = layout & 4,
                    .d_row = layout & 8,
                    .input = types[type][0],
                    .c = types[type][1],
                    .d = types[type][2],
                    .space = (Space)space};
          test_wmma(&w);
        }
}

// Without a stride operand rows or columns lie packed.
Test(wmma, without_a_stride) {
  for (int shape = 0; shape < 3; shape++)
    for (int layout = 0; layout < 16; layout++) {
      Wmma w = {.m = wmma_shapes[shape][0],
                .n = wmma_shapes[shape][1],
                .a_row = layout & 1,
                .b_row = layout & 2,
                .c_row = layout & 4,
                .d_row = layout & 8,
                .input = F16,
                .c = F32,
                .d = F16,
                .packed = true};
      test_wmma(&w);
    }
}

// A wrong leading dimension shows in the result, and a wrong layout does.
Test(wmma, with_a_wrong_stride_is_wrong) {
  for (int row = 0; row < 2; row++) {
    uint8_t out[4096], want[4096];
    Wmma w = {.m = 16, .n = 16, .a_row = row, .d_row = true, .input = F16, .c = F32, .d = F32, .a_stride_error = 8};
    run_wmma(&w, out, want);
    cr_expect(memcmp(out, want, 4096));
  }
}

// ---- counters ----

// wmma moves a 16x16 matrix in four requests of 8 rows. With rows 48 bytes apart a block of halves touches 8 sectors;
// of f32, 80 bytes apart, those of 32 bytes that do not begin at a sector's start touch two.
Test(wmma, counts_requests_and_sectors) {
  uint8_t out[4096], want[4096];
  Wmma w = {.m = 16, .n = 16, .a_row = true, .c_row = true, .d_row = true, .input = F16, .c = F32, .d = F32};
  KernelRun r = run_wmma(&w, out, want);
  const uint64_t *value = r.counters.value;
  cr_expect_eq(value[COUNTER_GLOBAL_LOAD_REQUESTS], 12);
  cr_expect_eq(value[COUNTER_GLOBAL_LOAD_BYTES], 512 + 512 + 1024);
  cr_expect_eq(value[COUNTER_GLOBAL_LOAD_SECTORS], 4 * 8 + 4 * 8 + 4 * (4 + 2 * 4));
  cr_expect_eq(value[COUNTER_GLOBAL_STORE_REQUESTS], 4);
  cr_expect_eq(value[COUNTER_GLOBAL_STORE_BYTES], 1024);
  cr_expect_eq(value[COUNTER_GLOBAL_STORE_SECTORS], 4 * (4 + 2 * 4));
  cr_expect_eq(value[COUNTER_INST_MEMORY], 4 + 3);  // and the frame's ld.param
  cr_expect_eq(value[COUNTER_INST_TENSOR], 1);
  w.c_row = w.d_row = false;  // a block of f32 across the lanes' pairs: two requests of 4 columns each
  r = run_wmma(&w, out, want);
  cr_expect_eq(r.counters.value[COUNTER_GLOBAL_LOAD_REQUESTS], 4 + 4 + 8);
  cr_expect_eq(r.counters.value[COUNTER_GLOBAL_STORE_REQUESTS], 8);
  w.space = SHARED;  // inputs come by ldmatrix: one request each
  r = run_wmma(&w, out, want);
  cr_expect_eq(r.counters.value[COUNTER_SHARED_LOADS], 1 + 1 + 8 + 32);  // 32 of copy_out
}

// ---- hazards ----

#define WMMA_A "{%r8,%r9,%r10,%r11,%r12,%r13,%r14,%r15}"
#define WMMA_C "{%f8,%f9,%f10,%f11,%f12,%f13,%f14,%f15}"
#define LOAD_A "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", "
#define LOAD_C "wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 " WMMA_C ", "
#define ADDRESS_OF_OWN "mov.u64 %rd5, own; cvta.local.u64 %rd5, %rd5;\n"

Test(wmma, addresses_are_checked) {
  static const HazardTest tests[] = {
      {LOAD_A "[%r1+16], 16;", HAZARD_MISALIGNED, 0, 0, false, "address is not a multiple of 32"},
      {LOAD_A "[%r1+32], 16;", HAZARD_KIND_COUNT, 0, 0, false, NULL},
      {LOAD_A "[%r1], 20;", HAZARD_MISALIGNED, 0, 0, true, "leading dimension of 20 elements is not a multiple of 8"},
      {LOAD_A "[%r1], 24;", HAZARD_KIND_COUNT, 0, 0, false, NULL},
      {LOAD_C "[%r1], 18;", HAZARD_MISALIGNED, 0, 0, true, "leading dimension of 18 elements is not a multiple of 4"},
      {LOAD_C "[%r1], 20;", HAZARD_KIND_COUNT, 0, 0, false, NULL},
      {LOAD_C "[%r1+15136], 20;", HAZARD_UNINITIALISED_READ, 0, 0, false, NULL},  // its last 16 bytes
      {"wmma.load.a.sync.aligned.row.m16n16k16.f16 " WMMA_A ", [%rd0+16640], 16;", HAZARD_OUT_OF_BOUNDS, 0, 0, true,
       NULL},
      {"wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd1], " WMMA_C ", 128;", HAZARD_OUT_OF_BOUNDS, 0, 0, true,
       NULL},
      {ADDRESS_OF_OWN "wmma.load.a.sync.aligned.row.m16n16k16.f16 " WMMA_A ", [%rd5], 16;", HAZARD_OUT_OF_BOUNDS, 0, 0,
       true, "must lie in shared or global memory"},
      {ADDRESS_OF_OWN "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd5], " WMMA_C ", 16;", HAZARD_OUT_OF_BOUNDS, 0, 0,
       true, "must lie in shared or global memory"},
  };
  EXPECT_HAZARDS(tests);
}

Test(wmma, the_whole_warp_agrees) {
  static const HazardTest tests[] = {
      {LOAD_A "[%r1], 16;", HAZARD_DIVERGENT_ALIGNED, 16, 0, false, "lanes 0xffff0000"},
      {"setp.ne.u32 %p0, %r0, 31; @%p0 " LOAD_A "[%r1], 16;", HAZARD_DIVERGENT_ALIGNED, 0, 0, false, NULL},
      {"mad.lo.u32 %r2, %r0, 32, %r1;\n" LOAD_A "[%r2], 16;", HAZARD_DIVERGENT_ALIGNED, 0, 0, false,
       "must be the same"},
      {"mad.lo.u32 %r2, %r0, 8, 16;\n" LOAD_A "[%r1], %r2;", HAZARD_DIVERGENT_ALIGNED, 0, 0, false, "must be the same"},
  };
  EXPECT_HAZARDS(tests);
}

// Two warps: the second writes an element of the matrix that the first reads.
#define WARP_OF "shr.u32 %r3, %r0, 5; setp.eq.u32 %p0, %r3, 0;\n"
#define SECOND_STORES WARP_OF "@%p0 bra skip; st.shared.b32 [%r1+36], 1; skip:\n"
#define FIRST_LOADS WARP_OF "@!%p0 bra done; " LOAD_A "[%r1], 16; done:\n"
#define FIRST_STORES                                                                                                   \
  WARP_OF "@!%p0 bra done; wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r1], " WMMA_C "; done:\n"

Test(wmma, races_are_found) {
  static const HazardTest tests[] = {
      {SECOND_STORES FIRST_LOADS, HAZARD_SHARED_RACE, 64, 0, false, NULL},
      {SECOND_STORES "bar.sync 0;\n" FIRST_LOADS, HAZARD_KIND_COUNT, 64, 0, false, NULL},
      {FIRST_STORES SECOND_STORES, HAZARD_SHARED_RACE, 64, 0, false, NULL},
      {FIRST_STORES "bar.sync 0;\n" SECOND_STORES, HAZARD_KIND_COUNT, 64, 0, false, NULL},
      // Two blocks store different values to one place.
      {"mov.u32 %r2, %ctaid.x; cvt.rn.f32.u32 %f8, %r2;\n"
       "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], " WMMA_C ", 16;",
       HAZARD_GLOBAL_RACE, 0, 2, false, NULL},
  };
  EXPECT_HAZARDS(tests);
}

// ---- malformed ----

Test(wmma, other_forms_are_refused) {
  static const RefusedTest tests[] = {
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.tf32 {%r0,%r1,%r2,%r3}, [%r4]", "no such shape"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f32 {%r0,%r1,%r2,%r3}, [%r4]", "with this type of a"},
      {"wmma.load.c.sync.aligned.row.m16n16k16.shared.bf16 {%r0,%r1,%r2,%r3}, [%r4]", "with this type of c"},
      {"wmma.load.c.sync.aligned.row.m8n8k32.shared.f32 {%r0,%r1}, [%r4]", "with this type of c"},
      {"wmma.load.a.sync.aligned.row.m16n16k8.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "no such shape"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.s4 {%r0,%r1,%r2,%r3}, [%r4]", "no such shape"},
      {"wmma.load.a.sync.aligned.col.m8n8k32.shared.s4 {%r0}, [%r4]", "below a byte"},
      {"wmma.load.b.sync.aligned.row.m8n8k128.shared.b1 {%r0}, [%r4]", "below a byte"},
      {"wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r0,%r1}, [%r4]", "vector of 4 registers, has 2"},
      {"wmma.load.a.sync.aligned.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "one of .row .col"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%r0,%r1,%r2}, [%r4]", "vector of 4 registers, has 3"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "vector of 8 registers, has 4"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.local.bf16 {%r0,%r1,%r2,%r3}, [%r4]", "unknown modifier .local"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%r0,%r1,%r2,%r3}, [%r4], %h0", ".b32"},
      {"wmma.load.a.d.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "wmma.load.a, .load.b, .load.c"},
      {"wmma.load.d.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "wmma.load.a, .load.b, .load.c"},
      {"wmma.store.c.sync.aligned.row.m16n16k16.shared.f16 [%r4], {%r0,%r1,%r2,%r3}", "wmma.store.d"},
      {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r4], {%r0,%r1,%r2,%r3}, 16, 16", "operands"},
      {"wmma.store.d.aligned.row.m16n16k16.shared.f16 [%r4], {%r0,%r1,%r2,%r3}, 16", ".sync.aligned"},
      {"wmma.mma.sync.aligned.row.m16n16k16.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       ".row or .col for A and for B"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       "operand 2"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       "types must be"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       "types must be"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.s8.s8.f32 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       "no such shape with these types"},
      {"wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32 {%r0,%r1}, {%r0}, {%r0}, {%r0,%r1}", "below a byte"},
      {"wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r0,%r1}, {%r0}, {%r0}, {%r0,%r1}", ".xor.popc"},
      {"wmma.mma.sync.aligned.row.col.m8n8k4.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       "no such shape"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.satfinite.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       ".satfinite is for integers"},
      {"wmma.sync.aligned", "wmma.load, wmma.store, wmma.mma"},
  };
  RUN_REFUSED_TESTS(tests);
}
