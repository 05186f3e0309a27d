// The command line: wrong use exits 2 with one line that names what was wrong and what is allowed; a device that is not
// there exits 3; what options mean together.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/harness.h"
#include "support/program.h"

TestSuite(cli, .timeout = 60);

static const char STAGE[] = "stage-00";

static int lines(const char *text) {
  int count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

// Expects exit code 2, nothing on standard output, and one line on standard error with each of the texts in it.
static void expect_usage(const char *const *arguments, const char *text, const char *other) {
  Output *output = run_program(STAGE, arguments);
  cr_expect_eq(output->code, 2, "%s: exit code %d", arguments[0], output->code);
  cr_expect_str_empty(output->out, "%s: printed %s", arguments[0], output->out);
  cr_expect_eq(lines(output->err), 1, "%s: not one line: %s", arguments[0], output->err);
  cr_expect(strstr(output->err, text), "%s: no '%s' in: %s", arguments[0], text, output->err);
  cr_expect(strstr(output->err, other), "%s: no '%s' in: %s", arguments[0], other, output->err);
  cr_expect(!strncmp(output->err, "stage-00: ", 10), "%s: does not say who speaks: %s", arguments[0], output->err);
  free(output);
}

// One argument each: what was wrong, and what is allowed.
Test(cli, wrong_arguments) {
  static const struct {
    const char *argument, *wrong, *allowed;
  } cases[] = {
      {"--seqlen=abc", "--seqlen=abc: not a whole number", "1 to 1048576"},
      {"--seqlen=", "--seqlen=: not a whole number", "1 to 1048576"},
      {"--seqlen=-1", "--seqlen=-1: not a whole number", "1 to 1048576"},
      {"--seqlen=+1", "--seqlen=+1: not a whole number", "1 to 1048576"},
      {"--seqlen= 1", "--seqlen= 1: not a whole number", "1 to 1048576"},
      {"--seqlen=1.5", "--seqlen=1.5: not a whole number", "1 to 1048576"},
      {"--seqlen=12k", "--seqlen=12k: not a whole number", "1 to 1048576"},
      {"--seqlen=0x10", "--seqlen=0x10: not a whole number", "1 to 1048576"},
      {"--seqlen=0", "--seqlen=0: too small", "1 to 1048576"},
      {"--seqlen=1048577", "--seqlen=1048577: too large", "1 to 1048576"},
      {"--seqlen=18446744073709551617", "too large", "1 to 1048576"},  // 2^64 + 1, which wraps to 1
      {"--seqlen=99999999999999999999999999", "too large", "1 to 1048576"},
      {"--seqlen", "--seqlen needs a value", "--seqlen=N"},
      {"--batch=0", "--batch=0: too small", "1 to 65536"},
      {"--batch=65537", "--batch=65537: too large", "1 to 65536"},
      {"--heads=x", "--heads=x: not a whole number", "1 to 65536"},
      {"--seed=18446744073709551616", "too large", "0 to 18446744073709551615"},
      {"--schedule=no", "--schedule=no: not a whole number", "0 to"},
      {"--repeat=100001", "--repeat=100001: too large", "0 to 100000"},
      {"--head-dim=96", "--head-dim=96", "64|128"},
      {"--head-dim=6", "--head-dim=6:", "64|128"},
      {"--head-dim=064", "--head-dim=064:", "64|128"},
      {"--head-dim", "--head-dim needs a value", "64|128"},
      {"--device=tpu", "--device=tpu", "auto|gpu|emulator"},
      {"--device=", "--device=:", "auto|gpu|emulator"},
      {"--device=GPU", "--device=GPU", "auto|gpu|emulator"},
      {"--input=random", "--input=random",
       "normal|ones|arange|large|identity|waves|cliff|outliers|mean|negative|rows|columns|vanish|explode|places"},
      {"--scales=head", "--scales: stage 00-scalar has no e4m3 inputs", "--help lists its options"},
      {"--rotate", "--rotate: stage 00-scalar has no e4m3 inputs", "--help lists its options"},
      {"--hazards=maybe", "--hazards=maybe", "on|off"},
      {"--causal=yes", "--causal=yes", "takes no value"},
      {"--counters=1", "--counters=1", "takes no value"},
      {"--help=me", "--help=me", "takes no value"},
      {"--csv", "--csv needs a value", "--csv=FILE|-"},
      {"--csv=", "--csv=: the value is empty", "--csv=FILE|-"},
      {"--ptx", "--ptx needs a value", "--ptx=FILE"},
      {"--seqln=5", "unknown option --seqln;", "did you mean --seqlen?"},
      {"--head_dim=64", "unknown option --head_dim;", "did you mean --head-dim?"},
      {"--casual", "unknown option --casual;", "did you mean --causal?"},
      {"--sxxxen=5", "unknown option --sxxxen;", "did you mean --seqlen?"},
      {"--sxxxxn=5", "unknown option --sxxxxn; --help lists all options", ""},
      {"--frobnicate", "unknown option --frobnicate;", "--help lists all options"},
      {"-h", "unexpected argument '-h'", "--help"},
      {"--", "unexpected argument '--'", "--help"},
      {"", "unexpected argument ''", "--help"},
      {"seqlen=5", "unexpected argument 'seqlen=5'", "--name=value"},
      {"--seq\nlen=5", "unknown option --seq?len;", "did you mean --seqlen?"},
      {"--seqlen=5\n6", "--seqlen=5?6: not a whole number", "1 to 1048576"},
      {"--ptx=/nowhere/at/all.ptx", "--ptx=/nowhere/at/all.ptx", "No such file"},
      {"--ptx=/", "--ptx=/", "directory"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_usage((const char *const[]){cases[i].argument, NULL}, cases[i].wrong, cases[i].allowed);
}

// However long an argument is, the error is one line of a readable length.
Test(cli, long_arguments) {
  char argument[20000];
  memset(argument, 'x', sizeof argument - 1);
  argument[sizeof argument - 1] = 0;
  memcpy(argument, "--seqlen=", 9);
  expect_usage((const char *const[]){argument, NULL}, "not a whole number", "1 to 1048576");
  memcpy(argument, "--xeqlen-", 9);
  expect_usage((const char *const[]){argument, NULL}, "unknown option", "--help");
  Output *output = run_program(STAGE, (const char *const[]){argument, NULL});
  cr_expect(strlen(output->err) < 320);
}

// A right option does not excuse a wrong one, and the first wrong one is named.
Test(cli, one_error_at_a_time) {
  expect_usage((const char *const[]){"--causal", "--seqlen=no", "--batch=no", NULL}, "--seqlen=no", "1 to");
}

// Options that contradict each other, whatever this machine has.
Test(cli, contradictions) {
  static const char *const cases[][4] = {
      {"--device=emulator", "--repeat=3", "--repeat: the emulator has no clock", "--device=gpu"},
      {"--device=emulator", "--csv=-", "--csv: the emulator has no clock", "--device=gpu"},
      {"--device=gpu", "--counters", "--counters: a GPU cannot", "--device=emulator"},
      {"--device=gpu", "--schedule=4", "--schedule: a GPU cannot", "--device=emulator"},
      {"--device=gpu", "--ptx=x.ptx", "--ptx: a GPU cannot", "--device=emulator"},
      {"--counters", "--csv=-", "--csv works only on a GPU", "--counters only on the emulator"},
      {"--counters-csv=-", "--csv=-", "--csv works only on a GPU", "--counters-csv only on the emulator"},
      {"--device=gpu", "--counters-csv=-", "--counters-csv: a GPU cannot", "--device=emulator"},
      {"--repeat=2", "--hazards=on", "--repeat works only on a GPU", "--hazards only on the emulator"},
      {"--repeat=0", "--csv=-", "--csv records times", "--repeat=1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_usage((const char *const[]){cases[i][0], cases[i][1], NULL}, cases[i][2], cases[i][3]);
}

static bool driver_here(void) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY);
  if (library) dlclose(library);
  return library != NULL;
}

// Without a GPU: asking for it is exit code 3, asking for times is wrong use.
Test(cli, no_gpu) {
  if (driver_here()) cr_skip_test("this machine has a CUDA driver");
  Output *output = run_line(STAGE, "--device=gpu");
  cr_expect_eq(output->code, 3);
  cr_expect_str_empty(output->out);
  cr_expect_eq(lines(output->err), 1, "not one line: %s", output->err);
  cr_expect(strstr(output->err, "--device=gpu") && strstr(output->err, "libcuda.so.1"), "%s", output->err);
  expect_usage((const char *const[]){"--repeat=3", NULL}, "--repeat: only a GPU can time a kernel", "libcuda.so.1");
  expect_usage((const char *const[]){"--csv=-", NULL}, "--csv: only a GPU can time a kernel", "libcuda.so.1");
}

Test(cli, help) {
  Output *output = run_line(STAGE, "--help");
  cr_expect_eq(output->code, 0);
  cr_expect_str_empty(output->err);
  cr_expect(strstr(output->out, "\n  --device="), "%s", output->out);
}

// ---- the parser itself ----

static const Stage plain = {.name = "99-plain", .title = "a stage of the tests"};

static Options parse(const char *const *arguments) {
  Options options;
  char error[ERROR_SIZE];
  const char *argv[16] = {"stage-99"};
  int argc = 1;
  for (; arguments[argc - 1]; argc++) argv[argc] = arguments[argc - 1];
  cr_assert(options_parse(&options, &plain, argc, (char *const *)argv, error), "%s", error);
  return options;
}

static const DeviceInfo gpu_info = {.kind = DEVICE_GPU}, emulator_info = {.kind = DEVICE_EMULATOR};

Test(cli, defaults) {
  char error[ERROR_SIZE];
  Options options = parse((const char *const[]){NULL});
  cr_assert(options_complete(&options, &gpu_info, error));
  Shape shape = options_shape(&options);
  cr_expect(shape.batch == 4 && shape.heads == 32 && shape.seqlen == 4096 && shape.head_dim == 64 && !shape.causal);
  cr_expect(options.repeat > 0 && options.seed == 1 && options.schedule == 0 && options.hazards == 0);

  options = parse((const char *const[]){"--seqlen=97", NULL});
  cr_assert(options_complete(&options, &emulator_info, error));
  shape = options_shape(&options);
  cr_expect(shape.batch == 1 && shape.heads == 2 && shape.seqlen == 97 && shape.head_dim == 64);
  cr_expect_eq(options.repeat, 0, "the emulator times nothing");
}

Test(cli, every_option_is_read) {
  Options options = parse((const char *const[]){"--batch=2", "--heads=3", "--seqlen=1048576", "--head-dim=128",
                                                "--causal", "--seed=18446744073709551615", "--input=identity",
                                                "--hazards=off", "--schedule=9", "--counters", "--ptx=a=b", NULL});
  Shape shape = options_shape(&options);
  cr_expect(shape.batch == 2 && shape.heads == 3 && shape.seqlen == 1048576 && shape.head_dim == 128 && shape.causal);
  cr_expect_eq(options.seed, UINT64_MAX);
  cr_expect_eq(options.input, INPUT_IDENTITY);
  char name[INPUT_NAME_SIZE];
  cr_expect_str_eq(options_input_name(&options, name), "identity");
  options.input = INPUT_EXPLODE;  // the last one
  cr_expect_str_eq(options_input_name(&options, name), "explode");
  cr_expect_eq(options.hazards, 1);
  cr_expect_eq(options.schedule, 9);
  cr_expect(options.counters);
  cr_expect_str_eq(options.ptx, "a=b");
  options = parse((const char *const[]){"--device=gpu", "--repeat=7", "--csv=x.csv", "--repeat=8", NULL});
  cr_expect_eq(options.device, DEVICE_GPU);
  cr_expect_eq(options.repeat, 8, "the last one counts");
  cr_expect_str_eq(options.csv, "x.csv");
}

// What only one device can do chooses it.
Test(cli, options_choose_the_device) {
  static const struct {
    const char *argument;
    DeviceKind kind;
  } cases[] = {
      {"--causal", DEVICE_AUTO},
      {"--counters", DEVICE_EMULATOR},
      {"--ptx=x", DEVICE_EMULATOR},
      {"--strict", DEVICE_EMULATOR},
      {"--schedule=1", DEVICE_EMULATOR},
      {"--hazards=on", DEVICE_EMULATOR},
      {"--device=emulator", DEVICE_EMULATOR},
      {"--device=gpu", DEVICE_GPU},
      {"--repeat=3", DEVICE_AUTO},
      {"--repeat=0", DEVICE_AUTO},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Options options = parse((const char *const[]){cases[i].argument, NULL});
    DeviceKind kind;
    char error[ERROR_SIZE];
    cr_expect(options_device(&options, &kind, error));
    cr_expect_eq(kind, cases[i].kind, "%s chose %d", cases[i].argument, kind);
  }
  // No times is what the emulator gives anyway.
  Options options = parse((const char *const[]){"--device=emulator", "--repeat=0", "--counters", NULL});
  DeviceKind kind;
  char error[ERROR_SIZE];
  cr_expect(options_device(&options, &kind, error) && kind == DEVICE_EMULATOR, "%s", error);
}

// A stage's own options: with a value, without one, and with one that may be left out.
Test(cli, stage_options) {
  static const StageOption own[] = {
      {"level", "N", "a number"}, {"explain", "[BITS]", "tell"}, {"brief", NULL, "less"}, {0}};
  static const Stage stage = {.name = "99-own", .title = "a stage of the tests", .options = own};
  static const struct {
    const char *argument, *name, *value;  // value NULL: refused
  } cases[] = {
      {"--level=3", "level", "3"},         {"--level", "level", NULL}, {"--explain", "explain", ""},
      {"--explain=0x1", "explain", "0x1"}, {"--brief", "brief", ""},   {"--brief=1", "brief", NULL},
      {"--brie", "brief", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Session session = {.stage = &stage};
    char error[ERROR_SIZE];
    const char *argv[] = {"stage-99", cases[i].argument};
    bool parsed = options_parse(&session.options, &stage, 2, (char *const *)argv, error);
    cr_expect_eq(parsed, cases[i].value != NULL, "%s", cases[i].argument);
    if (parsed)
      cr_expect_str_eq(session_option(&session, cases[i].name), cases[i].value);
    else
      cr_expect(strstr(error, cases[i].name), "%s: %s", cases[i].argument, error);
  }
}

// What --help shows for a stage. The caller frees it.
static char *help_of(const Stage *stage) {
  char *help;
  size_t size;
  FILE *out = open_memstream(&help, &size);
  options_print_help(out, "./stage-99", stage);
  fclose(out);
  return help;
}

// A stage that is not an attention kernel has no shape: attention's options are refused in one line, and not shown.
static int run_nothing(Session *session) { return (void)session, 0; }

Test(cli, options_of_a_stage_that_is_no_attention) {
  static const Stage other = {.name = "99-other", .title = "a stage of the tests", .run = run_nothing};
  static const char *const refused[] = {"--batch=1", "--heads=1", "--seqlen=1", "--head-dim=64", "--causal"};
  static const char *const taken[] = {"--seed=1",   "--input=ones", "--schedule=1",
                                      "--counters", "--repeat=3",   "--csv=x"};
  Options options;
  char error[ERROR_SIZE];
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    const char *argv[] = {"stage-99", refused[i]};
    cr_expect(!options_parse(&options, &other, 2, (char *const *)argv, error), "%s is taken", refused[i]);
    cr_expect(!strncmp(error, refused[i], strcspn(refused[i], "=")) && strstr(error, "not an attention kernel"), "%s",
              error);
  }
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    const char *argv[] = {"stage-99", taken[i]};
    cr_expect(options_parse(&options, &other, 2, (char *const *)argv, error), "%s", error);
  }
  char *help = help_of(&other);
  cr_expect(strstr(help, "--input=") && !strstr(help, "--seqlen") && !strstr(help, "--causal"), "%s", help);
  free(help);
}

// The options of a stage with e4m3 inputs. Other stages refuse them, and do not show them.
Test(cli, options_of_e4m3_inputs) {
  static const Stage e4m3 = {.name = "99-e4m3", .title = "a stage of the tests", .inputs = INPUTS_E4M3};
  static const struct {
    const char *argument, *error;  // NULL: taken
  } cases[] = {
      {"--scales=tensor", NULL},
      {"--scales=head", NULL},
      {"--rotate", NULL},
      {"--scales=row", "--scales=row: one of tensor|head is allowed"},
      {"--scales", "--scales needs a value: write --scales=tensor|head"},
      {"--rotate=yes", "--rotate=yes: this option takes no value"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *argv[] = {"stage-99", cases[i].argument};
    Options options;
    char error[ERROR_SIZE] = "";
    bool parsed = options_parse(&options, &e4m3, 2, (char *const *)argv, error);
    cr_expect_eq(parsed, !cases[i].error, "%s: %s", cases[i].argument, error);
    if (cases[i].error) cr_expect_str_eq(error, cases[i].error);
    cr_expect_eq(options.scales, i == 1);
    cr_expect_eq(options.rotate, i == 2);
  }
  char *help = help_of(&e4m3), *other = help_of(&plain);
  cr_expect(strstr(help, "--scales=tensor|head") && strstr(help, "--rotate "), "%s", help);
  cr_expect(!strstr(other, "--scales") && !strstr(other, "--rotate"), "%s", other);
  free(help);
  free(other);
}

// ---- the CSV ----

Test(cli, csv_has_one_header) {
  char path[] = "/tmp/hopper-ladder-csv-XXXXXX", error[ERROR_SIZE];
  int file = mkstemp(path);
  cr_assert(file >= 0);
  close(file);
  DeviceInfo device = {.kind = DEVICE_GPU, .name = "Test GPU", .driver = "1.2.3", .cuda = "13.0", .sm_clock_mhz = 1980};
  Shape shape = {.batch = 4, .heads = 32, .seqlen = 4096, .head_dim = 64};
  Timing timing = {.median = 2, .min = 1.5, .max = 2.5, .repeats = 20};
  cr_expect(csv_append(path, &plain, &device, &shape, &timing, problem_flops(&shape), error), "%s", error);
  shape.causal = true;
  cr_expect(csv_append(path, &plain, &device, &shape, &timing, problem_flops(&shape), error), "%s", error);

  size_t size;
  char *text = read_whole(path, &size), *line = text;
  unlink(path);
  cr_assert_eq(lines(text), 3, "%s", text);
  cr_expect(
      !strncmp(strsep(&line, "\n"),
               "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,min_ms,max_ms,"
               "repeats,tflops",
               200));
  // 4 * 4 * 32 * 4096^2 * 64 operations in 2 ms; half of them when causal.
  char *row = strsep(&line, "\n");
  cr_expect(!strncmp(row, "99-plain,Test GPU,1980,1.2.3,13.0,20", 36), "%s", row);
  cr_expect(strstr(row, "Z,4,32,4096,64,0,2.000000,1.500000,2.500000,20,274.878"), "%s", row);
  cr_expect(strstr(line, "Z,4,32,4096,64,1,2.000000,1.500000,2.500000,20,137.439"), "%s", line);
}

// Records of two kinds do not share a file.
Test(cli, csv_with_other_columns) {
  char path[] = "/tmp/hopper-ladder-csv-XXXXXX", error[ERROR_SIZE];
  int file = mkstemp(path);
  cr_assert(file >= 0);
  close(file);
  DeviceInfo device = {.kind = DEVICE_GPU, .name = "Test GPU", .driver = "1.2.3", .cuda = "13.0", .sm_clock_mhz = 1980};
  const char *const rows[] = {"1,2", "3,4"}, *const other[] = {"5"};
  cr_expect(csv_append_rows(path, &plain, &device, "a,b", rows, 2, error), "%s", error);
  cr_expect(!csv_append_rows(path, &plain, &device, "c", other, 1, error));
  cr_expect(strstr(error, path) && strstr(error, "other columns"), "%s", error);
  cr_expect(csv_append_rows(path, &plain, &device, "a,b", rows, 1, error), "%s", error);
  size_t size;
  char *text = read_whole(path, &size);
  unlink(path);
  cr_expect_eq(lines(text), 4, "%s", text);
  cr_expect(strstr(text, "stage,device,sm_clock_mhz,driver,cuda,date,a,b\n99-plain,Test GPU,1980,1.2.3,13.0,20"), "%s",
            text);
  cr_expect(strstr(text, "Z,3,4\n") && !strstr(text, "Z,5"), "%s", text);
  free(text);
}

Test(cli, csv_of_counters) {
  Output *output = run_line("stage-03", "--counters-csv=- --heads=1 --seqlen=64");
  cr_expect_eq(output->code, 0);
  cr_expect(strstr(output->err, "result    right"), "the report is on standard error: %s", output->err);
  cr_assert_eq(lines(output->out), 2, "%s", output->out);
  cr_expect(strstr(output->out, "stage,batch,heads,seqlen,head_dim,causal,smsp__inst_executed.sum,") == output->out);
  cr_expect(strstr(output->out, "\n03-cp-async,1,1,64,64,0,"));
  // Two products of 128 x 64 x 64, as a block has 128 rows of queries.
  char *header = output->out, *row = strchr(output->out, '\n') + 1, *name, *value;
  uint64_t flops = 0;
  while ((name = strsep(&header, ",\n")) && (value = strsep(&row, ",\n")) && *name)
    if (!strcmp(name, "tensor_flops")) flops = strtoull(value, NULL, 10);
  cr_expect_eq(flops, 2 * 2 * 128 * 64 * 64);
  free(output);
}

// Asking leaves all as it was: no empty file, should there be no GPU after all, and what a file holds.
Test(cli, csv_that_can_be_written) {
  char error[ERROR_SIZE], path[] = "/tmp/csv-XXXXXX", text[8] = "";
  int file = mkstemp(path);
  cr_assert(file >= 0 && write(file, "kept", 4) == 4);
  cr_expect(csv_writable("--csv", path, error));
  cr_expect(pread(file, text, sizeof text, 0) == 4 && !strcmp(text, "kept"), "%s", text);
  close(file);
  unlink(path);
  cr_expect(csv_writable("--csv", path, error));
  cr_expect(access(path, F_OK) != 0, "%s was left behind", path);
  char target[sizeof path + 8];
  snprintf(target, sizeof target, "%s.target", path);
  cr_assert_eq(symlink(target, path), 0);
  cr_expect(csv_writable("--csv", path, error));
  cr_expect_eq(unlink(path), 0, "a link to a file that is not there yet is gone");
  unlink(target);
}

Test(cli, csv_that_cannot_be_written) {
  char error[ERROR_SIZE];
  cr_expect(!csv_writable("--csv", "/nowhere/at/all.csv", error));
  cr_expect(strstr(error, "--csv=/nowhere/at/all.csv") && strstr(error, "No such file"), "%s", error);
  Output *output = run_line("stage-00", "--counters-csv=/nowhere/at/all.csv");
  cr_expect_eq(output->code, 2);
  cr_expect(strstr(output->err, "--counters-csv=/nowhere/at/all.csv: No such file"), "%s", output->err);
  free(output);
}
