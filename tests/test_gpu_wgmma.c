// wgmma on the GPU and on the emulator: where a descriptor finds each element, and what every form computes.
//
// Where: one operand is an identity matrix, so that D is the other operand, and each element's bits say which element
// of shared memory it is. That is compared with the emulator and with the layouts as the PTX ISA draws them, written
// down here a second time: a row that differs says which address each of the three expects.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/harness/half.h"
#include "gpu/wgmma.h"
#include "support/agreement.h"

TestSuite(gpu_agreement, .timeout = 100);

enum {
  ROWS = 64,
  DEPTH = 16,
  MAX_N = 256,
  THREADS = 128,
  MARKED = 60 * 1024,     // elements at the start of shared memory that have bits of their own
  IDENTITY = 160 * 1024,  // byte where the identity matrix lies
  MAX_NOTES = 24,
};

static WgmmaInput input;

// ---- descriptors and layouts ----

typedef struct Layout {
  const char *name;
  bool mn_major;
  uint32_t swizzle;          // bytes: 0, 32, 64, 128
  uint32_t leading, stride;  // bytes, as the descriptor has them
  uint32_t start;            // byte where the first step's matrix begins
  uint32_t step;             // bytes from a k16 step to the next
} Layout;

static uint64_t descriptor(uint32_t start, const Layout *layout) {
  uint64_t mode = layout->swizzle == 128 ? 1 : layout->swizzle == 64 ? 2 : layout->swizzle == 32 ? 3 : 0;
  return start >> 4 | (uint64_t)(layout->leading >> 4) << 16 | (uint64_t)(layout->stride >> 4) << 32 | mode << 62;
}

// The element of shared memory (2 bytes each) that is (mn, k) of a step. The PTX ISA's layouts, in units of 16 bytes:
// "row" is a line of the tile, a whole span of bytes long; units are exchanged within it as the line's number says.
static uint32_t element_of(const Layout *layout, int step, int mn, int k) {
  uint32_t across = (uint32_t)(layout->mn_major ? mn : k), along = (uint32_t)(layout->mn_major ? k : mn);
  uint32_t start = layout->start + (uint32_t)step * layout->step;
  if (!layout->swizzle) {  // core matrices of 8 lines of 16 bytes
    uint32_t core_mn = (uint32_t)mn / 8 * layout->stride, core_k = (uint32_t)k / 8 * layout->leading;
    return (start + core_mn + core_k + along % 8 * 16) / 2 + across % 8;
  }
  uint32_t span = layout->swizzle / 2;  // elements of a line
  uint32_t line_start = start / (8 * layout->swizzle) * (8 * layout->swizzle);
  uint32_t inside = (start - line_start) / 2;  // a K step inside the line
  uint32_t panel = (across + inside) / span * (layout->mn_major ? layout->leading : 0);
  uint32_t group = along / 8 * layout->stride, line = along % 8, column = (across + inside) % span;
  uint32_t address = line_start + panel + group + line * layout->swizzle;
  // Eight lines of 128 bytes make the pattern; of 64 two lines share one of its rows, of 32 four.
  uint32_t exchange = line / (128 / layout->swizzle) % (layout->swizzle / 16);
  return address / 2 + ((column / 8 ^ exchange) * 8 + column % 8);
}

// Bits of element i that no other element has: the finite f16 numbers that are normal.
static uint16_t mark(uint32_t i) { return i >= MARKED ? 0 : (uint16_t)(i < 30720 ? 0x0400 + i : 0x8400 + i - 30720); }

// The element that an f16 number as f32 marks; -1 when it is none.
static int marked(float value) {
  Half bits = half_from_double(value);
  if ((bits & 0x7fff) < 0x0400 || (bits & 0x7fff) > 0x7bff || half_to_float(bits) != value) return -1;
  return bits & 0x8000 ? bits - 0x8400 + 30720 : bits - 0x0400;
}

// ---- the places of elements ----

static uint8_t *image_bytes(void) { return (uint8_t *)input.image; }

static void set_element(uint32_t i, uint16_t bits) { memcpy(image_bytes() + 2 * i, &bits, 2); }

// Element (row, k) of the identity operand: K-major, no swizzle, core matrices one after another.
static const Layout identity = {"identity", false, 0, 128, 256, IDENTITY, 0};

static void make_marked_image(void) {
  for (uint32_t i = 0; i < WGMMA_SHARED / 2; i++) set_element(i, mark(i));
  for (int row = 0; row < ROWS; row++)
    for (int k = 0; k < DEPTH; k++) set_element(element_of(&identity, 0, row, k), row == k ? 0x3c00 : 0);
}

// Accumulator (row, column) in the results of a kernel with f32 accumulators. PTX ISA 9.7.16.5.1.1, figure of D.
static float accumulator(const uint8_t *results, int row, int column) {
  int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2, i = row % 16 / 8 * 2 + column % 2;
  float value;
  memcpy(&value, results + ((size_t)(column / 8 * THREADS + thread) * 4 + (size_t)i) * 4, 4);
  return value;
}

typedef struct Probe {
  const Layout *layout;
  bool of_a;
  int n, step;
} Probe;

// What the three say about element (mn, k).
typedef struct Places {
  int real, emulated, drawn;
} Places;

static Places places_of(const Probe *probe, uint8_t *const results[SIDES], int mn, int k) {
  int row = probe->of_a ? mn : k, column = probe->of_a ? k : mn;
  return (Places){marked(accumulator(results[REAL], row, column)), marked(accumulator(results[EMULATED], row, column)),
                  (int)element_of(probe->layout, probe->step, mn, k)};
}

// The address map of a probe that differs: the element where each group of eight and each line begins.
static void note_places(const Probe *probe, uint8_t *const results[SIDES]) {
  int lines = probe->of_a ? ROWS : probe->n, notes = 0;
  for (int mn = 0; mn < lines; mn += mn < 8 && !probe->layout->mn_major ? 1 : 8)
    for (int k = 0; k < DEPTH; k += k < 8 && probe->layout->mn_major ? 1 : 8) {
      Places at = places_of(probe, results, mn, k);
      if ((at.real == at.emulated && at.real == at.drawn) || notes++ >= MAX_NOTES) continue;
      agreement_note("  (mn %d, k %d): byte GPU %d, emulator %d, PTX ISA %d\n", mn, k, 2 * at.real, 2 * at.emulated,
                     2 * at.drawn);
    }
}

static void compare_places(const Probe *probe, uint8_t *const results[SIDES], const char *name) {
  char text[300] = "";
  int wrong = 0, lines = probe->of_a ? ROWS : probe->n;
  for (int mn = 0; mn < lines; mn++)
    for (int k = 0; k < DEPTH; k++) {
      Places at = places_of(probe, results, mn, k);
      if (at.real == at.emulated && at.real == at.drawn) continue;
      if (!wrong++)
        snprintf(text, sizeof text, "first at (mn %d, k %d): byte GPU %d, emulator %d, PTX ISA %d", mn, k, 2 * at.real,
                 2 * at.emulated, 2 * at.drawn);
    }
  if (wrong) note_places(probe, results);
  agreement_row("wgmma address", name, text);
}

static void run_probe(const Layout *layout, bool of_a, int n, int step) {
  char kernel[64], name[160];
  uint64_t probed = descriptor(layout->start + (uint32_t)step * layout->step, layout),
           known = descriptor(IDENTITY, &identity);
  input.steps = 1;
  input.step[0] = (WgmmaStep){.a = of_a ? probed : known, .b = of_a ? known : probed};
  if (of_a)
    snprintf(kernel, sizeof kernel, layout->mn_major ? "wgmma_n16_f32_f16_a_m" : "wgmma_n16_f32_f16_b_k");
  else
    snprintf(kernel, sizeof kernel, "wgmma_n%d_f32_f16_b_%s", n, layout->mn_major ? "n" : "k");
  snprintf(name, sizeof name, "%c %s-major, swizzle %u, %s, LBO %u, SBO %u, N = %d, k step %d", of_a ? 'A' : 'B',
           layout->mn_major ? "MN" : "K", layout->swizzle, layout->name, layout->leading, layout->stride, n, step);
  Trial trial = {.module = "wgmma_shared",
                 .kernel = kernel,
                 .threads = THREADS,
                 .shared = WGMMA_SHARED,
                 .in = &input,
                 .in_size = sizeof input,
                 .out_size = (size_t)ROWS * (size_t)n * 4};
  uint8_t *results[SIDES];
  Probe probe = {layout, of_a, n, step};
  if (!agreement_run(&trial, "wgmma address", name, results)) return;
  compare_places(&probe, results, name);
  free(results[REAL]);
  free(results[EMULATED]);
}

// Layouts with room for 256 lines; padding shows which of LBO and SBO is which.
static const Layout layouts[] = {
    {"packed along K", false, 0, 128, 256, 1024, 0},
    {"packed along MN", false, 0, 32 * 128, 128, 1024, 2 * 32 * 128},
    {"padded", false, 0, 144, 1040, 2048, 288},
    {"padded along MN", false, 0, 33 * 144, 144, 0, 2 * 33 * 144},
    {"far apart", false, 0, 65536, 272, 4096, 16},
    {"packed", false, 32, 16, 256, 1024, 0},
    {"padded", false, 32, 16, 768, 256, 0},
    {"LBO 0", false, 32, 0, 256, 256, 0},
    {"packed, two steps in a line", false, 64, 16, 512, 1024, 32},
    {"padded, LBO large", false, 64, 4096, 1536, 512, 32},
    {"packed, four steps in a line", false, 128, 16, 1024, 1024, 32},
    {"padded, LBO 0", false, 128, 0, 3072, 2048, 32},
    {"LBO 1024", false, 128, 1024, 1024, 0, 32},
    {"packed along K", true, 0, 128, 256, 1024, 0},
    {"packed along MN", true, 0, 32 * 128, 128, 1024, 2 * 32 * 128},
    {"padded", true, 0, 144, 1040, 2048, 288},
    {"padded along MN", true, 0, 33 * 144, 144, 0, 2 * 33 * 144},
    {"far apart", true, 0, 65536, 272, 4096, 16},
    {"panels packed", true, 32, 512, 256, 1024, 512 * 16},
    {"groups along K packed", true, 32, 2048, 256, 256, 512},
    {"panels closer than groups", true, 32, 256, 256 * 17, 512, 0},
    {"padded", true, 32, 768, 256 * 49, 512, 256},
    {"groups along K packed", true, 64, 4096, 512, 512, 1024},
    {"panels closer than groups", true, 64, 512, 512 * 9, 1024, 0},
    {"padded", true, 64, 1536, 512 * 25, 512, 512},
    {"groups along K packed", true, 128, 8192, 1024, 1024, 2048},
    {"panels closer than groups", true, 128, 1024, 1024 * 5, 2048, 0},
    {"padded", true, 128, 3072, 1024 * 13, 1024, 1024},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void probe_layouts(bool of_a) {
  static const int b_lines[] = {8, 16, 24, 64, 72, 104, 128, 176, 256};
  agreement_begin();
  make_marked_image();
  for (int i = 0; i < LAYOUTS; i++)
    for (int step = 0; step < (layouts[i].step ? 4 : 1); step++) {
      if (step * 32 >= (int)layouts[i].swizzle && layouts[i].swizzle && !layouts[i].mn_major) continue;
      if (of_a)
        run_probe(&layouts[i], true, 16, step);
      else
        for (size_t n = 0; n < sizeof b_lines / sizeof *b_lines; n++)
          if (step == 0 || b_lines[n] == 64) run_probe(&layouts[i], false, b_lines[n], step);
    }
  agreement_end();
}

Test(gpu_agreement, wgmma_addresses_of_a) { probe_layouts(true); }
Test(gpu_agreement, wgmma_addresses_of_b) { probe_layouts(false); }

// ---- what is computed ----

// A finite number of a 16-bit format: exponents close to each other, so that alignment and truncation matter.
static uint16_t random_number(uint64_t *random, bool bf16) {
  uint32_t bits = random_bits(random);
  if (bf16) return (uint16_t)((bits & 0x807f) | (110 + (bits >> 16) % 30) << 7);
  return (uint16_t)((bits & 0x83ff) | (bits >> 16) % 26 << 10);
}

static uint32_t random_accumulator(uint64_t *random, bool half) {
  uint32_t bits = random_bits(random);
  if (half) return random_number(random, false) | (uint32_t)random_number(random, false) << 16;
  return (bits & 0x807fffff) | (100 + (bits >> 23) % 40) << 23;
}

// Runs a kernel over `steps` steps of random matrices; the first accumulates or not.
static void compare_form(const char *module, const char *kernel, int n, bool bf16, bool half, int steps,
                         bool accumulate) {
  static uint32_t c[ROWS * MAX_N];
  static const Layout a_layout = {"a", false, 0, 128, 256, 0, 2048}, b_layout = {"b", false, 0, 128, 256, 8192, 8192};
  char name[160];
  size_t out_size = (size_t)ROWS * (size_t)n * (half ? 2 : 4);
  uint64_t random = (uint64_t)(n * 16 + steps * 2 + accumulate);
  for (uint32_t i = 0; i < WGMMA_SHARED / 2; i++) set_element(i, random_number(&random, bf16));
  for (size_t i = 0; i < sizeof input.a / 4; i++)
    (&input.a[0][0][0])[i] = random_number(&random, bf16) | (uint32_t)random_number(&random, bf16) << 16;
  for (size_t i = 0; i < out_size / 4; i++) c[i] = random_accumulator(&random, half);
  input.steps = (uint32_t)steps;
  for (int s = 0; s < steps; s++)
    input.step[s] = (WgmmaStep){.a = descriptor(a_layout.start + (uint32_t)s * a_layout.step, &a_layout),
                                .b = descriptor(b_layout.start + (uint32_t)s * b_layout.step, &b_layout),
                                .accumulate = s > 0 || accumulate};
  snprintf(name, sizeof name, "%s, %d steps, scale-d %d", kernel, steps, accumulate);
  Trial trial = {.module = module,
                 .kernel = kernel,
                 .threads = THREADS,
                 .shared = WGMMA_SHARED,
                 .in = &input,
                 .in_size = sizeof input,
                 .out = c,
                 .out_size = out_size};
  agreement_compare(&trial, "wgmma result", name, half ? 2 : 4);
}

static void compare_steps(const char *module, const char *kernel, int n, bool bf16, bool half) {
  compare_form(module, kernel, n, bf16, half, 1, false);
  compare_form(module, kernel, n, bf16, half, 1, true);
  compare_form(module, kernel, n, bf16, half, WGMMA_STEPS, true);
}

Test(gpu_agreement, wgmma_every_n) {
  char kernel[64];
  agreement_begin();
  for (int n = 8; n <= MAX_N; n += 8) {
    snprintf(kernel, sizeof kernel, "wgmma_n%d_f32_f16_b_k", n);
    compare_form("wgmma_shared", kernel, n, false, false, WGMMA_STEPS, false);
    snprintf(kernel, sizeof kernel, "wgmma_n%d_f32_f16_b_n", n);
    compare_form("wgmma_shared", kernel, n, false, false, WGMMA_STEPS, true);
  }
  agreement_end();
}

Test(gpu_agreement, wgmma_forms) {
  static const int some_n[] = {8, 16, 24, 64, 96, 128, 176, 192, 256};
  static const struct {
    int n;
    const char *name;
    bool bf16, half;
  } others[] = {{64, "f32_bf16_a_m_b_n", true, false},    {64, "f16_f16_a_m_b_n", false, true},
                {64, "f32_f16_a_r_b_n", false, false},    {128, "f32_f16_a_r_b_n", false, false},
                {64, "f32_bf16_a_r_b_n", true, false},    {64, "f16_f16_a_r", false, true},
                {64, "f32_f16_minus_a", false, false},    {64, "f32_f16_minus_b", false, false},
                {64, "f32_f16_minus_both", false, false}, {64, "f16_f16_minus_a", false, true},
                {64, "f32_bf16_minus_b", true, false},    {64, "f32_f16_a_r_minus_a", false, false},
                {64, "f32_f16_a_r_minus_b", false, false}};
  char kernel[64];
  agreement_begin();
  for (size_t i = 0; i < sizeof some_n / sizeof *some_n; i++)
    for (int form = 0; form < 3; form++) {
      snprintf(kernel, sizeof kernel, "wgmma_n%d_%s", some_n[i],
               (const char *[]){"f32_bf16", "f16_f16", "f32_f16_a_r"}[form]);
      compare_steps("wgmma_types", kernel, some_n[i], form == 0, form == 1);
    }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    snprintf(kernel, sizeof kernel, "wgmma_n%d_%s", others[i].n, others[i].name);
    compare_steps("wgmma_types", kernel, others[i].n, others[i].bf16, others[i].half);
  }
  compare_steps("wgmma_shared", "wgmma_n16_f32_f16_a_m", 16, false, false);
  compare_steps("wgmma_shared", "wgmma_n64_f32_f16_a_m_b_n", 64, false, false);
  agreement_end();
}
