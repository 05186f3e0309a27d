// Boxes at every kind of place are loaded, and each byte is compared with the model. And an mbarrier alone.
#include <stdlib.h>

#include "parts.h"

const int swizzle_widths[SWIZZLES] = {0, 32, 64, 128};
const char *const swizzle_names[SWIZZLES] = {"none", "32B", "64B", "128B"};

// ---- loads ----

typedef struct Buffers {
  DeviceAddress corners, lying, by_rows;
} Buffers;

static bool launch_load(const Session *session, const TensorMap *map, const Box *box, int rounds,
                        const Buffers *buffers) {
  DeviceLaunch launch = {
      .kernel = device_kernel(session->device, session->module, "load"),
      .block = {THREADS},
      .dynamic_shared = SHARED_BYTES,
      .arguments = ARGUMENTS(map, box, &buffers->corners, &rounds, &buffers->lying, &buffers->by_rows),
  };
  return device_launch(session->device, &launch);
}

bool load_boxes(const Session *session, DeviceAddress tensor, const Box *box, bool nan, const Corner *corners,
                int rounds, Chunk *lying, Chunk *by_rows) {
  Device *device = session->device;
  TensorMapSpec spec = describe(tensor, box, nan);
  TensorMap map;
  size_t places = sizeof *corners * (size_t)rounds, bytes = box_bytes(box) * (size_t)rounds;
  Buffers buffers = {device_alloc(device, places), device_alloc(device, bytes), device_alloc(device, bytes)};
  bool done = device_tensor_map(device, &spec, &map) && device_upload(device, buffers.corners, corners, places) &&
              device_fill(device, buffers.lying, 0xff, bytes) && device_fill(device, buffers.by_rows, 0xff, bytes) &&
              launch_load(session, &map, box, rounds, &buffers) &&
              device_download(device, lying, buffers.lying, bytes) &&
              device_download(device, by_rows, buffers.by_rows, bytes);
  device_free(device, buffers.corners);
  device_free(device, buffers.lying);
  device_free(device, buffers.by_rows);
  return done;
}

// ---- the boxes of the check ----

enum { FIXED = 9, RANDOM = 6, ROUNDS = FIXED + RANDOM, BOX_ROWS = 12 };

// A box is as wide as its swizzle; without one it may be any number of chunks wide.
static Box box_of(int swizzle) {
  int width = swizzle_widths[swizzle];
  return (Box){.columns = width ? width / ELEMENT : 24, .rows = BOX_ROWS, .swizzle = width};
}

// Corners inside, over each edge, and outside; then random ones.
static void choose_corners(uint64_t seed, Corner corners[ROUNDS]) {
  static const Corner fixed[FIXED] = {{0, 0, 0},   {8, 5, 1},    {-8, 0, 0}, {0, -5, 1}, {64, 2, 0},
                                      {40, 14, 0}, {-16, 17, 1}, {96, 0, 0}, {0, 0, 2}};
  memcpy(corners, fixed, sizeof fixed);
  for (int i = FIXED; i < ROUNDS; i++) {
    int x = (int)(random_bits(&seed) % 12) - 2, y = (int)(random_bits(&seed) % 32) - 8;
    corners[i] = (Corner){x * IN_CHUNK, y, (int)(random_bits(&seed) % 3)};
  }
}

// Compares one chunk. `place` says where it was found.
static void compare(const Chunk *got, const Chunk *expected, Class class, int swizzle, const Corner *at,
                    const char *place, Comparison *result) {
  result->compared++;
  if (!memcmp(got, expected, sizeof *got)) return;
  result->wrong++;
  result->wrong_of[class][swizzle]++;
  result->padding += class == CLASS_INSIDE && got->element[0] == PADDING;
  result->first_matrix += class == CLASS_INSIDE && at->z == 0;
  if (result->shown_count == SHOWN) return;
  char names[2][32];
  snprintf(result->shown[result->shown_count++], MISMATCH_SIZE, "box[%d,%d,%d], swizzle %s, %s: got %s, expected %s",
           at->x, at->y, at->z, swizzle_names[swizzle], place, model_name(got, names[0]),
           model_name(expected, names[1]));
}

// Compares one load: the tile as it lay, and row by row.
static void compare_load(const Box *box, int swizzle, bool nan, const Corner *at, const Chunk *lying,
                         const Chunk *by_rows, Comparison *result) {
  int width = box->columns / IN_CHUNK;
  Class class = model_inside(box, at) == box_chunks(box) ? CLASS_INSIDE : nan ? CLASS_NAN : CLASS_ZERO;
  char place[64];
  for (int i = 0; i < box_chunks(box); i++) {
    Chunk expected = model_chunk(at, i / width, i % width, nan ? FILL_NAN : FILL_ZERO);
    int found = model_place(box, i / width, i % width);
    snprintf(place, sizeof place, "byte 0x%04x of the tile", found * CHUNK);
    compare(&lying[found], &expected, class, swizzle, at, place, result);
    snprintf(place, sizeof place, "row %d, chunk %d by place()", i / width, i % width);
    compare(&by_rows[i], &expected, CLASS_PLACE, swizzle, at, place, result);
  }
  result->loads++;
}

static bool check_boxes(const Session *session, DeviceAddress tensor, int swizzle, bool nan, Chunk *lying,
                        Chunk *by_rows, Comparison *result) {
  Corner corners[ROUNDS];
  Box box = box_of(swizzle);
  choose_corners(session->options.seed * 8 + (uint64_t)swizzle * 2 + nan, corners);
  if (!load_boxes(session, tensor, &box, nan, corners, ROUNDS, lying, by_rows)) return false;
  for (int r = 0; r < ROUNDS; r++)
    compare_load(&box, swizzle, nan, &corners[r], lying + r * box_chunks(&box), by_rows + r * box_chunks(&box), result);
  return true;
}

bool check_loads(const Session *session, DeviceAddress tensor, Comparison *result) {
  size_t bytes = (size_t)ROUNDS * BOX_ROWS * 128;
  Chunk *lying = malloc(bytes), *by_rows = malloc(bytes);
  bool done = lying && by_rows;
  for (int i = 0; i < 2 * SWIZZLES && done; i++)
    done = check_boxes(session, tensor, i / 2, i % 2, lying, by_rows, result);
  free(lying);
  free(by_rows);
  return done;
}

// ---- an mbarrier alone ----

const Event events[LOOKS] = {
    {"mbarrier_init(2)", 0, 2, 0}, {"arrive, expect 1024 bytes", 0, 1, 1024},
    {"1024 bytes land", 0, 1, 0},  {"arrive", 1, 2, 0},
    {"arrive", 1, 1, 0},           {"arrive, expect 1024 bytes", 1, 0, 1024},
    {"512 bytes land", 1, 0, 512}, {"512 bytes land", 2, 2, 0},
};

// A wait ends if the phase of that parity is the one before the phase under way.
bool check_phases(const Session *session, Comparison *result) {
  Device *device = session->device;
  DeviceAddress looks = device_alloc(device, sizeof result->looks);
  DeviceLaunch launch = {.kernel = device_kernel(device, session->module, "phases"), .arguments = ARGUMENTS(&looks)};
  bool done = device_launch(device, &launch) && device_download(device, result->looks, looks, sizeof result->looks);
  device_free(device, looks);
  for (int i = 0; i < LOOKS && done; i++)
    for (int parity = 0; parity < 2; parity++) {
      int ends = result->looks[i].ends[parity];
      result->asked += ends != NOT_ASKED;
      result->wrong_looks += ends != NOT_ASKED && ends != (parity != events[i].phase % 2);
    }
  return done;
}
