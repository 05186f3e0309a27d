// The stages of libhopper_ladder.so on a GPU (make test-gpu): each is right, and launches in two streams do not meet.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/exact_forward.h"
#include "support/library.h"

TestSuite(gpu_library, .init = load_library, .timeout = 300);

static void *upload(Device *device, const void *values, size_t size) {
  DeviceAddress address = device_alloc(device, size);
  device_upload(device, address, values, size);
  return (void *)(uintptr_t)address;
}

static void free_on_gpu(Device *device, const void *data) { device_free(device, (DeviceAddress)(uintptr_t)data); }

// Q, K and V on the GPU, with their scales if they are e4m3.
typedef struct Inputs {
  StageInputs type;
  HlTensor tensor[TENSORS];
  HlScale scale[TENSORS];
} Inputs;

static Inputs upload_inputs(Device *device, const Problem *problem) {
  Inputs inputs = {.type = problem->inputs};
  const Half *tensors[] = {problem->q, problem->k, problem->v};
  for (int i = 0; i < TENSORS; i++)
    if (inputs.type == INPUTS_E4M3) {
      inputs.tensor[i].data = upload(device, problem->codes[i], problem->elements);
      inputs.scale[i].data = upload(device, problem->scales[i], problem_scales(problem) * sizeof(float));
      inputs.scale[i].per_head = problem->scale_stride;
    } else {
      inputs.tensor[i].data = upload(device, tensors[i], problem->elements * sizeof(Half));
    }
  return inputs;
}

static void free_inputs(Device *device, const Inputs *inputs) {
  for (int i = 0; i < TENSORS; i++) {
    free_on_gpu(device, inputs->tensor[i].data);
    free_on_gpu(device, inputs->scale[i].data);
  }
}

static HlStatus call(const char *number, const HlShape *shape, const Inputs *in, const HlTensor *o, void *stream) {
  const HlTensor *q = &in->tensor[0], *k = &in->tensor[1], *v = &in->tensor[2];
  if (in->type == INPUTS_F16) return hl.attention(number, shape, q, k, v, o, stream);
  return hl.attention_e4m3(number, shape, q, k, v, o, &in->scale[0], &in->scale[1], &in->scale[2], stream);
}

static Shape own_shape(const HlShape *shape) {
  return (Shape){shape->batch, shape->heads, shape->seqlen, shape->head_dim, shape->causal};
}

// A problem with the inputs that a stage reads.
static Problem new_problem(const HlStage *stage, const HlShape *shape) {
  Problem problem;
  Shape own = own_shape(shape);
  cr_assert(problem_create(&problem, &own, INPUT_NORMAL, 1));
  bool per_head = shape->causal;
  cr_assert(stage->inputs == HL_INPUTS_F16 || problem_quantise(&problem, per_head, false, 1));
  return problem;
}

// One problem through the library, on a stream of its own, in the context of a device that this test opened.
static void run_on_gpu(Device *device, const HlStage *stage, const HlShape *shape, void *stream) {
  Problem problem = new_problem(stage, shape);
  Inputs inputs = upload_inputs(device, &problem);
  CheckResult result;
  size_t size = problem.elements * sizeof(Half);
  memset(problem.o, 0xff, size);
  HlTensor o = {.data = upload(device, problem.o, size)};
  cr_assert(device_synchronise(device));
  cr_assert_eq(call(stage->number, shape, &inputs, &o, stream), HL_OK, "%s", hl.error());
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  device_download(device, problem.o, (DeviceAddress)(uintptr_t)o.data, size);
  cr_assert(check_output(&problem, OUTPUT_O, 1, &result));
  cr_expect(check_is_right(&result), "stage %s, seqlen %d, head dim %d, causal %d: %llu elements are wrong",
            stage->number, shape->seqlen, shape->head_dim, shape->causal, (unsigned long long)result.wrong);
  free_inputs(device, &inputs);
  free_on_gpu(device, o.data);
  problem_free(&problem);
}

// The same with the log-sum-exp. O must have the bits that it has without.
static void run_lse_on_gpu(Device *device, const HlStage *stage, const HlShape *shape, void *stream) {
  Problem problem = new_problem(stage, shape);
  cr_assert(problem_add_lse(&problem));
  Inputs inputs = upload_inputs(device, &problem);
  CheckResult results[OUTPUTS];
  size_t size = problem.elements * sizeof(Half), lse_size = problem.heads * shape->seqlen * sizeof(float);
  Half *alone = malloc(size);
  cr_assert(alone);
  memset(problem.o, 0xff, size);
  memset(problem.lse, 0xff, lse_size);
  HlTensor o = {.data = upload(device, problem.o, size)}, without = {.data = upload(device, problem.o, size)};
  float *lse = upload(device, problem.lse, lse_size);
  cr_assert(device_synchronise(device));
  cr_assert_eq(
      hl.attention_lse(stage->number, shape, &inputs.tensor[0], &inputs.tensor[1], &inputs.tensor[2], &o, lse, stream),
      HL_OK, "%s", hl.error());
  cr_assert_eq(call(stage->number, shape, &inputs, &without, stream), HL_OK, "%s", hl.error());
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  device_download(device, problem.o, (DeviceAddress)(uintptr_t)o.data, size);
  device_download(device, alone, (DeviceAddress)(uintptr_t)without.data, size);
  device_download(device, problem.lse, (DeviceAddress)(uintptr_t)lse, lse_size);
  cr_assert_eq(check_problem(&problem, 1, results), OUTPUT_LSE + 1);
  cr_expect(check_all_right(results, OUTPUT_LSE + 1),
            "stage %s, seqlen %d, head dim %d, causal %d: %llu and %llu are wrong", stage->number, shape->seqlen,
            shape->head_dim, shape->causal, (unsigned long long)results[OUTPUT_O].wrong,
            (unsigned long long)results[OUTPUT_LSE].wrong);
  cr_expect(!memcmp(problem.o, alone, size), "stage %s: O has other bits without the log-sum-exp", stage->number);
  free_inputs(device, &inputs);
  free_on_gpu(device, o.data);
  free_on_gpu(device, without.data);
  free_on_gpu(device, lse);
  free(alone);
  problem_free(&problem);
}

// The same for the gradients.
static void run_backward_on_gpu(Device *device, const HlStage *stage, const HlShape *shape, void *stream) {
  Problem p = new_problem(stage, shape);
  CheckResult results[OUTPUTS];
  cr_assert(problem_add_gradients(&p, INPUT_NORMAL, 1));
  exact_forward(&p);
  size_t size = p.elements * sizeof(Half);
  Half *const tensors[BACKWARD_TENSORS] = {p.q, p.k, p.v, p.o, p.d_o, p.d_q, p.d_k, p.d_v};
  HlTensor t[BACKWARD_TENSORS];
  for (int i = 5; i < BACKWARD_TENSORS; i++) memset(tensors[i], 0xff, size);
  for (int i = 0; i < BACKWARD_TENSORS; i++) t[i] = (HlTensor){.data = upload(device, tensors[i], size)};
  const float *sums = upload(device, p.lse, p.heads * shape->seqlen * sizeof(float));
  cr_assert(device_synchronise(device));
  cr_assert_eq(
      hl.attention_backward(stage->number, shape, &t[0], &t[1], &t[2], &t[3], &t[4], sums, &t[5], &t[6], &t[7], stream),
      HL_OK, "%s", hl.error());
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  for (int i = 5; i < BACKWARD_TENSORS; i++)
    device_download(device, tensors[i], (DeviceAddress)(uintptr_t)t[i].data, size);
  cr_assert_eq(check_problem(&p, 1, results), OUTPUTS);
  cr_expect(check_all_right(results, OUTPUTS), "stage %s, seqlen %d, head dim %d, causal %d", stage->number,
            shape->seqlen, shape->head_dim, shape->causal);
  for (int i = 0; i < BACKWARD_TENSORS; i++) free_on_gpu(device, t[i].data);
  free_on_gpu(device, sums);
  problem_free(&p);
}

static Device *open_gpu(void) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  DeviceError failure;
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_GPU}, &failure);
  cr_assert(device, "%s", failure.text);
  return device;
}

// A stream that does not wait for the default one.
static void *new_stream(void) {
  void *stream = NULL;
  int (*create)(void **stream, unsigned flags) = NULL;
  *(void **)&create = find_symbol("libcuda.so.1", "cuStreamCreate");
  cr_assert_eq(create(&stream, 1), 0);
  return stream;
}

Test(gpu_library, every_stage_is_right) {
  Device *device = open_gpu();
  void *stream = new_stream();
  for (int i = 0; i < hl.stage_count(); i++)
    for (int kind = 0; kind < 8; kind++) {
      HlShape shape = {2, 2, kind & 4 ? 1 : 301, kind & 1 ? 128 : 64, kind >> 1 & 1};
      (hl.stage(i)->backward ? run_backward_on_gpu : run_on_gpu)(device, hl.stage(i), &shape, kind % 3 ? stream : NULL);
    }
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

Test(gpu_library, every_log_sum_exp_is_right) {
  Device *device = open_gpu();
  void *stream = new_stream();
  int stages = 0;
  for (int i = 0; i < hl.stage_count(); i++) {
    stages += hl.stage(i)->lse;
    for (int kind = 0; hl.stage(i)->lse && kind < 8; kind++) {
      HlShape shape = {2, 2, kind & 4 ? 1 : 301, kind & 1 ? 128 : 64, kind >> 1 & 1};
      run_lse_on_gpu(device, hl.stage(i), &shape, kind % 3 ? stream : NULL);
    }
  }
  cr_expect_gt(stages, 0, "no stage writes the log-sum-exp");
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

// One of two launches, in a stream of its own.
typedef struct Job {
  HlShape shape;
  void *stream;
  size_t size;
  Inputs in;
  HlTensor out;
  Half *alone, *beside;  // what it computes when it is alone, and beside the other
} Job;

static Job new_job(Device *device, const HlStage *stage, HlShape shape) {
  Problem problem = new_problem(stage, &shape);
  size_t size = problem.elements * sizeof(Half);
  Job job = {.shape = shape, .stream = new_stream(), .size = size, .in = upload_inputs(device, &problem)};
  job.out.data = upload(device, problem.o, size);
  job.alone = malloc(size);
  job.beside = malloc(size);
  cr_assert(job.alone && job.beside);
  problem_free(&problem);
  return job;
}

static void clear_output(Device *device, const Job *job) {
  cr_assert(device_fill(device, (DeviceAddress)(uintptr_t)job->out.data, 0xff, job->size));
  cr_assert(device_synchronise(device));
}

static void start(const char *number, const Job *job) {
  cr_assert_eq(call(number, &job->shape, &job->in, &job->out, job->stream), HL_OK, "%s", hl.error());
}

static void read_output(Device *device, const Job *job, Half *to) {
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  cr_assert(device_download(device, to, (DeviceAddress)(uintptr_t)job->out.data, job->size));
}

// A long launch that leaves most SMs free, and one with many tiles, which begins beside it and ends first: were their
// tiles counted together, the second would leave out as many as the first has blocks. Whether they do meet is the GPU's
// affair, so they are given many chances.
static void expect_right_together(Device *device, const HlStage *stage, int head_dim) {
  const char *number = stage->number;
  Job jobs[] = {
      new_job(device, stage, (HlShape){.batch = 1, .heads = 1, .seqlen = 5120, .head_dim = head_dim, .causal = 1}),
      new_job(device, stage, (HlShape){.batch = 4, .heads = 100, .seqlen = 128, .head_dim = head_dim, .causal = 1}),
  };
  for (int i = 0; i < 2; i++) {
    clear_output(device, &jobs[i]);
    start(number, &jobs[i]);
    read_output(device, &jobs[i], jobs[i].alone);
  }
  int wrong = 0;
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 2; i++) clear_output(device, &jobs[i]);
    for (int i = 0; i < 2; i++) start(number, &jobs[i]);
    for (int i = 0; i < 2; i++) {
      read_output(device, &jobs[i], jobs[i].beside);
      wrong += memcmp(jobs[i].alone, jobs[i].beside, jobs[i].size) != 0;
    }
  }
  cr_expect_eq(wrong, 0, "stage %s, head dim %d: %d of 100 outputs are not what the launch computes alone", number,
               head_dim, wrong);
  for (int i = 0; i < 2; i++) {
    free_inputs(device, &jobs[i].in);
    free_on_gpu(device, jobs[i].out.data);
    free(jobs[i].alone);
    free(jobs[i].beside);
  }
}

Test(gpu_library, launches_in_two_streams_do_not_meet) {
  Device *device = open_gpu();
  for (int i = 0; i < hl.stage_count(); i++)
    for (int head_dim = 64; head_dim <= 128; head_dim += 64)
      if (strcmp(hl.stage(i)->number, "05") >= 0 && !hl.stage(i)->backward)
        expect_right_together(device, hl.stage(i), head_dim);
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}
