// The PTX front end on whole files: malformed ones give the line and the message that their first line announces; any
// damage to a file is survived; everything nvcc emits for tests/ptx/cuda parses.
//
// PTX_DIR is a folder of PTX made from tests/ptx/cuda; without it the test runs nvcc itself when there is one.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator/parse/ptx.h"
#include "support/ptx_files.h"

TestSuite(ptx_corpus);

// ---- by parts ----

// Parses the headers, then each body, the first or the last one first; NULL and *error when one is malformed.
static PtxModule *parse_by_parts(const char *text, size_t length, bool backwards, PtxError *error) {
  PtxModule *module = ptx_parse_headers(text, length, error);
  bool whole = module;
  int count = module ? module->function_count : 0;
  for (int i = 0; i < count && whole; i++) whole = ptx_parse_body(module, backwards ? count - 1 - i : i, error);
  if (whole) return module;
  ptx_free(module);
  return NULL;
}

// Whether both have the same functions, with as many of everything in them.
static bool alike(const PtxModule *a, const PtxModule *b) {
  bool same = a->function_count == b->function_count;
  for (int i = 0; i < a->function_count && same; i++) {
    const PtxFunction *f = &a->functions[i], *g = &b->functions[i];
    same = f->instruction_count == g->instruction_count && f->register_count == g->register_count &&
           f->label_count == g->label_count && f->variable_count == g->variable_count && f->line == g->line &&
           f->branch_targets_count == g->branch_targets_count && f->param_count == g->param_count;
    for (int n = 0; n < f->instruction_count && same; n++) {
      const PtxLocation *here = f->instructions[n].location, *there = g->instructions[n].location;
      same = !strcmp(f->instructions[n].opcode, g->instructions[n].opcode) &&
             f->instructions[n].line == g->instructions[n].line && !here == !there &&
             (!here || (here->line == there->line && !here->function == !there->function));
    }
  }
  return same;
}

// ---- the corpus of mistakes ----

// The first line says "// expect: line 7: undefined label".
static void expect_error(const char *path) {
  Text text = read_text(path);
  int line = 0, used = 0;
  cr_assert_eq(sscanf(text.bytes, "// expect: line %d: %n", &line, &used), 1, "%s has no expectation", path);
  cr_assert_gt(used, 0);
  char message[256] = "";
  snprintf(message, sizeof message, "%.*s", (int)strcspn(text.bytes + used, "\n"), text.bytes + used);
  cr_assert_gt(strlen(message), 3);

  PtxError error;
  PtxModule *module = ptx_parse(text.bytes, text.length, &error);
  cr_expect(!module, "%s is accepted", path);
  cr_expect_eq(error.line, line, "%s: line %d, not %d: %s", path, error.line, line, error.message);
  cr_expect(strstr(error.message, message), "%s: '%s' instead of '%s'", path, error.message, message);
  ptx_free(module);
  PtxError of_part;
  cr_expect(!parse_by_parts(text.bytes, text.length, false, &of_part), "%s is accepted by parts", path);
  bool open = !strcmp(of_part.message, "the function's '{' is not closed");  // the headers come first
  cr_expect(open || (of_part.line == error.line && !strcmp(of_part.message, error.message)),
            "%s, by parts: line %d: %s", path, of_part.line, of_part.message);
  free(text.bytes);
}

Test(ptx_corpus, every_malformed_file_gives_its_line_and_message) {
  cr_assert_geq(for_each_in_corpus("malformed", ".ptx", expect_error), 190);
}

// Parses a copy of exactly length bytes, so that a checker of memory sees a read behind it.
static void parse_copy(const char *bytes, size_t length, int lines) {
  char *copy = malloc(length ? length : 1);
  memcpy(copy, bytes, length);
  PtxError error, of_part;
  PtxModule *module = ptx_parse(copy, length, &error), *by_parts = parse_by_parts(copy, length, false, &of_part);
  free(copy);
  cr_assert_eq(!module, !by_parts, "line %d: %s", of_part.line, of_part.message);
  if (!module)
    cr_assert(error.line >= 1 && error.line <= lines && error.message[0], "line %d: %s", error.line, error.message);
  ptx_free(module);
  ptx_free(by_parts);
}

static void expect_damage_survived(const char *path) {
  static const char damage[] = {'\0', '{', '}', '(', '"', '.', '9', '<', '\n', (char)0x80, ',', '%'};
  Text text = read_text(path);
  int lines = 2;  // one more, for a damaged byte that becomes the end of a line
  for (size_t i = 0; i < text.length; i++) lines += text.bytes[i] == '\n';
  for (size_t i = 0; i < text.length; i++) {
    parse_copy(text.bytes, i, lines);
    char whole = text.bytes[i];
    text.bytes[i] = damage[i % sizeof damage];
    parse_copy(text.bytes, text.length, lines);
    text.bytes[i] = whole;
  }
  free(text.bytes);
}

Test(ptx_corpus, every_prefix_and_every_damaged_byte_is_survived, .timeout = 60) {
  cr_assert_geq(for_each_in_corpus("valid", ".ptx", expect_damage_survived), 9);
}

Test(ptx_corpus, takes_no_text_and_no_error_to_fill) {
  PtxError error;
  cr_expect(!ptx_parse(NULL, 0, &error));
  cr_expect_eq(error.line, 1);
  cr_expect(!ptx_parse("{", 1, NULL));
  ptx_free(NULL);
}

// ---- what nvcc emits ----

// Every instruction's opcode stands on its line of the text, and every location's file has a name.
static void expect_faithful(const char *path) {
  Text text = read_text(path);
  PtxError error;
  PtxModule *module = ptx_parse(text.bytes, text.length, &error);
  cr_assert(module, "%s:%d: %s", path, error.line, error.message);
  int instructions = 0;
  for (int i = 0; i < module->function_count; i++) {
    const PtxFunction *f = &module->functions[i];
    const char *at = text.bytes;
    int line = 1;
    for (int n = 0; n < f->instruction_count; n++, instructions++) {
      for (; line < f->instructions[n].line; line++) at = strchr(at, '\n') + 1;
      const char *found = strstr(at, f->instructions[n].opcode);
      cr_assert(found && found < at + strcspn(at, "\n"), "%s:%d: no %s", path, line, f->instructions[n].opcode);
      const PtxLocation *location = f->instructions[n].location;
      cr_assert(!location || module->files[location->file]);
    }
  }
  cr_expect_gt(instructions, 20, "%s: %d instructions", path, instructions);
  PtxModule *by_parts = parse_by_parts(text.bytes, text.length, true, &error);
  cr_expect(by_parts && alike(by_parts, module), "%s by parts: %s", path, by_parts ? "it differs" : error.message);
  ptx_free(by_parts);
  ptx_free(module);
  free(text.bytes);
}

static char compiled[] = "/tmp/hopper-ladder-ptx-XXXXXX";

static void compile(const char *path) {
  char command[1600];
  snprintf(command, sizeof command,
           "nvcc -gencode arch=compute_90a,code=compute_90a -O3 -lineinfo -ptx '%s' -o '%s/'$(basename '%s' .cu).ptx",
           path, compiled, path);
  cr_assert_eq(system(command), 0, "nvcc cannot compile %s", path);
}

static void remove_file(const char *path) { cr_expect_eq(unlink(path), 0); }

static void expect_opcode_somewhere(const char *folder, const char *name, const char *opcode, const char *modifier) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
  Text text = read_text(path);
  PtxModule *module = ptx_parse(text.bytes, text.length, NULL);
  cr_assert(module);
  bool found = false;
  for (int i = 0; i < module->function_count; i++)
    for (int n = 0; n < module->functions[i].instruction_count; n++) {
      const PtxInstruction *instruction = &module->functions[i].instructions[n];
      found |= strcmp(instruction->opcode, opcode) == 0 && (!modifier || ptx_has(instruction, modifier));
    }
  cr_expect(found, "%s has no %s", path, opcode);
  ptx_free(module);
  free(text.bytes);
}

// Everything in the folder parses, and the files hold what they were written for.
static void expect_compiler_output(const char *folder) {
  cr_expect_geq(for_each_file(folder, ".ptx", expect_faithful), 5);
  expect_opcode_somewhere(folder, "calls", "call", NULL);
  expect_opcode_somewhere(folder, "control", "brx", "idx");
  expect_opcode_somewhere(folder, "scalar", "fma", "f16x2");
  expect_opcode_somewhere(folder, "tensor", "wgmma", "mma_async");
  expect_opcode_somewhere(folder, "tensor", "wmma", "m16n16k16");
  expect_opcode_somewhere(folder, "tensor", "cp", "multicast::cluster");
  expect_opcode_somewhere(folder, "data", "ld", "shared");
}

Test(ptx_corpus, what_nvcc_emits_parses, .timeout = 300) {
  const char *given = getenv("PTX_DIR");
  if (given) {
    expect_compiler_output(given);
    return;
  }
  if (system("command -v nvcc >/dev/null 2>&1") != 0) cr_skip_test("neither PTX_DIR nor nvcc");
  cr_assert(mkdtemp(compiled));
  cr_assert_geq(for_each_in_corpus("cuda", ".cu", compile), 5);
  expect_compiler_output(compiled);
  for_each_file(compiled, ".ptx", remove_file);
  cr_expect_eq(rmdir(compiled), 0);
}
