// hl_attention_decode of libhopper_ladder.so on a GPU (make test-gpu): each stage is right, however its cache lies in
// memory, also in a CUDA graph whose inputs change between its replays.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/library.h"

TestSuite(gpu_library_decode, .init = load_library, .timeout = 300);

// ---- a decode problem on the GPU ----

// Where its tensors lie.
typedef struct DecodeLayout {
  bool spread_queries;  // Q and O are [batch][queries][heads + 1][head_dim]: the last head is a gap
  bool spread_cache;    // K and V are [batch][keys][kv_heads + 1][head_dim]
  int page;             // K and V are in pages; then spread_cache is that of a page
  bool lengths;
} DecodeLayout;

enum { MORE_ENTRIES = 3, MORE_PAGES = 5 };  // of a row of the block table, of the pool: nobody uses them

typedef struct DecodeWork {
  DecodeProblem problem;
  HlDecode call;
  DecodeLayout layout;
  size_t query_size, cache_size;  // bytes of Q, of K
  int *table;                     // on the host
} DecodeWork;

static size_t cache_element(const DecodeWork *work) { return work->call.type == HL_E4M3 ? sizeof(E4m3) : sizeof(Bf16); }

// The strides of [outer][rows][heads + 1][head_dim], or all 0: [outer][heads][rows][head_dim]. *elements: of the
// memory.
static HlTensor decode_strides(bool spread, int outer, int heads, int rows, int head_dim, size_t *elements) {
  int64_t row = (int64_t)(heads + 1) * head_dim;
  *elements = (size_t)outer * (size_t)(spread ? heads + 1 : heads) * (size_t)rows * (size_t)head_dim;
  return spread ? (HlTensor){NULL, rows * row, head_dim, row} : (HlTensor){NULL, 0, 0, 0};
}

static int64_t row_at(const HlTensor *tensor, int heads, int rows, int head_dim, int outer, int head, int row) {
  if (tensor->row) return outer * tensor->batch + head * tensor->head + row * tensor->row;
  return (((int64_t)outer * heads + head) * rows + row) * head_dim;
}

static DeviceAddress address_of(const void *data) { return (DeviceAddress)(uintptr_t)data; }
static void *pointer_to(DeviceAddress address) { return (void *)(uintptr_t)address; }

// Copies Q to memory as the call has it, or O from there; gaps are NaN, and stay so.
static void copy_queries(const DecodeWork *work, char *memory, bool back) {
  const DecodeShape *s = &work->problem.shape;
  const HlTensor *tensor = back ? &work->call.o : &work->call.q;
  size_t size = (size_t)s->head_dim * sizeof(Bf16);
  char *dense = (char *)(back ? work->problem.o : work->problem.q);
  for (int b = 0; b < s->batch; b++)
    for (int h = 0; h < s->heads; h++)
      for (int t = 0; t < s->queries; t++, dense += size) {
        char *row = memory + (size_t)row_at(tensor, s->heads, s->queries, s->head_dim, b, h, t) * sizeof(Bf16);
        memcpy(back ? dense : row, back ? row : dense, size);
        if (back) memset(row, 0xff, size);
      }
  if (!back) return;
  size_t written = 0;
  for (size_t i = 0; i < work->query_size; i++) written += (unsigned char)memory[i] != 0xff;
  cr_expect_eq(written, 0, "%zu bytes between the rows of O were written", written);
}

// K (0) or V (1) as the call has it. What no sequence uses is NaN.
static void upload_cache_tensor(Device *device, const DecodeWork *work, int tensor) {
  const DecodeShape *s = &work->problem.shape;
  const HlTensor *to = tensor ? &work->call.v : &work->call.k;
  int page = work->call.page, rows = page ? page : s->keys;
  size_t element = cache_element(work), size = (size_t)s->head_dim * element;
  const char *dense = work->problem.codes[tensor] ? (const char *)work->problem.codes[tensor]
                                                  : (const char *)(tensor ? work->problem.v : work->problem.k);
  char *memory = malloc(work->cache_size);
  cr_assert(memory);
  memset(memory, 0xff, work->cache_size);
  for (int b = 0; b < s->batch; b++)
    for (int h = 0; h < s->kv_heads; h++)
      for (int key = 0; key < s->keys; key++, dense += size) {
        if (key >= work->problem.lengths[b]) continue;
        int outer = page ? work->table[b * work->call.table_row + key / page] : b;
        int64_t at = row_at(to, s->kv_heads, rows, s->head_dim, outer, h, page ? key % page : key);
        memcpy(memory + (size_t)at * element, dense, size);
      }
  cr_assert(device_upload(device, address_of(to->data), memory, work->cache_size), "%s", device_error(device)->text);
  free(memory);
}

// Pages in an order of their own for each seed. Entries of keys that do not exist name no page.
static void fill_table(DecodeWork *work, uint64_t seed) {
  const DecodeShape *s = &work->problem.shape;
  int *order = malloc((size_t)work->call.pages * sizeof(int));
  cr_assert(order);
  for (int i = 0; i < work->call.pages; i++) {
    int other = (int)(random_bits(&seed) % (uint64_t)(i + 1));
    order[i] = order[other];
    order[other] = i;
  }
  for (int i = 0; i < s->batch * work->call.table_row; i++) {
    int b = i / work->call.table_row, key = i % work->call.table_row * work->call.page;
    work->table[i] = key < work->problem.lengths[b] ? order[i] : 0x7fffffff;
  }
  free(order);
}

// Everything that a call reads, for the problem as it is now; and O of NaN.
static void upload_inputs(Device *device, DecodeWork *work, uint64_t seed) {
  const DecodeProblem *problem = &work->problem;
  size_t batch = (size_t)problem->shape.batch;
  char *memory = malloc(work->query_size);
  cr_assert(memory);
  memset(memory, 0xff, work->query_size);
  copy_queries(work, memory, false);
  device_upload(device, address_of(work->call.q.data), memory, work->query_size);
  free(memory);
  if (work->call.page) {
    fill_table(work, seed);
    device_upload(device, address_of(work->call.block_table), work->table,
                  batch * (size_t)work->call.table_row * sizeof(int));
  }
  if (work->call.lengths) device_upload(device, address_of(work->call.lengths), problem->lengths, batch * sizeof(int));
  upload_cache_tensor(device, work, 0);
  upload_cache_tensor(device, work, 1);
  for (int i = 0; work->call.type == HL_E4M3 && i < 2; i++)
    device_upload(device, address_of((i ? work->call.v_scale : work->call.k_scale).data), problem->scales[i],
                  decode_scales(problem) * sizeof(float));
  device_fill(device, address_of(work->call.o.data), 0xff, work->query_size);
  cr_assert(device_synchronise(device), "%s", device_error(device)->text);
}

// Inputs for the work's shape; lengths as decode_problem_set_lengths wants them.
static void make_problem(DecodeWork *work, const DecodeShape *shape, const char *lengths, uint64_t seed) {
  cr_assert(decode_problem_create(&work->problem, shape, INPUT_NORMAL, seed));
  cr_assert(decode_problem_set_lengths(&work->problem, lengths, seed));
  if (work->call.type == HL_E4M3) cr_assert(decode_problem_quantise(&work->problem, work->call.k_scale.per_head));
}

static DecodeWork *new_decode_work(Device *device, const HlStage *stage, DecodeShape shape, DecodeLayout layout,
                                   const char *lengths) {
  DecodeWork *work = calloc(1, sizeof *work);
  cr_assert(work);
  work->layout = layout;
  work->call = (HlDecode){
      .stage = stage->number,
      .batch = shape.batch,
      .heads = shape.heads,
      .kv_heads = shape.kv_heads,
      .keys = shape.keys,
      .head_dim = shape.head_dim,
      .queries = shape.queries,
      .type = stage->type,
      .page = layout.page,
  };
  HlDecode *call = &work->call;
  size_t batch = (size_t)shape.batch, queries, cache;
  if (layout.page) {
    call->table_row = (shape.keys + layout.page - 1) / layout.page + MORE_ENTRIES;
    call->pages = shape.batch * call->table_row + MORE_PAGES;
    work->table = malloc(batch * (size_t)call->table_row * sizeof(int));
    call->block_table = pointer_to(device_alloc(device, batch * (size_t)call->table_row * sizeof(int)));
  }
  if (layout.lengths) call->lengths = pointer_to(device_alloc(device, batch * sizeof(int)));
  if (stage->type == HL_E4M3) {
    call->k_scale.per_head = call->v_scale.per_head = shape.head_dim == 64;
    size_t size = batch * (size_t)shape.kv_heads * sizeof(float);
    call->k_scale.data = pointer_to(device_alloc(device, size));
    call->v_scale.data = pointer_to(device_alloc(device, size));
  }
  make_problem(work, &shape, lengths, 1);
  call->q = call->o =
      decode_strides(layout.spread_queries, shape.batch, shape.heads, shape.queries, shape.head_dim, &queries);
  call->k = call->v = decode_strides(layout.spread_cache, layout.page ? call->pages : shape.batch, shape.kv_heads,
                                     layout.page ? layout.page : shape.keys, shape.head_dim, &cache);
  work->query_size = queries * sizeof(Bf16);
  work->cache_size = cache * cache_element(work);
  call->q.data = pointer_to(device_alloc(device, work->query_size));
  call->o.data = pointer_to(device_alloc(device, work->query_size));
  call->k.data = pointer_to(device_alloc(device, work->cache_size));
  call->v.data = pointer_to(device_alloc(device, work->cache_size));
  upload_inputs(device, work, 1);
  return work;
}

static void free_decode_work(Device *device, DecodeWork *work) {
  const HlDecode *c = &work->call;
  const void *const data[] = {c->q.data,  c->k.data,      c->v.data,       c->o.data,
                              c->lengths, c->block_table, c->k_scale.data, c->v_scale.data};
  for (size_t i = 0; i < sizeof data / sizeof *data; i++) device_free(device, address_of(data[i]));
  decode_problem_free(&work->problem);
  free(work->table);
  free(work);
}

// O, when all that was queued is done, is right.
static void expect_right_answer(Device *device, DecodeWork *work, const char *when) {
  const DecodeShape *s = &work->problem.shape;
  char *memory = malloc(work->query_size);
  DecodeCheck check;
  cr_assert(memory && device_synchronise(device), "%s", device_error(device)->text);
  cr_assert(device_download(device, memory, address_of(work->call.o.data), work->query_size));
  copy_queries(work, memory, true);
  free(memory);
  cr_assert(decode_check(&work->problem, 1, &check));
  cr_expect_eq(check.heads, s->batch * s->kv_heads);
  cr_expect(decode_check_is_right(&check),
            "stage %s%s, heads %d of %d, keys %d, head dim %d, queries %d, page %d, spread %d, %d, lengths %d: %llu of "
            "%llu are wrong, %llu not finite",
            work->call.stage, when, s->heads, s->kv_heads, s->keys, s->head_dim, s->queries, work->call.page,
            work->layout.spread_queries, work->layout.spread_cache, work->layout.lengths,
            (unsigned long long)check.wrong, (unsigned long long)check.compared, (unsigned long long)check.not_finite);
}

static void expect_right_decode(Device *device, const HlStage *stage, DecodeShape shape, DecodeLayout layout,
                                const char *lengths, void *stream) {
  DecodeWork *work = new_decode_work(device, stage, shape, layout, lengths);
  work->call.stream = stream;
  cr_assert_eq(hl.attention_decode(&work->call), HL_OK, "%s", hl.error());
  expect_right_answer(device, work, "");
  free_decode_work(device, work);
}

// ---- what it works with ----

static Device *open_decode_gpu(void) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  DeviceError failure;
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_GPU}, &failure);
  cr_assert(device, "%s", failure.text);
  return device;
}

// A function of the driver.
#define DRIVER_FUNCTION(name, ...)                                                                                     \
  int (*name)(__VA_ARGS__) = NULL;                                                                                     \
  *(void **)&name = find_symbol("libcuda.so.1", #name)

// A stream that does not wait for the default one.
static void *new_decode_stream(void) {
  void *stream = NULL;
  DRIVER_FUNCTION(cuStreamCreate, void **, unsigned);
  cr_assert_eq(cuStreamCreate(&stream, 1), 0);
  return stream;
}

// ---- the tests ----

Test(gpu_library_decode, every_stage_is_right) {
  static const int groups[] = {1, 5, 16};
  Device *device = open_decode_gpu();
  void *stream = new_decode_stream();
  int stages = 0;
  for (int i = 0; i < hl.stage_count(); i++) {
    const HlStage *stage = hl.stage(i);
    stages += stage->decode;
    for (int kind = 0; stage->decode && kind < 6; kind++) {
      DecodeShape shape = {2, 2 * groups[kind / 2], 2, kind % 3 ? 301 : 1, kind % 2 ? 128 : 64, 1, 0};
      if (stage->head_dim) shape.head_dim = stage->head_dim;
      expect_right_decode(device, stage, shape, (DecodeLayout){0}, "full", kind % 3 ? stream : NULL);
    }
  }
  cr_expect_geq(stages, 6);
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

// Strides for all; lengths, one of them 0, and pages, smaller than a tile and larger, where the stage knows them.
Test(gpu_library_decode, every_cache_is_right) {
  static const DecodeLayout layouts[] = {
      {.spread_cache = true},
      {.spread_queries = true, .spread_cache = true, .lengths = true},
      {.page = 16, .lengths = true},
      {.page = 64, .lengths = true, .spread_queries = true, .spread_cache = true},
      {.page = 256},
      {.page = 32, .lengths = true, .spread_cache = true},
  };
  Device *device = open_decode_gpu();
  void *stream = new_decode_stream();
  for (int i = 0; i < hl.stage_count(); i++) {
    const HlStage *stage = hl.stage(i);
    for (int kind = 0; stage->decode && kind < 12; kind++) {
      DecodeLayout layout = layouts[kind / 2];
      if ((kind / 2 && !stage->ragged) || (layout.spread_queries && !stage->strided)) continue;
      int queries = stage->queries > 1 ? 1 + kind % 4 * 2 : 1;
      DecodeShape shape = {3, 6, 2, 200, kind % 2 ? 128 : 64, queries, layout.page};
      if (stage->head_dim) shape.head_dim = stage->head_dim;
      expect_right_decode(device, stage, shape, layout, layout.lengths ? "200,0,77" : "full", kind % 3 ? stream : NULL);
    }
  }
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

// Element `at` of K, which is in this key head of all sequences' heads.
static double key_element(const DecodeProblem *problem, int head, size_t at) {
  if (!problem->codes[0]) return bf16_to_float(problem->k[at]);
  return (double)e4m3_to_float(problem->codes[0][at]) * problem->scales[0][head * problem->scale_stride];
}

// The log-sum-exp of query `row` of [batch][heads][queries], in fp64; -infinity where it sees no key.
static double exact_lse(const DecodeProblem *problem, int row) {
  const DecodeShape *s = &problem->shape;
  int b = row / s->queries / s->heads, head = row / s->queries % s->heads / (s->heads / s->kv_heads);
  int keys = problem->lengths[b] - (s->queries - 1 - row % s->queries);
  const Bf16 *q = problem->q + (size_t)row * (size_t)s->head_dim;
  size_t first = (size_t)(b * s->kv_heads + head) * (size_t)s->keys * (size_t)s->head_dim;
  double sum = 0;  // scores of normal inputs are small
  for (int key = 0; key < keys; key++) {
    double score = 0;
    for (int d = 0; d < s->head_dim; d++)
      score += (double)bf16_to_float(q[d]) *
               key_element(problem, b * s->kv_heads + head, first + (size_t)(key * s->head_dim + d));
    sum += exp(score / sqrt(s->head_dim));
  }
  return log(sum);
}

static void expect_right_lse(Device *device, const HlStage *stage, DecodeShape shape, DecodeLayout layout,
                             const char *lengths) {
  DecodeWork *work = new_decode_work(device, stage, shape, layout, lengths);
  int rows = shape.batch * shape.heads * shape.queries, wrong = 0;
  float *lse = malloc((size_t)rows * sizeof *lse);
  cr_assert(lse);
  memset(lse, 0xff, (size_t)rows * sizeof *lse);
  work->call.lse = pointer_to(device_alloc(device, (size_t)rows * sizeof *lse));
  device_upload(device, address_of(work->call.lse), lse, (size_t)rows * sizeof *lse);
  cr_assert_eq(hl.attention_decode(&work->call), HL_OK, "%s", hl.error());
  expect_right_answer(device, work, " with lse");
  device_download(device, lse, address_of(work->call.lse), (size_t)rows * sizeof *lse);
  for (int row = 0; row < rows; row++) {
    double exact = exact_lse(&work->problem, row);
    wrong += !(isinf(exact) ? lse[row] == (float)exact : fabs(lse[row] - exact) < 1e-5 * (1 + fabs(exact)));
  }
  cr_expect_eq(wrong, 0, "stage %s, heads %d, head dim %d, queries %d, lengths %s: %d of %d are wrong", stage->number,
               shape.heads, shape.head_dim, shape.queries, lengths, wrong, rows);
  device_free(device, address_of(work->call.lse));
  free(lse);
  free_decode_work(device, work);
}

// 8, 16, 32 and 128 rows a key head; sequences that one worker has, that several share, and that are empty.
Test(gpu_library_decode, every_log_sum_exp_is_right) {
  static const int heads[] = {2, 6, 16, 32}, queries[] = {3, 4, 4, 8};
  Device *device = open_decode_gpu();
  int stages = 0;
  for (int i = 0; i < hl.stage_count(); i++) {
    const HlStage *stage = hl.stage(i);
    if (!stage->decode || !stage->lse) continue;
    stages++;
    for (int kind = 0; kind < 8; kind++) {
      int most = stage->queries > 1 ? queries[kind / 2] : 1;
      DecodeShape shape = {4, heads[kind / 2], 2, 300, kind % 2 ? 128 : 64, most, kind % 3 ? 0 : 16};
      expect_right_lse(device, stage, shape, (DecodeLayout){.page = shape.page, .lengths = true}, "300,0,2,40");
    }
  }
  cr_expect_gt(stages, 0, "no stage for decode writes the log-sum-exp");
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}

// A call that has run once is captured, and replayed for other sequences: longer and shorter ones, in other pages.
static void expect_right_replays(Device *device, const HlStage *stage, int head_dim) {
  static const char *const lengths[] = {"17,1,90,3", "18,0,91,250", "300,300,300,300"};
  DRIVER_FUNCTION(cuStreamBeginCapture_v2, void *, int);
  DRIVER_FUNCTION(cuStreamEndCapture, void *, void **);
  DRIVER_FUNCTION(cuGraphInstantiateWithFlags, void **, void *, unsigned long long);
  DRIVER_FUNCTION(cuGraphLaunch, void *, void *);
  DRIVER_FUNCTION(cuGraphExecDestroy, void *);
  DRIVER_FUNCTION(cuGraphDestroy, void *);
  DecodeLayout layout = {.page = stage->ragged ? 16 : 0, .lengths = stage->ragged};
  DecodeShape shape = {4, 8, 2, 300, head_dim, stage->queries > 1 ? 3 : 1, layout.page};
  DecodeWork *work = new_decode_work(device, stage, shape, layout, layout.lengths ? lengths[0] : "full");
  void *graph = NULL, *executable = NULL, *stream = work->call.stream = new_decode_stream();

  cr_assert_eq(hl.attention_decode(&work->call), HL_OK, "%s", hl.error());
  expect_right_answer(device, work, ", before the capture");
  cr_assert_eq(cuStreamBeginCapture_v2(stream, 0), 0);
  cr_expect_eq(hl.attention_decode(&work->call), HL_OK, "%s", hl.error());
  cr_assert_eq(cuStreamEndCapture(stream, &graph), 0);
  cr_assert_eq(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);

  for (uint64_t replay = 0; replay < 3; replay++) {
    decode_problem_free(&work->problem);
    make_problem(work, &shape, layout.lengths ? lengths[replay] : "full", 2 + replay);
    upload_inputs(device, work, 2 + replay);
    cr_assert_eq(cuGraphLaunch(executable, stream), 0);
    expect_right_answer(device, work, ", replayed");
  }
  cuGraphExecDestroy(executable);
  cuGraphDestroy(graph);
  free_decode_work(device, work);
}

Test(gpu_library_decode, a_graph_is_right_for_every_length) {
  Device *device = open_decode_gpu();
  for (int i = 0; i < hl.stage_count(); i++)
    for (int head_dim = hl.stage(i)->head_dim ? hl.stage(i)->head_dim : 64; hl.stage(i)->decode && head_dim <= 128;
         head_dim += 64)
      expect_right_replays(device, hl.stage(i), head_dim);
  cr_expect_eq(hl.release(), HL_OK);
  device_close(device);
}
