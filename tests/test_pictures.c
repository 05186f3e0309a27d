// The picture of mma's fragments in lesson 02b shows where the emulator has their numbers, which are where an H200 has
// them (tests/golden). plots/first_figures.py computes the picture from place_in_mma.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/matrix_kernel.h"
#include "support/program.h"

TestSuite(pictures, .timeout = 60);

enum { REGISTERS = 10 };  // of a lane: four of A, two of B, four of D

// For each place of a lane's numbers: which operand, lane, number of the lane, row and column.
static const char places[] = "import sys; sys.path.insert(0, 'plots'); import first_figures as f\n"
                             "for operand, count in f.NUMBERS_IN_MMA.items():\n"
                             "  for lane in range(32):\n"
                             "    for i in range(count): print(operand, lane, i, *f.place_in_mma(operand, lane, i))\n";

static const char body[] =
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15}, [%rd0], 16;\n"
    "add.u64 %rd3, %rd0, 512;\n"
    "wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {%r16, %r17, %r18, %r19, %r20, %r21, %r22, %r23}, [%rd3], 16;\n"
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r8, %r9, %r10, %r11}, {%r16, %r17},\n"
    "  {0f00000000, 0f00000000, 0f00000000, 0f00000000};\n"
    "mad.wide.u32 %rd3, %r0, 40, %rd1;\n"
    "st.global.b32 [%rd3], %r8; st.global.b32 [%rd3+4], %r9; st.global.b32 [%rd3+8], %r10;\n"
    "st.global.b32 [%rd3+12], %r11; st.global.b32 [%rd3+16], %r16; st.global.b32 [%rd3+20], %r17;\n"
    "st.global.f32 [%rd3+24], %f0; st.global.f32 [%rd3+28], %f1; st.global.f32 [%rd3+32], %f2;\n"
    "st.global.f32 [%rd3+36], %f3;";

// All numbers of A and B differ, so that each shows its place: 0 to 255, and from there on.
static double element(char operand, int row, int column) {
  double sum = 0;
  if (operand != 'd') return row * 16 + column + (operand == 'b' ? 256 : 0);
  for (int k = 0; k < 16; k++) sum += element('a', row, k) * element('b', k, column);
  return sum;
}

static double number_of(char operand, int i, const uint32_t registers[REGISTERS]) {
  if (operand == 'd') {
    float sum;
    memcpy(&sum, &registers[6 + i], sizeof sum);
    return (double)sum;
  }
  return value_of(F16, registers[(operand == 'b' ? 4 : 0) + i / 2] >> 16 * (i % 2) & 0xffff);
}

Test(pictures, mma_shows_where_the_numbers_are) {
  uint16_t in[2][256];
  static uint32_t out[WARP][REGISTERS];
  for (int i = 0; i < 256; i++) {
    in[0][i] = (uint16_t)bits_of(F16, element('a', i / 16, i % 16));
    in[1][i] = (uint16_t)bits_of(F16, element('b', i / 16, i % 16));
  }
  KernelRun run = {.body = body, .in = in, .in_size = sizeof in, .out = out, .out_size = sizeof out};
  run_kernel_clean(&run);

  char command[1000], operand;
  snprintf(command, sizeof command, "cd '%s' && python3 -c \"%s\"", root_path(), places);
  FILE *pipe = popen(command, "r");
  cr_assert(pipe);
  int lane, i, row, column, count = 0;
  for (; fscanf(pipe, " %c %d %d %d %d", &operand, &lane, &i, &row, &column) == 5; count++)
    cr_expect_eq(number_of(operand, i, out[lane]), element(operand, row, column), "%c: number %d of lane %d", operand,
                 i, lane);
  cr_assert_eq(pclose(pipe), 0);
  cr_assert_eq(count, 512, "256 numbers of A, 128 of B and 128 of D");
}
