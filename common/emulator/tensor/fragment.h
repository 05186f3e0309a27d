// Matrices as a warp holds them: what ldmatrix, stmatrix, mma.sync and wmma share. PTX ISA 9.7.15.
//
// A fragment is a matrix of `lines` x `elements` cut into blocks of 8 x 8. Of each block a lane holds two neighbours:
//
//   lane l:  line l / 4, elements 2 * (l % 4) and 2 * (l % 4) + 1
//
// in one 32-bit register when elements have 16 bits (the first in its low half), in two registers when they are f32 or
// s32. What a line is depends on the operand: a row of A, a column of B, and of C and D what multiply.h makes of them.
//
// Inputs of other sizes lie as 16-bit elements would that hold the same bits: a lane has four neighbours of 8 bits, or
// one of tf32.
#pragma once

#include "../memory/memory.h"

enum {
  BLOCK = 8,          // lines and elements of a block
  MAX_REGISTERS = 8,  // of a fragment, in each lane
  UNIT_BYTES = 16,    // memory is accessed in units of one line of a block of 16-bit elements
  MAX_TILE_BYTES = 32 * 64,
};

typedef struct Fragment {
  int lines, elements;
  bool wide;     // elements have 32 bits, two registers to a block; else 16 bits
  PtxType type;  // of a register
  int block_count;
  struct {
    int line, element;  // its first
  } blocks[MAX_REGISTERS];
  int register_count;  // those beyond the blocks' own are written with the blocks again, and not read
  Slot registers[MAX_REGISTERS];
} Fragment;

// A tile is a matrix outside registers: this many elements lie between neighbouring lines, and between neighbouring
// elements of a line. Swapping the two transposes.
typedef struct Strides {
  int line, element;
} Strides;

// Cuts lines x elements into blocks, in the order of the registers: group lines (8 or 16) at a time, and in a group
// first down the lines, then along the elements.
Fragment fragment_of(int lines, int elements, int group, bool wide);
// Its registers from the operand, a vector of exactly `count` of them. False after decoder_error when it is not.
bool fragment_registers(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand, int count,
                        bool is_destination, Fragment *fragment);

// From the lanes' registers to a tile and back. The tile has elements of 16 or 32 bits, as the fragment.
void fragment_to_tile(Warp *warp, const Fragment *fragment, void *tile, Strides strides);
void fragment_from_tile(Warp *warp, const Fragment *fragment, const void *tile, Strides strides);

// False after a hazard when some of the warp's 32 lanes have exited or never were: what .aligned matrix instructions
// do then is undefined.
bool fragment_whole_warp(Warp *warp, const Inst *inst, Mask mask);

// One request of a warp to memory, of 16 bytes by each lane of a mask.
typedef struct Request {
  Space space;
  int bytes_each;  // 0: UNIT_BYTES
  AccessKind kind;
  bool own_shared;  // ldmatrix, stmatrix: the block's own shared memory only; else shared or global
  Mask lanes;
  uint64_t addresses[LANES];
  uint8_t *bytes[LANES];  // what is read goes there, what is written comes from there
} Request;

// Counts, checks and performs it. False after a hazard that stopped the launch.
bool fragment_access(Warp *warp, const Inst *inst, const Request *request);

// ---- for the decoders ----

// The index of the one modifier of a NULL-ended list that the instruction has; -1 when it has none of them, or several.
int fragment_modifier(const PtxInstruction *source, const char *const *names);
// The types among its modifiers, in order: their number, at most 4 of them in types[].
int fragment_types(const PtxInstruction *source, PtxType types[4]);
// False after decoder_error when .sync or .aligned is missing. Sets what the interpreter needs of an .aligned one.
bool fragment_aligned(Decoder *decoder, const PtxInstruction *source, Inst *inst);
