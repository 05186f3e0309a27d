// The stages of libhopper_ladder.so on a GPU (make test-gpu): each is right, however its tensors lie, and launches in
// two streams do not meet. test_gpu_library_decode.c has those for decode.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/exact_forward.h"
#include "support/library.h"

TestSuite(gpu_library, .init = load_library, .timeout = 300);

// ---- how tensors lie in memory ----

typedef enum Layout {
  HEADS_FIRST,  // [batch][heads][seqlen][head_dim], which is what a call without strides means
  ROWS_FIRST,   // [batch][seqlen][heads + 1][head_dim]: the last head is a gap
  FUSED,        // three in one, [batch][seqlen][3][heads][head_dim]; others as ROWS_FIRST
} Layout;

// The strides of a tensor, and in *elements how many the memory has. `parts`: of how many tensors it is.
static HlTensor lay_out(Layout layout, const Shape *shape, int parts, int64_t *elements) {
  int64_t head = shape->head_dim, heads = shape->heads + (layout == HEADS_FIRST ? 0 : 1);
  bool fused = layout == FUSED && parts > 1;
  if (fused) heads = parts * shape->heads;
  int64_t row = heads * head, batch = row * shape->seqlen;
  *elements = shape->batch * batch * (fused ? 1 : parts);
  return layout == HEADS_FIRST ? (HlTensor){NULL, 0, 0, 0} : (HlTensor){NULL, batch, head, row};
}

// Where tensor number `part` of these begins.
static int64_t first_of(Layout layout, const Shape *shape, int parts, int part, int64_t elements) {
  return layout == FUSED ? (int64_t)part * shape->heads * shape->head_dim : part * (elements / parts);
}

// Copies rows between a contiguous tensor and memory with strides, there or back.
static void copy_rows(const Shape *shape, const HlTensor *strides, size_t element, char *tensor, char *memory,
                      bool back) {
  size_t size = (size_t)shape->head_dim * element;
  for (int b = 0; b < shape->batch; b++)
    for (int h = 0; h < shape->heads; h++)
      for (int s = 0; s < shape->seqlen; s++, tensor += size) {
        char *row = memory + (b * strides->batch + h * strides->head + s * strides->row) * (int64_t)element;
        memcpy(back ? tensor : row, back ? row : tensor, size);
      }
}

// One piece of memory on the GPU with one or three of a call's tensors, and where they are on the host.
typedef struct Group {
  Layout layout;
  int parts;
  size_t element;
  void *host[TENSORS];
  HlTensor *tensor[TENSORS];
} Group;

// A group of one does not differ between the two layouts with strides.
static HlTensor strides_of(const Group *group, const Shape *shape, int64_t *elements) {
  HlTensor strides = lay_out(group->layout, shape, group->parts, elements);
  if (strides.row) return strides;
  int64_t row = shape->head_dim, head = row * shape->seqlen;
  return (HlTensor){NULL, head * shape->heads, head, row};
}

// Fills in the group's tensors. Gaps have 0xff in all bytes, NaN in both types, and so have outputs.
static void upload_group(Device *device, const Shape *shape, const Group *group, bool output) {
  int64_t elements;
  HlTensor strides = strides_of(group, shape, &elements),
           given = lay_out(group->layout, shape, group->parts, &elements);
  size_t size = (size_t)elements * group->element;
  char *memory = malloc(size);
  cr_assert(memory);
  memset(memory, 0xff, size);
  DeviceAddress address = device_alloc(device, size);
  for (int i = 0; i < group->parts; i++) {
    int64_t first = first_of(group->layout, shape, group->parts, i, elements) * (int64_t)group->element;
    if (!output) copy_rows(shape, &strides, group->element, group->host[i], memory + first, false);
    *group->tensor[i] = given;
    group->tensor[i]->data = (void *)(uintptr_t)(address + (uint64_t)first);
  }
  cr_assert(device_upload(device, address, memory, size), "%s", device_error(device)->text);
  free(memory);
}

// The last head of ROWS_FIRST, which is no head of the tensor.
static void expect_gap(const Shape *shape, const HlTensor *strides, const Half *memory) {
  int changed = 0;
  for (int64_t row = 0; row < (int64_t)shape->batch * shape->seqlen; row++)
    for (int i = 0; i < shape->head_dim; i++)
      changed += memory[row * strides->row + shape->heads * strides->head + i] != 0xffff;
  cr_expect_eq(changed, 0, "%d elements between the rows were written", changed);
}

static void download_group(Device *device, const Shape *shape, const Group *group) {
  int64_t elements;
  HlTensor strides = strides_of(group, shape, &elements);
  size_t size = (size_t)elements * group->element;
  char *memory = malloc(size);
  cr_assert(memory);
  device_download(device, memory, (DeviceAddress)(uintptr_t)group->tensor[0]->data, size);
  for (int i = 0; i < group->parts; i++)
    copy_rows(shape, &strides, group->element, group->host[i],
              memory + first_of(group->layout, shape, group->parts, i, elements) * (int64_t)group->element, true);
  if (group->layout != HEADS_FIRST && group->parts == 1) expect_gap(shape, &strides, (Half *)memory);
  free(memory);
}

static void free_on_gpu(Device *device, const void *data) { device_free(device, (DeviceAddress)(uintptr_t)data); }

// ---- a problem on the GPU ----

// A call, the problem that its tensors hold, and the groups of them: Q, K and V; O; dO; dQ, dK and dV. Where V has
// another type than Q and K, it is a group of its own.
enum { MAX_GROUPS = 4 };
typedef struct Work {
  Problem problem;
  HlCall call;
  Group groups[MAX_GROUPS];
  int count;
} Work;

// A problem with the inputs that a stage reads.
static Problem new_problem(const HlStage *stage, const Shape *shape) {
  Problem problem;
  cr_assert(problem_create(&problem, shape, INPUT_NORMAL, 1));
  bool per_head = shape->causal;
  cr_assert(stage->type == HL_F16 || problem_quantise(&problem, (StageInputs)stage->type, per_head, false, 1));
  if (!stage->backward) return problem;
  cr_assert(problem_add_gradients(&problem, INPUT_NORMAL, 1));
  exact_forward(&problem);
  return problem;
}

static void upload_scales(Device *device, const Problem *problem, HlCall *call) {
  HlScale *const scales[] = {&call->q_scale, &call->k_scale, &call->v_scale};
  size_t size = problem_scales(problem) * sizeof(float);
  for (int i = 0; i < (problem->inputs == INPUTS_E4M3 ? TENSORS : TENSOR_V); i++) {
    DeviceAddress address = device_alloc(device, size);
    device_upload(device, address, problem->scales[i], size);
    *scales[i] = (HlScale){(const float *)(uintptr_t)address, problem->scale_stride};
  }
  call->v_scale.per_head = problem->scale_stride;
}

static size_t lse_size(const Problem *problem) {
  return problem->heads * (size_t)problem->shape.seqlen * sizeof(float);
}

static void upload_lse(Device *device, const Problem *problem, HlCall *call) {
  DeviceAddress address = device_alloc(device, lse_size(problem));
  device_upload(device, address, problem->lse, lse_size(problem));
  call->lse = (float *)(uintptr_t)address;
}

static void make_groups(Work *work, const HlStage *stage, Layout layout) {
  Problem *p = &work->problem;
  HlCall *c = &work->call;
  Group *next = work->groups;
  if (stage->type == HL_F16)
    *next++ = (Group){layout, 3, sizeof(Half), {p->q, p->k, p->v}, {&c->q, &c->k, &c->v}};
  else
    *next++ = (Group){
        layout, stage->type == HL_E4M3 ? 3 : 2, 1, {p->codes[0], p->codes[1], p->codes[2]}, {&c->q, &c->k, &c->v}};
  if (stage->type == HL_E4M3_SCORES) *next++ = (Group){layout, 1, sizeof(Half), {p->v}, {&c->v}};
  *next++ = (Group){layout, 1, sizeof(Half), {p->o}, {&c->o}};
  if (stage->backward) {
    *next++ = (Group){layout, 1, sizeof(Half), {p->d_o}, {&c->d_o}};
    *next++ = (Group){layout, 3, sizeof(Half), {p->d_q, p->d_k, p->d_v}, {&c->d_q, &c->d_k, &c->d_v}};
  }
  work->count = (int)(next - work->groups);
}

// Work for a stage. lse: a forward pass writes the log-sum-exp, too.
static Work *new_work(Device *device, const HlStage *stage, Shape shape, Layout layout, bool lse) {
  Work *work = calloc(1, sizeof *work);
  cr_assert(work);
  work->problem = new_problem(stage, &shape);
  if (lse) cr_assert(problem_add_lse(&work->problem));
  work->call = (HlCall){.stage = stage->number,
                        .type = stage->type,
                        .batch = shape.batch,
                        .heads = shape.heads,
                        .seqlen = shape.seqlen,
                        .head_dim = shape.head_dim,
                        .causal = shape.causal};
  make_groups(work, stage, layout);
  for (int i = 0; i < work->count; i++) upload_group(device, &shape, &work->groups[i], i == work->count - 1);
  if (stage->type != HL_F16) upload_scales(device, &work->problem, &work->call);
  if (lse || stage->backward) upload_lse(device, &work->problem, &work->call);
  cr_assert(device_synchronise(device));
  return work;
}

static void free_work(Device *device, Work *work) {
  const HlCall *c = &work->call;
  for (int i = 0; i < work->count; i++) free_on_gpu(device, work->groups[i].tensor[0]->data);
  const void *const others[] = {c->q_scale.data, c->k_scale.data, c->v_scale.data, c->lse};
  for (int i = 0; i < 4; i++) free_on_gpu(device, others[i]);
  problem_free(&work->problem);
  free(work);
}

static void start(const Work *work, bool backward) {
  cr_assert_eq((backward ? hl.attention_backward : hl.attention)(&work->call), HL_OK, "%s", hl.error());
}

// The outputs are the last group.
static void finish(Device *device, Work *work) {
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
  download_group(device, &work->problem.shape, &work->groups[work->count - 1]);
  if (work->problem.lse && !work->problem.d_o)
    device_download(device, work->problem.lse, (DeviceAddress)(uintptr_t)work->call.lse, lse_size(&work->problem));
}

// One problem through the library, on a stream of its own, in the context of a device that this test opened.
static void expect_right(Device *device, const HlStage *stage, Shape shape, Layout layout, bool lse, void *stream) {
  Work *work = new_work(device, stage, shape, layout, lse);
  CheckResult results[OUTPUTS];
  work->call.stream = stream;
  start(work, stage->backward);
  finish(device, work);
  int count = check_problem(&work->problem, 1, results);
  cr_assert_eq(count, stage->backward ? OUTPUTS : lse ? OUTPUT_LSE + 1 : 1);
  cr_expect(check_all_right(results, count), "stage %s, layout %d, seqlen %d, head dim %d, causal %d: %llu are wrong",
            stage->number, layout, shape.seqlen, shape.head_dim, shape.causal, (unsigned long long)results[0].wrong);
  free_work(device, work);
}

// O has the same bits with the log-sum-exp and without.
static void expect_same_output(Device *device, const HlStage *stage, Shape shape) {
  Work *with = new_work(device, stage, shape, HEADS_FIRST, true);
  Work *without = new_work(device, stage, shape, HEADS_FIRST, false);
  Work *const both[] = {with, without};
  for (int i = 0; i < 2; i++) {
    start(both[i], false);
    finish(device, both[i]);
  }
  cr_expect(!memcmp(with->problem.o, without->problem.o, with->problem.elements * sizeof(Half)),
            "stage %s: O has other bits without the log-sum-exp", stage->number);
  for (int i = 0; i < 2; i++) free_work(device, both[i]);
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

// Both head dimensions, both masks, and a sequence that fills no tile; then one that is a single query.
enum { KINDS = 8 };
static Shape shape_of(int kind, int seqlen) {
  return (Shape){2, 2, kind & 4 ? 1 : seqlen, kind & 1 ? 128 : 64, kind >> 1 & 1};
}

Test(gpu_library, every_stage_is_right) {
  Device *device = open_gpu();
  void *stream = new_stream();
  for (int i = 0; i < hl.stage_count(); i++)
    for (int kind = 0; kind < KINDS && !hl.stage(i)->decode; kind++)
      expect_right(device, hl.stage(i), shape_of(kind, 301), HEADS_FIRST, false, kind % 3 ? stream : NULL);
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

Test(gpu_library, every_log_sum_exp_is_right) {
  Device *device = open_gpu();
  void *stream = new_stream();
  int stages = 0;
  for (int i = 0; i < hl.stage_count(); i++) {
    if (hl.stage(i)->decode) continue;
    stages += hl.stage(i)->lse;
    for (int kind = 0; hl.stage(i)->lse && kind < KINDS; kind++) {
      expect_right(device, hl.stage(i), shape_of(kind, 301), HEADS_FIRST, true, kind % 3 ? stream : NULL);
      expect_same_output(device, hl.stage(i), shape_of(kind, 301));
    }
  }
  cr_expect_gt(stages, 0, "no stage writes the log-sum-exp");
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

Test(gpu_library, every_layout_is_right) {
  Device *device = open_gpu();
  void *stream = new_stream();
  int stages = 0;
  for (int i = 0; i < hl.stage_count(); i++) {
    if (hl.stage(i)->decode) continue;
    stages += hl.stage(i)->strided;
    for (int kind = 0; hl.stage(i)->strided && kind < KINDS; kind++)
      for (Layout layout = ROWS_FIRST; layout <= FUSED; layout++)
        expect_right(device, hl.stage(i), shape_of(kind, 150), layout, hl.stage(i)->lse, kind % 3 ? stream : NULL);
  }
  cr_expect_gt(stages, 0, "no stage takes strides");
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

// One of two launches, in a stream of its own.
typedef struct Job {
  Work *work;
  size_t size;
  Half *alone;  // what it computes when it is alone
} Job;

static Job new_job(Device *device, const HlStage *stage, Shape shape) {
  Work *work = new_work(device, stage, shape, HEADS_FIRST, false);
  work->call.stream = new_stream();
  Job job = {.work = work, .size = work->problem.elements * sizeof(Half)};
  job.alone = malloc(job.size);
  cr_assert(job.alone);
  return job;
}

static void clear_output(Device *device, const Job *job) {
  cr_assert(device_fill(device, (DeviceAddress)(uintptr_t)job->work->call.o.data, 0xff, job->size));
  cr_assert(device_synchronise(device));
}

// A long launch that leaves most SMs free, and one with many tiles, which begins beside it and ends first: were their
// tiles counted together, the second would leave out as many as the first has blocks. Whether they do meet is the GPU's
// affair, so they are given many chances.
static void expect_right_together(Device *device, const HlStage *stage, int head_dim) {
  Job jobs[] = {
      new_job(device, stage, (Shape){.batch = 1, .heads = 1, .seqlen = 5120, .head_dim = head_dim, .causal = true}),
      new_job(device, stage, (Shape){.batch = 4, .heads = 100, .seqlen = 128, .head_dim = head_dim, .causal = true}),
  };
  for (int i = 0; i < 2; i++) {
    clear_output(device, &jobs[i]);
    start(jobs[i].work, false);
    finish(device, jobs[i].work);
    memcpy(jobs[i].alone, jobs[i].work->problem.o, jobs[i].size);
  }
  int wrong = 0;
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 2; i++) clear_output(device, &jobs[i]);
    for (int i = 0; i < 2; i++) start(jobs[i].work, false);
    for (int i = 0; i < 2; i++) {
      finish(device, jobs[i].work);
      wrong += memcmp(jobs[i].alone, jobs[i].work->problem.o, jobs[i].size) != 0;
    }
  }
  cr_expect_eq(wrong, 0, "stage %s, head dim %d: %d of 100 outputs are not what the launch computes alone",
               stage->number, head_dim, wrong);
  for (int i = 0; i < 2; i++) {
    free_work(device, jobs[i].work);
    free(jobs[i].alone);
  }
}

Test(gpu_library, launches_in_two_streams_do_not_meet) {
  Device *device = open_gpu();
  for (int i = 0; i < hl.stage_count(); i++)
    for (int head_dim = 64; head_dim <= 128; head_dim += 64)
      if (strcmp(hl.stage(i)->number, "05") >= 0 && !hl.stage(i)->backward && !hl.stage(i)->decode)
        expect_right_together(device, hl.stage(i), head_dim);
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}
