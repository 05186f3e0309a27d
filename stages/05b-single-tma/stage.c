// Stage 05b's program: TMA loads boxes at every kind of place, and each byte is checked; --explain shows one load.
#include <limits.h>
#include <stdlib.h>

#include "parts.h"

// ---- report ----

static void report_tensor(const Session *session) {
  fprintf(session->out,
          "problem   boxes of a tensor of fp16, %d matrices of %d rows of %d columns, %d bytes from row to row; seed "
          "%llu\n",
          MATRICES, ROWS, COLUMNS, PITCH, (unsigned long long)session->options.seed);
}

static bool is_right(const Comparison *result) {
  return result->compared && !result->wrong && result->asked && !result->wrong_looks;
}

// Where the wrong chunks are says what is wrong.
static void print_classes(FILE *out, const Comparison *result) {
  static const char *const names[CLASSES] = {"as place() finds it", "as it lies: inside", "outside, zeros",
                                             "outside, NaN"};
  char text[32];
  fprintf(out, "          %-23s", "wrong, with swizzle");
  for (int s = 0; s < SWIZZLES; s++) fprintf(out, " %8s", swizzle_names[s]);
  for (int c = 0; c < CLASSES; c++) {
    fprintf(out, "\n          %-23s", names[c]);
    for (int s = 0; s < SWIZZLES; s++) fprintf(out, " %8s", format_count(text, result->wrong_of[c][s]));
  }
  fprintf(out, "\n");
}

static bool has_wrong(const Comparison *result, Class class) {
  uint64_t sum = 0;
  for (int s = 0; s < SWIZZLES; s++) sum += result->wrong_of[class][s];
  return sum > 0;
}

// What follows from the classes.
static const char *conclusion(const Comparison *result) {
  bool inside = has_wrong(result, CLASS_INSIDE);
  if (inside && result->padding)
    return "bytes between two rows arrive: how far is it from row to row, as the map has it?";
  if (inside && !result->first_matrix)
    return "matrix 0 is right and matrix 1 is wrong: how many are there, and how far is it to the next?";
  if (inside && !result->wrong_of[CLASS_INSIDE][0])
    return "without a swizzle it is right: which swizzle has the map, and where does the tile begin?";
  if (inside) return "boxes inside of the tensor are wrong: look at strides, box and coordinates";
  if (has_wrong(result, CLASS_ZERO))
    return "boxes inside of the tensor are right: where does the tensor end, as the map has it?";
  if (has_wrong(result, CLASS_NAN)) return "only NaN is wrong: what does the map say of elements outside?";
  return result->wrong_of[CLASS_PLACE][0] ? "the chunks lie right, and place() looks elsewhere: where does a row begin?"
                                          : "the chunks lie right, and place() looks elsewhere under a swizzle";
}

static void report_mismatches(FILE *out, const Comparison *result) {
  for (int i = 0; i < result->shown_count; i++) fprintf(out, "          %s\n", result->shown[i]);
}

static void print_looks(FILE *out, const Comparison *result) {
  if (result->wrong_looks)
    fprintf(out, "          an mbarrier alone: %d of %d waits are not as they should be\n", result->wrong_looks,
            result->asked);
  else
    fprintf(out, "          an mbarrier alone: all %d waits are as they should be\n", result->asked);
}

static void report_comparison(FILE *out, const Comparison *result) {
  char text[2][32];
  if (result->wrong)
    fprintf(out, "result    WRONG: %s of %s chunks of 16 bytes differ", format_count(text[0], result->wrong),
            format_count(text[1], result->compared));
  else
    fprintf(out, "result    %s: all %s chunks of 16 bytes are where the model has them",
            is_right(result) ? "right" : "WRONG", format_count(text[1], result->compared));
  fprintf(out, ", in %d loads\n", (int)result->loads);
  if (result->wrong) fprintf(out, "so        %s\n", conclusion(result));
  print_classes(out, result);
  print_looks(out, result);
}

// ---- what the program does ----

static int check_and_measure(const Session *session, DeviceAddress tensor) {
  FILE *out = session->out;
  Comparison result = {0};
  bool done = check_loads(session, tensor, &result) && check_phases(session, &result);
  if (!done && device_error(session->device)->code != DEVICE_FAULT) return session_fail_device(session);
  if (!done) {
    fprintf(out, "result    WRONG: the kernel was stopped\n");
    report_hazards(out, &session->options, session->device);
    return session_fail_device(session);
  }
  report_comparison(out, &result);
  int hazards = report_hazards(out, &session->options, session->device);
  report_mismatches(out, &result);
  report_counters(out, session->device);
  if (session->options.counters) report_line_counters(out, session->device);
  if (!is_right(&result) || hazards) return EXIT_WRONG;
  if (session->options.counters_csv) return session_record_counters(session, NULL);
  return session->options.repeat ? measure_loads(session) : EXIT_RIGHT;
}

// What the user wants explained: one load.
typedef struct Wish {
  Box box;
  Corner at;
  bool nan;
} Wish;

static int explain(const Session *session, DeviceAddress tensor, const Wish *wish) {
  static Chunk lying[MAX_CHUNKS], by_rows[MAX_CHUNKS];
  Comparison result = {0};
  TensorMapSpec spec = describe(tensor, &wish->box, wish->nan);
  bool done = load_boxes(session, tensor, &wish->box, wish->nan, &wish->at, 1, lying, by_rows) &&
              check_phases(session, &result);
  if (!done) {
    report_hazards(session->out, &session->options, session->device);
    return session_fail_device(session);
  }
  explain_load(session->out, &spec, &wish->box, &wish->at, lying);
  explain_phases(session->out, result.looks);
  fprintf(session->out, "\n");
  return report_hazards(session->out, &session->options, session->device) ? EXIT_WRONG : EXIT_RIGHT;
}

// ---- options ----

// Reads numbers with a separator between them, "64x8". False when the text is anything else.
static bool parse_numbers(const char *text, char separator, int count, int *numbers) {
  for (int i = 0; i < count; i++) {
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || number < -100000 || number > 100000 || *end != (i + 1 < count ? separator : '\0')) return false;
    numbers[i] = (int)number;
    text = end + 1;
  }
  return true;
}

static bool parse_swizzle(const char *text, int *swizzle) {
  for (int s = 0; s < SWIZZLES; s++)
    if (!strcmp(text, swizzle_names[s])) return *swizzle = swizzle_widths[s], true;
  return false;
}

// Why a box cannot be loaded; NULL when it can.
static const char *box_fault(const Box *box) {
  if (box->columns < 1 || box->columns > 256 || box->rows < 1 || box->rows > 256)
    return "a box has 1 to 256 elements in each dimension";
  if (box->columns % IN_CHUNK) return "a row of a box is a multiple of 16 bytes: 8 columns";
  if (box->swizzle && box->columns * ELEMENT != box->swizzle)
    return "here a box is as wide as its swizzle: 16 columns for 32B, 32 for 64B, 64 for 128B";
  if (box_bytes(box) > MAX_TILE) return "the tile has 32 KiB";
  return NULL;
}

// Reads the options of --explain. False after one line of error.
static bool parse_wish(const Session *session, Wish *wish) {
  const char *box = session_option(session, "box"), *swizzle = session_option(session, "swizzle");
  const char *at = session_option(session, "at"), *fill = session_option(session, "fill");
  int size[2] = {64, 8}, corner[3] = {0, 0, 0};
  *wish = (Wish){.box.swizzle = 128};
  if (box && !parse_numbers(box, 'x', 2, size))
    return session_fail(session, EXIT_USAGE, "--box=%.40s: columns and rows are wanted: --box=64x8", box), false;
  if (swizzle && !parse_swizzle(swizzle, &wish->box.swizzle))
    return session_fail(session, EXIT_USAGE, "--swizzle=%.40s: one of none|32B|64B|128B is allowed", swizzle), false;
  if (at && !parse_numbers(at, ',', 3, corner))
    return session_fail(session, EXIT_USAGE, "--at=%.40s: column, row and matrix are wanted: --at=64,16,0", at), false;
  if (fill && strcmp(fill, "zero") && strcmp(fill, "nan"))
    return session_fail(session, EXIT_USAGE, "--fill=%.40s: one of zero|nan is allowed", fill), false;
  wish->box.rows = size[1];
  wish->box.columns = box || !wish->box.swizzle ? size[0] : wish->box.swizzle / ELEMENT;
  wish->at = (Corner){corner[0], corner[1], corner[2]};
  wish->nan = fill && !strcmp(fill, "nan");
  const char *fault = box_fault(&wish->box);
  if (fault) return session_fail(session, EXIT_USAGE, "--box=%dx%d: %s", wish->box.columns, size[1], fault), false;
  return true;
}

static const StageOption options[] = {
    {"explain", NULL, "explain one load: the tensor map, the box, the bytes as they lie, the mbarrier"},
    {"box", "COLUMNSxROWS", "of this box (default: as wide as the swizzle, 8 rows)"},
    {"swizzle", "none|32B|64B|128B", "under this swizzle (default: 128B)"},
    {"at", "X,Y,Z", "from this column, row and matrix on (default: 0,0,0)"},
    {"fill", "zero|nan", "with this outside of the tensor (default: zero)"},
    {0},
};

static bool is_explaining(const Session *session) {
  for (const StageOption *option = options; option->name; option++)
    if (session_option(session, option->name)) return true;
  return false;
}

static int run(Session *session) {
  Device *device = session->device;
  static uint16_t memory[MATRICES * ROWS * PITCH / ELEMENT];
  Wish wish;
  if (options_given(&session->options, OPTION_INPUT))
    return session_fail(session, EXIT_USAGE, "--input: here the tensor's elements are numbers that show their place");
  if (is_explaining(session) &&
      (options_given(&session->options, OPTION_CSV) || options_given(&session->options, OPTION_REPEAT)))
    return session_fail(session, EXIT_USAGE, "--explain measures nothing; --csv and --repeat are for a run without it");
  if (is_explaining(session) && !parse_wish(session, &wish)) return EXIT_USAGE;
  report_head(session->out, session->stage, device_info(device));
  report_tensor(session);
  model_tensor(memory);
  DeviceAddress tensor = device_alloc(device, sizeof memory);
  if (!device_upload(device, tensor, memory, sizeof memory)) return session_fail_device(session);
  return is_explaining(session) ? explain(session, tensor, &wish) : check_and_measure(session, tensor);
}

const Stage stage = {
    .name = "05b-single-tma",
    .title = "one TMA load, taken apart: the tensor map, the bytes as they lie, the phases of an mbarrier",
    .run = run,
    .options = options,
};
