// Stage 04's program: one wgmma in every form, checked bit for bit; on a GPU also how long it takes, one and many.
#include <errno.h>
#include <stdlib.h>

#include "parts.h"

// How far single products may be from fp64. It is far more than the tensor core needs, as the report says; the real
// check is that every bit is the model's.
static const double MAX_ERROR = 1e-2, MEAN_ERROR = 1e-3;

// ---- inputs ----

static DeviceAddress upload_new(Device *device, const void *from, size_t size) {
  DeviceAddress address = device_alloc(device, size);
  return device_upload(device, address, from, size) ? address : 0;
}

// A is the first 64 rows of an attention problem's Q, B has its K as columns, C is made of V: with thirds, so that no
// bit of fp32 is always zero.
static bool prepare(const Session *session, const Problem *problem, Inputs *inputs) {
  Device *device = session->device;
  inputs->a = problem->q;
  inputs->b = problem->k;
  for (int n = 0; n < LINES; n++)
    for (int k = 0; k < LINES; k++) inputs->b_across[k * LINES + n] = problem->k[n * LINES + k];
  for (int i = 0; i < SLICES * LINES * LINES; i++) inputs->c[i] = half_to_float(problem->v[i]) / 3;
  inputs->a_device = upload_new(device, inputs->a, sizeof(Half) * LINES * LINES);
  inputs->b_device = upload_new(device, inputs->b, sizeof(Half) * MAX_N * LINES);
  inputs->b_across_device = upload_new(device, inputs->b_across, sizeof inputs->b_across);
  return inputs->b_across_device != 0;
}

// ---- report ----

static void report_inputs(const Session *session) {
  char input[INPUT_NAME_SIZE];
  fprintf(session->out,
          "problem   D = A B and D += A B; wgmma m64n64k16: A 64 x 16, B 16 x 64, fp16; D fp32; input %s, seed %llu\n",
          options_input_name(&session->options, input), (unsigned long long)session->options.seed);
}

static bool is_right(const Comparison *result) {
  return result->compared && result->chained && !result->wrong && !result->chain_wrong &&
         result->max_error <= MAX_ERROR && result->sum_error / (double)result->compared <= MEAN_ERROR;
}

// "1.8e-06 (limit 0.01: 5,639 times as much)"
static void print_error(FILE *out, double error, double limit) {
  char times[32];
  fprintf(out, "%.2g (limit %g", error, limit);
  if (error > 0 && error < limit) fprintf(out, ": %s times as much", format_count(times, (uint64_t)(limit / error)));
  fprintf(out, ")");
}

static void report_errors(FILE *out, const Comparison *result) {
  fprintf(out, "          against fp64: max error ");
  print_error(out, result->max_error, MAX_ERROR);
  fprintf(out, ", mean error ");
  print_error(out, result->sum_error / (double)result->compared, MEAN_ERROR);
  fprintf(out, "\n");
}

// How many numbers of each form differ: where they do says what is wrong.
static void print_forms(FILE *out, const Comparison *result) {
  fprintf(out, "          %-23s", "of these with swizzle");
  for (int s = 0; s < SWIZZLES; s++) fprintf(out, " %8s", swizzle_modes[s].name);
  for (int i = 0; i < 4; i++) {
    char form[32], text[32];
    snprintf(form, sizeof form, "A %s, B %s-major", i / 2 ? "registers" : "shared", i % 2 ? "N" : "K");
    fprintf(out, "\n          %-23s", form);
    for (int s = 0; s < SWIZZLES; s++) fprintf(out, " %8s", format_count(text, result->wrong_of[i / 2][i % 2][s]));
  }
  fprintf(out, "\n");
}

static void print_differing(FILE *out, uint64_t wrong, uint64_t compared) {
  char text[2][32];
  fprintf(out, "%s of %s numbers differ", wrong ? format_count(text[0], wrong) : "none",
          format_count(text[1], compared));
}

static void print_products(FILE *out, const Comparison *result) {
  print_differing(out, result->wrong, result->compared);
  fprintf(out, " from the model of the tensor core, in %d products\n", (int)result->products);
}

static void print_mismatches(FILE *out, const Comparison *result) {
  for (int i = 0; i < result->shown_count; i++) {
    const Mismatch *shown = &result->shown[i];
    fprintf(out, "          %s: got ", shown->place);
    if (isnan(shown->got))
      fprintf(out, "NaN");
    else
      fprintf(out, "%.9g", shown->got);
    fprintf(out, ", expected %.9g\n", shown->expected);
  }
}

static void report_comparison(FILE *out, const Comparison *result) {
  fprintf(out, "result    %s: ", is_right(result) ? "right" : "WRONG");
  print_products(out, result);
  fprintf(out, "          many wgmmas, one after another: ");
  print_differing(out, result->chain_wrong, result->chained);
  fprintf(out, "\n");
  if (result->wrong) print_forms(out, result);
  report_errors(out, result);
  print_mismatches(out, result);
}

// The products before the stop were compared. They show whether a descriptor that the emulator let through is right.
static void report_stopped(FILE *out, const Comparison *result) {
  fprintf(out, "result    WRONG: the kernel was stopped\n");
  if (!result->compared) return;
  fprintf(out, "          before that, ");
  print_products(out, result);
  print_mismatches(out, result);
}

// How the swizzles differ: not for wgmma, whose core matrices have no conflicts in any, but for the threads that write
// the tiles.
static void report_conflicts(const Session *session, const Comparison *result) {
  char text[32];
  if (device_info(session->device)->kind != DEVICE_EMULATOR) return;
  fprintf(session->out, "          bank conflicts of the stores that fill the tiles:");
  for (int s = 0; s < SWIZZLES; s++)
    fprintf(session->out, "%s %s %s", s ? "," : "", swizzle_modes[s].name, format_count(text, result->conflicts[s]));
  fprintf(session->out, "\n");
}

// ---- what the program does ----

static int check_and_measure(const Session *session, const Inputs *inputs) {
  FILE *out = session->out;
  Descriptors descriptors;
  Comparison result = {0};
  bool done = check_products(session, inputs, descriptors, &result) && check_chains(session, inputs, &result);
  if (!done && device_error(session->device)->code != DEVICE_FAULT) return session_fail_device(session);
  if (!done) {
    report_stopped(out, &result);
    report_hazards(out, &session->options, session->device);
    return session_fail_device(session);
  }
  report_comparison(out, &result);
  int hazards = report_hazards(out, &session->options, session->device);
  report_counters(out, session->device);
  report_conflicts(session, &result);
  if (session->options.counters) report_line_counters(out, session->device);
  if (!is_right(&result) || hazards) return EXIT_WRONG;
  if (session->options.counters_csv) return session_record_counters(session, NULL);
  return session->options.repeat ? measure_all(session, inputs) : EXIT_RIGHT;
}

// The descriptors are those that the kernels make, on this device.
static int explain_all(const Session *session, const Inputs *inputs) {
  Descriptors descriptors;
  Comparison result = {0};
  if (!check_products(session, inputs, descriptors, &result)) return session_fail_device(session);
  explain_descriptors(session->out, descriptors);
  return result.wrong ? session_fail(session, EXIT_WRONG, "the results are wrong; run it without --explain")
                      : EXIT_RIGHT;
}

// A whole number of 64 bits, decimal or after 0x hexadecimal.
static bool parse_bits(const char *text, uint64_t *bits) {
  bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const char *digits = hexadecimal ? text + 2 : text;
  char *end;
  if (!*digits || digits[strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789")]) return false;
  errno = 0;
  *bits = strtoull(digits, &end, hexadecimal ? 16 : 10);
  return errno == 0;
}

static int run_with_inputs(Session *session, bool explain) {
  static Inputs inputs;
  Problem problem;
  Shape shape = {.batch = 1, .heads = 1, .seqlen = MAX_N, .head_dim = LINES};
  if (!problem_create(&problem, &shape, session->options.input, session->options.seed))
    return session_fail(session, EXIT_USAGE, "the host has no memory for the inputs");
  int code = EXIT_USAGE;
  if (!prepare(session, &problem, &inputs))
    code = session_fail_device(session);
  else
    code = explain ? explain_all(session, &inputs) : check_and_measure(session, &inputs);
  problem_free(&problem);
  return code;
}

static int run(Session *session) {
  const char *explain = session_option(session, "explain");
  uint64_t bits;
  if (explain && (options_given(&session->options, OPTION_CSV) || options_given(&session->options, OPTION_REPEAT)))
    return session_fail(session, EXIT_USAGE, "--explain measures nothing; --csv and --repeat are for a run without it");
  if (explain && *explain) {
    if (!parse_bits(explain, &bits))
      return session_fail(session, EXIT_USAGE,
                          "--explain=%.40s: not a descriptor; 0x0 to 0xffffffffffffffff is allowed", explain);
    return explain_bits(session->out, bits) ? EXIT_RIGHT : EXIT_WRONG;
  }
  report_head(session->out, session->stage, device_info(session->device));
  report_inputs(session);
  return run_with_inputs(session, explain != NULL);
}

static const StageOption options[] = {
    {"explain", "[BITS]", "explain the descriptors of this stage, or any 64 bits as a descriptor"},
    {0},
};

const Stage stage = {
    .name = "04-single-wgmma",
    .title = "one warpgroup instruction, taken apart: descriptors, fences, the accumulator's layout",
    .run = run,
    .options = options,
};
