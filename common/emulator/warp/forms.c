// Matches instructions against the tables of forms: forms.h.
#include "forms.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "decoder.h"
#include "rounded.h"

// One element of a form's syntax: ".ftz" of "{.ftz}", or ".lo" of "mad.lo.s32".
typedef struct Element {
  char text[40];  // without the leading dot; "xorsign.abs" counts as one
  bool optional;
} Element;

enum { MAX_ELEMENTS = 12 };

static const struct {
  const char *name;
  unsigned flag;
} options[] = {
    {"ftz", FORM_FTZ},
    {"sat", FORM_SAT},
    {"relu", FORM_RELU},
    {"NaN", FORM_NAN},
    {"xorsign.abs", FORM_XORSIGN_ABS},
    {"satfinite", FORM_SATFINITE},
    {"oob", FORM_OOB},
};

static const char *const rounding_names[] = {"rn", "rz", "rm", "rp"};

// Splits what follows the opcode: "{.rnd}{.ftz}.f32" into rnd (optional), ftz (optional), f32.
static int split(const char *syntax, Element *elements) {
  int count = 0;
  const char *at = syntax + strcspn(syntax, ".{");
  while (*at && count < MAX_ELEMENTS) {
    bool optional = *at == '{';
    at += optional ? 2 : 1;
    size_t length = strcspn(at, optional ? "}" : ".{");
    Element *element = &elements[count++];
    snprintf(element->text, sizeof element->text, "%.*s", (int)length, at);
    element->optional = optional;
    at += length + optional;
  }
  return count;
}

static bool same_opcode(const Form *form, const char *opcode) {
  const char *syntax = form->syntax;
  while (*opcode && *opcode == *syntax) opcode++, syntax++;
  return !*opcode && (!*syntax || *syntax == '.' || *syntax == '{');
}

// The number of modifiers from the first on that the element takes: 0 when it is not what stands there.
static int element_length(const char *text, const char *const *modifiers, int count, Rounding *rounding) {
  if (!strcmp(text, "rnd")) {
    for (int i = 0; i < 4; i++)
      if (!strcmp(modifiers[0], rounding_names[i])) return *rounding = (Rounding)i, 1;
    return 0;
  }
  int length = 0;
  while (length < count) {
    size_t size = strlen(modifiers[length]);
    if (strncmp(text, modifiers[length++], size)) return 0;
    if (text[size] == '\0') return length;
    if (text[size] != '.') return 0;
    text += size + 1;
  }
  return 0;
}

static unsigned option_flag(const char *text) {
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    if (!strcmp(text, options[i].name)) return options[i].flag;
  return 0;
}

// Whether the instruction's modifiers are what the form allows: the required ones in order, each optional one at most
// once.
static bool modifiers_match(const Form *form, const PtxInstruction *source, FormMatch *match) {
  Element elements[MAX_ELEMENTS];
  int count = split(form->syntax, elements);
  bool used[MAX_ELEMENTS] = {false};
  *match = (FormMatch){.form = form};
  for (int at = 0; at < source->modifier_count;) {
    int taken = 0;
    bool passed_required = false;
    for (int e = 0; e < count && !taken; e++) {
      if (used[e] || (!elements[e].optional && passed_required)) continue;
      passed_required |= !elements[e].optional;
      taken = element_length(elements[e].text, source->modifiers + at, source->modifier_count - at, &match->rounding);
      used[e] = taken > 0;
      if (taken && elements[e].optional) match->flags |= option_flag(elements[e].text);
    }
    if (!taken) return false;
    at += taken;
  }
  for (int e = 0; e < count; e++)
    if (!elements[e].optional && !used[e]) return false;
  return true;
}

bool form_matches(const Form *form, const PtxInstruction *source, FormMatch *match) {
  return same_opcode(form, source->opcode) && modifiers_match(form, source, match);
}

// Whether a form is for the type that the instruction names last.
static bool same_type(const Form *form, const PtxInstruction *source) {
  PtxType type = ptx_instruction_type(source);
  const char *name = type == PTX_NO_TYPE ? NULL : ptx_type_name(type);
  size_t length = name ? strlen(name) : 0;
  for (const char *at = form->syntax; name && (at = strstr(at, name)); at++)
    if (at[-1] == '.' && (at[length] == '\0' || at[length] == '.' || at[length] == '{')) return true;
  return false;
}

DecodeResult form_find(Decoder *decoder, const PtxInstruction *source, const Form *forms, int count, FormMatch *match) {
  char known[240] = "";
  for (int i = 0; i < count; i++) {
    if (!same_opcode(&forms[i], source->opcode)) continue;
    if (modifiers_match(&forms[i], source, match)) return DECODED;
    size_t used = strlen(known);
    if (same_type(&forms[i], source))
      snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", forms[i].syntax);
  }
  if (!known[0]) return decoder_error(decoder, source, "unknown instruction");
  return decoder_error(decoder, source, "no such form; there is %s", known);
}

DecodeResult form_operands(Decoder *decoder, const PtxInstruction *source, const Form *form, Inst *inst) {
  PtxType types[5] = {PTX_NO_TYPE};
  int count = 0;
  for (const char *at = form->operands; *at && count < 5; count++) {
    char name[16] = "";
    size_t length = strcspn(at, " ");
    memcpy(name, at, length < sizeof name ? length : sizeof name - 1);
    types[count] = ptx_type_from_name(name);
    at += length + (at[length] == ' ');
  }
  if (!decoder_operands(decoder, source, count, count)) return DECODE_FAILED;
  Slot *sources[4] = {&inst->a, &inst->b, &inst->c, &inst->d2};
  for (int i = 0; i < count; i++)
    if (source->operands[i].negated && types[i] != PTX_PRED)
      return decoder_error(decoder, source, "operand %d cannot be negated", i + 1);
  inst->d = decoder_destination(decoder, &source->operands[0], types[0]);
  for (int i = 1; i < count; i++) *sources[i - 1] = decoder_source(decoder, &source->operands[i], types[i]);
  inst->type = (uint8_t)types[0];
  return DECODED;
}

// A handler that computes to nearest, and the host's mode to run it in.
typedef struct Rounded {
  Execute *nearest;
  int mode;
} Rounded;

static void execute_rounded(Warp *warp, const Inst *inst, Mask mask) {
  const Rounded *rounded = inst->extra;
  fesetround(rounded->mode);
  rounded->nearest(warp, inst, mask);
  fesetround(FE_TONEAREST);
}

static void decode_rounding(Decoder *decoder, const FormMatch *match, Inst *inst) {
  if (match->rounding == ROUND_NEAREST) return;
  if (rounds_by_software()) {
    inst->flags |= (uint32_t)match->rounding << FORM_ROUNDING_SHIFT;
    inst->execute = match->form->rounded;
    return;
  }
  Rounded *rounded = decoder_allocate(decoder, sizeof *rounded);
  *rounded = (Rounded){inst->execute, host_mode(match->rounding)};
  inst->extra = rounded;
  inst->execute = execute_rounded;
}

DecodeResult form_decode(Decoder *decoder, const PtxInstruction *source, const Form *forms, int count, Inst *inst) {
  FormMatch match;
  DecodeResult result = form_find(decoder, source, forms, count, &match);
  if (result == DECODED) result = form_operands(decoder, source, match.form, inst);
  if (result != DECODED) return result;
  inst->flags = match.flags;
  inst->execute = match.form->execute[match.flags & (FORM_FTZ | FORM_SAT)];
  decode_rounding(decoder, &match, inst);
  return DECODED;
}
