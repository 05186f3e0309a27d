// Modules: what the emulator says of their kernels and variables, several at a time, and when it refuses what.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/program.h"
#include "support/scratch.h"

TestSuite(modules, .timeout = 60);

#define HEADER ".version 8.0\n.target sm_90a\n.address_size 64\n"

// `add` adds its third parameter to a variable and returns the sum where its first points to.
static const char variables[] =
    HEADER ".visible .global .align 4 .u32 counter = 5;\n"
           ".weak .global .align 8 .b64 pointer = counter;\n"
           ".extern .global .align 4 .u32 later;\n"
           ".visible .const .align 4 .f32 scale[3] = {0f3F800000, 0f40000000, 0f40400000};\n"
           ".extern .shared .align 16 .b8 tile[];\n"
           ".global .align 4 .u32 later = 9;\n"
           ".visible .entry add(.param .u64 out, .param .align 4 .b8 pair[12], .param .u16 more) {\n"
           "  .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .b16 %h;\n"
           "  ld.param.u64 %rd0, [out]; ld.param.u16 %h, [more]; cvt.u32.u16 %r0, %h;\n"
           "  ld.global.u32 %r1, [counter]; add.u32 %r1, %r1, %r0; st.global.u32 [counter], %r1;\n"
           "  st.global.u32 [%rd0], %r1; ret;\n"
           "}\n"
           ".entry nothing() { ret; }\n";

static Emulator *open_emulator(void) {
  return emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1, .step_limit = 1 << 20});
}

static EmulatorModule *load(Emulator *emulator, const char *text) {
  EmulatorError error = {0};
  EmulatorModule *module = emulator_load(emulator, text, strlen(text), &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  return module;
}

static EmulatorStatus launch(Emulator *emulator, EmulatorModule *module, const char *kernel, EmulatorError *error) {
  EmulatorLaunch request = {.kernel = kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  return emulator_launch(emulator, module, &request, error);
}

Test(modules, kernels_and_their_parameters) {
  Emulator *emulator = open_emulator();
  EmulatorModule *module = load(emulator, variables);
  cr_expect_str_eq(emulator_kernel_name(module, 0), "add");
  cr_expect_str_eq(emulator_kernel_name(module, 1), "nothing");
  cr_expect_null(emulator_kernel_name(module, 2));
  cr_expect_eq(emulator_parameter_count(module, "add"), 3);
  cr_expect_eq(emulator_parameter_count(module, "nothing"), 0);
  cr_expect_eq(emulator_parameter_count(module, "counter"), -1);
  static const size_t sizes[] = {8, 12, 2};
  for (int i = 0; i < 3; i++) cr_expect_eq(emulator_parameter_size(module, "add", i), sizes[i], "parameter %d", i);
  cr_expect_eq(emulator_parameter_size(module, "add", 3), 0);
  cr_expect_eq(emulator_parameter_size(module, "add", -1), 0);
  cr_expect_eq(emulator_parameter_size(module, "none", 0), 0);
  emulator_close(emulator);
}

Test(modules, variables_have_addresses) {
  Emulator *emulator = open_emulator();
  EmulatorModule *module = load(emulator, variables);
  uint64_t address = 0, counter = 0, pointer = 0;
  size_t size = 0;
  float scale[3];
  uint32_t later = 0;
  cr_assert(emulator_symbol(module, "scale", &address, &size));
  cr_expect_eq(size, sizeof scale);
  cr_assert(emulator_read(emulator, scale, address, sizeof scale));
  cr_expect_eq(scale[2], 3.0f);
  cr_expect(emulator_write(emulator, address, scale, sizeof scale), "cudaMemcpyToSymbol writes constants too");
  cr_assert(emulator_symbol(module, "counter", &counter, NULL) && emulator_symbol(module, "pointer", &address, &size));
  cr_expect_eq(size, 8);
  cr_assert(emulator_read(emulator, &pointer, address, 8));
  cr_expect_eq(pointer, counter);
  cr_assert(emulator_symbol(module, "later", &address, NULL) && emulator_read(emulator, &later, address, 4));
  cr_expect_eq(later, 9, "the definition behind an .extern declaration counts");
  cr_expect_not(emulator_free(emulator, counter), "a variable is no allocation");
  static const char *const others[] = {"tile", "add", "none", ""};
  for (int i = 0; i < 4; i++) cr_expect_not(emulator_symbol(module, others[i], &address, &size), "%s", others[i]);
  emulator_close(emulator);
}

static uint32_t add(Emulator *emulator, EmulatorModule *module, uint64_t out, uint16_t more) {
  EmulatorError error;
  uint32_t sum = 0;
  char pair[12] = {0};
  EmulatorLaunch request = {.kernel = "add",
                            .grid = {1, 1, 1},
                            .block = {1, 1, 1},
                            .arguments = (const void *[]){&out, pair, &more},
                            .argument_count = 3};
  cr_assert_eq(emulator_launch(emulator, module, &request, &error), EMULATOR_OK, "%s", error.message);
  cr_assert(emulator_read(emulator, &sum, out, 4));
  return sum;
}

Test(modules, each_has_its_own_variables) {
  Emulator *emulator = open_emulator();
  EmulatorModule *one = load(emulator, variables), *two = load(emulator, variables);
  uint64_t first, second, out = emulator_alloc(emulator, 4);
  cr_assert(emulator_symbol(one, "counter", &first, NULL) && emulator_symbol(two, "counter", &second, NULL));
  cr_expect_neq(first, second);
  cr_expect_eq(add(emulator, one, out, 10), 15);
  cr_expect_eq(add(emulator, two, out, 100), 105);
  cr_expect_eq(add(emulator, one, out, 1), 16);
  uint32_t value = 1000;
  cr_assert(emulator_write(emulator, second, &value, 4));
  cr_expect_eq(add(emulator, two, out, 1), 1001, "what the host has written into it, a kernel reads");
  emulator_close(emulator);
}

// Reports of an unloaded module's lines, and a use of its variables, still have names.
Test(modules, unloading_takes_the_variables_away) {
  static const char divided[] = HEADER ".file 1 \"some.cu\"\n.global .align 4 .u32 counter;\n"
                                       ".entry k() { .reg .b32 %r;\n.loc 1 7 1\nld.global.u32 %r, [counter]; ret; }\n";
  Emulator *emulator = open_emulator();
  EmulatorModule *kept = load(emulator, variables), *module = load(emulator, divided);
  EmulatorError error;
  uint64_t address, out = emulator_alloc(emulator, 4);
  uint32_t value;
  cr_assert(emulator_symbol(module, "counter", &address, NULL));
  cr_assert_eq(launch(emulator, module, "k", &error), EMULATOR_OK);
  emulator_unload(module);
  cr_expect_not(emulator_read(emulator, &value, address, 4));
  int count;
  const LineCounters *lines = emulator_line_counters(emulator, &count);
  cr_assert_eq(count, 1);
  cr_expect_str_eq(lines[0].file, "some.cu");
  cr_expect_eq(add(emulator, kept, out, 1), 6, "the others stay");
  emulator_unload(NULL);
  emulator_close(emulator);
}

// ---- what is refused, and when ----

// Line 7 of the text has an instruction that does not exist; `far` reaches it by a call.
static const char unknown[] = HEADER ".func frobnicate() {\n.reg .b32 %r;\n\nfrob.sync.b32 %r, %r;\nret; }\n"
                                     ".entry near() { ret; }\n"
                                     ".entry far() { call frobnicate; ret; }\n";

Test(modules, an_unknown_instruction_fails_when_its_kernel_is_launched) {
  Emulator *emulator = open_emulator();
  EmulatorModule *module = load(emulator, unknown);
  EmulatorError error = {0};
  cr_expect_eq(launch(emulator, module, "near", &error), EMULATOR_OK);
  for (int i = 0; i < 2; i++) {
    error = (EmulatorError){0};
    cr_expect_eq(launch(emulator, module, "far", &error), EMULATOR_INVALID);
    cr_expect_eq(error.line, 7);
    cr_expect_str_eq(error.message, "frob.sync.b32: unknown instruction");
  }
  cr_expect_eq(launch(emulator, module, "near", &error), EMULATOR_OK, "the module is as good as before");
  emulator_close(emulator);
}

Test(modules, can_be_checked_before_a_launch) {
  Emulator *emulator = open_emulator();
  EmulatorModule *module = load(emulator, unknown);
  EmulatorError error = {0};
  cr_expect(emulator_check(module, "near", &error));
  cr_expect_not(emulator_check(module, "far", &error));
  cr_expect_eq(error.line, 7);
  cr_expect_not(emulator_check(module, NULL, &error));
  cr_expect_str_eq(error.message, "frob.sync.b32: unknown instruction");
  cr_expect_not(emulator_check(module, "none", &error));
  cr_expect_str_eq(error.message, "the module has no kernel none");
  cr_expect(emulator_check(load(emulator, variables), NULL, &error));
  emulator_close(emulator);
}

Test(modules, a_text_that_is_malformed_is_not_loaded) {
  static const struct {
    const char *text, *reason;
    int line;
  } texts[] = {
      {HEADER ".entry k() { mov.u32 %r; }\n", "%r", 4},
      {HEADER ".entry k() {\nret\n}\n", "expected", 6},
      {HEADER ".extern .global .u32 elsewhere;\n.entry k() { ret; }\n", "elsewhere is defined nowhere", 4},
      {".version 8.0\n.target sm_100a\n.address_size 64\n.entry k() { ret; }\n", "an H100 runs PTX for sm_90a", 2},
  };
  Emulator *emulator = open_emulator();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    EmulatorError error = {0};
    cr_expect_not(emulator_load(emulator, texts[i].text, strlen(texts[i].text), &error), "%s", texts[i].text);
    cr_expect(strstr(error.message, texts[i].reason), "%s: %s", texts[i].text, error.message);
    cr_expect_eq(error.line, texts[i].line, "%s: line %d", texts[i].text, error.line);
  }
  emulator_close(emulator);
}

// ---- several texts ----

static EmulatorModule *link_all(Emulator *emulator, const char *const texts[], int count, EmulatorError *error) {
  EmulatorText all[4];
  for (int i = 0; i < count; i++) all[i] = (EmulatorText){texts[i], strlen(texts[i])};
  *error = (EmulatorError){0};
  return emulator_link(emulator, all, count, error);
}

static uint32_t number_at(const EmulatorModule *module, Emulator *emulator, const char *name) {
  uint64_t address = 0;
  uint32_t value = 0;
  size_t size = 0;
  cr_assert(emulator_symbol(module, name, &address, &size), "%s", name);
  cr_expect(emulator_read(emulator, &value, address, sizeof value));
  return value;
}

// Of .weak definitions the first counts, of .common ones the largest, and any other definition before these. A private
// name is each text's own, in initial values too.
static const char *const linked[] = {
    HEADER ".weak .global .u32 weak = 1;\n"
           ".weak .global .u32 both = 1;\n"
           ".common .global .u32 shared[1];\n"
           ".global .u32 own = 10;\n"
           ".extern .global .u64 other_pointer;\n"
           ".visible .global .u64 pointer = generic(own);\n"
           ".extern .func (.param .b32 r) called();\n"
           ".weak .func (.param .b32 r) weak_one() { st.param.b32 [r], 1; ret; }\n"
           ".entry sums() {\n"
           "  .reg .b32 %r<6>; .reg .b64 %rd<4>; .param .b32 r;\n"
           "  call (r), called; ld.param.b32 %r0, [r]; call (r), weak_one; ld.param.b32 %r1, [r];\n"
           "  ld.global.u64 %rd0, [pointer]; ld.u32 %r2, [%rd0];\n"
           "  ld.global.u64 %rd1, [other_pointer]; ld.u32 %r3, [%rd1];\n"
           "  mad.lo.u32 %r0, %r0, 1000, %r1; mad.lo.u32 %r2, %r2, 1000, %r3;\n"
           "  mad.lo.u32 %r0, %r0, 1000000, %r2; st.global.u32 [weak], %r0; ret;\n"
           "}\n",
    HEADER ".weak .global .u32 weak = 2;\n"
           ".visible .global .u32 both = 2;\n"
           ".common .global .u32 shared[3];\n"
           ".global .u32 own = 20;\n"
           ".visible .global .u64 other_pointer = generic(own);\n"
           ".func (.param .b32 r) meant() { st.param.b32 [r], 2; ret; }\n"
           ".visible .func (.param .b32 r) called();\n"
           ".alias called, meant;\n"
           ".weak .func (.param .b32 r) weak_one() { st.param.b32 [r], 5; ret; }\n",
};

Test(modules, texts_that_are_linked_share_their_names) {
  Emulator *emulator = open_emulator();
  EmulatorError error;
  EmulatorModule *module = link_all(emulator, linked, 2, &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  cr_expect_eq(number_at(module, emulator, "weak"), 1);
  cr_expect_eq(number_at(module, emulator, "both"), 2);
  size_t size = 0;
  cr_expect(emulator_symbol(module, "shared", NULL, &size));
  cr_expect_eq(size, 12);
  cr_expect_eq(launch(emulator, module, "sums", &error), EMULATOR_OK, "%s", error.message);
  cr_expect_eq(number_at(module, emulator, "weak"), 2001 * 1000000u + 10020);
  emulator_close(emulator);
}

Test(modules, texts_that_cannot_be_linked) {
  static const struct {
    const char *texts[2], *reason;
    int line;
  } cases[] = {
      {{HEADER ".visible .global .u32 x;\n", HEADER ".visible .global .u32 x;\n"}, "'x' is defined in two files", 9},
      {{HEADER ".entry k() { ret; }\n", HEADER ".entry k() { ret; }\n"}, "'k' is defined in two files", 9},
      {{HEADER ".visible .func f() { ret; }\n", HEADER ".visible .global .u32 f;\n"}, "'f' is defined in two", 9},
      {{HEADER ".visible .global .u32 x;\n", HEADER ".extern .global .u64 x;\n"}, "'x' is declared otherwise", 9},
      {{HEADER ".visible .const .u32 x;\n", HEADER ".extern .global .u32 x;\n"}, "'x' is declared otherwise", 9},
      {{HEADER ".visible .func x() { ret; }\n", HEADER ".extern .global .u32 x;\n"}, "'x' is declared otherwise", 9},
      {{HEADER ".global .u32 x;\n", HEADER ".extern .global .u32 x;\n"}, "x is defined nowhere", 9},
      {{HEADER ".entry k() { ret; }\n", ".version 8.0\n.target sm_100\n"}, "an H100 runs PTX for sm_90a", 7},
      {{HEADER ".file 1 \"a.cu\"\n", HEADER ".entry k() {\n.loc 1 1 1\nret; }\n"}, "file 1 is not declared", 10},
  };
  Emulator *emulator = open_emulator();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    EmulatorError error;
    cr_expect_not(link_all(emulator, cases[i].texts, 2, &error), "%zu", i);
    cr_expect(strstr(error.message, cases[i].reason), "%zu: %s", i, error.message);
    cr_expect_eq(error.line, cases[i].line, "%zu: line %d", i, error.line);
  }
  emulator_close(emulator);
}

// Each text numbers its files itself, and may be for another target.
Test(modules, linked_texts_keep_their_files_and_targets) {
  static const char *const texts[] = {
      HEADER ".entry first(.param .u64 p) { .reg .b64 %rd; .reg .b32 %r;\n.loc 1 5 1\n"
             "ld.param.u64 %rd, [p]; ld.global.u32 %r, [%rd]; ret; }\n.file 1 \"a.cu\"\n",
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry second(.param .u64 p) { .reg .b64 %rd; .reg .b32 %r;\n"
      ".loc 1 6 1\nld.param.u64 %rd, [p]; ld.global.u32 %r, [%rd]; ret; }\n.file 1 \"b.cu\"\n"
      ".entry third() { fence.proxy.async; ret; }\n"};
  Emulator *emulator = open_emulator();
  EmulatorError error;
  EmulatorModule *module = link_all(emulator, texts, 2, &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  uint64_t null = 0;
  const void *arguments[] = {&null};
  for (int i = 0; i < 2; i++) {
    EmulatorLaunch request = {.kernel = i ? "second" : "first",
                              .grid = {1, 1, 1},
                              .block = {1, 1, 1},
                              .arguments = arguments,
                              .argument_count = 1};
    emulator_clear_hazards(emulator);
    cr_expect_eq(emulator_launch(emulator, module, &request, &error), EMULATOR_FAULT);
    int count;
    const Hazard *hazards = emulator_hazards(emulator, &count);
    cr_assert_eq(count, 1);
    cr_expect_str_eq(hazards[0].here.file, i ? "b.cu" : "a.cu");
    cr_expect_eq(hazards[0].here.line, 5 + i);
  }
  cr_expect_eq(launch(emulator, module, "third", &error), EMULATOR_INVALID);
  cr_expect(strstr(error.message, "this module is for sm_80"), "%s", error.message);
  emulator_close(emulator);
}

// A kernel may leave a function's address in memory for another one.
Test(modules, functions_whose_address_another_kernel_took) {
  static const char text[] =
      HEADER ".global .u64 chosen;\n"
             ".global .u32 result;\n"
             ".func (.param .b32 r) seven() { st.param.b32 [r], 7; ret; }\n"
             ".entry choose() { .reg .b64 %rd; mov.u64 %rd, seven; st.global.u64 [chosen], %rd; ret; }\n"
             ".entry use() { .reg .b64 %rd; .reg .b32 %r; .param .b32 r;\n"
             "  p: .callprototype (.param .b32 _) _ ();\n"
             "  ld.global.u64 %rd, [chosen]; call (r), %rd, (), p; ld.param.b32 %r, [r];\n"
             "  st.global.u32 [result], %r; ret; }\n";
  Emulator *emulator = open_emulator();
  EmulatorModule *module = load(emulator, text);
  EmulatorError error = {0};
  cr_expect_eq(launch(emulator, module, "choose", &error), EMULATOR_OK, "%s", error.message);
  cr_expect_eq(launch(emulator, module, "use", &error), EMULATOR_OK, "%s", error.message);
  cr_expect_eq(number_at(module, emulator, "result"), 7);
  emulator_close(emulator);
}

// A kernel whose body is malformed does not disturb the others, and is not read again.
Test(modules, of_an_assembled_text_a_kernel_is_read_at_its_launch) {
  static const char text[] = HEADER ".entry near() { ret; }\n"
                                    ".entry wrong() { mov.u32 %r; ret; }\n"
                                    ".entry far() { call behind; ret; }\n"
                                    ".func behind() { .reg .b32 %r<2>; mov.b32 %r1, ; ret; }\n"
                                    ".entry last() { ret; }\n";
  static const struct {
    const char *kernel, *reason;
    int line;
  } launches[] = {
      {"near", NULL, 0},      {"wrong", "undefined register '%r'", 5},
      {"far", "expected", 7}, {"wrong", "undefined", 5},
      {"last", NULL, 0},      {"far", "expected", 7},
  };
  Emulator *emulator = open_emulator();
  EmulatorError error = {0};
  EmulatorModule *module = emulator_load_assembled(emulator, text, sizeof text - 1, &error);
  cr_assert(module, "%s", error.message);
  for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
    EmulatorStatus expected = launches[i].reason ? EMULATOR_INVALID : EMULATOR_OK;
    error = (EmulatorError){0};
    cr_expect_eq(launch(emulator, module, launches[i].kernel, &error), expected, "%zu: %s", i, error.message);
    cr_expect_eq(error.line, launches[i].line, "%zu: line %d", i, error.line);
    cr_expect(!launches[i].reason || strstr(error.message, launches[i].reason), "%zu: %s", i, error.message);
  }
  emulator_close(emulator);
  emulator = open_emulator();
  static const char open[] = HEADER ".entry k() { // }\n";
  cr_expect_not(emulator_load_assembled(emulator, open, sizeof open - 1, &error));
  cr_expect_eq(error.line, 4);
  emulator_close(emulator);
}

// ---- from C++ ----

// A program in C++ includes the header, and is linked with functions that are C.
Test(modules, cxx_programs_use_them, .init = scratch_enter, .fini = scratch_leave) {
  if (scratch_run("g++ --version") != 0) cr_skip_test("there is no g++");
  scratch_write("program.cc",
                "#include \"emulator/emulator.h\"\n"
                "int main() {\n"
                "  EmulatorOptions options{};\n"
                "  Emulator *emulator = emulator_open(&options);\n"
                "  uint64_t address = emulator_alloc(emulator, 8), value = 7;\n"
                "  bool done = emulator_write(emulator, address, &value, 8);\n"
                "  EmulatorTensorSpec spec{};\n  uint8_t map[EMULATOR_TENSOR_MAP_BYTES];\n  EmulatorError error{};\n"
                "  done = done && !emulator_tensor_map(&spec, map, &error);\n"
                "  emulator_close(emulator);\n"
                "  return done ? 0 : 1;\n}\n");
  cr_expect_eq(scratch_run("g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I\"$ROOT/common\" -c program.cc"), 0, "%s",
               scratch_output);
  cr_expect_eq(scratch_run("nm program.o | grep -c ' U emulator_[a-z_]*$'"), 0, "%s", scratch_output);
  cr_expect_str_eq(scratch_output, "5\n", "the names are those of C");
}
