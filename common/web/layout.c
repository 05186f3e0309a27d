// Where things lie: see layout.h. Each answer is the emulator's own function, which its products and counters use, too.
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../emulator/memory/access.h"
#include "../emulator/tensor/descriptor.h"
#include "../emulator/tensor/wgmma_registers.h"

enum { CHUNK = 16, IN_CHUNK = CHUNK / 2, MOST_ROWS = 256, MOST_K = 64 };

static uint64_t number(const char *text) { return strtoull(text, NULL, 0); }

static int print_wavefronts(int count, char **words) {
  uint64_t addresses[LANES] = {0};
  if (count < 1 || count > LANES) return 2;
  for (int lane = 0; lane < count; lane++) addresses[lane] = number(words[lane]);
  printf("{\"wavefronts\":%u}\n", shared_wavefronts(FULL_MASK >> (LANES - count), addresses, CHUNK));
  return 0;
}

// Says what is wrong with the descriptor, or returns NULL.
static const char *fault_of(uint64_t bits, const MatrixDescriptor *d, int rows, int k) {
  DescriptorFinding finding = descriptor_check(bits, d);
  return finding.text ? finding.text : descriptor_misfit(d, rows, 2 * k);
}

static int print_descriptor(uint64_t bits, bool mn_major, int rows, int k) {
  MatrixDescriptor d;
  if (rows < 8 || rows > MOST_ROWS || rows % 8 || k < IN_CHUNK || k > MOST_K || k % IN_CHUNK) return 2;
  descriptor_decode(bits, mn_major, &d);
  const char *fault = fault_of(bits, &d, rows, k), *quote = fault ? "\"" : "";
  printf("{\"start\":%u,\"leading\":%u,\"stride\":%u,\"base_offset\":%u,\"swizzle\":%u,\"fault\":%s%s%s,\"chunks\":",
         d.start, d.leading, d.stride, d.base_offset, d.swizzle, quote, fault ? fault : "null", quote);
  int outer = mn_major ? k : rows, inner = (mn_major ? rows : k) / IN_CHUNK;
  for (int i = 0; i < outer * inner; i++) {
    int line = i / inner, place = i % inner * IN_CHUNK;
    printf("%c%u", i ? ',' : '[', mn_major ? descriptor_address(&d, place, line) : descriptor_address(&d, line, place));
  }
  puts("]}");
  return 0;
}

static int print_accumulator(int n) {
  if (n < 8 || n > 256 || n % 8) return 2;
  printf("{\"places\":");
  for (int i = 0; i < LANES * n / 2; i++) {
    int row, column;
    wgmma_place(i / (n / 2), i % (n / 2), &row, &column);
    printf("%c%d,%d", i ? ',' : '[', row, column);
  }
  puts("]}");
  return 0;
}

int layout_run(int argc, char **argv) {
  const char *question = argc > 1 ? argv[1] : "";
  if (!strcmp(question, "wavefronts")) return print_wavefronts(argc - 2, argv + 2);
  if (!strcmp(question, "descriptor") && argc == 6)
    return print_descriptor(number(argv[2]), !strcmp(argv[3], "mn"), atoi(argv[4]), atoi(argv[5]));
  if (!strcmp(question, "accumulator") && argc == 3) return print_accumulator(atoi(argv[2]));
  fprintf(stderr, "layout: there is no such question\n");
  return 2;
}
