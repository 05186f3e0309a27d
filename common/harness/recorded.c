// The times recorded on an H200, to compare a run with. They are embedded in the program, so that it runs from any
// folder: the assembler includes the file, as embed.S includes the kernels.
#include <ctype.h>

#include "harness.h"

__asm__(".pushsection .rodata\n"
        "recorded_csv: .incbin \"plots/data/nvidia-h200.csv\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char recorded_csv[];  // with a 0 after it

// Reads a row with the columns of csv.c; false for any other line. It skips clocks, versions, times and repeats.
static bool read_recorded(const char *line, Recorded *row) {
  int causal;
  bool read = sscanf(line, "%31[^,],%95[^,],%*[^,],%*[^,],%*[^,],%10[^,T]%*[^,],%d,%d,%d,%d,%d,%*f,%*f,%*f,%*d,%lf",
                     row->stage, row->device, row->date, &row->shape.batch, &row->shape.heads, &row->shape.seqlen,
                     &row->shape.head_dim, &causal, &row->tflops) == 9;
  row->shape.causal = causal;
  return read;
}

static bool same_shape(const Shape *a, const Shape *b) {
  return a->batch == b->batch && a->heads == b->heads && a->seqlen == b->seqlen && a->head_dim == b->head_dim &&
         a->causal == b->causal;
}

bool recorded_find(const char *stage, const Shape *shape, Recorded *row) {
  for (const char *line = recorded_csv; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (read_recorded(line, row) && !strcmp(row->stage, stage) && same_shape(&row->shape, shape)) return true;
  }
  return false;
}
