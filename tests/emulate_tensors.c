// Writes tensor_copies.txt again, with what the copies do on the emulator:
//
//   build/emulate-tensors <tests/golden/tensor_copies.txt >emulated.txt; diff tests/golden/tensor_copies.txt emulated.txt
#include "support/tensor_copies.h"

int main(void) {
  static char line[TENSOR_LINE + 2], text[TENSOR_LINE];
  static TensorResult result;
  TensorCase c;
  char why[400];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    bool is_case = line[0] && line[0] != '#';
    if (is_case && !tensor_case(line, &c)) return fprintf(stderr, "emulate: no case: %s\n", line), 2;
    if (is_case) {
      char *arrow = strstr(line, " ->");
      if (arrow) *arrow = 0;
      tensor_copy_record(&c, &result, why);
      tensor_write_result(&c, &result, text);
      fprintf(stderr, "%s ->%.60s  %s\n", line, text, why);
    }
    printf(is_case ? "%s ->%s\n" : "%s\n", line, text);
  }
  return 0;
}
