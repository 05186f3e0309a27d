// Memory for the kernels, and their launches.
#include <stdlib.h>

#include "parts.h"

enum { LINE = 128, FAR_LINE = 8 * 1024, GPU_SIZE = 16 << 20, EMULATOR_SIZE = 2 * CHUNK_BYTES };

static bool is_gpu(const Bench *bench) { return device_info(bench->device)->kind == DEVICE_GPU; }

static size_t whole_chunks(size_t size) { return (size + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES; }

bool bench_open(Bench *bench, const Session *session) {
  Device *device = session->device;
  *bench = (Bench){.session = session, .device = device, .current = CONTENTS};
  bench->size = is_gpu(bench) ? GPU_SIZE : EMULATOR_SIZE;
  bench->flush_size = whole_chunks(4 * device_info(device)->l2_size + 1);
  bench->content = malloc(bench->size);
  bench->memory = device_alloc(device, bench->size);
  bench->destination = device_alloc(device, bench->size);
  bench->flush = device_alloc(device, bench->flush_size);
  bench->clocks = device_alloc(device, RUNS * sizeof(int64_t));
  bench->results = device_alloc(device, sizeof(uint32_t) * READERS * (size_t)device_info(device)->sm_count);
  if (!bench->content) return device_fail(device, DEVICE_OUT_OF_MEMORY, "the host has no memory");
  return device_fill(device, bench->flush, 0, bench->flush_size);
}

void bench_close(Bench *bench) {
  device_free(bench->device, bench->memory);
  device_free(bench->device, bench->destination);
  device_free(bench->device, bench->flush);
  device_free(bench->device, bench->clocks);
  device_free(bench->device, bench->results);
  free(bench->content);
}

// ---- what lies in memory ----

static void put_words(Bench *bench) {
  for (uint32_t i = 0; i < bench->size / 4; i++) memcpy(bench->content + 4 * (size_t)i, &i, 4);
}

static void put_pointer(Bench *bench, size_t at, size_t to) {
  uint64_t address = bench->memory + to;
  memcpy(bench->content + at, &address, sizeof address);
}

static void put_rings(Bench *bench) {
  for (size_t line = 0; line < bench->size; line += LINE)
    for (size_t i = 0; i < RING; i++) put_pointer(bench, line + 8 * i, line + (i + 1) % RING * 8);
}

// A chain through all lines in a random order, from line 0 and back to it.
static bool put_chain(Bench *bench) {
  size_t distance = is_gpu(bench) ? FAR_LINE : LINE, lines = bench->size / distance;
  size_t *order = malloc(sizeof *order * lines);
  uint64_t random = 1;
  if (!order) return device_fail(bench->device, DEVICE_OUT_OF_MEMORY, "the host has no memory");
  for (size_t i = 0; i < lines; i++) {
    size_t j = i > 1 ? 1 + random_bits(&random) % i : i;  // line 0 stays the first
    order[i] = order[j];
    order[j] = i;
  }
  for (size_t i = 0; i < lines; i++) put_pointer(bench, order[i] * distance, order[(i + 1) % lines] * distance);
  free(order);
  return true;
}

static bool put(Bench *bench, Content content) {
  memset(bench->content, 0, bench->size);
  if (content == ONE) bench->content[0] = 1;
  if (content == WORDS || content == NEW_WORDS) put_words(bench);
  if (content == RINGS) put_rings(bench);
  if (content == CHAIN && !put_chain(bench)) return false;
  bench->current = content;
  return device_upload(bench->device, bench->memory, bench->content, bench->size);
}

// Reading much else takes the place of what was in the L2 cache. Only a GPU has one.
static bool flush_l2(const Bench *bench) {
  Whole whole = {bench->flush, 0, bench->flush_size, 1};
  return !is_gpu(bench) || bench_launch_whole(bench, &whole);
}

static bool prepare_content(Bench *bench, Content content) {
  if (bench->current != content && !put(bench, content)) return false;
  if (content == ONE) return device_upload(bench->device, bench->memory, bench->content, LINE);
  return content == NEW_WORDS || content == CHAIN ? flush_l2(bench) : true;
}

// ---- launches ----

static bool launch_bench(const Bench *bench, const char *kernel, int blocks, int threads, const Arguments *arguments) {
  DeviceLaunch it = {
      .kernel = device_kernel(bench->device, bench->session->module, kernel),
      .grid = {(unsigned)blocks},
      .block = {(unsigned)threads},
      .arguments = ARGUMENTS(arguments),
  };
  return device_launch(bench->device, &it);
}

static Arguments make_arguments(const Bench *bench, DeviceAddress memory, size_t size, int rounds) {
  return (Arguments){
      .clocks = bench->clocks, .results = bench->results, .memory = memory, .size = size, .one = 1, .rounds = rounds};
}

// TMA sees memory as rows of 64 numbers: COPIES tiles, or as many as are loaded.
static bool make_tiles(const Bench *bench, const Quantity *quantity, Arguments *arguments) {
  int tiles = quantity->content == NEW_WORDS ? ALL_RUNS * arguments->rounds * quantity->steps : COPIES;
  Shape shape = {.batch = 1, .heads = 1, .seqlen = tiles * TILE_ROWS, .head_dim = 64};
  arguments->size = (uint64_t)tiles * TILE_BYTES;
  return attention_tensor_map(bench->device, &shape, (DeviceTensor){.address = bench->memory}, TILE_ROWS,
                              &arguments->tiles);
}

bool bench_launch(Bench *bench, const Quantity *quantity, int rounds, int launches) {
  Arguments arguments = make_arguments(bench, bench->memory, bench->size, rounds);
  uint64_t random = (uint64_t)launches;
  if (quantity->content == RINGS) arguments.memory += random_bits(&random) % (bench->size / LINE) * LINE;
  return prepare_content(bench, quantity->content) && make_tiles(bench, quantity, &arguments) &&
         launch_bench(bench, quantity->kernel, 1, quantity->threads, &arguments);
}

bool bench_launch_whole(const Bench *bench, const Whole *whole) {
  Arguments arguments = make_arguments(bench, whole->memory, whole->size, whole->rounds);
  arguments.destination = whole->destination;
  if (whole->destination) return launch_bench(bench, "copy_all", (int)(whole->size / PIECE_BYTES), COPIERS, &arguments);
  return launch_bench(bench, "read_all", device_info(bench->device)->sm_count, READERS, &arguments);
}

bool bench_launch_one(const Bench *bench, const char *kernel, int rounds) {
  Arguments arguments = make_arguments(bench, bench->memory, bench->size, rounds);
  return launch_bench(bench, kernel, 1, 1, &arguments);
}

// ---- results ----

static uint32_t end_of_chain(const Bench *bench, uint32_t steps) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < steps; i++) {
    memcpy(&at, bench->content + at, sizeof at);
    at -= bench->memory;
  }
  return (uint32_t)at;
}

uint32_t bench_expected(const Bench *bench, const Quantity *quantity, uint32_t thread, uint32_t steps) {
  return quantity->content == CHAIN ? end_of_chain(bench, steps) : quantity->expected(quantity, thread, steps);
}
