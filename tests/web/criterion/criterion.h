// What the tests use of Criterion, for WebAssembly, which it does not know. Each test runs in an instance of its own,
// so that none sees what another one left, as Criterion's run in processes: tests/web/suites.js.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of a test with parameters.
struct criterion_test_params {
  void *items;
  size_t item_size, count;
};

// The names of the fields, but for the first four, are Criterion's.
typedef struct StandInTest {
  const char *suite, *name;
  void (*run)(void *parameter);
  struct criterion_test_params (*parameters)(void);  // NULL: none
  void (*init)(void);
  void (*fini)(void);
  double timeout;
  bool disabled;
  struct StandInTest *next;
} StandInTest;

void stand_in_add(StandInTest *test);
void stand_in_add_suite(StandInTest *suite);
// The arguments after the text are those of printf; the last one is NULL.
void stand_in_failed(bool fatal, const char *file, int line, const char *text, ...);
_Noreturn void stand_in_skip(const char *format, ...);

#define STAND_IN_REGISTER(variable, add, ...)                                                                          \
  static StandInTest variable = {__VA_ARGS__};                                                                         \
  __attribute__((constructor)) static void variable##_add(void) { add(&variable); }

#define TestSuite(suite_name, ...)                                                                                     \
  STAND_IN_REGISTER(suite_##suite_name, stand_in_add_suite, .suite = #suite_name, ##__VA_ARGS__)
#define Test(suite_name, test_name, ...)                                                                               \
  static void suite_name##_##test_name##_run(void *);                                                                  \
  STAND_IN_REGISTER(test_##suite_name##_##test_name, stand_in_add, .suite = #suite_name, .name = #test_name,           \
                    .run = suite_name##_##test_name##_run, ##__VA_ARGS__)                                              \
  static void suite_name##_##test_name##_run(__attribute__((unused)) void *stand_in_unused)

#define CHECK_OR(fatal, condition, text, ...)                                                                          \
  do {                                                                                                                 \
    if (!(condition)) stand_in_failed(fatal, __FILE__, __LINE__, text, ##__VA_ARGS__, NULL);                           \
  } while (0)
#define CHECK_STRINGS(fatal, a, b, ...) CHECK_OR(fatal, !strcmp(a, b), #a " is not " #b, ##__VA_ARGS__)

#define cr_assert(condition, ...) CHECK_OR(true, condition, #condition, ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...) CHECK_OR(true, (a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...) CHECK_OR(true, (a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...) CHECK_OR(true, (a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...) CHECK_OR(true, (a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...) CHECK_OR(true, (a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...) CHECK_OR(true, (a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) CHECK_STRINGS(true, a, b, ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...) CHECK_OR(true, !memcmp(a, b, size), #a " is not " #b, ##__VA_ARGS__)
#define cr_assert_fail(...) CHECK_OR(true, false, "failed", ##__VA_ARGS__)
#define cr_expect(condition, ...) CHECK_OR(false, condition, #condition, ##__VA_ARGS__)
#define cr_expect_not(condition, ...) CHECK_OR(false, !(condition), "not " #condition, ##__VA_ARGS__)
#define cr_expect_null(pointer, ...) CHECK_OR(false, !(pointer), #pointer " is not NULL", ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...) CHECK_OR(false, (a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...) CHECK_OR(false, (a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...) CHECK_OR(false, (a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...) CHECK_OR(false, (a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...) CHECK_OR(false, (a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...) CHECK_OR(false, (a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_expect_float_eq(a, b, limit, ...)                                                                           \
  CHECK_OR(false, fabs((double)(a) - (double)(b)) <= (limit), #a " is not near " #b, ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) CHECK_STRINGS(false, a, b, ##__VA_ARGS__)
#define cr_expect_str_empty(a, ...) CHECK_OR(false, !(a)[0], #a " is not empty", ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...) CHECK_OR(false, !memcmp(a, b, size), #a " is not " #b, ##__VA_ARGS__)
#define cr_skip_test(...) stand_in_skip(__VA_ARGS__)
