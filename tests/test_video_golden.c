// The video instructions on the emulator, bit for bit as an H200 executed them: the kernels of golden/video_forms.h on
// its operands, and the results in golden/video.bin.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "golden/video_forms.h"

TestSuite(video_golden, .timeout = 120);

enum { MOST_FORMS = 4096, MOST_REPORTS = 3 };

typedef struct Forms {
  VideoForm forms[MOST_FORMS];
  int count;
  uint32_t operands[3 * MOST_FORMS * VIDEO_LANES], results[MOST_FORMS * VIDEO_LANES];
} Forms;

static void take_form(void *context, int number, const VideoForm *form) {
  Forms *forms = context;
  cr_assert(number < MOST_FORMS && number == forms->count);
  forms->forms[forms->count++] = *form;
}

// The forms, their operands, and the results that the H200 gave.
static const Forms *read_forms(void) {
  static Forms forms;
  if (forms.count) return &forms;
  video_forms(take_form, &forms);
  video_operands(forms.count, forms.operands);
  char path[4096];
  const char *root = getenv("HL_ROOT");
  snprintf(path, sizeof path, "%s/tests/golden/video.bin", root ? root : ".");
  FILE *file = fopen(path, "rb");
  cr_assert(file, "%s: cannot be read; HL_ROOT must be the repository's root", path);
  VideoRecord record;
  cr_assert_eq(fread(&record, sizeof record, 1, file), 1, "%s: ends too early", path);
  cr_assert(!memcmp(record.magic, "HLVIDE1", 8) && record.forms == (uint32_t)forms.count &&
                record.lanes == VIDEO_LANES &&
                record.input_hash == video_hash(forms.forms, forms.operands, forms.count),
            "%s: other forms or operands than it was recorded with", path);
  size_t results = (size_t)forms.count * VIDEO_LANES;
  cr_assert(fread(forms.results, sizeof *forms.results, results, file) == results && fgetc(file) == EOF,
            "%s: not as long as it should be", path);
  fclose(file);
  return &forms;
}

static void execute(const VideoForm *forms, int count, const uint32_t *operands, uint32_t *results) {
  static VideoText text;
  EmulatorError error = {0};
  video_kernel(&text, forms, count);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.threads = 1});
  EmulatorModule *module = emulator_load(emulator, text.text, (size_t)text.used, &error);
  cr_assert(module, "%s: line %d: %s", forms->text, error.line, error.message);
  size_t out_size = (size_t)count * VIDEO_LANES * sizeof *results, in_size = 3 * out_size;
  uint64_t in = emulator_alloc(emulator, in_size), out = emulator_alloc(emulator, out_size);
  emulator_write(emulator, in, operands, in_size);
  EmulatorLaunch launch = {.kernel = "video",
                           .grid = {1, 1, 1},
                           .block = {VIDEO_LANES, 1, 1},
                           .arguments = (const void *const[]){&in, &out},
                           .argument_count = 2};
  cr_assert_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%s: %s", forms->text, error.message);
  emulator_read(emulator, results, out, out_size);
  emulator_close(emulator);
}

static void check_form(const VideoForm *form, const uint32_t *operands, const uint32_t *results,
                       const uint32_t *recorded) {
  int wrong = 0;
  for (int lane = 0; lane < VIDEO_LANES; lane++, operands += 3) {
    if (results[lane] == recorded[lane] || wrong++ >= MOST_REPORTS) continue;
    cr_expect(false, "%s of %08x %08x %08x: got %08x, the H200 gave %08x", form->text, operands[0], operands[1],
              operands[2], results[lane], recorded[lane]);
  }
  cr_expect_eq(wrong, 0, "%s: %d of %d results are wrong", form->text, wrong, VIDEO_LANES);
}

// The forms of one instruction; there must be `count`.
static void check_forms(const char *opcode, int count) {
  const Forms *forms = read_forms();
  static uint32_t results[VIDEO_KERNEL_FORMS * VIDEO_LANES];
  int first = 0;
  size_t length = strlen(opcode);
  while (first < forms->count && strncmp(forms->forms[first].text, opcode, length)) first++;
  int end = first;
  while (end < forms->count && !strncmp(forms->forms[end].text, opcode, length)) end++;
  cr_assert_eq(end - first, count, "%s: %d forms", opcode, end - first);
  for (int i = first; i < end; i += VIDEO_KERNEL_FORMS) {
    int some = end - i < VIDEO_KERNEL_FORMS ? end - i : VIDEO_KERNEL_FORMS;
    execute(&forms->forms[i], some, &forms->operands[3 * i * VIDEO_LANES], results);
    for (int j = 0; j < some; j++)
      check_form(&forms->forms[i + j], &forms->operands[3 * (i + j) * VIDEO_LANES], &results[j * VIDEO_LANES],
                 &forms->results[(i + j) * VIDEO_LANES]);
  }
}

Test(video_golden, vadd) { check_forms("vadd.", 160); }
Test(video_golden, vsub) { check_forms("vsub.", 160); }
Test(video_golden, vabsdiff) { check_forms("vabsdiff.", 160); }
Test(video_golden, vmin) { check_forms("vmin.", 160); }
Test(video_golden, vmax) { check_forms("vmax.", 160); }
Test(video_golden, vshl) { check_forms("vshl.", 160); }
Test(video_golden, vshr) { check_forms("vshr.", 160); }
Test(video_golden, vset) { check_forms("vset.", 240); }
Test(video_golden, vmad) { check_forms("vmad.", 336); }

Test(video_golden, two_halves) {
  static const char *const opcodes[] = {"vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2"};
  for (int i = 0; i < 6; i++) check_forms(opcodes[i], 48);
  check_forms("vset2", 96);
}

Test(video_golden, four_bytes) {
  static const char *const opcodes[] = {"vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4"};
  for (int i = 0; i < 6; i++) check_forms(opcodes[i], 48);
  check_forms("vset4", 96);
}
