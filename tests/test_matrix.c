// ldmatrix, stmatrix, movmatrix, mma.sync and wmma: every lane and register against the layouts of PTX ISA 9.7.15, exact
// products of small integers, and what a kernel may do wrong with them.
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/run_ptx.h"

TestSuite(matrix, .timeout = 120);

// ---- kernels ----

enum { TILE_BYTES = 16384, TEXT_SIZE = 8192, WARP = 32 };

// Around every body: in and out in %rd0 and %rd1, the thread's index in %r0, the address of 16 KiB of shared memory in %r1
// (generic: %rd2), filled with the bytes of `in` from `shared_from` on.
static const char frame[] = ".version 9.0\n.target sm_90a\n.address_size 64\n"
                            ".visible .entry test(.param .u64 in, .param .u64 out, .param .u64 shared_from) {\n"
                            ".reg .b32 %%r<64>; .reg .f32 %%f<64>; .reg .b64 %%rd<16>; .reg .pred %%p<4>;\n"
                            ".reg .b32 %%i; .reg .b64 %%from; .reg .b64 %%at; .reg .pred %%more;\n"
                            ".shared .align 128 .b8 tile[16384]; .shared .align 16 .b8 last[16]; .local .align 32 .b8 own[512];\n"
                            "ld.param.u64 %%rd0, [in]; ld.param.u64 %%rd1, [out]; ld.param.u64 %%from, [shared_from];\n"
                            "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, tile; cvt.u64.u32 %%rd2, %%r1; cvta.shared.u64 %%rd2, %%rd2;\n"
                            "setp.eq.u64 %%more, %%from, 0; @%%more bra start;\n"
                            "mov.u32 %%i, %%r0;\n"
                            "fill:\n"
                            "mul.wide.u32 %%at, %%i, 16; add.u64 %%at, %%at, %%from;\n"
                            "ld.global.v4.b32 {%%r60, %%r61, %%r62, %%r63}, [%%at];\n"
                            "shl.b32 %%r59, %%i, 4; add.u32 %%r59, %%r59, %%r1;\n"
                            "st.shared.v4.b32 [%%r59], {%%r60, %%r61, %%r62, %%r63};\n"
                            "add.u32 %%i, %%i, %%ntid.x; setp.lt.u32 %%more, %%i, 1024; @%%more bra fill;\n"
                            "bar.sync 0;\n"
                            "start:\n"
                            "%s\nret;\n}\n";

typedef struct Run {
  const char *body;
  int threads, blocks;  // 0: 32 and 1
  const void *in;
  size_t in_size;
  bool shared;          // filled from the last 16 KiB of in
  void *out;
  size_t out_size;
  EmulatorStatus status;  // results, from here
  int hazard_count;
  Hazard hazard;  // the first
  EmulatorCounters counters;
} Run;

static void run(Run *r) {
  char text[TEXT_SIZE];
  EmulatorError error = {0};
  cr_assert(snprintf(text, sizeof text, frame, r->body) < (int)sizeof text);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1, .step_limit = 1000000});
  EmulatorModule *module = emulator_load(emulator, text, strlen(text), &error);
  cr_assert(module, "line %d: %s\n%s", error.line, error.message, r->body);
  uint64_t in = emulator_alloc(emulator, r->in_size + 256), out = emulator_alloc(emulator, r->out_size + 256);
  uint64_t from = r->shared ? in + r->in_size - TILE_BYTES : 0;
  cr_assert(!r->in_size || emulator_write(emulator, in, r->in, r->in_size));
  cr_assert(emulator_fill(emulator, out, 0, r->out_size + 256));
  EmulatorLaunch launch = {.kernel = "test",
                           .grid = {r->blocks ? (unsigned)r->blocks : 1, 1, 1},
                           .block = {r->threads ? (unsigned)r->threads : WARP, 1, 1},
                           .arguments = (const void *const[]){&in, &out, &from},
                           .argument_count = 3};
  r->status = emulator_launch(emulator, module, &launch, &error);
  cr_assert(r->status != EMULATOR_INVALID, "%s\n%s", error.message, r->body);
  const Hazard *hazards = emulator_hazards(emulator, &r->hazard_count);
  if (r->hazard_count) r->hazard = hazards[0];
  r->counters = emulator_counters(emulator);
  if (r->out_size) cr_assert(emulator_read(emulator, r->out, out, r->out_size));
  emulator_close(emulator);
}

// Runs it and expects no hazard.
static void run_clean(Run *r) {
  run(r);
  cr_assert(r->status == EMULATOR_OK && r->hazard_count == 0, "%s: %s\n%s", hazard_name(r->hazard.kind), r->hazard.detail,
            r->body);
}

typedef struct Text {
  char text[TEXT_SIZE];
  size_t used;
} Text;

__attribute__((format(printf, 2, 3))) static void append(Text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  text->used += (size_t)vsnprintf(text->text + text->used, TEXT_SIZE - text->used, format, arguments);
  va_end(arguments);
  cr_assert(text->used < TEXT_SIZE);
}

// "{%r8, %r9}": count registers from the first on.
static void append_vector(Text *text, char kind, int first, int count) {
  for (int i = 0; i < count; i++) append(text, "%s%%%c%d", i ? ", " : "{", kind, first + i);
  append(text, "}");
}

// Loads or stores count registers of the lane at [address + 4 * count * tid].
static void append_registers(Text *text, bool load, const char *address, char kind, int first, int count) {
  append(text, "mul.wide.u32 %%rd8, %%r0, %d; add.u64 %%rd8, %%rd8, %s;\n", 4 * count, address);
  for (int i = 0; i < count; i++) {
    if (load)
      append(text, "ld.global.b32 %%%c%d, [%%rd8+%d];\n", kind, first + i, 4 * i);
    else
      append(text, "st.global.b32 [%%rd8+%d], %%%c%d;\n", 4 * i, kind, first + i);
  }
}

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

static void append_row_address(Text *text) {
  append(text, "mul.wide.u32 %%rd8, %%r0, 4; add.u64 %%rd8, %%rd8, %%rd0; ld.global.u32 %%r2, [%%rd8];\n"
               "cvt.u64.u32 %%rd3, %%r2; add.u64 %%rd3, %%rd3, %%rd2; add.u32 %%r2, %%r2, %%r1;\n"
               "add.u64 %%rd4, %%rd0, 128;\n");
}

// Register i of lane l holds, of matrix i, row l / 4, columns 2 * (l % 4) and the next; transposed, the same of the
// transposed matrix. PTX ISA 9.7.15.5.15.
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
        Text text = {.used = 0};
        uint32_t out[WARP][4];
        fill_move_input(&input, count);
        append_row_address(&text);
        append(&text, "ldmatrix.sync.aligned.m8n8.x%d%s%s.b16 ", count, trans ? ".trans" : "", forms[form]);
        append_vector(&text, 'r', 8, count);
        append(&text, ", %s;\n", form_address(form));
        append_registers(&text, false, "%rd1", 'r', 8, 4);
        Run r = {.body = text.text, .in = &input, .in_size = sizeof input, .shared = true, .out = out, .out_size = sizeof out};
        run_clean(&r);
        check_loaded(&input, count, trans, out);
      }
}

Test(matrix, stmatrix_writes_every_element) {
  static MoveInput input;
  static uint16_t out[TILE_BYTES / 2], want[TILE_BYTES / 2];
  for (int count = 1; count <= 4; count *= 2)
    for (int trans = 0; trans < 2; trans++)
      for (int form = 0; form < 3; form++) {
        Text text = {.used = 0};
        fill_move_input(&input, count);
        append_row_address(&text);
        append_registers(&text, true, "%rd4", 'r', 8, 4);
        append(&text, "stmatrix.sync.aligned.m8n8.x%d%s%s.b16 %s, ", count, trans ? ".trans" : "", forms[form], form_address(form));
        append_vector(&text, 'r', 8, count);
        append(&text, ";\nbar.sync 0;\nmov.u32 %%r3, 0;\n"
                      "copy:\nmad.lo.u32 %%r4, %%r3, 32, %%r0; shl.b32 %%r4, %%r4, 2; cvt.u64.u32 %%rd5, %%r4;\n"
                      "add.u32 %%r5, %%r1, %%r4; ld.shared.b32 %%r6, [%%r5]; add.u64 %%rd5, %%rd5, %%rd1;\n"
                      "st.global.b32 [%%rd5], %%r6;\n"
                      "add.u32 %%r3, %%r3, 1; setp.lt.u32 %%p0, %%r3, 128; @%%p0 bra copy;\n");
        Run r = {.body = text.text, .in = &input, .in_size = sizeof input, .shared = true, .out = out, .out_size = sizeof out};
        run_clean(&r);
        memcpy(want, input.tile, sizeof want);
        for (int i = 0; i < count; i++)
          for (int row = 0; row < 8; row++)
            for (int column = 0; column < 8; column++) {
              int lane = trans ? 4 * column + row / 2 : 4 * row + column / 2, h = trans ? row % 2 : column % 2;
              want[input.offsets[8 * i + row] / 2 + (uint32_t)column] = half_of(input.registers[lane][i], h);
            }
        for (int i = 0; i < TILE_BYTES / 2; i++)
          cr_assert_eq(out[i], want[i], "x%d%s%s: half %d is %u, expected %u", count, trans ? ".trans" : "", forms[form], i,
                       out[i], want[i]);
      }
}

Test(matrix, movmatrix_transposes) {
  uint32_t in[WARP], out[WARP];
  for (uint32_t lane = 0; lane < WARP; lane++) in[lane] = 0x10000 * (2 * lane + 1) + 2 * lane;  // element e holds e
  Text text = {.used = 0};
  append_registers(&text, true, "%rd0", 'r', 2, 1);
  append(&text, "movmatrix.sync.aligned.m8n8.trans.b16 %%r2, %%r2;\n");
  append_registers(&text, false, "%rd1", 'r', 2, 1);
  Run r = {.body = text.text, .in = in, .in_size = sizeof in, .out = out, .out_size = sizeof out};
  run_clean(&r);
  for (int lane = 0; lane < WARP; lane++)
    for (int h = 0; h < 2; h++) cr_assert_eq(half_of(out[lane], h), (2 * (lane % 4) + h) * 8 + lane / 4);
}

// ---- numbers ----

typedef enum Type { F16, BF16, F32 } Type;
static const char *const type_names[] = {"f16", "bf16", "f32"};

// Bits of an integer of magnitude below 256, which every type holds exactly.
static uint32_t bits_of(Type type, double value) {
  if (type == F32) return (uint32_t)float_bits((float)value);
  if (type == BF16) return (uint32_t)float_bits((float)value) >> 16;
  if (value == 0) return 0;
  int exponent;
  double fraction = frexp(fabs(value), &exponent);
  return (uint32_t)((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | ((int)(fraction * 2048) - 1024));
}

static double value_of(Type type, uint32_t bits) {
  if (type == F32) return float_of(bits);
  if (type == BF16) return float_of((uint64_t)bits << 16);
  int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  double magnitude = exponent ? ldexp(fraction + 1024, exponent - 25) : ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Small integers without a pattern.
static int small_integer(uint32_t seed, int limit) {
  uint32_t hash = (seed + 1) * 0x9e3779b1u;
  hash = (hash ^ hash >> 15) * 0x85ebca6bu;
  return (int)((hash ^ hash >> 13) % (uint32_t)(2 * limit + 1)) - limit;
}

enum { MAX_M = 32, MAX_N = 32, MAX_K = 16 };

// D = A * B + C with integers small enough for every type.
typedef struct Problem {
  int m, n, k;
  double a[MAX_M][MAX_K], b[MAX_K][MAX_N], c[MAX_M][MAX_N], d[MAX_M][MAX_N];
} Problem;

static Problem make_problem(int m, int n, int k) {
  Problem p = {.m = m, .n = n, .k = k};
  for (int i = 0; i < m; i++)
    for (int j = 0; j < k; j++) p.a[i][j] = small_integer((uint32_t)(i * 100 + j), 4);
  for (int i = 0; i < k; i++)
    for (int j = 0; j < n; j++) p.b[i][j] = small_integer((uint32_t)(i * 100 + j + 5000), 4);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      p.c[i][j] = small_integer((uint32_t)(i * 100 + j + 9000), 100);
      p.d[i][j] = p.c[i][j];
      for (int l = 0; l < k; l++) p.d[i][j] += p.a[i][l] * p.b[l][j];
    }
  return p;
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

// The figures of PTX ISA 9.7.15.5.8 and 9.7.15.5.9 as formulas: with g = lane / 4 and t = lane % 4,
//   a_i: row g, or g + 8 when i / 2 is odd; column 2t + i % 2, and 8 more from a_4 on
//   b_i: row 2t + i % 2, and 8 more from b_2 on; column g
//   c_i: row g, and 8 more from c_2 on; column 2t + i % 2
static MmaInput lay_out(const Problem *p, Type input, Type accumulator) {
  MmaInput in;
  memset(&in, 0, sizeof in);
  for (int lane = 0; lane < WARP; lane++) {
    int g = lane / 4, t = lane % 4;
    for (int i = 0; i < p->k / 2; i++) put_element(in.a[lane], input, i, p->a[g + i / 2 % 2 * 8][2 * t + i % 2 + i / 4 * 8]);
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
  Text text = {.used = 0};
  append(&text, "add.u64 %%rd4, %%rd0, %d; add.u64 %%rd5, %%rd0, %d;\n", (int)sizeof in.a, (int)(sizeof in.a + sizeof in.b));
  append_registers(&text, true, "%rd0", 'r', 8, 4);
  append_registers(&text, true, "%rd4", 'r', 12, 2);
  append_registers(&text, true, "%rd5", kind, 16, 4);
  append(&text, "mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s ", k, d_type, type, type, d_type);
  append_vector(&text, kind, 20, count);
  append(&text, ", ");
  append_vector(&text, 'r', 8, k / 4);
  append(&text, ", ");
  append_vector(&text, 'r', 12, k / 8);
  append(&text, ", ");
  append_vector(&text, kind, 16, count);
  append(&text, ";\n");
  append_registers(&text, false, "%rd1", kind, 20, 4);
  Run r = {.body = text.text, .in = &in, .in_size = sizeof in, .out = out, .out_size = sizeof out};
  run_clean(&r);
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
  Text text = {.used = 0};
  append(&text, "add.u64 %%rd4, %%rd0, %d;\n", (int)sizeof in.a);
  append_registers(&text, true, "%rd0", 'r', 8, 4);
  append_registers(&text, true, "%rd4", 'r', 12, 2);
  append(&text, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%%f0, %%f1, %%f2, %%f3}, {%%r8, %%r9, %%r10, %%r11}, "
                "{%%r12, %%r13}, {0f41200000, 0f41200000, 0f41200000, 0f41200000};\n"
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%%f0, %%f1, %%f2, %%f3}, {%%r8, %%r9, %%r10, %%r11}, "
                "{%%r12, %%r13}, {%%f0, %%f1, %%f2, %%f3};\n");
  append_registers(&text, false, "%rd1", 'f', 0, 4);
  Run r = {.body = text.text, .in = &in, .in_size = sizeof in, .out = out, .out_size = sizeof out};
  run_clean(&r);
  for (int lane = 0; lane < WARP; lane++)
    for (int i = 0; i < 4; i++) {
      int m = lane / 4 + i / 2 * 8, n = 2 * (lane % 4) + i % 2;
      cr_assert_eq(out[lane][i], (float)(10 + 2 * (p.d[m][n] - p.c[m][n])), "lane %d d%d", lane, i);
    }
}

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

static void put_matrix(uint8_t *at, const double *values, int value_pitch, Type type, bool row, int pitch, int rows, int columns) {
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
static void append_move(Text *text, const Wmma *w, const char *what, bool row, Type type) {
  static const char *const spaces[] = {".global", ".shared", "", ""};
  append(text, "wmma.%s.sync.aligned.%s.m%dn%dk16%s.%s ", what, layout_name(row), w->m, w->n, spaces[w->space], type_names[type]);
}

static void append_place(Text *text, const Wmma *w, int offset) {
  static const char *const bases[] = {"%rd0", "%r1", "%rd0", "%rd2"};
  append(text, "[%s+%d]", offset == D_AT && (w->space == GLOBAL || w->space == GENERIC_GLOBAL) ? "%rd1" : bases[w->space],
         offset == D_AT && (w->space == GLOBAL || w->space == GENERIC_GLOBAL) ? 0 : offset);
}

static void append_stride(Text *text, const Wmma *w, int pitch) {
  if (!w->packed) append(text, ", %d", pitch);
}

static void append_load(Text *text, const Wmma *w, const char *what, bool row, Type type, char kind, int first, int count,
                        int offset, int pitch) {
  append_move(text, w, what, row, type);
  append_vector(text, kind, first, count);
  append(text, ", ");
  append_place(text, w, offset);
  append_stride(text, w, pitch);
  append(text, ";\n");
}

static void append_multiply(Text *text, const Wmma *w) {
  append(text, "wmma.mma.sync.aligned.%s.%s.m%dn%dk16.%s%s.%s ", layout_name(w->a_row), layout_name(w->b_row), w->m, w->n,
         type_names[w->d], w->input == BF16 ? ".bf16.bf16" : "", type_names[w->c]);
  append_vector(text, accumulator_kind(w->d), 24, accumulator_registers(w->d));
  append(text, ", ");
  append_vector(text, 'r', 8, input_registers(w, w->m));
  append(text, ", ");
  append_vector(text, 'r', 16, input_registers(w, w->n));
  append(text, ", ");
  append_vector(text, accumulator_kind(w->c), 32, accumulator_registers(w->c));
  append(text, ";\n");
}

// Copies D's 4 KiB of shared memory to out.
static const char copy_out[] = "bar.sync 0;\nmov.u32 %r3, 0;\n"
                               "copy:\nmad.lo.u32 %r4, %r3, 32, %r0; shl.b32 %r4, %r4, 2; cvt.u64.u32 %rd5, %r4;\n"
                               "add.u32 %r5, %r1, %r4; ld.shared.b32 %r6, [%r5+12288]; add.u64 %rd5, %rd5, %rd1;\n"
                               "st.global.b32 [%rd5], %r6;\n"
                               "add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 32; @%p0 bra copy;\n";

// Runs load a, b, c, mma, store d. want is what D's 4 KiB should be.
static Run run_wmma(const Wmma *w, uint8_t out[4096], uint8_t want[4096]) {
  static uint8_t in[TILE_BYTES];
  static Text text;
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
  append_load(&text, w, "load.c", w->c_row, w->c, accumulator_kind(w->c), 32, accumulator_registers(w->c), C_AT, c_pitch);
  append_multiply(&text, w);
  append_move(&text, w, "store.d", w->d_row, w->d);
  append_place(&text, w, D_AT);
  append(&text, ", ");
  append_vector(&text, accumulator_kind(w->d), 24, accumulator_registers(w->d));
  append_stride(&text, w, d_pitch);
  append(&text, ";\n%s", shared ? copy_out : "");
  Run r = {.body = text.text, .in = in, .in_size = sizeof in, .shared = shared, .out = out, .out_size = 4096};
  run_clean(&r);
  return r;
}

static void test_wmma(const Wmma *w) {
  uint8_t out[4096], want[4096];
  Run r = run_wmma(w, out, want);
  cr_expect_eq(r.counters.value[COUNTER_TENSOR_FLOPS], 8192);
  for (int i = 0; i < 4096; i += size_of(w->d)) {
    uint32_t got = 0, expected = 0;
    memcpy(&got, out + i, (size_t)size_of(w->d));
    memcpy(&expected, want + i, (size_t)size_of(w->d));
    cr_assert_eq(got, expected, "byte %d is %g, expected %g in\n%s", i, value_of(w->d, got), value_of(w->d, expected), r.body);
  }
}

static const int wmma_shapes[][2] = {{16, 16}, {32, 8}, {8, 32}};

// Every shape, type and layout, in every space.
Test(matrix, wmma_multiplies_in_every_layout) {
  static const Type types[][3] = {{F16, F32, F32}, {F16, F16, F16}, {F16, F16, F32}, {F16, F32, F16}, {BF16, F32, F32}};
  for (int shape = 0; shape < 3; shape++)
    for (int layout = 0; layout < 16; layout++)
      for (int type = 0; type < 5; type++)
        for (int space = 0; space < SPACE_COUNT; space++) {
          Wmma w = {.m = wmma_shapes[shape][0], .n = wmma_shapes[shape][1], .a_row = layout & 1, .b_row = layout & 2,
                    .c_row = layout & 4, .d_row = layout & 8, .input = types[type][0], .c = types[type][1],
                    .d = types[type][2], .space = (Space)space};
          test_wmma(&w);
        }
}

// Without a stride operand rows or columns lie packed.
Test(matrix, wmma_without_a_stride) {
  for (int shape = 0; shape < 3; shape++)
    for (int layout = 0; layout < 16; layout++) {
      Wmma w = {.m = wmma_shapes[shape][0], .n = wmma_shapes[shape][1], .a_row = layout & 1, .b_row = layout & 2,
                .c_row = layout & 4, .d_row = layout & 8, .input = F16, .c = F32, .d = F16, .packed = true};
      test_wmma(&w);
    }
}

// A wrong leading dimension shows in the result, and a wrong layout does.
Test(matrix, wmma_with_a_wrong_stride_is_wrong) {
  for (int row = 0; row < 2; row++) {
    uint8_t out[4096], want[4096];
    Wmma w = {.m = 16, .n = 16, .a_row = row, .d_row = true, .input = F16, .c = F32, .d = F32, .a_stride_error = 8};
    run_wmma(&w, out, want);
    cr_expect(memcmp(out, want, 4096));
  }
}

// ---- counters ----

// ldmatrix reads a matrix's 8 rows in one wavefront when they lie in different banks.
static EmulatorCounters count_ldmatrix(int row_bytes, int count) {
  static uint8_t in[TILE_BYTES];
  Text text = {.used = 0};
  append(&text, "mad.lo.u32 %%r2, %%r0, %d, %%r1;\nldmatrix.sync.aligned.m8n8.x%d.shared.b16 ", row_bytes, count);
  append_vector(&text, 'r', 8, count);
  append(&text, ", [%%r2];\n");
  Run r = {.body = text.text, .in = in, .in_size = sizeof in, .shared = true};
  run_clean(&r);
  Run nothing = {.body = "", .in = in, .in_size = sizeof in, .shared = true};
  run_clean(&nothing);
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
    cr_expect_eq(counters.value[COUNTER_SHARED_LOAD_BANK_CONFLICTS], cases[i].conflicts, "pitch %d", cases[i].row_bytes);
  }
}

// wmma moves a 16x16 matrix in four requests of 8 rows. With rows 48 bytes apart a block of halves touches 8 sectors; of
// f32, 80 bytes apart, those of 32 bytes that do not begin at a sector's start touch two.
Test(matrix, wmma_counts_requests_and_sectors) {
  uint8_t out[4096], want[4096];
  Wmma w = {.m = 16, .n = 16, .a_row = true, .c_row = true, .d_row = true, .input = F16, .c = F32, .d = F32};
  Run r = run_wmma(&w, out, want);
  const uint64_t *value = r.counters.value;
  cr_expect_eq(value[COUNTER_GLOBAL_LOAD_REQUESTS], 12);
  cr_expect_eq(value[COUNTER_GLOBAL_LOAD_BYTES], 512 + 512 + 1024);
  cr_expect_eq(value[COUNTER_GLOBAL_LOAD_SECTORS], 4 * 8 + 4 * 8 + 4 * (4 + 2 * 4));
  cr_expect_eq(value[COUNTER_GLOBAL_STORE_REQUESTS], 4);
  cr_expect_eq(value[COUNTER_GLOBAL_STORE_BYTES], 1024);
  cr_expect_eq(value[COUNTER_GLOBAL_STORE_SECTORS], 4 * (4 + 2 * 4));
  cr_expect_eq(value[COUNTER_INST_MEMORY], 4 + 3);  // and the frame's ld.param
  cr_expect_eq(value[COUNTER_INST_TENSOR], 1);
}

// ---- hazards ----

typedef struct HazardTest {
  const char *body;
  HazardKind kind;  // HAZARD_KIND_COUNT: none
  int threads, blocks;
  bool stops;
} HazardTest;

#define LDMATRIX_X1 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, "
#define WMMA_A "{%r8,%r9,%r10,%r11,%r12,%r13,%r14,%r15}"
#define WMMA_C "{%f8,%f9,%f10,%f11,%f12,%f13,%f14,%f15}"
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r8,%r9}, {%r10}, {%f0,%f1,%f2,%f3};"
#define LANE_ROWS "and.b32 %r2, %r0, 31; shl.b32 %r2, %r2, 4; add.u32 %r2, %r2, %r1;\n"  // lane l: row l of 16 bytes
#define WARP_OF "shr.u32 %r3, %r0, 5; setp.eq.u32 %p0, %r3, 0;\n"                         // p0: the first warp

static void expect_hazard(const HazardTest *test) {
  static uint8_t in[TILE_BYTES], out[4096];
  Run r = {.body = test->body, .in = in, .in_size = sizeof in, .shared = true, .threads = test->threads,
           .blocks = test->blocks, .out = out, .out_size = sizeof out};
  run(&r);
  bool expected = test->kind != HAZARD_KIND_COUNT;
  cr_expect_eq(r.hazard_count > 0, expected, "%d hazards in\n%s\n%s", r.hazard_count, test->body, r.hazard.detail);
  cr_expect_eq(r.status, test->stops ? EMULATOR_FAULT : EMULATOR_OK, "status %d of\n%s", r.status, test->body);
  if (r.hazard_count) cr_expect_eq(r.hazard.kind, test->kind, "%s: %s in\n%s", hazard_name(r.hazard.kind), r.hazard.detail, test->body);
}

#define EXPECT_HAZARDS(tests) \
  for (size_t i = 0; i < sizeof(tests) / sizeof *(tests); i++) expect_hazard(&(tests)[i])

Test(matrix, addresses_are_checked) {
  static const HazardTest tests[] = {
      {LANE_ROWS LDMATRIX_X1 "[%r2+8];", HAZARD_MISALIGNED, 0, 0, true},
      {LANE_ROWS LDMATRIX_X1 "[%r2+16];", HAZARD_KIND_COUNT, 0, 0, false},
      {LANE_ROWS "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2+2], {%r8};", HAZARD_MISALIGNED, 0, 0, true},
      {LANE_ROWS LDMATRIX_X1 "[%r2+16400];", HAZARD_OUT_OF_BOUNDS, 0, 0, true},
      {LANE_ROWS LDMATRIX_X1 "[%r2+16272];", HAZARD_UNINITIALISED_READ, 0, 0, false},  // rows 0..6 in tile, row 7 in last
      {LANE_ROWS LDMATRIX_X1 "[%r2+16256];", HAZARD_KIND_COUNT, 0, 0, false},
      {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r8}, [%rd0];", HAZARD_OUT_OF_BOUNDS, 0, 0, true},  // global memory
      {"stmatrix.sync.aligned.m8n8.x1.b16 [%rd1], {%r8};", HAZARD_OUT_OF_BOUNDS, 0, 0, true},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", [%r1+16], 16;", HAZARD_MISALIGNED, 0, 0, true},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", [%r1+32], 16;", HAZARD_KIND_COUNT, 0, 0, false},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", [%r1], 20;", HAZARD_MISALIGNED, 0, 0, true},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", [%r1], 24;", HAZARD_KIND_COUNT, 0, 0, false},
      {"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 " WMMA_C ", [%r1], 18;", HAZARD_MISALIGNED, 0, 0, true},
      {"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 " WMMA_C ", [%r1], 20;", HAZARD_KIND_COUNT, 0, 0, false},
      {"wmma.load.a.sync.aligned.row.m16n16k16.f16 " WMMA_A ", [%rd0+16352], 16;", HAZARD_OUT_OF_BOUNDS, 0, 0, true},
      {"mov.u64 %rd5, own; cvta.local.u64 %rd5, %rd5; wmma.load.a.sync.aligned.row.m16n16k16.f16 " WMMA_A ", [%rd5], 16;",
       HAZARD_OUT_OF_BOUNDS, 0, 0, true},
      {"mov.u64 %rd5, own; cvta.local.u64 %rd5, %rd5; wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd5], " WMMA_C ", 16;",
       HAZARD_OUT_OF_BOUNDS, 0, 0, true},
      {"wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd1], " WMMA_C ", 128;", HAZARD_OUT_OF_BOUNDS, 0, 0, true},
  };
  EXPECT_HAZARDS(tests);
}

Test(matrix, the_whole_warp_takes_part) {
  static const HazardTest tests[] = {
      {LANE_ROWS "setp.lt.u32 %p0, %r0, 16; @%p0 " LDMATRIX_X1 "[%r2];", HAZARD_DIVERGENT_ALIGNED, 0, 0, true},
      {"setp.lt.u32 %p0, %r0, 31; @%p0 " MMA, HAZARD_DIVERGENT_ALIGNED, 0, 0, true},
      {"setp.lt.u32 %p0, %r0, 32; @%p0 " MMA, HAZARD_KIND_COUNT, 64, 0, false},
      {"setp.eq.u32 %p0, %r0, 5; @%p0 ret; " MMA, HAZARD_DIVERGENT_ALIGNED, 0, 0, true},
      {MMA, HAZARD_DIVERGENT_ALIGNED, 48, 0, true},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", [%r1], 16;", HAZARD_DIVERGENT_ALIGNED, 16, 0, true},
      {"mad.lo.u32 %r2, %r0, 32, %r1;\nwmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", [%r2], 16;",
       HAZARD_DIVERGENT_ALIGNED, 0, 0, true},
      {"mad.lo.u32 %r2, %r0, 8, 16;\nwmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " WMMA_A ", [%r1], %r2;",
       HAZARD_DIVERGENT_ALIGNED, 0, 0, true},
      {"movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r3;", HAZARD_DIVERGENT_ALIGNED, 8, 0, true},
  };
  EXPECT_HAZARDS(tests);
}

// Two warps: one writes, the other reads or writes, with and without a barrier between them.
#define SECOND_WARP_STORES WARP_OF "@%p0 bra skip; st.shared.b32 [%r1+4], 1; skip:\n"
#define FIRST_WARP_LOADS_MATRIX LANE_ROWS WARP_OF "@!%p0 bra done; " LDMATRIX_X1 "[%r2]; done:\n"
#define FIRST_WARP_STORES_MATRIX                                                                \
  LANE_ROWS WARP_OF "@!%p0 bra done; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r0}; done:\n"
#define FIRST_WARP_LOADS_WMMA \
  WARP_OF "@!%p0 bra done; wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 " WMMA_A ", [%r1], 16; done:\n"
#define BARRIER "bar.sync 0;\n"

Test(matrix, races_are_found) {
  static const HazardTest tests[] = {
      {SECOND_WARP_STORES FIRST_WARP_LOADS_MATRIX, HAZARD_SHARED_RACE, 64, 0, false},
      {SECOND_WARP_STORES BARRIER FIRST_WARP_LOADS_MATRIX, HAZARD_KIND_COUNT, 64, 0, false},
      {FIRST_WARP_LOADS_MATRIX SECOND_WARP_STORES, HAZARD_SHARED_RACE, 64, 0, false},
      {FIRST_WARP_LOADS_MATRIX BARRIER SECOND_WARP_STORES, HAZARD_KIND_COUNT, 64, 0, false},
      {FIRST_WARP_STORES_MATRIX SECOND_WARP_STORES, HAZARD_SHARED_RACE, 64, 0, false},
      {FIRST_WARP_STORES_MATRIX BARRIER SECOND_WARP_STORES, HAZARD_KIND_COUNT, 64, 0, false},
      {SECOND_WARP_STORES FIRST_WARP_LOADS_WMMA, HAZARD_SHARED_RACE, 64, 0, false},
      {SECOND_WARP_STORES BARRIER FIRST_WARP_LOADS_WMMA, HAZARD_KIND_COUNT, 64, 0, false},
      // Two blocks store one matrix: different values.
      {"mov.u32 %r2, %ctaid.x; cvt.rn.f32.u32 %f8, %r2; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], " WMMA_C
       ", 16;", HAZARD_GLOBAL_RACE, 0, 2, false},
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
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}", "operands"},
      {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r4]", ".m8n8 and .b16 only"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r0}, [%r4]", ".m8n8 and .b16 only"},
      {"ldmatrix.sync.m8n8.x1.shared.b16 {%r0}, [%r4]", ".sync.aligned"},
      {"stmatrix.aligned.m8n8.x1.shared.b16 [%r4], {%r0}", ".sync.aligned"},
      {"stmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r4]", "vector of 1 register"},
      {"movmatrix.sync.aligned.m8n8.b16 %r0, %r1", "movmatrix.sync.aligned.m8n8.trans.b16"},
      {"movmatrix.sync.aligned.m8n8.trans.b16 %r0, %rd1", ".b32"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "types must be"},
      {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r0,%r1,%r2,%r3}",
       "types must be"},
      {"mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r0,%r1}", "types must be"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "types must be"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r0,%r1}", "types must be"},
      {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4,%r5}, {%f0,%f1,%f2,%f3}", "shape must be"},
      {"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "layouts must be"},
      {"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "layouts must be"},
      {"mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "unknown modifier .satfinite"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4,%r5}, {%f0,%f1,%f2,%f3}",
       "operand 2 must be a vector of 4 registers, has 2"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, %r4, {%f0,%f1,%f2,%f3}", "operand 3"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4}, {%f0,%f1,%f2}", "operand 4"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%fd3}, {%r0,%r1}, {%r4}, {%f0,%f1,%f2,%f3}", ".f32"},
      {"mma.sync.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4}, {%f0,%f1,%f2,%f3}", ".sync.aligned"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4}", "operands"},
      {"wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r0,%r1,%r2,%r3}, [%r4]", "type must be .f16 or, of a and b, .bf16"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f32 {%r0,%r1,%r2,%r3}, [%r4]", "type must be"},
      {"wmma.load.c.sync.aligned.row.m16n16k16.shared.bf16 {%r0,%r1,%r2,%r3}, [%r4]", "of c and d, .f32"},
      {"wmma.load.a.sync.aligned.row.m16n16k8.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "shape must be"},
      {"wmma.load.a.sync.aligned.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "one of .row .col"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%r0,%r1,%r2}, [%r4]", "vector of 4 registers, has 3"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "vector of 8 registers, has 4"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.local.bf16 {%r0,%r1,%r2,%r3}, [%r4]", "unknown modifier .local"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%r0,%r1,%r2,%r3}, [%r4], %h0", ".b32"},
      {"wmma.load.d.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3}, [%r4]", "wmma.load.a, .load.b, .load.c"},
      {"wmma.store.c.sync.aligned.row.m16n16k16.shared.f16 [%r4], {%r0,%r1,%r2,%r3}", "wmma.store.d"},
      {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r4], {%r0,%r1,%r2,%r3}, 16, 16", "operands"},
      {"wmma.store.d.aligned.row.m16n16k16.shared.f16 [%r4], {%r0,%r1,%r2,%r3}, 16", ".sync.aligned"},
      {"wmma.mma.sync.aligned.row.m16n16k16.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}", ".row or .col for A and for B"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}", "operand 2"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}", "types must be"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}", "types must be"},
      {"wmma.mma.sync.aligned.row.col.m8n8k4.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}", "shape must be"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.satfinite.f16.f16 {%r0,%r1,%r2,%r3}, {%r0}, {%r0}, {%r0,%r1,%r2,%r3}",
       "unknown modifier .satfinite"},
      {"wmma.sync.aligned", "wmma.load, wmma.store or wmma.mma"},
  };
  RUN_REFUSED_TESTS(tests);
}
