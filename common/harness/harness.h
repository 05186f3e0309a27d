// The harness: what every stage's program does around its kernels.
//
//   main.c        the stage and its embedded kernels -> harness_run
//   harness.c     options, device, then the stage's own run or attention_run; the exit code
//   options.c     the command line
//   attention.c   one attention problem, start to end
//   gemm.c        one matrix product, start to end; gemm_problem.c: its inputs, reference and check
//   decode.c      one decode problem; decode_problem.c: its inputs, reference and check
//   problem.c     inputs            quantise.c    the same as e4m3
//   reference.c   what the output should be, in fp64, and how exact fp16 can be; reference_e4m3.c: how exact e4m3;
//                 reference_backward.c: what the gradients should be, and how exact fp16 can be;
//                 reference_head.c: the inputs of one head
//   check.c       compares          timing.c      times by the GPU's events
//   report.c      prints            listing.c     counters beside the kernel's source lines
//   csv.c         records           recorded.c    what was recorded on an H200
//   json.c        what the emulator saw, for other programs; steps.c: what it did, step by step
//   trace.c       timelines: what each warpgroup did when
//   progress.c    a line on the terminal that shows progress
//   passes.c      a few heads at a time
//   tensor_maps.c the tensors as TMA sees them
//   cublas.c      matrix products by cuBLAS, to compare with
//   parallel.c    a loop over all CPU cores
#pragma once

#include <stdatomic.h>
#include <stdio.h>

#include "bf16.h"
#include "e4m3.h"
#include "half.h"
#include "stage.h"

enum ExitCode {
  EXIT_RIGHT = 0,
  EXIT_WRONG = 1,   // a wrong result or a fault; with --strict a formal finding, too
  EXIT_USAGE = 2,   // the options ask for something impossible, or the report cannot be written
  EXIT_ABSENT = 3,  // the requested device is not there
};

// ---- options.c ----

typedef enum InputKind {
  INPUT_NORMAL,
  INPUT_ONES,
  INPUT_ARANGE,
  INPUT_LARGE,
  INPUT_IDENTITY,
  INPUT_WAVES,
  INPUT_CLIFF,
  INPUT_OUTLIERS,
  INPUT_MEAN,
  INPUT_NEGATIVE,
  INPUT_ROWS,
  INPUT_COLUMNS,
  INPUT_VANISH,
  INPUT_EXPLODE,
  INPUT_PLACES
} InputKind;

enum { MAX_STAGE_OPTIONS = 8, ERROR_SIZE = 320, INPUT_NAME_SIZE = 16 };

// What the user asked for. The field of a number that was not given has no meaning until options_complete fills it with
// the default. `given` has a bit for each option.
typedef struct Options {
  int device;   // DeviceKind
  bool decode;  // the stage is one of the decode ladder, which has other defaults
  uint64_t batch, heads, seqlen;
  uint64_t kv_heads, keys, splits, blocks, queries;
  const char *lengths;     // of the sequences of a ragged stage, or NULL
  int page;                // 0: 16 keys, 1: 32 and so on; the last: not in pages
  int head_dim;            // 0: 64, 1: 128
  bool windowed;           // the stage has a window: head_dim is 96, and causal is set
  uint64_t window;         // of such a stage
  uint64_t m, n, k, size;  // of a matrix product; size: for those of m, n and k that are not given
  bool causal;
  bool lse;
  uint64_t seed;
  int input;           // InputKind
  int scales;          // of e4m3 inputs, 0: one for each tensor, 1: one for each head
  bool rotate;         // e4m3 inputs
  bool deterministic;  // backward pass
  uint64_t repeat;
  const char *csv, *trace;
  int hazards;  // 0: on, 1: off
  bool strict;
  uint64_t schedule, step_limit, threads;
  bool counters;
  const char *counters_csv;
  const char *json;
  bool fair;
  const char *steps;
  uint64_t values;  // a thread; only if it was given
  const char *ptx;
  bool help;
  const char *stage_values[MAX_STAGE_OPTIONS];  // of the stage's own options: NULL not given, "" without a value
  uint64_t given;                               // a bit per OptionIndex
} Options;

typedef enum OptionIndex {
  OPTION_DEVICE,
  OPTION_BATCH,
  OPTION_HEADS,
  OPTION_SEQLEN,
  OPTION_HEAD_DIM,
  OPTION_KV_HEADS,
  OPTION_KEYS,
  OPTION_SPLITS,
  OPTION_LENGTHS,
  OPTION_PAGE,
  OPTION_BLOCKS,
  OPTION_QUERIES,
  OPTION_CAUSAL,
  OPTION_WINDOW,
  OPTION_M,
  OPTION_N,
  OPTION_K,
  OPTION_SIZE,
  OPTION_LSE,
  OPTION_SEED,
  OPTION_INPUT,
  OPTION_SCALES,
  OPTION_ROTATE,
  OPTION_DETERMINISTIC,
  OPTION_REPEAT,
  OPTION_CSV,
  OPTION_TRACE,
  OPTION_HAZARDS,
  OPTION_STRICT,
  OPTION_SCHEDULE,
  OPTION_FAIR,
  OPTION_STEP_LIMIT,
  OPTION_THREADS,
  OPTION_COUNTERS,
  OPTION_COUNTERS_CSV,
  OPTION_JSON,
  OPTION_STEPS,
  OPTION_VALUES,
  OPTION_PTX,
  OPTION_HELP,
  OPTION_COUNT,
} OptionIndex;

// Reads the command line. If it is wrong, returns false, and error names in one line what is wrong and what is allowed.
bool options_parse(Options *options, const Stage *stage, int argc, char *const *argv, char error[ERROR_SIZE]);
// Determines the device. Without --device, an option that only one device understands decides. False and error when the
// options contradict each other.
bool options_device(const Options *options, DeviceKind *kind, char error[ERROR_SIZE]);
// Fills in defaults for the device that was opened. False and error when an option needs the other device.
bool options_complete(Options *options, const DeviceInfo *device, char error[ERROR_SIZE]);
// The number of warp instructions that a launch on the emulator may execute; 0: any number. The default grows with the
// problem and is far more than any stage needs.
uint64_t options_step_limit(const Options *options);
bool options_given(const Options *options, OptionIndex index);
Shape options_shape(const Options *options);
DecodeShape options_decode_shape(const Options *options, const Stage *stage);
// The input's name as on the command line.
const char *options_input_name(const Options *options, char name[INPUT_NAME_SIZE]);
void options_print_help(FILE *out, const char *program, const Stage *stage);

// ---- problem.c ----

// The inputs of the forward pass. The backward pass has one more.
typedef enum Tensor { TENSOR_Q, TENSOR_K, TENSOR_V, TENSORS, TENSOR_D_O = TENSORS } Tensor;

typedef struct Problem {
  Shape shape;
  StageInputs inputs;  // what the kernel reads
  int window;          // as in Attention
  size_t heads;        // batch * heads
  size_t elements;     // of each tensor
  Half *q, *k, *v;
  Half *o;     // what the device computed
  float *lse;  // the log-sum-exp that the device's forward pass computed; NULL when it does not
  // Of a problem of the backward pass: an input, and the gradients that the device computed.
  Half *d_o;
  Half *d_q, *d_k, *d_v;
  // Of an e4m3 problem: Q, K and V as codes, and the scales of these, as in Attention. Where the kernel reads V as
  // fp16, nobody reads V's.
  E4m3 *codes[TENSORS];
  float *scales[TENSORS];
  int scale_stride;
} Problem;

// Makes the inputs. The same shape, kind and seed always give the same inputs. False when the host has no memory for
// them.
bool problem_create(Problem *problem, const Shape *shape, InputKind input, uint64_t seed);
// Adds the log-sum-exp. False when the host has no memory for it.
bool problem_add_lse(Problem *problem);
// Adds the log-sum-exp and the tensors of the backward pass. False when the host has no memory for them.
bool problem_add_gradients(Problem *problem, InputKind input, uint64_t seed);
void problem_free(Problem *problem);
// Fills one head of one tensor, shape->seqlen rows of head_dim, with numbers of that kind. `head` counts all heads.
void problem_fill_head(Half *to, const Shape *shape, Tensor tensor, size_t head, InputKind input, uint64_t seed);
// The number of scales that each tensor of an e4m3 problem has.
size_t problem_scales(const Problem *problem);
double problem_scale(const Shape *shape);  // 1 / sqrt(head_dim)
// 4 B H S^2 D: two products, with two operations for each term; half of that with a causal mask. The backward pass has
// five products: 2.5 times as many. Those that a kernel computes twice count once.
double problem_flops(const Shape *shape);
double problem_backward_flops(const Shape *shape);
// With a window: exactly 4 B H D for each query and key that it sees.
double problem_windowed_flops(const Shape *shape, int window);

// ---- quantise.c ----

// Makes the e4m3 tensors of a problem, with a scale for each head or else for each tensor: the largest magnitude over
// 448. inputs: those that the kernel will read, INPUTS_E4M3 or INPUTS_E4M3_SCORES. rotate: of Q and K rotated by the
// same matrix, which follows from the seed. False when the host has no memory for them.
bool problem_quantise(Problem *problem, StageInputs inputs, bool per_head, bool rotate, uint64_t seed);
// That rotation, of one row of Q or K. size: 64 or 128, its number of elements.
void quantise_rotate(double *row, int size, uint64_t seed);

// ---- random numbers: SplitMix64 ----

// The next number of the stream whose state this is.
static inline uint64_t random_bits(uint64_t *state) {
  uint64_t x = *state += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Uniform in (0, 1]; and two numbers with a normal distribution, mean 0 and deviation 1. (problem.c)
double random_uniform(uint64_t *state);
void random_normal(uint64_t *state, double pair[2]);

// ---- limits: the maximum of NaN and a number is NaN, and every comparison with NaN is false ----

// The larger of two numbers, or NaN when one of them is NaN, which fmax would drop.
static inline double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

// ---- the reference, in fp64 ----

// The tensors that kernels compute. In the backward pass, the stage's forward kernels compute O and the log-sum-exp.
typedef enum OutputTensor { OUTPUT_O, OUTPUT_LSE, OUTPUT_D_Q, OUTPUT_D_K, OUTPUT_D_V, OUTPUTS } OutputTensor;

// What the gradients need of one query: reference_backward.c.
typedef struct ReferenceQuery {
  double lse, delta;      // delta: of the backward pass
  double weight_error;    // how far a right kernel's weights P may be from the exact ones: so much of each
  double gradient_error;  // and its dP - delta
} ReferenceQuery;

// What a query and a key add to a row of a gradient: reference_backward.c.
typedef struct ReferenceFactor {
  double value, rounded;  // P or dS, also rounded to fp16
  double half_unit;       // half a unit of its last place in fp16
  double error;           // how far from it a right kernel's may be before it rounds it
} ReferenceFactor;

// One head, with its inputs widened to double (exactly), and room for one row of weights. e4m3 inputs are here without
// their scales, which are part of scale and value_scale.
typedef struct ReferenceHead {
  StageInputs inputs;
  int seqlen, head_dim;
  bool causal;
  int window;          // 0: none
  double scale;        // of a product of a query and a key, to make it a score
  double value_scale;  // of an output
  double *q, *k, *v;
  double *weights;           // of the last row computed, not normalised
  double *rounded;           // the same as a kernel has them, rounded to fp16
  ReferenceQuery *queries;   // of a problem with the log-sum-exp; else NULL
  double *d_o;               // of a problem of the backward pass; else NULL
  ReferenceFactor *factors;  // of a row of a gradient; else NULL
} ReferenceHead;

// ---- reference_head.c ----

// Opens one head with the inputs that the kernel reads, or with the fp16 ones, which e4m3 inputs were made from.
bool reference_open(ReferenceHead *head, const Problem *problem, size_t index);
bool reference_open_f16(ReferenceHead *head, const Problem *problem, size_t index);
void reference_close(ReferenceHead *head);

// ---- reference.c ----

// Loops over d go by steps of a fixed number: gcc makes wide instructions of them. head_dim is a multiple.
enum { REFERENCE_STEP = 8 };

// a b + sum: with FMA one rounding less, and none of a product of two fp16 or e4m3 numbers in either case.
static inline double add_product(double a, double b, double sum) {
#ifdef FP_FAST_FMA
  return fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

// out: head_dim values of row `row` of O, in fp64. Returns the limit: how far a right kernel may be from any of them.
double reference_row(ReferenceHead *head, int row, double *out);
// Sum of a[i] b[i]. count is a multiple of 8.
double reference_dot(const double *a, const double *b, int count);
// The same of `a` and each of so many rows of `count` elements.
void reference_dots(const double *a, const double *rows, int row_count, int count, double *dots);

// ---- reference_e4m3.c ----

// The same for e4m3 inputs, as a part of reference_row: head->weights has the weights of the row's `keys` keys, the
// largest of them 1.
double reference_e4m3(const ReferenceHead *head, int row, int keys, double *out);
// For e4m3 Q and K with fp16 V: what the limit has besides that of an fp16 kernel. out: the row of O, without an error.
double reference_e4m3_scores(const ReferenceHead *head, int row, int keys, const double *out);
// The sum of a[i] b[i] of e4m3 numbers as an FP8 tensor core adds them up. count: a multiple of 32.
double reference_tensor_core(const double *a, const double *b, int count);

// ---- reference_backward.c ----

// Fills head->queries, as a part of reference_open. o: the head's O, widened; NULL when there is no d_o.
void reference_queries(ReferenceHead *head, const double *o, const float *lse);
// out: the log of the sum of exp(score) of row `row`. Returns its limit.
double reference_lse(ReferenceHead *head, int row, double *out);
// out: head_dim values of row `row` of dQ, dK or dV, in fp64, as functions of Q, K, V, dO and of the O and the
// log-sum-exp that the device's forward pass computed. Returns the limit, as reference_row does.
double reference_gradient(ReferenceHead *head, OutputTensor output, int row, double *out);

// ---- check.c ----

enum { MAX_DIFFERENCES = 8 };

typedef struct Difference {
  size_t index;  // of the element in the tensor
  double got, expected, limit;
} Difference;

// Sums over the elements compared, for a relative error.
typedef struct Squares {
  double difference, reference;
} Squares;

typedef struct CheckResult {
  OutputTensor output;
  bool complete;  // every row was compared; otherwise rows_per_head of each head were
  int rows_per_head;
  uint64_t compared, wrong;  // elements
  uint64_t not_finite;       // elements of the whole output that are NaN or infinite
  uint64_t unwritten;        // of these, elements that still have the bits that the array was filled with before
  size_t first_not_finite;
  double max_error;      // of the elements compared; NaN when one of them is
  double worst;          // the largest error / limit
  Squares kernel;        // of the output from fp64
  Squares quantisation;  // e4m3 only: of fp64 on the e4m3 inputs from fp64 on the fp16 inputs that they were made from
  Difference differences[MAX_DIFFERENCES];  // the first ones, in order
  int difference_count;
} CheckResult;

// Compares one output with the reference. False when the host has no memory for it.
bool check_output(const Problem *problem, OutputTensor output, uint64_t seed, CheckResult *result);
// Compares all outputs. Those of the backward pass are compared only if O and the log-sum-exp, from which they follow,
// are right. Returns how many were compared; 0 when the host has no memory for it.
int check_problem(const Problem *problem, uint64_t seed, CheckResult results[OUTPUTS]);
bool check_is_right(const CheckResult *result);
bool check_all_right(const CheckResult *results, int count);
// Whether all of the row with the first difference would be right for another window; 0: for none. False when the host
// has no memory for the reference.
bool check_fits_window(const Problem *problem, const CheckResult *result, int window);
// Chooses `count` of `size` rows to compare: all of them, or the first, the last, rows on both sides of multiples of 16
// (the edges of tiles of any size) and random rows. They are sorted, and a row may appear twice.
void check_choose_rows(int *rows, int count, int size, uint64_t seed);
// The number of elements in a row of an output: head_dim, or 1 of the log-sum-exp.
int check_columns(const Problem *problem, OutputTensor output);
// The root mean square of the differences, relative to that of the reference.
double check_relative_error(const Squares *squares);

// ---- gemm_problem.c ----

// A matrix product: stage.h's Gemm on the host.
typedef struct GemmProblem {
  int m, n, k;
  Half *a, *b, *c;  // c: what the device computed
} GemmProblem;

// The kinds of inputs that matrices have, for --help.
extern const char gemm_input_kinds[];

// Makes the inputs. The same sizes, kind and seed always give the same inputs. False when the host has no memory.
bool gemm_problem_create(GemmProblem *problem, int m, int n, int k, InputKind input, uint64_t seed);
void gemm_problem_free(GemmProblem *problem);

typedef struct GemmCheck {
  int rows, columns;         // of C that were compared, where they meet
  uint64_t compared, wrong;  // elements
  uint64_t not_finite;       // of all of C
  size_t first_not_finite;
  double max_error, worst;  // of the elements compared: the largest error, and the largest error / limit
  Difference differences[MAX_DIFFERENCES];
  int difference_count;
} GemmCheck;

// Compares C with fp64: all of it, or elements where chosen rows and columns meet. False when the host has no memory.
bool gemm_check(const GemmProblem *problem, uint64_t seed, GemmCheck *check);
bool gemm_check_is_right(const GemmCheck *check);
void gemm_report_check(FILE *out, const GemmProblem *problem, const GemmCheck *check);

// ---- decode_problem.c ----

// A decode problem: stage.h's Decode on the host.
typedef struct DecodeProblem {
  DecodeShape shape;
  Bf16 *q, *k, *v, *o;  // o: what the device computed. K and V are not in pages here
  float *lse;           // what the device computed, [batch][heads][queries]; NULL when it does not
  int *lengths;         // [batch]; keys from there on are NaN
  // Of an e4m3 cache: K and V as codes, and the scales of these, as in Decode.
  E4m3 *codes[2];
  float *scales[2];
  int scale_stride;
} DecodeProblem;

// Makes the inputs. The same shape, kind and seed always give the same inputs. False when the host has no memory.
bool decode_problem_create(DecodeProblem *problem, const DecodeShape *shape, InputKind input, uint64_t seed);
// Gives the sequences lengths: "full", "ragged" (random ones from 1 on), or numbers with commas between them, which
// begin again where there are more sequences. Before this all are full. False where it makes no sense.
bool decode_problem_set_lengths(DecodeProblem *problem, const char *lengths, uint64_t seed);
// Makes K and V e4m3, with a scale for each key head or else for each tensor: the largest magnitude over 448. After the
// lengths. False when the host has no memory.
bool decode_problem_quantise(DecodeProblem *problem, bool per_head);
// Adds the log-sum-exp. False when the host has no memory for it.
bool decode_problem_add_lse(DecodeProblem *problem);
void decode_problem_free(DecodeProblem *problem);
size_t decode_rows(const DecodeShape *shape);               // of Q, and of O: elements of lse
size_t decode_query_elements(const DecodeShape *shape);     // of Q, and of O
size_t decode_cache_elements(const DecodeShape *shape);     // of K, and of V
size_t decode_used_elements(const DecodeProblem *problem);  // of K, and of V: those of keys that exist
size_t decode_scales(const DecodeProblem *problem);         // of K, and of V

// How the log-sum-exp compares. Nothing is compared where the device does not compute it.
typedef struct DecodeLseCheck {
  uint64_t compared, wrong;
  double max_error, worst;  // the largest error, and the largest error / limit
  Difference first;         // that is wrong
  uint64_t never_written;   // NaN, of all of lse
} DecodeLseCheck;

typedef struct DecodeCheck {
  int heads;                 // key heads whose queries were compared, of batch * kv_heads
  uint64_t compared, wrong;  // elements
  uint64_t not_finite;       // of all of O
  size_t first_not_finite;
  double max_error, worst;  // of the elements compared: the largest error, and the largest error / limit
  Squares squares;          // of O from fp64
  Difference differences[MAX_DIFFERENCES];
  int difference_count;
  DecodeLseCheck lse;
} DecodeCheck;

// Compares O and lse with fp64: all of it, or the queries of chosen key heads. False when the host has no memory.
bool decode_check(const DecodeProblem *problem, uint64_t seed, DecodeCheck *check);
bool decode_check_is_right(const DecodeCheck *check);
// Prints the result and a checksum of O: two runs whose O differs in a bit have different ones.
void decode_report_check(FILE *out, const DecodeProblem *problem, const DecodeCheck *check);

// ---- timing.c ----

typedef struct Timing {
  double median, min, max;  // milliseconds; min and max are the spread
  int repeats;
} Timing;

// Times work `repeats` times after a warm-up, the L2 cache flushed before each. False when a call of the device failed;
// the emulator always fails.
bool timing_measure(Device *device, DeviceWork *work, void *context, int repeats, Timing *timing);

typedef struct TimedWork {
  DeviceWork *work;
  void *context;
} TimedWork;

// Times several works that are to be compared. They take turns, so that all of them meet the same clocks. timings: one
// for each.
bool timing_measure_each(Device *device, const TimedWork *works, int count, int repeats, Timing *timings);

// ---- difference.c ----

// For a report on any tensor: after the place of an element ": got 1, expected 2, off by 1 (limit 0.1)", and below the
// last one how many more are wrong.
void report_difference(FILE *out, const Difference *difference);
void report_more(FILE *out, uint64_t more);

// ---- report.c: each prints one part of the report ----

void report_head(FILE *out, const Stage *stage, const DeviceInfo *device);
void report_problem(FILE *out, const Stage *stage, const Options *options, const DeviceInfo *device);
// Prints wrong tensors first. In the backward pass, it mentions O and the log-sum-exp only when they are wrong.
void report_check(FILE *out, const Problem *problem, const CheckResult *results, int count);
// Of the backward pass: a number for each gradient, which differs if a bit does. Two runs with the same inputs can be
// compared.
void report_checksums(FILE *out, const Problem *problem);
// How far off the kernel is, and how far the quantisation; prints nothing if the problem is not e4m3 or O not finite.
void report_accuracy(FILE *out, const Problem *problem, const CheckResult *result);
// Returns how many hazards make the run wrong: faults, and with --strict formal findings.
int report_hazards(FILE *out, const Options *options, const Device *device);
void report_timing(FILE *out, const Timing *timing, double flops);
// Compares this time with the one recorded for the same stage and shape; prints nothing when there is none.
void report_recorded(FILE *out, const Stage *stage, const Shape *shape, const Timing *timing, double flops);
void report_counters(FILE *out, const Device *device);
// A count with separators, "1,234,567".
const char *format_count(char text[32], uint64_t count);

// ---- listing.c ----

void report_line_counters(FILE *out, const Device *device);

// ---- json.c ----

// Writes what the emulator saw in a run that ends with this exit code: hazards, counters of each line. "-": to standard
// output. False and errno when the file cannot be written.
bool json_write(const char *path, const Session *session, int code);

// ---- steps.c ----

enum { MAX_STEPS = 1 << 20 };

// Writes the steps of a run that the emulator has recorded (EmulatorStep), as numbers of 32 bits. False and errno when
// the file cannot be written.
bool steps_write(const char *path, const Device *device);

// ---- csv.c ----

// False and error when the file that an option ("--csv") names cannot be written. This is checked before the work whose
// time the file is to hold. A file that did not exist is removed again.
bool csv_writable(const char *option, const char *path, char error[ERROR_SIZE]);
// Appends rows to the file ("-": standard output), after a header when the file is new or empty. Each row begins with
// the device and the date; `columns` are the stage's own, and rows[i] their values. False and error when the file
// cannot be written, or has other columns.
bool csv_append_rows(const char *path, const Stage *stage, const DeviceInfo *device, const char *columns,
                     const char *const *rows, int count, char error[ERROR_SIZE]);
// Appends one row: the time of one attention problem.
bool csv_append(const char *path, const Stage *stage, const DeviceInfo *device, const Shape *shape,
                const Timing *timing, double flops, char error[ERROR_SIZE]);
// Appends one row, with a column for each counter, by its name. shape: NULL when the stage has none.
bool csv_append_counters(const char *path, const Stage *stage, const Shape *shape, const EmulatorCounters *counters,
                         char error[ERROR_SIZE]);

// ---- recorded.c ----

// A row of plots/data/nvidia-h200.csv, which `make bench` recorded.
typedef struct Recorded {
  char stage[32], device[96], date[11];  // "2026-11-21"
  Shape shape;
  double tflops;
} Recorded;

// Finds the row of a stage, by its name, and a shape; false when there is none.
bool recorded_find(const char *stage, const Shape *shape, Recorded *row);

// ---- progress.c ----

// If standard error is a terminal, shows after two seconds what the program is doing, for how long, and how much of
// total is done (0: not known). One activity at a time.
void progress_begin(const char *what, uint64_t total);
void progress_add(uint64_t done);  // from any thread
void progress_end(void);

// ---- parallel.c ----

// Calls body(context, 0) to body(context, count - 1), spread over the CPU's cores; returns when all are done.
void parallel_for(size_t count, void (*body)(void *context, size_t index), void *context);

// ---- trace.c ----

typedef struct TraceWarpgroup TraceWarpgroup;  // ptx/trace.h

// Launches work with an empty table of time stamps. Returns the table, which the caller frees; NULL when a call of the
// device failed: DEVICE_INVALID when the kernels have no time stamps.
TraceWarpgroup *trace_measure(Device *device, DeviceModule *module, DeviceWork *work, void *context);
// The length of a cycle in nanoseconds, averaged over all SMs, because the clock of nanoseconds may advance in steps of
// 1000. 0 when no warpgroup has recorded its begin and end.
double trace_cycle(const TraceWarpgroup *table);
// Prints a header and the rows of all warpgroups on the SM of the first one; head: "stage,device,date". Returns how
// many rows.
int trace_print(FILE *file, const char *head, const TraceWarpgroup *table, double cycle);
// Does all of this: launches work, writes the file that --trace names, and reports. Returns an exit code.
int trace_run(const Session *session, DeviceWork *work, void *context);

struct Session {
  const Stage *stage;
  const char *program;  // "stage-00", for messages
  Options options;
  Device *device;
  DeviceModule *module;
  FILE *out;  // the report; standard error when the CSV takes standard output
};

// ---- session.c ----

// Prints one line on standard error, "stage-00: ...", and returns code.
int session_fail(const Session *session, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The same for an error of the device, with the exit code for that error; and for the device's first error.
int session_fail_with(const Session *session, const DeviceError *error);
int session_fail_device(const Session *session);
// The value of the stage's own option: NULL when not given, "" when given without a value.
const char *session_option(const Session *session, const char *name);
// Appends the counters to the file of --counters-csv. shape: NULL when the stage has none. An exit code.
int session_record_counters(const Session *session, const Shape *shape);

// ---- attention.c, gemm.c, decode.c and harness.c ----

int attention_run(Session *session);
int gemm_run(Session *session);
int decode_run(Session *session);
// The whole program: returns its exit code.
int harness_run(const Stage *stage, const DeviceImage *image, int argc, char *const *argv);
