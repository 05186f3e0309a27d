// Products and sums that become one fused multiply-add (scalar/contraction.h): the patterns of
// golden/contraction_forms.h compute what their meaning says, and what a GPU computed.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "golden/contraction_forms.h"

enum { OPERANDS = CONTRACTION_LANES * CONTRACTION_OPERANDS, WORDS = CONTRACTION_LANES * CONTRACTION_WORDS };

static ContractionForm forms[CONTRACTION_MOST_FORMS];

// Runs a form's kernel with this body on its operands.
static void execute(int number, const char *body, uint64_t results[WORDS]) {
  static ContractionText text;
  uint64_t operands[OPERANDS];
  EmulatorError error = {0};
  contraction_operands(&forms[number], number, operands);
  contraction_kernel(&text, &forms[number], body);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.threads = 1, .hazards = true});
  EmulatorModule *module = emulator_load(emulator, text.text, (size_t)text.used, &error);
  cr_assert(module, "line %d: %s\n%s", error.line, error.message, text.text);
  uint64_t in = emulator_alloc(emulator, sizeof operands), out = emulator_alloc(emulator, WORDS * sizeof *results);
  emulator_write(emulator, in, operands, sizeof operands);
  emulator_fill(emulator, out, 0, WORDS * sizeof *results);
  EmulatorLaunch launch = {.kernel = "contraction",
                           .grid = {1, 1, 1},
                           .block = {CONTRACTION_LANES, 1, 1},
                           .arguments = (const void *const[]){&in, &out},
                           .argument_count = 2};
  cr_assert_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%s\n%s", error.message, text.text);
  emulator_read(emulator, results, out, WORDS * sizeof *results);
  emulator_close(emulator);
}

static void expect_results(int number, const uint64_t *got, const uint64_t *expected, const char *whose) {
  for (int i = 0; i < WORDS; i++) {
    if (got[i] == expected[i]) continue;
    cr_expect(false, "%s of %s: lane %d, %c: got %llx, %s %llx", forms[number].pattern->text, forms[number].type,
              i / CONTRACTION_WORDS, "yz"[i % CONTRACTION_WORDS], (unsigned long long)got[i], whose,
              (unsigned long long)expected[i]);
    return;
  }
}

Test(contraction, every_pattern_means_what_ptxas_makes_of_it) {
  int count = contraction_forms(forms);
  for (int i = 0; i < count; i++) {
    uint64_t results[WORDS], meant[WORDS];
    execute(i, forms[i].pattern->text, results);
    execute(i, forms[i].pattern->meaning, meant);
    expect_results(i, results, meant, "it means");
  }
}

// The pattern with each mul, add and sub rounded by itself.
static void round_all(const char *text, char *rounded) {
  for (; *text; *rounded++ = *text++) {
    if (strncmp(text, "mul.", 4) && strncmp(text, "add.", 4) && strncmp(text, "sub.", 4)) continue;
    if (!strncmp(text + 3, ".rn", 3) || !strncmp(text + 3, ".rz", 3) || !strncmp(text + 4, "u32", 3)) continue;
    memcpy(rounded, text, 3);
    memcpy(rounded + 3, ".rn", 3);
    rounded += 6, text += 3;
  }
  *rounded = 0;
}

// A meaning that has a fused multiply-add is another one than the pattern's without contraction.
Test(contraction, the_operands_tell_one_rounding_from_two) {
  int count = contraction_forms(forms);
  for (int i = 0; i < count; i++) {
    char body[1024];
    uint64_t meant[WORDS], rounded[WORDS];
    round_all(forms[i].pattern->text, body);
    execute(i, forms[i].pattern->meaning, meant);
    execute(i, body, rounded);
    bool fused = strstr(forms[i].pattern->meaning, "fma") && !strstr(forms[i].pattern->text, "fma");
    cr_expect_eq(fused, memcmp(meant, rounded, sizeof meant) != 0, "%s of %s", forms[i].pattern->text, forms[i].type);
  }
}

// ---- as a GPU computes them ----

static FILE *open_recorded(int count) {
  char path[4096];
  const char *root = getenv("HL_ROOT");
  snprintf(path, sizeof path, "%s/tests/golden/contraction.bin", root ? root : ".");
  FILE *file = fopen(path, "rb");
  cr_assert(file, "%s: cannot be read; HL_ROOT must be the repository's root", path);
  ContractionRecord record;
  cr_assert_eq(fread(&record, sizeof record, 1, file), 1, "%s: ends too early", path);
  cr_assert(!memcmp(record.magic, "HLCONT1", 8) && record.forms == (uint32_t)count &&
                record.lanes == CONTRACTION_LANES && record.input_hash == contraction_hash(forms, count),
            "%s: other forms or operands than it was recorded with", path);
  return file;
}

Test(contraction, every_pattern_is_what_a_gpu_computes) {
  int count = contraction_forms(forms);
  FILE *file = open_recorded(count);
  for (int i = 0; i < count; i++) {
    uint64_t results[WORDS], recorded[WORDS];
    cr_assert_eq(fread(recorded, sizeof recorded, 1, file), 1, "the file ends too early");
    execute(i, forms[i].pattern->text, results);
    expect_results(i, results, recorded, "the GPU gave");
  }
  cr_expect_eq(fgetc(file), EOF);
  fclose(file);
}
