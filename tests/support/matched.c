// A pattern that no test matches is a mistake, TESTS=typo: Criterion would run nothing and succeed.
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <criterion/options.h>
#include <stdio.h>
#include <stdlib.h>

static bool matched;

ReportHook(PRE_INIT)(struct criterion_test *test) {
  (void)test;
  matched = true;
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats) {
  (void)stats;
  if (matched) return;
  fprintf(stderr, "no test matches %s; a pattern is SUITE/TEST, as \"plots/*\"\n", criterion_options.pattern);
  exit(2);
}
