#include "exact_forward.h"

#include <criterion/criterion.h>

enum { MAX_HEAD_DIM = 128 };

static void compute_row(Problem *problem, ReferenceHead *head, size_t index, int row) {
  int head_dim = problem->shape.head_dim;
  size_t at = index * (size_t)problem->shape.seqlen + (size_t)row;
  double o[MAX_HEAD_DIM], lse;
  reference_row(head, row, o);
  reference_lse(head, row, &lse);
  for (int d = 0; d < head_dim; d++) problem->o[at * (size_t)head_dim + d] = half_from_double(o[d]);
  problem->lse[at] = (float)lse;
}

void exact_forward(Problem *problem) {
  memset(problem->o, 0, problem->elements * sizeof(Half));  // reference_open reads them
  memset(problem->lse, 0, problem->heads * problem->shape.seqlen * sizeof(float));
  for (size_t index = 0; index < problem->heads; index++) {
    ReferenceHead head;
    cr_assert(reference_open(&head, problem, index));
    for (int row = 0; row < problem->shape.seqlen; row++) compute_row(problem, &head, index, row);
    reference_close(&head);
  }
}
