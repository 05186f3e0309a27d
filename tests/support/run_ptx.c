#include "run_ptx.h"

#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128, SAMPLES_PER_PAIR = 3, RANDOM_SAMPLES = 1000, TEXT_SIZE = 1 << 14 };

// What a destination holds before an instruction that its guard turns off; predicates hold (tid & 2) != 0.
#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

static const ValueType value_types[] = {
    {"pred", VALUE_PREDICATE, 1, "pred", 1}, {"u8", VALUE_UNSIGNED, 8, "b16", 16},
    {"s8", VALUE_SIGNED, 8, "b16", 16},      {"b16", VALUE_UNSIGNED, 16, "b16", 16},
    {"u16", VALUE_UNSIGNED, 16, "u16", 16},  {"s16", VALUE_SIGNED, 16, "s16", 16},
    {"f16", VALUE_F16, 16, "b16", 16},       {"bf16", VALUE_BF16, 16, "b16", 16},
    {"b32", VALUE_UNSIGNED, 32, "b32", 32},  {"u32", VALUE_UNSIGNED, 32, "u32", 32},
    {"s32", VALUE_SIGNED, 32, "s32", 32},    {"f16x2", VALUE_F16, 32, "b32", 32},
    {"bf16x2", VALUE_BF16, 32, "b32", 32},   {"f32", VALUE_FLOAT, 32, "f32", 32},
    {"b64", VALUE_UNSIGNED, 64, "b64", 64},  {"u64", VALUE_UNSIGNED, 64, "u64", 64},
    {"s64", VALUE_SIGNED, 64, "s64", 64},    {"f64", VALUE_FLOAT, 64, "f64", 64},
};

// ---- values ----

uint64_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

uint64_t double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(uint64_t bits) {
  uint32_t word = (uint32_t)bits;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float float_source(const Sample *sample, int index) { return float_of(sample->in[index]); }
double double_source(const Sample *sample, int index) { return double_of(sample->in[index]); }

bool has_modifier(const Sample *sample, const char *modifier) {
  size_t length = strlen(modifier);
  for (const char *at = sample->text; (at = strstr(at, modifier)); at++)
    if (strchr(". ", at[length])) return at < sample->text + strcspn(sample->text, " ");
  return false;
}

int rounding_of(const Sample *sample) {
  static const struct {
    const char *names[2];
    int mode;
  } modes[] = {{{".rz", ".rzi"}, FE_TOWARDZERO}, {{".rm", ".rmi"}, FE_DOWNWARD}, {{".rp", ".rpi"}, FE_UPWARD}};
  for (int i = 0; i < 3; i++)
    if (has_modifier(sample, modes[i].names[0]) || has_modifier(sample, modes[i].names[1])) return modes[i].mode;
  return FE_TONEAREST;
}

static uint64_t low_bits(uint64_t value, int bits) { return bits == 64 ? value : value & ((1ull << bits) - 1); }

static Wide integer_of(const ValueType *type, uint64_t bits) {
  Wide value = (Wide)low_bits(bits, type->bits);
  bool negative = type->kind == VALUE_SIGNED && bits >> (type->bits - 1) & 1;
  return negative ? value - ((Wide)1 << type->bits) : value;
}

Wide integer_source(const Sample *sample, int index) { return integer_of(&sample->types[index], sample->in[index]); }

// The register's bits when it holds a value of the type: extended as the type says.
static uint64_t register_bits(const ValueType *type, uint64_t value) {
  return low_bits((uint64_t)integer_of(type, value), type->register_bits);
}

// xorshift64*: the same numbers on every run.
static uint64_t random_bits(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1dull;
}

static const uint16_t f16_edges[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x03ff, 0x83ff, 0x0400, 0x8400,
                                     0x0401, 0x1400, 0x2e66, 0x3555, 0x3800, 0xb800, 0x3bff, 0x3c00, 0xbc00,
                                     0x3c01, 0x3e00, 0x4000, 0xc000, 0x4248, 0x4b00, 0x57ff, 0x5800, 0x63ff,
                                     0x77ff, 0x7800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7d01};
static const uint16_t bf16_edges[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x0040, 0x007f, 0x807f, 0x0080, 0x8080,
                                      0x0081, 0x1f80, 0x3380, 0x3dcd, 0x3eab, 0x3f00, 0xbf00, 0x3f7f, 0x3f80,
                                      0xbf80, 0x3f81, 0x3fc0, 0x4000, 0xc000, 0x4049, 0x42fe, 0x4380, 0x5f80,
                                      0x7e80, 0x7f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7f81};
static const uint64_t integer_edges[] = {0,
                                         1,
                                         2,
                                         3,
                                         4,
                                         7,
                                         8,
                                         15,
                                         16,
                                         17,
                                         24,
                                         31,
                                         32,
                                         33,
                                         63,
                                         64,
                                         65,
                                         100,
                                         127,
                                         128,
                                         129,
                                         255,
                                         256,
                                         0x7fff,
                                         0x8000,
                                         0x8001,
                                         0xffff,
                                         0x10000,
                                         0x7fffff,
                                         0x800000,
                                         0xffffff,
                                         0x1000000,
                                         0x1000001,
                                         0x12345678,
                                         0x7fffffff,
                                         0x80000000,
                                         0x80000001,
                                         0xfffffffe,
                                         0xffffffff,
                                         0x100000000,
                                         0x1fffffffffffff,
                                         0x20000000000001,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0x8000000000000001,
                                         0xaaaaaaaaaaaaaaaa,
                                         0x123456789abcdef0,
                                         0xfffffffffffffff0,
                                         0xfffffffffffffffe,
                                         0xffffffffffffffff};
static const double float_edges[] = {0.0,
                                     1.0,
                                     2.0,
                                     0.5,
                                     1.5,
                                     2.5,
                                     3.0,
                                     0.1,
                                     1.0 / 3,
                                     3.14159265,
                                     100.5,
                                     255.0,
                                     256.5,
                                     32767.5,
                                     65504.0,
                                     65519.0,
                                     65520.0,
                                     65536.0,
                                     448.0,
                                     464.0,
                                     57344.0,
                                     61440.0,
                                     0x1p-14,
                                     0x1.ffcp-15,
                                     0x1.ffep-15,
                                     0x1p-24,
                                     0x1p-25,
                                     0x1.8p-25,
                                     0x1.004p0,
                                     0x1.002p0,
                                     0x1.006p0,
                                     0x1.01p0,
                                     0x1.03p0,
                                     0x1.000002p0,
                                     0x1.fffffep-1,
                                     0x1.fffffp0,
                                     0x1.ffep15,
                                     8388607.5,
                                     16777215.0,
                                     16777217.0,
                                     2147483647.0,
                                     2147483648.0,
                                     4294967295.0,
                                     4294967296.0,
                                     0x1p63,
                                     0x1p64,
                                     0x1p-126,
                                     0x1p-127,
                                     0x1p-149,
                                     0x1.fffffcp-127,
                                     0x1p-133,
                                     0x1.8p-134,
                                     0x1p126,
                                     0x1.8p126,
                                     0x1.fffffep127,
                                     0x1p-1022,
                                     0x1p-1074,
                                     0x1p1023,
                                     0x1.fffffffffffffp1023,
                                     0x1.0000000000001p0,
                                     0x1.000001p0,
                                     0x1.fffffffp127,
                                     89.0,
                                     127.99,
                                     150.0,
                                     (double)INFINITY};

enum {
  HALF_EDGES = sizeof f16_edges / sizeof *f16_edges,
  FLOAT_EDGES = sizeof float_edges / sizeof *float_edges,
  INTEGER_EDGES = sizeof integer_edges / sizeof *integer_edges,
};

// How many edge values a type has: of floating-point numbers both signs, and two NaNs.
static int edge_count(const ValueType *type) {
  switch (type->kind) {
  case VALUE_PREDICATE: return 2;
  case VALUE_F16:
  case VALUE_BF16: return HALF_EDGES;
  case VALUE_FLOAT: return 2 * FLOAT_EDGES + 2;
  default: return INTEGER_EDGES;
  }
}

static uint64_t float_edge(const ValueType *type, int index) {
  if (index == 2 * FLOAT_EDGES + 1) return type->bits == 32 ? 0xff812345 : 0xfff0000012345678;  // signalling
  double number = float_edges[index / 2 % FLOAT_EDGES] * (index % 2 ? -1 : 1);
  if (index == 2 * FLOAT_EDGES) number = (double)NAN;
  return type->bits == 32 ? float_bits((float)number) : double_bits(number);
}

// Edge value number `index` of a type. Packed types hold two different ones.
static uint64_t edge_value(const ValueType *type, int index) {
  const uint16_t *halves = type->kind == VALUE_F16 ? f16_edges : bf16_edges;
  switch (type->kind) {
  case VALUE_PREDICATE: return (uint64_t)index;
  case VALUE_F16:
  case VALUE_BF16: return halves[index] | (type->bits == 32 ? (uint64_t)halves[(index * 7 + 5) % HALF_EDGES] << 16 : 0);
  case VALUE_FLOAT: return float_edge(type, index);
  default: return low_bits(integer_edges[index], type->register_bits);
  }
}

static uint64_t random_edge(const ValueType *type, uint64_t *state) {
  return edge_value(type, (int)(random_bits(state) % (uint64_t)edge_count(type)));
}

// Any bits; of floats also numbers near one another, whose sums and comparisons are not trivial.
static uint64_t random_value(const ValueType *type, uint64_t *state) {
  uint64_t bits = random_bits(state);
  if (type->kind == VALUE_PREDICATE) return bits & 1;
  if (type->kind == VALUE_FLOAT && bits % 3) {
    double number = ldexp((double)(int64_t)random_bits(state), (int)(bits >> 32 & 31) - 75);
    return type->bits == 32 ? float_bits((float)number) : double_bits(number);
  }
  if (type->kind == VALUE_UNSIGNED && bits % 3 == 0) return random_bits(state) >> 32 & 63;  // amounts of shifts
  return low_bits(bits, type->register_bits);
}

// ---- the types of a test ----

typedef struct Signature {
  ValueType results[MAX_RESULTS], sources[MAX_SOURCES];
  int result_count, source_count;
} Signature;

static ValueType find_type(const char *name, size_t length) {
  size_t base = strcspn(name, "@: ");
  for (size_t i = 0; i < sizeof value_types / sizeof value_types[0]; i++) {
    ValueType type = value_types[i];
    if (strlen(type.name) != base || strncmp(type.name, name, base)) continue;
    if (base < length) {
      type.register_bits = atoi(name + base + 1);
      type.storage = type.register_bits == 64 ? "b64" : "b32";
    }
    return type;
  }
  cr_assert(false, "no type %.*s", (int)length, name);
  abort();
}

static Signature read_signature(const char *types) {
  Signature signature = {.result_count = 0};
  bool sources = false;
  for (const char *at = types; *at; at += strspn(at, " ")) {
    size_t length = strcspn(at, ": ");
    ValueType type = find_type(at, length);
    if (sources)
      signature.sources[signature.source_count++] = type;
    else
      signature.results[signature.result_count++] = type;
    at += length;
    if (*at == ':') sources = true, at++;
  }
  return signature;
}

// ---- samples ----

typedef struct Samples {
  Sample *items;
  int count, capacity;
} Samples;

static void add_sample(Samples *samples, Sample sample) {
  if (samples->count == samples->capacity) {
    samples->capacity = samples->capacity ? 2 * samples->capacity : 1024;
    samples->items = realloc(samples->items, (size_t)samples->capacity * sizeof(Sample));
    cr_assert(samples->items);
  }
  samples->items[samples->count++] = sample;
}

// Every pair of edge values of the first two sources, with random edges of the others; and random values.
static Samples make_samples(const char *text, const Signature *signature) {
  Samples samples = {NULL, 0, 0};
  const ValueType *types = signature->sources;
  uint64_t state = 0x9e3779b97f4a7c15ull;
  int count = signature->source_count, seconds = count > 1 ? edge_count(&types[1]) : 1;
  for (int first = 0; first < edge_count(&types[0]); first++)
    for (int second = 0; second < seconds; second++)
      for (int repeat = 0; repeat < (count > 2 ? SAMPLES_PER_PAIR : 1); repeat++) {
        Sample sample = {.text = text, .types = types};
        for (int s = 2; s < count; s++) sample.in[s] = random_edge(&types[s], &state);
        sample.in[0] = edge_value(&types[0], first);
        if (count > 1) sample.in[1] = edge_value(&types[1], second);
        add_sample(&samples, sample);
      }
  for (int i = 0; i < RANDOM_SAMPLES; i++) {
    Sample sample = {.text = text, .types = types};
    for (int s = 0; s < count; s++)
      sample.in[s] = random_bits(&state) % 4 ? random_value(&types[s], &state) : random_edge(&types[s], &state);
    add_sample(&samples, sample);
  }
  return samples;
}

static Samples make_all_samples(const char *text, const Signature *signature) {
  Samples samples = {NULL, 0, 0};
  for (uint64_t bits = 0; bits < 0x10000; bits++) add_sample(&samples, (Sample){text, signature->sources, {bits}});
  return samples;
}

// ---- the kernel: a thread per sample ----

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

static const char *const result_names[] = {"%d", "%d2"}, *const source_names[] = {"%a", "%b", "%c", "%e"};

static void append_load(Text *text, const ValueType *type, const char *name, int offset) {
  if (type->kind == VALUE_PREDICATE)
    append(text, "ld.global.u32 %%t, [%%in+%d];\nsetp.ne.u32 %s, %%t, 0;\n", offset, name);
  else
    append(text, "ld.global.b%d %s, [%%in+%d];\n", type->register_bits, name, offset);
}

static void append_untouched(Text *text, const ValueType *type, const char *name) {
  if (type->kind == VALUE_PREDICATE)
    append(text, "and.b32 %%t, %%i, 2;\nsetp.ne.u32 %s, %%t, 0;\n", name);
  else
    append(text, "mov.b%d %s, 0x%llx;\n", type->register_bits, name,
           (unsigned long long)low_bits(UNTOUCHED, type->register_bits));
}

static void append_store(Text *text, const ValueType *type, const char *name, int offset) {
  if (type->kind == VALUE_PREDICATE)
    append(text, "selp.u32 %%t, 1, 0, %s;\nst.global.u32 [%%out+%d], %%t;\n", name, offset);
  else
    append(text, "st.global.b%d [%%out+%d], %s;\n", type->register_bits, offset, name);
}

// The instruction, or several on lines of their own, each with the guard in front.
static void append_instruction(Text *text, const InstructionTest *test, const Signature *signature, const char *guard) {
  for (const char *line = test->text; *line;) {
    size_t length = strcspn(line, "\n");
    append(text, "%s%.*s", guard, (int)length, line);
    line += length;
    if (*line) append(text, "%c", *line++);
  }
  if (!strchr(test->text, '%')) {
    append(text, " %%d");
    for (int s = 0; s < signature->source_count; s++) append(text, ", %s", source_names[s]);
  }
  append(text, ";\n");
}

// A thread reads its sources, executes the instruction, and stores the results. With `guarded`, odd threads execute it.
static void make_kernel(Text *text, const InstructionTest *test, const Signature *signature, bool guarded) {
  append(text, ".version 9.0\n.target sm_90a\n.address_size 64\n"
               ".visible .entry test(.param .u64 in, .param .u64 out) {\n"
               ".reg .pred %%odd;\n.reg .b32 %%t, %%i, %%n;\n.reg .b64 %%in, %%out, %%w;\n");
  for (int r = 0; r < signature->result_count; r++)
    append(text, ".reg .%s %s;\n", signature->results[r].storage, result_names[r]);
  for (int s = 0; s < signature->source_count; s++)
    append(text, ".reg .%s %s;\n", signature->sources[s].storage, source_names[s]);
  append(text,
         "mov.u32 %%i, %%tid.x;\nmov.u32 %%n, %%ctaid.x;\nmad.lo.u32 %%n, %%n, %d, %%i;\n"
         "ld.param.u64 %%in, [in];\nmul.wide.u32 %%w, %%n, %d;\nadd.u64 %%in, %%in, %%w;\n"
         "ld.param.u64 %%out, [out];\nmul.wide.u32 %%w, %%n, %d;\nadd.u64 %%out, %%out, %%w;\n",
         BLOCK, 8 * MAX_SOURCES, 8 * MAX_RESULTS);
  for (int s = 0; s < signature->source_count; s++) append_load(text, &signature->sources[s], source_names[s], 8 * s);
  for (int r = 0; r < signature->result_count; r++) append_untouched(text, &signature->results[r], result_names[r]);
  append(text, "and.b32 %%t, %%i, 1;\nsetp.ne.u32 %%odd, %%t, 0;\n");
  append_instruction(text, test, signature, guarded ? "@%odd " : "");
  for (int r = 0; r < signature->result_count; r++) append_store(text, &signature->results[r], result_names[r], 8 * r);
  append(text, "ret;\n}\n");
}

static void launch(const InstructionTest *test, const Text *text, const Samples *samples, uint64_t *results) {
  EmulatorError error = {0};
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  cr_assert(emulator);
  EmulatorModule *module = emulator_load(emulator, text->text, text->used, &error);
  cr_assert(module, "%s: line %d: %s\n%s", test->text, error.line, error.message, text->text);
  unsigned blocks = ((unsigned)samples->count + BLOCK - 1) / BLOCK;
  size_t threads = (size_t)blocks * BLOCK, in_size = threads * 8 * MAX_SOURCES, out_size = threads * 8 * MAX_RESULTS;
  uint64_t in = emulator_alloc(emulator, in_size), out = emulator_alloc(emulator, out_size);
  emulator_fill(emulator, in, 0, in_size);
  emulator_fill(emulator, out, 0, out_size);
  for (int i = 0; i < samples->count; i++)
    emulator_write(emulator, in + (uint64_t)i * 8 * MAX_SOURCES, samples->items[i].in, 8 * MAX_SOURCES);
  const void *const arguments[] = {&in, &out};
  EmulatorLaunch launch = {
      .kernel = "test", .grid = {blocks, 1, 1}, .block = {BLOCK, 1, 1}, .arguments = arguments, .argument_count = 2};
  EmulatorStatus status = emulator_launch(emulator, module, &launch, &error);
  cr_assert(status == EMULATOR_OK, "%s: %s", test->text, error.message);
  emulator_read(emulator, results, out, (size_t)samples->count * 8 * MAX_RESULTS);
  emulator_close(emulator);
}

// ---- the check ----

static bool is_nan_value(const ValueType *type, uint64_t bits) {
  return type->bits == 32 ? isnan(float_of(bits)) : isnan(double_of(bits));
}

// Floats of a format in the order of their values, so that neighbours differ by one.
static int64_t ordered(uint64_t bits, int width) {
  int64_t magnitude = (int64_t)(bits & ((1ull << (width - 1)) - 1));
  return bits >> (width - 1) & 1 ? -magnitude : magnitude;
}

static bool close_enough(const ValueType *type, uint64_t got, uint64_t expected, int ulps) {
  if (got == expected) return true;
  // f64 NaNs keep a payload that PTX does not specify.
  if (type->kind == VALUE_FLOAT && type->bits == 64 && is_nan_value(type, got)) return is_nan_value(type, expected);
  if (!ulps || (type->kind == VALUE_FLOAT && is_nan_value(type, got))) return false;
  int width = type->kind == VALUE_F16 || type->kind == VALUE_BF16 ? 16 : type->bits;
  for (int shift = 0; shift < type->bits; shift += width) {
    int64_t distance =
        ordered(low_bits(got >> shift, width), width) - ordered(low_bits(expected >> shift, width), width);
    if (distance < -ulps || distance > ulps) return false;
  }
  return true;
}

// Fails on the first sample whose result is wrong.
static void check(const InstructionTest *test, const Signature *signature, const Samples *samples,
                  const uint64_t *results, bool guarded) {
  for (int i = 0; i < samples->count; i++) {
    const Sample *sample = &samples->items[i];
    uint64_t expected[MAX_RESULTS] = {0};
    test->expect(sample, expected);
    for (int r = 0; r < signature->result_count; r++) {
      const ValueType *type = &signature->results[r];
      uint64_t got = results[i * MAX_RESULTS + r], want = register_bits(type, expected[r]);
      bool skipped = guarded && i % 2 == 0;
      if (skipped)
        want = type->kind == VALUE_PREDICATE ? (uint64_t)i >> 1 & 1 : low_bits(UNTOUCHED, type->register_bits);
      bool right = skipped ? got == want : close_enough(type, got, want, test->ulps);
      cr_expect(right, "%s (%s)%s: sources %#llx %#llx %#llx %#llx: result %d is %#llx, expected %#llx", test->text,
                test->types, skipped ? " turned off" : "", (unsigned long long)sample->in[0],
                (unsigned long long)sample->in[1], (unsigned long long)sample->in[2], (unsigned long long)sample->in[3],
                r, (unsigned long long)got, (unsigned long long)want);
      if (!right) return;
    }
  }
}

static void run_instruction_test(const InstructionTest *test, bool exhaustive) {
  Signature signature = read_signature(test->types);
  Samples samples = exhaustive ? make_all_samples(test->text, &signature) : make_samples(test->text, &signature);
  uint64_t *results = malloc((size_t)samples.count * sizeof(uint64_t) * MAX_RESULTS);
  cr_assert(results);
  for (int guarded = 0; guarded < 2; guarded++) {
    Text text = {.used = 0};
    make_kernel(&text, test, &signature, guarded);
    launch(test, &text, &samples, results);
    check(test, &signature, &samples, results, guarded);
  }
  free(results);
  free(samples.items);
}

void run_instruction_tests(const InstructionTest *tests, int count) {
  for (int i = 0; i < count; i++) run_instruction_test(&tests[i], false);
}

void run_exhaustive_tests(const InstructionTest *tests, int count) {
  for (int i = 0; i < count; i++) run_instruction_test(&tests[i], true);
}

// ---- instructions that must be refused ----

enum { REFUSED_LINE = 7 };

void run_refused_tests(const RefusedTest *tests, int count) {
  for (int i = 0; i < count; i++) {
    Text text = {.used = 0};
    append(&text,
           ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry test() {\n"
           ".reg .b16 %%h<8>; .reg .b32 %%r<8>; .reg .b64 %%rd<8>;\n"
           ".reg .f32 %%f<8>; .reg .f64 %%fd<8>; .reg .pred %%p<8>;\n%s;\nret;\n}\n",
           tests[i].text);
    EmulatorError error = {0};
    Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
    EmulatorModule *module = emulator_load(emulator, text.text, text.used, &error);
    bool accepted = module && emulator_check(module, NULL, &error);
    cr_expect(!accepted, "%s: should be refused", tests[i].text);
    cr_expect(accepted || error.line == REFUSED_LINE, "%s: line %d, expected %d", tests[i].text, error.line,
              REFUSED_LINE);
    cr_expect(accepted || strstr(error.message, tests[i].reason), "%s: \"%s\" does not say \"%s\"", tests[i].text,
              error.message, tests[i].reason);
    emulator_close(emulator);
  }
}
