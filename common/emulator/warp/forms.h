// An arithmetic family states what it implements in a table: one line per instruction form, written as in the
// syntax boxes of the PTX ISA, chapter 9.7.
//
//   FORM_WITH_RND_FTZ_SAT("fma.rnd{.ftz}{.sat}.f32", "f32 f32 f32 f32", fma_f32),
//
// An instruction must have the modifiers outside the braces, in that order, and may have those inside, anywhere: ptxas
// takes them in any order too. What no line of the table allows is a decode error.
#pragma once

#include "decoder.h"

// Optional modifiers, as bits. The two lowest choose Form.execute; the rest are the family's business, in Inst.flags.
enum {
  FORM_FTZ = 1,           // subnormal sources and results become zero of the same sign
  FORM_SAT = 2,           // the result is clamped: to [0, 1] with NaN to 0 for floats, to the type's range for integers
  FORM_RELU = 4,          // negative results become 0, NaN the canonical NaN
  FORM_NAN = 8,           // min, max: NaN if either source is
  FORM_XORSIGN_ABS = 16,  // min, max: of the magnitudes, with the product's sign
  FORM_SATFINITE = 32,    // results beyond the largest finite number become that number
  FORM_OOB = 64,          // fma: 0 where a factor is what tensor copies fill with outside of a tensor, when it is a NaN
};

// Where .rnd stands in a form. The value of Form.rounding and of the helpers that take one.
typedef enum Rounding {
  ROUND_NEAREST,       // rn: ties to even
  ROUND_ZERO,          // rz
  ROUND_DOWN,          // rm
  ROUND_UP,            // rp
  ROUND_NEAREST_AWAY,  // rna: ties away from zero
} Rounding;

typedef struct Form {
  const char *syntax;    // "{.rnd}" is rn when absent; .rnd one of rn rz rm rp
  const char *operands;  // their types, the destination first; up to four sources
  Execute *execute[4];   // by FORM_FTZ and FORM_SAT
  const void *plan;      // what else the family needs to know of this form
  Execute *rounded;      // by software, the roundings of .rnd other than to nearest, with all options: form_rounding()
} Form;

// Lines of a table: a form without options; one with .ftz, .sat and .rnd, which have handlers of their own; one whose
// handler reads the flags itself. clang-format off
#define FORM(syntax, operands, handler)                                                                                \
  { syntax, operands, {handler}, NULL, NULL }
#define FORM_WITH_FTZ(syntax, operands, handler)                                                                       \
  { syntax, operands, {handler, handler##_ftz}, NULL, NULL }
#define FORM_WITH_RND(syntax, operands, handler)                                                                       \
  { syntax, operands, {handler}, NULL, handler##_rnd }
#define FORM_WITH_RND_FTZ(syntax, operands, handler)                                                                   \
  { syntax, operands, {handler, handler##_ftz}, NULL, handler##_rnd }
#define FORM_WITH_RND_FTZ_SAT(syntax, operands, handler)                                                               \
  { syntax, operands, {handler, handler##_ftz, handler##_sat, handler##_ftz_sat}, NULL, handler##_rnd }
#define FORM_WITH_FLAGS(syntax, operands, handler, plan)                                                               \
  { syntax, operands, {handler, handler, handler, handler}, plan, NULL }
// clang-format on

// The form of a table that an instruction has, and which of its options.
typedef struct FormMatch {
  const Form *form;
  unsigned flags;  // FORM_...
  Rounding rounding;
} FormMatch;

// Whether the instruction has this form.
bool form_matches(const Form *form, const PtxInstruction *source, FormMatch *match);

// Looks source up in a table. DECODED with *match filled; otherwise an error that lists the forms of this opcode and
// type.
DecodeResult form_find(Decoder *decoder, const PtxInstruction *source, const Form *forms, int count, FormMatch *match);

// Fills the destination and the sources of inst from the form's types: a fourth source goes to d2.
DecodeResult form_operands(Decoder *decoder, const PtxInstruction *source, const Form *form, Inst *inst);

// Both of the above for families whose forms need nothing else: also sets execute and flags. A rounding other than to
// nearest wraps execute in a change of the host's rounding mode, whose arithmetic is IEEE 754's too, or is by software.
DecodeResult form_decode(Decoder *decoder, const PtxInstruction *source, const Form *forms, int count, Inst *inst);

// Of an instruction that form_decode() has decoded: its .rnd.
enum { FORM_ROUNDING_SHIFT = 16 };
static inline Rounding form_rounding(const Inst *inst) { return (Rounding)(inst->flags >> FORM_ROUNDING_SHIFT); }
