// How long a load takes, on a GPU.
#include "parts.h"

// A column of boxes, each loaded twice: the first time from device memory, then from L2. The first box does not count:
// with it come the tensor map and the instructions.
enum { PLACES = 8, WIDTH = 64, MOST_ROWS = MAX_TILE / WIDTH / ELEMENT };
enum { L2_FLUSH = 256 << 20 };  // bytes that, once written, leave nothing else in L2

static const int box_rows[] = {8, 16, 32, 64, 128, 256};
enum { BOXES = sizeof box_rows / sizeof *box_rows, QUANTITIES = 3, ROW_SIZE = 96 };

static const char COLUMN_NAMES[] = "quantity,bytes,clocks";
static const char *const quantities[QUANTITIES] = {"issue", "l2", "memory"};

// Clocks of one size of box: the fewest of all places.
typedef struct Latency {
  int clocks[QUANTITIES];
} Latency;

typedef struct Clocks {
  int issue, all;  // of one load: as the kernel stores them
} Clocks;

static TensorMapSpec column_of_boxes(DeviceAddress address, int rows) {
  return (TensorMapSpec){.type = TENSOR_MAP_F16,
                         .rank = 3,
                         .address = address,
                         .size = {WIDTH, PLACES * MOST_ROWS, 1},
                         .stride = {0, WIDTH * ELEMENT, WIDTH * ELEMENT * PLACES * MOST_ROWS},
                         .box = {WIDTH, (uint32_t)rows, 1},
                         .swizzle = TENSOR_SWIZZLE_128B};
}

static void summarise(const Clocks clocks[2 * PLACES], Latency *latency) {
  for (int p = 1; p < PLACES; p++) {
    const int seen[QUANTITIES] = {clocks[2 * p + 1].issue, clocks[2 * p + 1].all, clocks[2 * p].all};
    for (int q = 0; q < QUANTITIES; q++)
      if (p == 1 || seen[q] < latency->clocks[q]) latency->clocks[q] = seen[q];
  }
}

static bool measure_box(const Session *session, DeviceAddress tensor, DeviceAddress flush, int rows, Latency *latency) {
  Device *device = session->device;
  Corner corners[2 * PLACES];
  Clocks clocks[2 * PLACES];
  int rounds = 2 * PLACES;
  TensorMapSpec spec = column_of_boxes(tensor, rows);
  TensorMap map;
  Box box = {WIDTH, rows, 128};
  for (int i = 0; i < rounds; i++) corners[i] = (Corner){0, i / 2 * MOST_ROWS, 0};
  DeviceAddress places = device_alloc(device, sizeof corners), times = device_alloc(device, sizeof clocks);
  DeviceLaunch launch = {.kernel = device_kernel(device, session->module, "latency"),
                         .dynamic_shared = SHARED_BYTES,
                         .arguments = ARGUMENTS(&map, &box, &places, &rounds, &times)};
  bool done = device_tensor_map(device, &spec, &map) && device_upload(device, places, corners, sizeof corners) &&
              device_fill(device, flush, 0, L2_FLUSH) && device_launch(device, &launch) &&
              device_download(device, clocks, times, sizeof clocks);
  device_free(device, places);
  device_free(device, times);
  if (done) summarise(clocks, latency);
  return done;
}

static int write_csv(const Session *session, const Latency latencies[BOXES]) {
  char text[BOXES * QUANTITIES][ROW_SIZE], error[ERROR_SIZE];
  const char *rows[BOXES * QUANTITIES];
  if (!session->options.csv) return EXIT_RIGHT;
  for (int i = 0; i < BOXES * QUANTITIES; i++) {
    int b = i / QUANTITIES, q = i % QUANTITIES;
    snprintf(text[i], ROW_SIZE, "%s,%d,%d", quantities[q], box_rows[b] * WIDTH * ELEMENT, latencies[b].clocks[q]);
    rows[i] = text[i];
  }
  if (!csv_append_rows(session->options.csv, session->stage, device_info(session->device), COLUMN_NAMES, rows,
                       BOXES * QUANTITIES, error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  return EXIT_RIGHT;
}

int measure_loads(const Session *session) {
  Device *device = session->device;
  const size_t bytes = (size_t)PLACES * MAX_TILE;
  DeviceAddress tensor = device_alloc(device, bytes), flush = device_alloc(device, L2_FLUSH);
  Latency latencies[BOXES];
  bool done = device_fill(device, tensor, 0, bytes);
  fprintf(session->out,
          "latency   clocks of one load of 64 columns, the fewest of %d: the issue alone; until the wait ends\n"
          "          %8s %8s %8s %12s\n",
          PLACES - 1, "bytes", "issue", "from L2", "from memory");
  for (int b = 0; b < BOXES && done; b++) {
    done = measure_box(session, tensor, flush, box_rows[b], &latencies[b]);
    if (done)
      fprintf(session->out, "          %8d %8d %8d %12d\n", box_rows[b] * WIDTH * ELEMENT, latencies[b].clocks[0],
              latencies[b].clocks[1], latencies[b].clocks[2]);
  }
  device_free(device, tensor);
  device_free(device, flush);
  return done ? write_csv(session, latencies) : session_fail_device(session);
}
