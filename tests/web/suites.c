// The tests of the C suites under WebAssembly. Without an argument their names are printed, a line each; with a name
// that test runs. Exit code: 0 passed, 1 failed, 77 skipped.
#include <criterion/criterion.h>
#include <stdarg.h>

enum { FAILED = 1, UNKNOWN = 2, SKIPPED = 77 };

static StandInTest *tests, **last = &tests, *suites;
static bool failed;

void stand_in_add(StandInTest *test) {
  *last = test;
  last = &test->next;
}

void stand_in_add_suite(StandInTest *suite) {
  suite->next = suites;
  suites = suite;
}

void stand_in_failed(bool fatal, const char *file, int line, const char *text, ...) {
  va_list arguments;
  va_start(arguments, text);
  printf("%s:%d: %s: ", file, line, text);
  const char *format = va_arg(arguments, const char *);
  if (format) vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
  failed = true;
  if (fatal) exit(FAILED);
}

void stand_in_skip(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
  exit(SKIPPED);
}

static StandInTest *suite_of(const StandInTest *test) {
  StandInTest *suite = suites;
  while (suite && strcmp(suite->suite, test->suite)) suite = suite->next;
  return suite;
}

static bool is_disabled(const StandInTest *test) {
  const StandInTest *suite = suite_of(test);
  return test->disabled || (suite && suite->disabled);
}

static void run_test(const StandInTest *test, void *parameter) {
  const StandInTest *suite = suite_of(test);
  void (*const init)(void) = test->init ? test->init : suite ? suite->init : NULL;
  void (*const fini)(void) = test->fini ? test->fini : suite ? suite->fini : NULL;
  if (init) init();
  test->run(parameter);
  if (fini) fini();
}

// Prints the test's names, or runs it if one of them is asked for. Returns whether it ran.
static bool print_or_run(const StandInTest *test, const char *asked) {
  struct criterion_test_params parameters = {.count = 1};
  if (test->parameters) parameters = test->parameters();
  for (size_t i = 0; i < parameters.count; i++) {
    char name[200];
    int length = snprintf(name, sizeof name, "%s/%s", test->suite, test->name);
    if (test->parameters) snprintf(name + length, sizeof name - (size_t)length, "/%zu", i);
    if (!asked) printf("%s\n", name);
    if (!asked || strcmp(asked, name)) continue;
    run_test(test, (char *)parameters.items + i * parameters.item_size);
    return true;
  }
  return false;
}

int main(int argc, char **argv) {
  bool ran = argc < 2;
  for (const StandInTest *test = tests; test; test = test->next)
    if (!is_disabled(test)) ran |= print_or_run(test, argc > 1 ? argv[1] : NULL);
  if (!ran) printf("there is no test %s\n", argv[1]);
  return !ran ? UNKNOWN : failed ? FAILED : 0;
}
