// Where an instruction's operands are: slots of registers, of constants and of special registers.
#pragma once

#include "decoder.h"
#include "machine.h"

// The slot of a register, immediate or unchanging special register, read as type. An immediate is converted to type: an
// integer literal to any integer or bit type, a float literal to f16, bf16, f32 or f64. A register must have the type's
// size (or be larger, for ld, st and cvt: pass wide = true). Calls decoder_error and returns 0 when the operand does
// not fit.
Slot decoder_source(Decoder *decoder, const PtxOperand *operand, PtxType type);
// The slot of a destination register of type; a sink gives a slot that nothing reads.
Slot decoder_destination(Decoder *decoder, const PtxOperand *operand, PtxType type);
// As the two above, for a register that may be wider than type (ld, st, cvt: PTX ISA 9.4.1); *slot_size is its size.
Slot decoder_wide_source(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size);
Slot decoder_wide_destination(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size);
// A slot that holds value in every lane.
Slot decoder_constant(Decoder *decoder, uint64_t value, int size);
// A fresh slot for an element of size bytes.
Slot decoder_slot(Decoder *decoder, int size);
// Adds a touch at the end of the program's: to the instruction that is being decoded.
void decoder_touch(Decoder *decoder, Touch touch);
// Bytes of an element of type in a slot: a predicate's is a bit of a Mask, and counts as 1.
int slot_element_size(PtxType type);

// ---- special registers ----

// The id of a special register that keeps its value while a thread runs, -1 when there is none of that name.
int special_find(const char *name, int *size);
// Its value for a lane.
uint64_t special_value(const Warp *warp, int id, int component, int lane);
// Whether the program asks for the workspace of grid.sync().
bool special_knows_grid_sync(const Program *program);
// Whether it asks for shared memory of the system's.
bool special_knows_reserved_shared(const Program *program);
