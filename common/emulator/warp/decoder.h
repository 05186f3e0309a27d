// The program of one kernel, and the decoder that makes it: shared by decode.c, cfg.c and the families that need more of
// the program than registers (moves of addresses, memory, calls).
#pragma once

#include "program.h"
#include "../memory/region.h"

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
  int id;         // SpecialRegister, special.c
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
} Touch;

typedef struct Program {
  const PtxModule *module;
  Inst *code;
  uint32_t count;
  Function *functions;  // functions[0] is the entry
  int function_count;
  int *function_of;       // by index of PtxModule.functions: in functions, plus one; 0 when the program has it not
  size_t register_bytes;  // of a warp
  Constant *constants;
  int constant_count;
  Special *specials;
  int special_count;
  uint64_t shared_size;     // static, from SHARED_BASE
  uint64_t dynamic_offset;  // where the dynamic part begins, from SHARED_BASE
  uint64_t local_size;      // a thread's
  uint64_t param_size;
  Touch *touches;  // of all instructions, in order
  uint32_t touch_count;
  uint8_t *watched;  // by slot / 64: wgmma uses the register, or a mov copies it from one that it uses
  uint32_t *watched_units, watched_count;  // those that are
  bool asynchronous;                       // has instructions of async.h
  struct Chunk *memory;                    // everything above
} Program;

// Decodes an entry and every function it may call. The module's variables have their places already.
// NULL and *error when something in it is unknown or malformed.
Program *program_decode(const PtxModule *module, const PtxFunction *entry, const Place *variables, int variable_count,
                        EmulatorError *error);
void program_free(Program *program);
// Finds leaders and priorities of a function's instructions; targets are in Inst.immediate and in branch tables: cfg.c.
void cfg_analyse(Program *program, const Function *function);

enum { KNOWN_FAMILIES = 256 };

struct Decoder {
  Program *program;
  const PtxModule *module;
  Function *function;  // being decoded
  const Place *variables;
  int variable_count;
  EmulatorError *error;
  bool failed;
  int constant_capacity, special_capacity;
  uint32_t touch_capacity;
  int *constant_buckets;  // hash of constants
  int constant_bucket_count;
  const PtxInstruction *source;  // being decoded
  struct {
    const PtxInstruction *like;  // an instruction with the same opcode and modifiers
    size_t family;
  } known[KNOWN_FAMILIES];  // whose instructions are, by a hash
};

// The place of a variable as the function being decoded sees it; NULL after decoder_error when it has none.
const Place *decoder_place(Decoder *decoder, const PtxVariable *variable);
// A slot that holds value in every lane.
Slot decoder_constant(Decoder *decoder, uint64_t value, int size);
// A fresh slot for an element of size bytes.
Slot decoder_slot(Decoder *decoder, int size);
// The first instruction of a label of the function being decoded.
uint32_t decoder_label(Decoder *decoder, int label);
// The function that an operand names, if this program has it, or NULL.
Function *program_function(const Program *program, const PtxOperand *operand);

// The function of that name that has a body, or NULL.
const PtxFunction *module_definition(const PtxModule *module, const char *name);

// Adds a family-independent error; used before the first instruction.
DecodeResult decoder_fail(Decoder *decoder, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

// ---- special registers: special.c ----

// The id of a special register that keeps its value while a thread runs, -1 when there is none of that name.
int special_find(const char *name, int *size);
// Its value for a lane.
uint64_t special_value(const Warp *warp, int id, int component, int lane);
