// The parts of stage 05b's host side.
//
//   stage.c     options, and what happens in which order
//   map.c       the tensor map: what TMA is told
//   check.c     loads boxes at every kind of place, and compares each byte with the model; looks at an mbarrier alone
//   model.c     what a box holds, and where it lies
//   explain.c   --explain: one load, with the bytes as they lie
//   measure.c   on a GPU: how long a load takes
#pragma once

#include "harness/harness.h"

#include "load.h"

enum { SWIZZLES = 4, MAX_CHUNKS = MAX_TILE / CHUNK };

// One 16 bytes of a tile, eight elements.
typedef struct Chunk {
  uint16_t element[IN_CHUNK];
} Chunk;

// What lies outside of a tensor reads as one of the two: 0, or the NaN that every fp16 map has.
enum { FILL_ZERO = 0, FILL_NAN = 0x7ff7, PADDING = 0xffff };

static inline size_t box_bytes(const Box *box) { return (size_t)(box->rows * box->columns * ELEMENT); }
static inline int box_chunks(const Box *box) { return (int)box_bytes(box) / CHUNK; }

// ---- map.c ----

// What TMA must know of the tensor and of the box. nan: elements outside of the tensor read as NaN.
TensorMapSpec describe(DeviceAddress tensor, const Box *box, bool nan);

// ---- model.c ----

// The tensor's memory, of PITCH * ROWS * MATRICES bytes, row after row.
void model_tensor(uint16_t *memory);
// The number of the element at these coordinates; `fill` outside of the tensor.
uint16_t model_element(int x, int y, int z, uint16_t fill);
// The chunk of a row of the box at `at`.
Chunk model_chunk(const Corner *at, int row, int chunk, uint16_t fill);
// Where in the tile it lies, in chunks.
int model_place(const Box *box, int row, int chunk);
// How many chunks of a box lie in the tensor.
int model_inside(const Box *box, const Corner *at);
// What a chunk holds, in few words: "r3 c64", "0", "NaN", "padding"; in matrix 1 "r3 c64 m1".
const char *model_name(const Chunk *chunk, char name[32]);

// ---- check.c ----

extern const int swizzle_widths[SWIZZLES];  // bytes, as in Box: 0, 32, 64, 128
extern const char *const swizzle_names[SWIZZLES];

// The classes of what is compared: all boxes as place() finds their chunks; and as they lie, those inside of the tensor
// and those that reach outside, filled with zeros or with NaN.
typedef enum Class { CLASS_PLACE, CLASS_INSIDE, CLASS_ZERO, CLASS_NAN, CLASSES } Class;

enum { SHOWN = 2, MISMATCH_SIZE = 200 };

typedef struct Comparison {
  uint64_t loads, compared, wrong;  // chunks
  uint64_t wrong_of[CLASSES][SWIZZLES];
  uint64_t padding, first_matrix;  // of the wrong ones inside: those that hold padding; those of matrix 0
  Look looks[LOOKS];
  int asked, wrong_looks;
  char shown[SHOWN][MISMATCH_SIZE];
  int shown_count;
} Comparison;

// Loads `rounds` boxes at these corners and downloads the tile as it lay after each, and as the kernel read it row by
// row: [rounds][chunks of the box]. False when a call of the device failed.
bool load_boxes(const Session *session, DeviceAddress tensor, const Box *box, bool nan, const Corner *corners,
                int rounds, Chunk *lying, Chunk *by_rows);
// All boxes of the check.
bool check_loads(const Session *session, DeviceAddress tensor, Comparison *result);
// An mbarrier alone.
bool check_phases(const Session *session, Comparison *result);
// The events of the kernel phases, and what an mbarrier's counts are after each.
typedef struct Event {
  const char *words;
  int phase, arrivals, bytes;  // the phase under way; what it still misses
} Event;
extern const Event events[LOOKS];

// ---- explain.c ----

void explain_load(FILE *out, const TensorMapSpec *spec, const Box *box, const Corner *at, const Chunk *lying);
void explain_phases(FILE *out, const Look looks[LOOKS]);

// ---- measure.c ----

// Measures, reports, and writes the CSV when there is one. Returns the exit code.
int measure_loads(const Session *session);
