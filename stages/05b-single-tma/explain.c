// --explain: one load, taken apart: the tensor map, the box, the mbarrier's bytes, and each chunk as it lies.
#include <inttypes.h>

#include "parts.h"

enum {
  IN_LINE = 8,
  TILE_BEGIN = 1024
};  // chunks in a line of the map; the tile's address: the first KiB is the system's

static void print_map_fields(FILE *out, const TensorMapSpec *spec, const Box *box) {
  fprintf(out, "\n1. THE TENSOR MAP\n\n"
               "    type      fp16: an element has 2 bytes\n");
  fprintf(out, "    address   a multiple of 16 bytes: %s\n", spec->address % 16 ? "NO" : "yes");
  fprintf(out, "    size      %" PRIu64 " columns, %" PRIu64 " rows, %" PRIu64 " matrices\n", spec->size[0],
          spec->size[1], spec->size[2]);
  fprintf(out, "    stride    %" PRIu64 " bytes from row to row, %" PRIu64 " from matrix to matrix\n", spec->stride[1],
          spec->stride[2]);
  fprintf(out, "    box       %u columns, %u rows, %u matrix: %zu bytes\n", spec->box[0], spec->box[1], spec->box[2],
          box_bytes(box));
  if (box->swizzle)
    fprintf(out, "    swizzle   %d bytes\n", box->swizzle);
  else
    fprintf(out, "    swizzle   none\n");
  fprintf(out, "    fill      %s\n", spec->fill_nan ? "NaN" : "zero");
}

// "-8 to 55 of 0 to 71"
static void print_range(FILE *out, const char *name, int first, int count, int size) {
  fprintf(out, "    %-9s %d to %d; the tensor has 0 to %d\n", name, first, first + count - 1, size - 1);
}

static void print_box(FILE *out, const Box *box, const Corner *at) {
  int inside = model_inside(box, at);
  fprintf(out, "\n2. THE BOX\n\n");
  print_range(out, "columns", at->x, box->columns, COLUMNS);
  print_range(out, "rows", at->y, box->rows, ROWS);
  print_range(out, "matrix", at->z, 1, MATRICES);
  fprintf(out, "    TMA reads %d bytes of the tensor and fills %d. The mbarrier counts %zu.\n", inside * CHUNK,
          (box_chunks(box) - inside) * CHUNK, box_bytes(box));
}

// A line is 128 bytes, all 32 banks, whatever the length of a row.
static void print_tile(FILE *out, const Box *box, const Chunk *lying) {
  char name[32];
  fprintf(out,
          "\n3. SHARED MEMORY, after the wait. A cell is a chunk of 16 bytes: \"r3 c8\" has row 3, columns 8 to 15.\n\n"
          "    byte    +0         +16        +32        +48        +64        +80        +96        +112\n");
  for (int i = 0; i < box_chunks(box); i++) {
    bool last = i % IN_LINE == IN_LINE - 1 || i + 1 == box_chunks(box);
    if (i % IN_LINE == 0) fprintf(out, "    0x%04x", TILE_BEGIN + i * CHUNK);
    fprintf(out, last ? "  %s\n" : "  %-9s", model_name(&lying[i], name));
  }
}

void explain_load(FILE *out, const TensorMapSpec *spec, const Box *box, const Corner *at, const Chunk *lying) {
  print_map_fields(out, spec, box);
  print_box(out, box, at);
  print_tile(out, box, lying);
}

static const char *answer(int ends) { return ends == NOT_ASKED ? "-" : ends ? "ends" : "waits"; }

void explain_phases(FILE *out, const Look looks[LOOKS]) {
  fprintf(out,
          "\n4. AN MBARRIER ALONE, which expects two arrivals\n\n"
          "    %-27s %-7s %-15s %-9s %-7s %s\n",
          "event", "phase", "arrivals left", "bytes", "wait 0", "wait 1");
  for (int i = 0; i < LOOKS; i++)
    fprintf(out, "    %-27s %-7d %-15d %-9d %-7s %s\n", events[i].words, events[i].phase, events[i].arrivals,
            events[i].bytes, answer(looks[i].ends[0]), answer(looks[i].ends[1]));
  fprintf(
      out,
      "\n    \"wait 0\" is a wait for a phase of parity 0. It ends if the phase before the one under way had\n"
      "    that parity. The phase before the first one has parity 1, and counts as complete. \"-\" is not asked.\n");
}
