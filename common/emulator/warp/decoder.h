// The decoder as the families of instructions see it: whose instruction is being decoded, for which program, and what
// is wrong with it. operands.h gives the operands their slots.
#pragma once

#include "program.h"

typedef struct Decoder Decoder;

typedef enum DecodeResult {
  DECODED,
  DECODE_FAILED,  // decoder_error was called
} DecodeResult;

// Decodes one instruction, or several that are alike: fills *inst.
typedef DecodeResult Decode(Decoder *decoder, const PtxInstruction *source, Inst *inst);

enum { KNOWN_ROWS = 256 };

struct Decoder {
  Program *program;
  PtxModule *module;   // whose bodies are parsed as they are needed
  Function *function;  // being decoded
  const Place *variables;
  int variable_count;
  EmulatorError *error;
  bool failed;
  int constant_capacity, special_capacity, touch_capacity;
  int *constant_buckets;  // hash of constants
  int constant_bucket_count;
  const PtxInstruction *source;  // being decoded
  struct {
    const PtxInstruction *like;     // an instruction with the same opcode and modifiers
    const struct Instruction *row;  // its row of the table of instructions
  } known[KNOWN_ROWS];              // by a hash
};

// Memory that lives as long as the program, zeroed.
void *decoder_allocate(Decoder *decoder, size_t size);
// Reports a decode error at the instruction's line: "mad.lo.f16: ...". Always returns DECODE_FAILED. Only the first is
// kept.
DecodeResult decoder_error(Decoder *decoder, const PtxInstruction *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Checks the operand count: false after decoder_error when it is not between low and high.
bool decoder_operands(Decoder *decoder, const PtxInstruction *source, int low, int high);
// False after decoder_error when the instruction has a modifier that is neither a type name nor in the NULL-ended list:
// nothing that the family does not implement passes silently.
bool decoder_modifiers(Decoder *decoder, const PtxInstruction *source, const char *const *allowed);
// The same of something that is no instruction.
DecodeResult decoder_fail(Decoder *decoder, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The place of a variable as the function being decoded sees it; NULL after decoder_error when it has none.
const Place *decoder_place(Decoder *decoder, const PtxVariable *variable);
// The first instruction of a label of the function being decoded.
uint32_t decoder_label(Decoder *decoder, int label);

// Executes an instruction that changes nothing a program sees: a hint, for one.
Execute execute_nothing;
