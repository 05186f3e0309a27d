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

#include "../emulator.h"
#include "../host/host_memory.h"
#include "../parse/ptx.h"

typedef struct Warp Warp;
typedef struct Inst Inst;
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
  bool leader;        // a label or the end of a branch stands before it: divergent groups may meet here
  uint8_t control;    // Control: how execution goes on
  uint8_t converge;   // Converge: which lanes must be here together
  uint32_t priority;  // of divergent groups the one at the lowest priority runs first: run/decode.c
  uint8_t type;       // PtxType it works on
  uint8_t size;       // of a memory access: bytes per element, 0 for copies and the like
  uint32_t flags;     // meaning belongs to the family
  int64_t immediate;  // address offset, label, ...
  const void *extra;  // more operands of instructions that need them; belongs to the family, lives in the program
  Execute
      *unwatched;  // of one that touches registers of wgmma, what it does: execute checks them first. wgmma_registers.h
  uint32_t touch_start;  // in Program.touches
  uint16_t touch_count;
  const struct Instruction *row;  // of the table of instructions: instruction.h
  const PtxInstruction *source;
};

// Where execution goes after an instruction; what run/decode.c needs to know of it.
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

// `extra` of an instruction with CONVERGE_MEMBERS: bytes of an element of each operand; 0: it has none; 1: a predicate.
typedef struct SyncOperands {
  int a, b, c, d, d2;
} SyncOperands;

// ---- the program of one kernel ----

// A slot that is filled when a warp starts.
typedef struct Constant {
  Slot slot;
  int size;  // bytes of an element: 1 (a Mask of all lanes or none), 2, 4, 8 or 16
  uint64_t value, high;
} Constant;

// A special register's slot, filled when a warp starts.
typedef struct Special {
  Slot slot;
  int size;
  int id;         // SpecialRegister, operands.c
  int component;  // 0 to 2
} Special;

// Where a variable lives.
typedef struct Place {
  const PtxVariable *variable;
  uint64_t
      address;  // in its own space: shared, local (from the frame), global, const; a kernel's parameter: its offset
  Slot slot;    // a function's parameter: size bytes for each lane
  int stride;   // of that, from lane to lane
} Place;

typedef struct Function {
  const PtxFunction *ptx;
  uint32_t start, end;        // its instructions in Program.code
  Slot *registers;            // by index of PtxFunction.registers; a vector's components follow each other
  Slot first_slot, end_slot;  // all its slots
  Place *places;              // its variables and parameters
  int place_count;
  uint64_t local_size;  // bytes of its .local variables
} Function;

// A register that an instruction reads or writes.
typedef struct Touch {
  Slot slot;
  bool written;
  uint8_t size;  // bytes of an element; 1: a predicate's Mask
} Touch;

// In the place of the execute function of a late load (check/order.h), and of instructions that use the value of late
// loads: memory/late_loads.c.
typedef struct Watch {
  const struct LateLoad *load;  // that it is, or NULL
  const struct LateLoad **uses;
  int use_count;
  Execute *execute;
} Watch;

typedef struct Program {
  const PtxModule *module;
  Inst *code;
  uint32_t count;
  Function *functions;  // functions[0] is the entry
  int function_count;
  const Place *variables;  // of the module: where they are
  int variable_count;
  int *function_of;       // by index of PtxModule.functions: in functions, plus one; 0 when the program has it not
  size_t register_bytes;  // of a warp
  Constant *constants;
  int constant_count;
  Special *specials;
  int special_count;
  uint64_t shared_size;     // static, from SHARED_BASE
  uint64_t dynamic_offset;  // where the dynamic part begins, from SHARED_BASE
  uint64_t local_size;      // a thread's
  Slot stack;               // alloca's pointer, which falls from local_size; 0 when nothing uses it
  uint64_t stack_limit;     // where it ends
  uint64_t param_size;
  Touch *touches;  // of all instructions, in order
  uint32_t touch_count;
  uint8_t *watched;  // by slot / 64: wgmma uses the register, or a mov copies it from one that it uses
  uint32_t *watched_units, watched_count;  // those that are
  Watch **watches;                         // by instruction, NULL if no load is late: memory/late_loads.c
  struct Site *sites;                      // by instruction, what the race check knows of it: check/threads.h
  bool has_first_guesses;                  // some load makes one: memory/first_guess.c
  bool asynchronous;                       // has instructions of async.h
  int largest_inc;                         // the count of a setmaxnreg.inc, 0 without one
  bool allocates;                          // calls malloc or free, which change the table of regions
  struct Chunk *memory;                    // everything above
} Program;

// The registers that an instruction reads or writes, inst->touch_count of them.
static inline const Touch *touches_of(const Program *program, const Inst *inst) {
  return &program->touches[inst->touch_start];
}
// Memory that lives as long as the program, zeroed.
void *program_allocate(Program *program, size_t size);
void program_free(Program *program);
// The instructions that may follow one: fills in the first `most` of them, and returns how many. A call's is the one
// behind it.
uint32_t program_successors(const Program *program, uint32_t pc, uint32_t most, uint32_t *list);
// The function that an operand names, if this program has it, or NULL.
Function *program_function(const Program *program, const PtxOperand *operand);
// The function of that name that has a body, or NULL.
const PtxFunction *module_definition(const PtxModule *module, const char *name);

// ---- for the families' execute functions ----

static inline uint8_t *warp_registers(Warp *warp) { return *(uint8_t **)warp; }  // the first member of Warp

#define SLOT(warp, slot, type) ((type *)__builtin_assume_aligned(warp_registers(warp) + (slot), 64))

// The lanes whose guard lets them execute an instruction.
static inline Mask guarded_lanes(Warp *warp, const Inst *inst) {
  if (!inst->guarded) return FULL_MASK;
  return *SLOT(warp, inst->guard, const Mask) ^ (inst->guard_negated ? FULL_MASK : 0);
}
