// One head's inputs for the reference, widened to double.
#include <stdlib.h>

#include "harness.h"

static double *widen(const Half *from, size_t count) {
  double *to = malloc(count * sizeof *to);
  for (size_t i = 0; to && i < count; i++) to[i] = half_to_float(from[i]);
  return to;
}

static double *widen_e4m3(const E4m3 *from, size_t count) {
  double *to = malloc(count * sizeof *to);
  for (size_t i = 0; to && i < count; i++) to[i] = e4m3_to_float(from[i]);
  return to;
}

// Adds the room for the weights.
static bool complete(ReferenceHead *head, const Shape *shape) {
  head->seqlen = shape->seqlen;
  head->head_dim = shape->head_dim;
  head->causal = shape->causal;
  head->weights = malloc((size_t)shape->seqlen * sizeof(double));
  head->rounded = malloc((size_t)shape->seqlen * sizeof(double));
  if (head->q && head->k && head->v && head->weights && head->rounded) return true;
  reference_close(head);
  return false;
}

bool reference_open_f16(ReferenceHead *head, const Problem *problem, size_t index) {
  size_t count = (size_t)problem->shape.seqlen * problem->shape.head_dim;
  *head = (ReferenceHead){
      .inputs = INPUTS_F16,
      .scale = problem_scale(&problem->shape),
      .value_scale = 1,
      .q = widen(problem->q + index * count, count),
      .k = widen(problem->k + index * count, count),
      .v = widen(problem->v + index * count, count),
  };
  return complete(head, &problem->shape);
}

static bool open_e4m3(ReferenceHead *head, const Problem *problem, size_t index) {
  size_t count = (size_t)problem->shape.seqlen * problem->shape.head_dim, at = index * (size_t)problem->scale_stride;
  bool codes = problem->inputs == INPUTS_E4M3;  // of V
  *head = (ReferenceHead){
      .inputs = problem->inputs,
      .scale = problem_scale(&problem->shape) * problem->scales[TENSOR_Q][at] * problem->scales[TENSOR_K][at],
      .value_scale = codes ? problem->scales[TENSOR_V][at] : 1,
      .q = widen_e4m3(problem->codes[TENSOR_Q] + index * count, count),
      .k = widen_e4m3(problem->codes[TENSOR_K] + index * count, count),
      .v = codes ? widen_e4m3(problem->codes[TENSOR_V] + index * count, count)
                 : widen(problem->v + index * count, count),
  };
  return complete(head, &problem->shape);
}

// What the log-sum-exp needs besides, and the backward pass.
static bool add_queries(ReferenceHead *head, const Problem *problem, size_t index) {
  size_t rows = (size_t)head->seqlen, count = rows * (size_t)head->head_dim;
  double *o = problem->d_o ? widen(problem->o + index * count, count) : NULL;
  head->d_o = problem->d_o ? widen(problem->d_o + index * count, count) : NULL;
  head->factors = problem->d_o ? malloc(rows * sizeof *head->factors) : NULL;
  head->queries = malloc(rows * sizeof *head->queries);
  bool done = head->queries && (!problem->d_o || (o && head->d_o && head->factors));
  if (done)
    reference_queries(head, o, problem->lse + index * rows);
  else
    reference_close(head);
  free(o);
  return done;
}

bool reference_open(ReferenceHead *head, const Problem *problem, size_t index) {
  if (!(problem->inputs == INPUTS_F16 ? reference_open_f16 : open_e4m3)(head, problem, index)) return false;
  head->window = problem->window;
  return !problem->lse || add_queries(head, problem, index);
}

void reference_close(ReferenceHead *head) {
  free(head->q);
  free(head->k);
  free(head->v);
  free(head->weights);
  free(head->rounded);
  free(head->d_o);
  free(head->factors);
  free(head->queries);
  *head = (ReferenceHead){0};
}
