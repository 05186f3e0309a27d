// The command line, which is the same for every stage: a table of options, the parser and --help.
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "harness.h"

typedef enum OptionType { TYPE_FLAG, TYPE_NUMBER, TYPE_CHOICE, TYPE_TEXT } OptionType;

typedef struct OptionSpec {
  const char *name;
  const char *value;  // as --help shows it; for a choice, the list of allowed values
  const char *help;
  OptionType type;
  size_t field;        // offset in Options
  uint64_t low, high;  // of a number
} OptionSpec;

#define FIELD(name) offsetof(Options, name)

static const OptionSpec specs[OPTION_COUNT] = {
    [OPTION_DEVICE] = {"device", "auto|gpu|emulator",
                       "where to run; auto: on a Hopper GPU if there is one, otherwise on the emulator", TYPE_CHOICE,
                       FIELD(device), 0, 0},
    [OPTION_BATCH] = {"batch", "N", "batches (default: 4 on a GPU, 1 on the emulator)", TYPE_NUMBER, FIELD(batch), 1,
                      65536},
    [OPTION_HEADS] = {"heads", "N", "heads of each batch (default: 32 on a GPU, 2 on the emulator; 8 there to decode)",
                      TYPE_NUMBER, FIELD(heads), 1, 65536},
    [OPTION_SEQLEN] =
        {"seqlen", "N",
         "queries and keys of each head (default: 4096 on a GPU; on the emulator 128, or 300 with a window)",
         TYPE_NUMBER, FIELD(seqlen), 1, 1 << 20},
    [OPTION_HEAD_DIM] = {"head-dim", "64|128", "elements of each query, key and value (default: 64)", TYPE_CHOICE,
                         FIELD(head_dim), 0, 0},
    [OPTION_KV_HEADS] = {"kv-heads", "N",
                         "heads of keys and values, of which --heads is 1 to 16 times as many "
                         "(default: 8 on a GPU, 2 on the emulator)",
                         TYPE_NUMBER, FIELD(kv_heads), 1, 65535},
    [OPTION_KEYS] = {"keys", "N", "keys of each sequence (default: 4096 on a GPU, 400 on the emulator)", TYPE_NUMBER,
                     FIELD(keys), 1, 1 << 24},
    [OPTION_SPLITS] =
        {"splits", "N",
         "parts into which the keys of a head are shared out (default: the stage's choice, 4 on the emulator)",
         TYPE_NUMBER, FIELD(splits), 1, 256},
    [OPTION_LENGTHS] = {"lengths", "full|ragged|N,N...",
                        "keys of the sequences: --keys, random ones up to --keys, or these (default: ragged)",
                        TYPE_TEXT, FIELD(lengths), 0, 0},
    [OPTION_PAGE] = {"page", "16|32|64|128|256|none", "keys of a page of the cache (default: 16)", TYPE_CHOICE,
                     FIELD(page), 0, 0},
    [OPTION_BLOCKS] = {"blocks", "N",
                       "blocks that share all keys (default: one for each SM, 2 on the emulator)", TYPE_NUMBER,
                       FIELD(blocks), 1, 4096},
    [OPTION_QUERIES] = {"queries", "N", "queries of each sequence, causal among themselves (default: 4)", TYPE_NUMBER,
                        FIELD(queries), 1, 8},
    [OPTION_CAUSAL] = {"causal", NULL, "query i sees only keys 0 to i", TYPE_FLAG, FIELD(causal), 0, 0},
    [OPTION_WINDOW] = {"window", "N", "how many keys a query sees: the last N up to its own (default: 1024 or 100)",
                       TYPE_NUMBER, FIELD(window), 1, 1 << 30},
    [OPTION_M] = {"m", "N", "rows of A and of C (default: 4096 on a GPU, 384 on the emulator)", TYPE_NUMBER, FIELD(m),
                  1, 1 << 20},
    [OPTION_N] = {"n", "N", "rows of B and columns of C, a multiple of 8 (default: 4096 or 512)", TYPE_NUMBER, FIELD(n),
                  8, 1 << 20},
    [OPTION_K] = {"k", "N", "columns of A and of B, a multiple of 8 (default: 4096 or 192)", TYPE_NUMBER, FIELD(k), 8,
                  1 << 20},
    [OPTION_SIZE] = {"size", "N", "all three of these", TYPE_NUMBER, FIELD(size), 8, 1 << 20},
    [OPTION_LSE] = {"lse", NULL, "also store the log-sum-exp of each query", TYPE_FLAG, FIELD(lse), 0, 0},
    [OPTION_SEED] = {"seed", "N", "seed of the random inputs (default: 1)", TYPE_NUMBER, FIELD(seed), 0, UINT64_MAX},
    [OPTION_INPUT] =
        {"input",
         "normal|ones|arange|large|identity|waves|cliff|outliers|mean|negative|rows|columns|vanish|explode|"
         "places",
         "inputs that show different mistakes (default: normal)", TYPE_CHOICE, FIELD(input), 0, 0},
    [OPTION_SCALES] = {"scales", "tensor|head", "e4m3 inputs: one scale for each tensor or head (default: tensor)",
                       TYPE_CHOICE, FIELD(scales), 0, 0},
    [OPTION_ROTATE] = {"rotate", NULL, "e4m3 inputs: rotate Q and K, which leaves the scores and spreads outliers",
                       TYPE_FLAG, FIELD(rotate), 0, 0},
    [OPTION_DETERMINISTIC] = {"deterministic", NULL, "backward pass: two runs with the same inputs give the same bits",
                              TYPE_FLAG, FIELD(deterministic), 0, 0},
    [OPTION_REPEAT] = {"repeat", "N",
                       "GPU: report the median time of N runs, each after a flush of L2 (default: 20; 0: no timing)",
                       TYPE_NUMBER, FIELD(repeat), 0, 100000},
    [OPTION_CSV] = {"csv", "FILE|-", "GPU: append the time to FILE as a row of CSV, or print the row", TYPE_TEXT,
                    FIELD(csv), 0, 0},
    [OPTION_TRACE] = {"trace", "FILE", "GPU: write a timeline of one SM to FILE (`make trace-NN` draws it)", TYPE_TEXT,
                      FIELD(trace), 0, 0},
    [OPTION_HAZARDS] = {"hazards", "on|off", "emulator: report hazards (default: on)", TYPE_CHOICE, FIELD(hazards), 0,
                        0},
    [OPTION_STRICT] = {"strict", NULL,
                       "emulator: formal hazards, where PTX does not promise what the hardware does, count as faults",
                       TYPE_FLAG, FIELD(strict), 0, 0},
    [OPTION_SCHEDULE] = {"schedule", "N",
                         "emulator: seed of the order in which warps run (default: 0, the adversarial order)",
                         TYPE_NUMBER, FIELD(schedule), 0, UINT64_MAX},
    [OPTION_FAIR] = {"fair", NULL, "emulator: each warp that can executes one instruction in turn", TYPE_FLAG,
                     FIELD(fair), 0, 0},
    [OPTION_STEP_LIMIT] =
        {"step-limit", "N",
         "emulator: stop a launch after N warp instructions (default: more than any stage needs; 0: no limit)",
         TYPE_NUMBER, FIELD(step_limit), 0, UINT64_MAX},
    [OPTION_THREADS] =
        {"threads", "N",
         "emulator: CPU threads (default: one for each core); with 1, a run with a fault repeats exactly", TYPE_NUMBER,
         FIELD(threads), 1, 256},
    [OPTION_COUNTERS] = {"counters", NULL, "emulator: print the counters of each source line", TYPE_FLAG,
                         FIELD(counters), 0, 0},
    [OPTION_COUNTERS_CSV] = {"counters-csv", "FILE|-",
                             "emulator: append all counters to FILE as a row of CSV, or print the row", TYPE_TEXT,
                             FIELD(counters_csv), 0, 0},
    [OPTION_JSON] = {"json", "FILE|-",
                     "emulator: write hazards and the counters of each line to FILE as JSON, or print them", TYPE_TEXT,
                     FIELD(json), 0, 0},
    [OPTION_STEPS] = {"steps", "FILE",
                      "emulator: write what each warp and copy did to FILE, in order; --fair, and one thread",
                      TYPE_TEXT, FIELD(steps), 0, 0},
    [OPTION_VALUES] = {"values", "N",
                       "emulator: with --steps, also what the instructions of thread N of each block computed",
                       TYPE_NUMBER, FIELD(values), 0, 1023},
    [OPTION_PTX] = {"ptx", "FILE", "emulator: run the PTX in FILE instead of the stage's own", TYPE_TEXT, FIELD(ptx), 0,
                    0},
    [OPTION_HELP] = {"help", NULL, "print this text", TYPE_FLAG, FIELD(help), 0, 0},
};

// ---- errors ----

// Writes the error as one short line. Control characters that the user typed become '?'. Always returns false.
static bool refuse_option(char error[ERROR_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse_option(char error[ERROR_SIZE], const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error, ERROR_SIZE, format, arguments);
  va_end(arguments);
  for (char *c = error; *c; c++)
    if (iscntrl((unsigned char)*c)) *c = '?';
  return false;
}

// The Levenshtein distance of two names: how many characters to insert, delete or replace to turn one into the other.
// Of names with more than 31 characters it returns 31.
static int edit_distance(const char *a, const char *b) {
  enum { LONGEST = 31 };
  size_t a_length = strlen(a), b_length = strlen(b);
  if (a_length > LONGEST || b_length > LONGEST) return LONGEST;
  int row[LONGEST + 1];
  for (size_t j = 0; j <= b_length; j++) row[j] = (int)j;
  for (size_t i = 1; i <= a_length; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= b_length; j++) {
      int replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      int shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
      row[j] = replace < shorter + 1 ? replace : shorter + 1;
    }
  }
  return row[b_length];
}

static const char *nearer(const char *name, const char *candidate, const char *best) {
  return !best || edit_distance(name, candidate) < edit_distance(name, best) ? candidate : best;
}

// Why the stage does not have the option; NULL when it has it. Attention kernels and matrix products have options for
// their shapes; with a window some of these are fixed. Only e4m3 kernels have those for the scales, only some that for
// the log-sum-exp, and only the backward pass a fixed order.
static const char *why_not(const Stage *stage, OptionIndex index) {
  bool of_decode = index >= OPTION_KV_HEADS && index <= OPTION_QUERIES;
  bool of_ragged = index >= OPTION_LENGTHS && index <= OPTION_BLOCKS;
  if (of_decode && !stage->decode) return "does not decode";
  if (index == OPTION_SPLITS && !stage->splits)
    return stage->ragged ? "shares all keys out" : "has one block for each head's keys";
  if (of_ragged && !stage->ragged) return "has sequences of one length";
  if (index == OPTION_BLOCKS && stage->splits) return "shares out the keys of each head";
  if (index == OPTION_HEAD_DIM && stage->head_dim) return "has one head dimension";
  if (index == OPTION_QUERIES && !stage->queries) return "has one query a sequence";
  if (stage->decode && (index == OPTION_SEQLEN || index == OPTION_CAUSAL))
    return stage->queries ? "decodes" : "has one query a sequence";
  if (stage->decode && index == OPTION_ROTATE) return "does not rotate";
  if (index >= OPTION_BATCH && index <= OPTION_CAUSAL && (stage->run || stage->gemm) && !stage->launch)
    return "is not an attention kernel";
  if ((index == OPTION_HEAD_DIM || index == OPTION_CAUSAL) && stage->windowed)
    return "has head dimension 96, a causal mask and a window";
  if (index == OPTION_WINDOW && !stage->windowed) return "has no window";
  if (index >= OPTION_M && index <= OPTION_SIZE && !stage->gemm) return "is not a matrix product";
  if ((index == OPTION_SCALES || index == OPTION_ROTATE) && stage->inputs == INPUTS_F16) return "has no e4m3 inputs";
  if (index == OPTION_DETERMINISTIC && !stage->backward) return "is not one of the backward pass";
  if (index == OPTION_LSE && !stage->lse) return "does not store the log-sum-exp";
  return NULL;
}

static bool is_offered(const Stage *stage, OptionIndex index) { return !why_not(stage, index); }

static bool unknown_option(const char *name, const Stage *stage, char error[ERROR_SIZE]) {
  const char *best = NULL;
  for (int i = 0; i < OPTION_COUNT; i++)
    if (is_offered(stage, i)) best = nearer(name, specs[i].name, best);
  for (const StageOption *o = stage->options; o && o->name; o++) best = nearer(name, o->name, best);
  if (edit_distance(name, best) <= 3)
    return refuse_option(error, "unknown option --%.40s; did you mean --%s? --help lists all options", name, best);
  return refuse_option(error, "unknown option --%.40s; --help lists all options", name);
}

// ---- values ----

// Accepts digits only: no sign, no space, no unit.
static bool parse_number(const OptionSpec *spec, const char *value, uint64_t *number, char error[ERROR_SIZE]) {
  const char *problem = NULL;
  uint64_t result = 0;
  for (const char *c = value; *c && !problem; c++) {
    if (!isdigit((unsigned char)*c))
      problem = "not a whole number";
    else if (__builtin_mul_overflow(result, 10u, &result) ||
             __builtin_add_overflow(result, (uint64_t)(*c - '0'), &result))
      problem = "too large";
  }
  if (!*value) problem = "not a whole number";
  if (!problem && result < spec->low) problem = "too small";
  if (!problem && result > spec->high) problem = "too large";
  if (problem)
    return refuse_option(error, "--%s=%.40s: %s; %" PRIu64 " to %" PRIu64 " are allowed", spec->name, value, problem,
                         spec->low, spec->high);
  *number = result;
  return true;
}

// The values that the stage allows, as --help shows them: a matrix product has not all kinds of inputs.
static const char *allowed_values(const Stage *stage, OptionIndex index) {
  return index == OPTION_INPUT && stage->gemm ? gemm_input_kinds : specs[index].value;
}

// The index of value in a list like "auto|gpu|emulator", or -1.
static int find_choice(const char *list, const char *value) {
  size_t length = strlen(value);
  const char *candidate = list;
  for (int i = 0; candidate; i++) {
    const char *end = strchr(candidate, '|');
    size_t candidate_length = end ? (size_t)(end - candidate) : strlen(candidate);
    if (length == candidate_length && !memcmp(value, candidate, length)) return i;
    candidate = end ? end + 1 : NULL;
  }
  return -1;
}

static bool parse_choice(const OptionSpec *spec, const char *allowed, const char *value, int *choice,
                         char error[ERROR_SIZE]) {
  if (find_choice(allowed, value) < 0)
    return refuse_option(error, "--%s=%.40s: one of %s is allowed", spec->name, value, allowed);
  *choice = find_choice(spec->value, value);
  return true;
}

static bool parse_option(Options *options, const Stage *stage, OptionIndex index, const char *value,
                         char error[ERROR_SIZE]) {
  const OptionSpec *spec = &specs[index];
  void *field = (char *)options + spec->field;
  options->given |= (uint64_t)1 << index;
  if (spec->type == TYPE_FLAG) {
    if (value) return refuse_option(error, "--%s=%.40s: this option takes no value", spec->name, value);
    *(bool *)field = true;
    return true;
  }
  if (!value) return refuse_option(error, "--%s needs a value: write --%s=%s", spec->name, spec->name, spec->value);
  if (spec->type == TYPE_NUMBER) return parse_number(spec, value, field, error);
  if (spec->type == TYPE_CHOICE) return parse_choice(spec, allowed_values(stage, index), value, field, error);
  if (!*value)
    return refuse_option(error, "--%s=: the value is empty; write --%s=%s", spec->name, spec->name, spec->value);
  *(const char **)field = value;
  return true;
}

static bool parse_stage_option(Options *options, const Stage *stage, const char *name, const char *value,
                               char error[ERROR_SIZE]) {
  for (int i = 0; stage->options && stage->options[i].name && i < MAX_STAGE_OPTIONS; i++) {
    const StageOption *option = &stage->options[i];
    if (strcmp(name, option->name)) continue;
    if (value && !option->value) return refuse_option(error, "--%s=%.40s: this option takes no value", name, value);
    if (!value && option->value && option->value[0] != '[')
      return refuse_option(error, "--%s needs a value: write --%s=%s", name, name, option->value);
    options->stage_values[i] = value ? value : "";
    return true;
  }
  return unknown_option(name, stage, error);
}

// One argument, "--name" or "--name=value".
static bool parse_argument(Options *options, const Stage *stage, const char *argument, char error[ERROR_SIZE]) {
  if (strncmp(argument, "--", 2) || !argument[2])
    return refuse_option(error, "unexpected argument '%.40s'; options are written --name=value, and --help lists them",
                         argument);
  char name[48];
  const char *equals = strchr(argument, '=');
  size_t length = equals ? (size_t)(equals - argument - 2) : strlen(argument + 2);
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), argument + 2);
  const char *value = equals ? equals + 1 : NULL;
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (strcmp(name, specs[i].name)) continue;
    if (is_offered(stage, i)) return parse_option(options, stage, i, value, error);
    return refuse_option(error, "--%s: stage %s %s and does not have this option; --help lists its options", name,
                         stage->name, why_not(stage, i));
  }
  return parse_stage_option(options, stage, name, value, error);
}

bool options_parse(Options *options, const Stage *stage, int argc, char *const *argv, char error[ERROR_SIZE]) {
  *options = (Options){.seed = 1, .windowed = stage->windowed != NULL, .decode = stage->decode != NULL};
  for (int i = 1; i < argc; i++)
    if (!parse_argument(options, stage, argv[i], error)) return false;
  return true;
}

// ---- what the options mean together ----

bool options_given(const Options *options, OptionIndex index) { return options->given >> index & 1; }

// The first given option that only the emulator (or only the GPU) understands; -1 when there is none. --repeat=0 does
// not count, because it asks for nothing.
static int option_of(const Options *options, DeviceKind kind) {
  static const OptionIndex gpu[] = {OPTION_CSV, OPTION_TRACE, OPTION_REPEAT};
  static const OptionIndex emulator[] = {OPTION_PTX,        OPTION_COUNTERS, OPTION_COUNTERS_CSV, OPTION_SCHEDULE,
                                         OPTION_STEP_LIMIT, OPTION_HAZARDS,  OPTION_STRICT,       OPTION_THREADS,
                                         OPTION_JSON,       OPTION_FAIR,     OPTION_STEPS,        OPTION_VALUES};
  const OptionIndex *list = kind == DEVICE_GPU ? gpu : emulator;
  for (int i = 0; i < (kind == DEVICE_GPU ? 3 : 12); i++)
    if (options_given(options, list[i]) && !(list[i] == OPTION_REPEAT && options->repeat == 0)) return (int)list[i];
  return -1;
}

bool options_device(const Options *options, DeviceKind *kind, char error[ERROR_SIZE]) {
  int gpu = option_of(options, DEVICE_GPU), emulator = option_of(options, DEVICE_EMULATOR);
  *kind = options->device;
  if (gpu >= 0 && emulator >= 0)
    return refuse_option(error, "--%s works only on a GPU and --%s only on the emulator; give one of the two",
                         specs[gpu].name, specs[emulator].name);
  if (*kind == DEVICE_EMULATOR && gpu >= 0)
    return refuse_option(error, "--%s: the emulator has no clock and cannot time a kernel; use --device=gpu",
                         specs[gpu].name);
  if (*kind == DEVICE_GPU && emulator >= 0)
    return refuse_option(error, "--%s: a GPU cannot do that; use --device=emulator", specs[emulator].name);
  if (options_given(options, OPTION_CSV) && options_given(options, OPTION_REPEAT) && options->repeat == 0)
    return refuse_option(error, "--csv records times, and --repeat=0 turns timing off; give --repeat=1 or more");
  if ((options->fair || options->steps) && options_given(options, OPTION_SCHEDULE) && options->schedule)
    return refuse_option(error, "--schedule=%" PRIu64 " is a random order, and --%s a fair one; give one of the two",
                         options->schedule, options->fair ? "fair" : "steps");
  if (options_given(options, OPTION_VALUES) && !options->steps)
    return refuse_option(error, "--values=%" PRIu64 " adds values to the steps of a run; give --steps=FILE as well",
                         options->values);
  if (*kind == DEVICE_AUTO && emulator >= 0) *kind = DEVICE_EMULATOR;
  return true;
}

enum { EMULATOR_BATCH = 1, EMULATOR_HEADS = 2, EMULATOR_SEQLEN = 128 };
enum { EMULATOR_WINDOWED_SEQLEN = 300, EMULATOR_WINDOW = 100 };
enum { EMULATOR_DECODE_HEADS = 8, EMULATOR_KV_HEADS = 2, EMULATOR_KEYS = 400 };
enum { EMULATOR_M = 384, EMULATOR_N = 512, EMULATOR_K = 192, GPU_SIZE = 4096 };

static void set_default(Options *options, OptionIndex index, uint64_t value) {
  if (!options_given(options, index)) *(uint64_t *)((char *)options + specs[index].field) = value;
}

bool options_complete(Options *options, const DeviceInfo *device, char error[ERROR_SIZE]) {
  bool gpu = device->kind == DEVICE_GPU;
  int timed = option_of(options, DEVICE_GPU);
  if (!gpu && timed >= 0)
    return refuse_option(error, "--%s: only a GPU can time a kernel; the emulator has no clock (%s)", specs[timed].name,
                         device->note);
  set_default(options, OPTION_BATCH, gpu ? 4 : EMULATOR_BATCH);
  set_default(options, OPTION_HEADS, gpu ? 32 : options->decode ? EMULATOR_DECODE_HEADS : EMULATOR_HEADS);
  set_default(options, OPTION_KV_HEADS, gpu ? 8 : EMULATOR_KV_HEADS);
  set_default(options, OPTION_KEYS, gpu ? 4096 : EMULATOR_KEYS);
  set_default(options, OPTION_SEQLEN, gpu ? 4096 : options->windowed ? EMULATOR_WINDOWED_SEQLEN : EMULATOR_SEQLEN);
  set_default(options, OPTION_WINDOW, gpu ? 1024 : EMULATOR_WINDOW);
  set_default(options, OPTION_QUERIES, 4);
  uint64_t size = options_given(options, OPTION_SIZE) ? options->size : gpu ? GPU_SIZE : 0;
  set_default(options, OPTION_M, size ? size : EMULATOR_M);
  set_default(options, OPTION_N, size ? size : EMULATOR_N);
  set_default(options, OPTION_K, size ? size : EMULATOR_K);
  set_default(options, OPTION_REPEAT, gpu ? 20 : 0);
  return true;
}

static uint64_t number_or(const Options *options, OptionIndex index, uint64_t number, uint64_t otherwise) {
  return options_given(options, index) ? number : otherwise;
}

uint64_t options_step_limit(const Options *options) {
  // Stage 00 does one multiply-add at a time. It executes less than one warp instruction for each of a head's
  // seqlen * seqlen * head_dim multiply-adds.
  enum { AT_LEAST = 1 << 30, EACH = 64 };
  double heads = (double)number_or(options, OPTION_BATCH, options->batch, EMULATOR_BATCH) *
                 (double)number_or(options, OPTION_HEADS, options->heads, EMULATOR_HEADS);
  double seqlen = (double)number_or(options, OPTION_SEQLEN, options->seqlen, EMULATOR_SEQLEN);
  double steps = AT_LEAST + EACH * heads * seqlen * seqlen * (options->head_dim ? 128 : 64);
  if (options_given(options, OPTION_STEP_LIMIT)) return options->step_limit;
  return steps < 0x1p63 ? (uint64_t)steps : 0;
}

Shape options_shape(const Options *options) {
  int head_dim = options->head_dim ? 128 : 64;
  return (Shape){
      .batch = (int)options->batch,
      .heads = (int)options->heads,
      .seqlen = (int)options->seqlen,
      .head_dim = options->windowed ? 96 : head_dim,
      .causal = options->causal || options->windowed,
  };
}

DecodeShape options_decode_shape(const Options *options, const Stage *stage) {
  enum { SMALLEST_PAGE = 16, PAGES = 5 };  // the last choice of --page is none
  return (DecodeShape){
      .queries = stage->queries ? (int)options->queries : 1,
      .page = stage->ragged && options->page < PAGES ? SMALLEST_PAGE << options->page : 0,
      .batch = (int)options->batch,
      .heads = (int)options->heads,
      .kv_heads = (int)options->kv_heads,
      .keys = (int)options->keys,
      .head_dim = stage->head_dim     ? stage->head_dim
                  : options->head_dim ? 128
                                      : 64,
  };
}

const char *options_input_name(const Options *options, char name[INPUT_NAME_SIZE]) {
  const char *choice = specs[OPTION_INPUT].value;
  for (int i = 0; i < options->input; i++) choice = strchr(choice, '|') + 1;
  snprintf(name, INPUT_NAME_SIZE, "%.*s", (int)strcspn(choice, "|"), choice);
  return name;
}

// ---- --help ----

static void print_option(FILE *out, const char *name, const char *value, const char *help) {
  enum { WIDTH = 28 };
  char left[120];
  if (value && value[0] == '[')
    snprintf(left, sizeof left, "--%s[=%s", name, value + 1);
  else
    snprintf(left, sizeof left, "--%s%s%s", name, value ? "=" : "", value ? value : "");
  if (strlen(left) > WIDTH)
    fprintf(out, "  %s\n  %-*s %s\n", left, WIDTH, "", help);
  else
    fprintf(out, "  %-*s %s\n", WIDTH, left, help);
}

void options_print_help(FILE *out, const char *program, const Stage *stage) {
  fprintf(out, "Usage: %s [options]\nStage %s: %s\n\n", program, stage->name, stage->title);
  for (int i = 0; i < OPTION_COUNT; i++)
    if (is_offered(stage, i)) print_option(out, specs[i].name, allowed_values(stage, i), specs[i].help);
  for (const StageOption *o = stage->options; o && o->name; o++) print_option(out, o->name, o->value, o->help);
  fprintf(out, "\nExit codes: 0, the result is right; 1, the result is wrong or a fault was found; 2, an option is "
               "wrong, or the\n"
               "report cannot be written; 3, the requested device is not there.\n");
}
