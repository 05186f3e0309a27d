// Tests with parameters: see criterion.h.
#pragma once

#include "criterion.h"

#define cr_malloc malloc
#define cr_make_param_array(type, array, length, ...)                                                                  \
  (struct criterion_test_params) { .items = (array), .item_size = sizeof(type), .count = (length) }
#define ParameterizedTestParameters(suite_name, test_name)                                                             \
  static struct criterion_test_params suite_name##_##test_name##_parameters(void)
#define ParameterizedTest(parameter, suite_name, test_name, ...)                                                       \
  static void suite_name##_##test_name##_with(parameter);                                                              \
  static void suite_name##_##test_name##_run(void *item) { suite_name##_##test_name##_with(item); }                    \
  STAND_IN_REGISTER(test_##suite_name##_##test_name, stand_in_add, .suite = #suite_name, .name = #test_name,           \
                    .run = suite_name##_##test_name##_run, .parameters = suite_name##_##test_name##_parameters,        \
                    ##__VA_ARGS__)                                                                                     \
  static void suite_name##_##test_name##_with(parameter)
