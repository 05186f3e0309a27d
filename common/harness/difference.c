// One wrong element of a result, in words.
#include "harness.h"

void report_difference(FILE *out, const Difference *difference) {
  if (isnan(difference->got))
    fprintf(out, ": got NaN, expected %.6g\n", difference->expected);
  else
    fprintf(out, ": got %.6g, expected %.6g, off by %.2g (limit %.2g)\n", difference->got, difference->expected,
            fabs(difference->got - difference->expected), difference->limit);
}

void report_more(FILE *out, uint64_t more) {
  char text[32];
  if (more) fprintf(out, "          and %s more\n", format_count(text, more));
}
