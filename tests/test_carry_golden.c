// The extended-precision instructions on the emulator, bit for bit as an H100 executed them: the kernels of
// golden/carry_forms.h on its operands, and the results in golden/carry.bin.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "golden/carry_forms.h"

enum { LANES = CARRY_FORMS * CARRY_LANES, MOST_REPORTS = 3 };

static uint64_t operands[LANES * CARRY_OPERANDS], results[LANES * CARRY_WORDS], recorded[LANES * CARRY_WORDS];

static void read_recorded(void) {
  char path[4096];
  const char *root = getenv("HL_ROOT");
  snprintf(path, sizeof path, "%s/tests/golden/carry.bin", root ? root : ".");
  FILE *file = fopen(path, "rb");
  cr_assert(file, "%s: cannot be read; HL_ROOT must be the repository's root", path);
  CarryRecord record;
  cr_assert_eq(fread(&record, sizeof record, 1, file), 1, "%s: ends too early", path);
  cr_assert(!memcmp(record.magic, "HLCARR1", 8) && record.forms == CARRY_FORMS && record.lanes == CARRY_LANES &&
                record.input_hash == carry_hash(operands),
            "%s: other forms or operands than it was recorded with", path);
  cr_assert(fread(recorded, sizeof recorded, 1, file) == 1 && fgetc(file) == EOF, "%s: not as long as it should be",
            path);
  fclose(file);
}

static void execute(int first) {
  static CarryText text;
  EmulatorError error = {0};
  carry_kernel(&text, first, CARRY_KERNEL_FORMS);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.threads = 1});
  EmulatorModule *module = emulator_load(emulator, text.text, (size_t)text.used, &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  const size_t lanes = (size_t)CARRY_KERNEL_FORMS * CARRY_LANES, at = (size_t)first * CARRY_LANES;
  const size_t in_size = lanes * CARRY_OPERANDS * 8, out_size = lanes * CARRY_WORDS * 8;
  uint64_t in = emulator_alloc(emulator, in_size), out = emulator_alloc(emulator, out_size);
  emulator_write(emulator, in, operands + at * CARRY_OPERANDS, in_size);
  emulator_fill(emulator, out, 0, out_size);
  EmulatorLaunch launch = {.kernel = "carry",
                           .grid = {1, 1, 1},
                           .block = {CARRY_LANES, 1, 1},
                           .arguments = (const void *const[]){&in, &out},
                           .argument_count = 2};
  cr_assert_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%s", error.message);
  emulator_read(emulator, results + at * CARRY_WORDS, out, out_size);
  emulator_close(emulator);
}

static void check_form(int number) {
  static const char *const words[] = {"first result", "second result", "flag"};
  const CarryForm form = carry_form(number);
  int wrong = 0;
  for (int i = number * CARRY_LANES * CARRY_WORDS; i < (number + 1) * CARRY_LANES * CARRY_WORDS; i++) {
    if (results[i] == recorded[i] || wrong++ >= MOST_REPORTS) continue;
    cr_expect(false, "%s.%s, then %s.%s: lane %d, %s: got %llx, the H100 gave %llx", form.producer, form.type,
              form.consumer, form.type, i / CARRY_WORDS % CARRY_LANES, words[i % CARRY_WORDS],
              (unsigned long long)results[i], (unsigned long long)recorded[i]);
  }
  cr_expect_eq(wrong, 0, "%s.%s, then %s.%s: %d of %d words are wrong", form.producer, form.type, form.consumer,
               form.type, wrong, CARRY_LANES * CARRY_WORDS);
}

Test(carry_golden, every_producer_and_consumer) {
  carry_operands(operands);
  read_recorded();
  for (int i = 0; i < CARRY_FORMS; i += CARRY_KERNEL_FORMS) execute(i);
  for (int i = 0; i < CARRY_FORMS; i++) check_form(i);
}
