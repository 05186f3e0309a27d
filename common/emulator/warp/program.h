// What the emulator executes: PTX instructions decoded once, with their registers at fixed places.
//
// A warp's registers are one block of memory. Each virtual register, each immediate and each special register that does
// not change (%tid.x, ...) has a slot in it: an array of one element per lane, so that an instruction is a loop over 32
// elements that the compiler vectorises:
//
//   PTX type            slot holds           one lane's element
//   .pred               one Mask             a bit
//   8 and 16 bits       uint16_t[32]         (8-bit types live in 16-bit registers, PTX ISA 5.2)
//   32 bits             uint32_t[32]
//   64 bits             uint64_t[32]
//   128 bits            uint64_t[32][2]
//
// Immediates are slots too, filled when the warp starts: no instruction asks what kind an operand is.
#pragma once

#include "../parse/ptx.h"
#include "../emulator.h"

enum { LANES = 32 };
typedef uint32_t Mask;
#define FULL_MASK 0xffffffffu

typedef struct Warp Warp;
typedef struct Inst Inst;
typedef struct Decoder Decoder;
typedef uint32_t Slot;  // byte offset into a warp's registers

// Executes inst for the lanes of mask, which is never empty. All lanes of mask are at this instruction.
typedef void Execute(Warp *warp, const Inst *inst, Mask mask);

struct Inst {
  Execute *execute;
  Slot d, d2;    // destinations; d2 is the second of p|q
  Slot a, b, c;  // sources
  Slot members;  // the member mask of CONVERGE_MEMBERS
  Slot guard;    // the Mask of @p; only when guarded
  bool guarded, guard_negated;
  bool leader;           // a label or the end of a branch stands before it: divergent groups may meet here
  uint8_t control;       // Control: how execution goes on
  uint8_t converge;      // Converge: which lanes must be here together
  uint32_t priority;     // of divergent groups the one at the lowest priority runs first: cfg.c
  uint8_t counter;       // CounterKind of the instruction's class
  uint8_t type;          // PtxType it works on
  uint8_t size, vector;  // of a memory access: bytes per element, elements
  uint32_t flags;        // meaning belongs to the family
  int64_t immediate;     // address offset, label, ...
  const void *extra;     // more operands of instructions that need them; belongs to the family, lives in the program
  bool watched;          // touches registers of wgmma: wgmma.h
  uint32_t touch_start;  // in Program.touches
  uint16_t touch_count;
  const PtxInstruction *source;
};

// Where execution goes after an instruction; what cfg.c needs to know of it.
typedef enum Control {
  CONTROL_NEXT,
  CONTROL_BRANCH,  // to the instruction at index `immediate`; or on, when guarded
  CONTROL_TABLE,   // to one of the BranchTable in `extra`
  CONTROL_END,     // nowhere: ret, exit, trap; or on, when guarded
} Control;

typedef struct BranchTable {
  uint32_t count;
  uint32_t targets[];  // instruction indices
} BranchTable;

// Which lanes an instruction waits for.
typedef enum Converge {
  CONVERGE_NONE,
  CONVERGE_ALIGNED,  // .aligned: every lane of the warp that has not exited
  CONVERGE_MEMBERS,  // .sync: the lanes of the member mask in the slot `members`
} Converge;

typedef enum DecodeResult {
  DECODE_NOT_MINE,  // the opcode or type belongs to another family
  DECODED,
  DECODE_FAILED,  // decoder_error was called
} DecodeResult;

// A family: a file that decodes and executes related instructions. decode fills *inst or says whose it is not.
typedef DecodeResult DecodeFamily(Decoder *decoder, const PtxInstruction *source, Inst *inst);

DecodeFamily decode_integer;  // add sub mul mad ... of integers; asks decode_bits when it is none of them
DecodeFamily decode_bits;     // and or xor not cnot lop3, shifts, bit fields, permutations
DecodeFamily decode_float;    // f32 and f64 arithmetic and special functions
DecodeFamily decode_half;     // f16, bf16 and their x2 forms
DecodeFamily decode_convert;  // cvt
DecodeFamily decode_compare;  // setp set selp slct testp
DecodeFamily decode_move;     // mov, cvta, isspacep: moves, packing, addresses, special registers
DecodeFamily decode_memory;   // ld st prefetch, and atom red through decode_atomic
DecodeFamily decode_atomic;
DecodeFamily decode_collective;     // shfl vote match redux elect activemask
DecodeFamily decode_barrier;        // bar barrier
DecodeFamily decode_fence;          // fence membar
DecodeFamily decode_matrix_memory;  // ldmatrix stmatrix movmatrix
DecodeFamily decode_mma;            // mma.sync
DecodeFamily decode_wmma;           // wmma.load, wmma.mma, wmma.store
DecodeFamily decode_wgmma;          // wgmma and its fence, commit and wait
DecodeFamily decode_cp_async;       // cp.async and its groups
DecodeFamily decode_mbarrier;       // mbarrier and cp.async.mbarrier.arrive
DecodeFamily decode_bulk;           // cp.async.bulk, cp.reduce.async.bulk and bulk groups
DecodeFamily decode_tensor_copy;    // cp.async.bulk.tensor and its kin
DecodeFamily decode_cluster;        // mapa, getctarank, barrier.cluster
DecodeFamily decode_setmaxnreg;
DecodeFamily decode_hint;     // nanosleep griddepcontrol createpolicy
DecodeFamily decode_control;  // bra brx call ret exit trap

// ---- for the families' decode functions ----

// The slot of a register, immediate or unchanging special register, read as type. An immediate is converted to type: an
// integer literal to any integer or bit type, a float literal to f16, bf16, f32 or f64. A register must have the type's size
// (or be larger, for ld, st and cvt: pass wide = true). Calls decoder_error and returns 0 when the operand does not fit.
Slot decoder_source(Decoder *decoder, const PtxOperand *operand, PtxType type);
// The slot of a destination register of type; a sink gives a slot that nothing reads.
Slot decoder_destination(Decoder *decoder, const PtxOperand *operand, PtxType type);
// As the two above, for a register that may be wider than type (ld, st, cvt: PTX ISA 9.4.1); *slot_size is its size.
Slot decoder_wide_source(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size);
Slot decoder_wide_destination(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size);
// Memory that lives as long as the program, zeroed.
void *decoder_allocate(Decoder *decoder, size_t size);
// Reports a decode error at the instruction's line: "mad.lo.f16: ...". Always returns DECODE_FAILED. Only the first is kept.
DecodeResult decoder_error(Decoder *decoder, const PtxInstruction *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Checks the operand count: false after decoder_error when it is not between low and high.
bool decoder_operands(Decoder *decoder, const PtxInstruction *source, int low, int high);
// False after decoder_error when the instruction has a modifier that is neither a type name nor in the NULL-ended list:
// nothing that the family does not implement passes silently.
bool decoder_modifiers(Decoder *decoder, const PtxInstruction *source, const char *const *allowed);

// ---- for the families' execute functions ----

static inline uint8_t *warp_registers(Warp *warp) { return *(uint8_t **)warp; }  // the first member of Warp

#define SLOT(warp, slot, type) ((type *)__builtin_assume_aligned(warp_registers(warp) + (slot), 64))
