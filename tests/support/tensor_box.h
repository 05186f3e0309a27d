// Boxes of tensors: where their elements lie in a tile, and kernels that copy one, for the tests of tensor copies.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "emulator/emulator.h"

enum { TILE_BYTES = 16384, THREADS = 128 };

typedef struct Box {
  EmulatorTensorSpec spec;
  int start[EMULATOR_TENSOR_RANK];
} Box;

int element_bytes(EmulatorTensorType type);
// How many elements of dimension d a box has.
int box_count(const EmulatorTensorSpec *spec, int d);
uint32_t box_bytes(const EmulatorTensorSpec *spec);
// Where element (column, row) of a box lies, written with rows and units as the drawings in the CUDA programming guide
// show them: the tile begins at a multiple of 1024.
int place_in_tile(const EmulatorTensorSpec *spec, int row, int byte);

// ---- kernels, in PTX: they take a tensor map, the address of TILE_BYTES bytes, the box's bytes and its start ----

enum { BOX_TEXT = 4000 };

// The tile is zeroed, a box loaded, and the whole tile stored to the address.
void write_load(char text[BOX_TEXT], int rank);
// The same in im2col mode, with offsets "1, 0".
void write_im2col_load(char text[BOX_TEXT], int rank, const char *offsets);
// The tile is loaded from the address, and a box of it stored through the map; or reduced, by the operation "add".
void write_store(char text[BOX_TEXT], int rank);
void write_reduction(char text[BOX_TEXT], int rank, const char *operation);

// Runs a box's copy. tensor: as it was and is afterwards; tile: that which was loaded, or is to be stored.
void run_box(const Box *box, const char *text, uint64_t schedule, void *tensor, size_t size, void *tile);

void fill_random(void *bytes, size_t size, uint32_t seed);
