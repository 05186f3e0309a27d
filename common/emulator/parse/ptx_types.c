// The names and sizes of PTX's fundamental types (PTX ISA 5.2), and the questions about an instruction's modifiers.
#include <string.h>

#include "ptx.h"

// clang-format off
static const struct {
  const char *name;
  size_t size;
} ptx_types[] = {
    [PTX_NO_TYPE] = {"none", 0}, [PTX_PRED] = {"pred", 1},
    [PTX_B8] = {"b8", 1}, [PTX_B16] = {"b16", 2}, [PTX_B32] = {"b32", 4}, [PTX_B64] = {"b64", 8},
    [PTX_B128] = {"b128", 16},
    [PTX_U8] = {"u8", 1}, [PTX_U16] = {"u16", 2}, [PTX_U32] = {"u32", 4}, [PTX_U64] = {"u64", 8},
    [PTX_S8] = {"s8", 1}, [PTX_S16] = {"s16", 2}, [PTX_S32] = {"s32", 4}, [PTX_S64] = {"s64", 8},
    [PTX_F16] = {"f16", 2}, [PTX_F16X2] = {"f16x2", 4}, [PTX_BF16] = {"bf16", 2}, [PTX_BF16X2] = {"bf16x2", 4},
    [PTX_F32] = {"f32", 4}, [PTX_F64] = {"f64", 8},
    [PTX_OTHER_TYPE] = {"other", 0},
};
// clang-format on

// Types that exist only as modifiers: alternate floating-point formats (5.2.3), packed integers (5.2.5), sub-byte and
// single-bit matrix elements (9.7.14).
static const char *const other_types[] = {
    "tf32",   "e4m3",   "e5m2",   "e4m3x2", "e5m2x2",  "e4m3x4", "e5m2x4", "e3m2",  "e2m3", "e2m1",
    "e3m2x2", "e2m3x2", "e2m1x2", "ue8m0",  "ue8m0x2", "ue4m3",  "u16x2",  "s16x2", "u8x4", "s8x4",
    "f32x2",  "b1",     "b4",     "u4",     "s4",      "u2",     "s2",     "b1024",
};

PtxType ptx_type_from_name(const char *name) {
  for (int i = PTX_PRED; i < PTX_OTHER_TYPE; i++)
    if (ptx_types[i].name[0] == name[0] && strcmp(ptx_types[i].name, name) == 0) return (PtxType)i;
  for (size_t i = 0; i < sizeof other_types / sizeof *other_types; i++)
    if (other_types[i][0] == name[0] && strcmp(other_types[i], name) == 0) return PTX_OTHER_TYPE;
  return PTX_NO_TYPE;
}

size_t ptx_type_size(PtxType type) { return ptx_types[type].size; }

const char *ptx_type_name(PtxType type) { return ptx_types[type].name; }

bool ptx_has(const PtxInstruction *instruction, const char *modifier) {
  for (int i = 0; i < instruction->modifier_count; i++)
    if (strcmp(instruction->modifiers[i], modifier) == 0) return true;
  return false;
}

PtxType ptx_instruction_type(const PtxInstruction *instruction) {
  for (int i = instruction->modifier_count; i-- > 0;) {
    PtxType type = ptx_type_from_name(instruction->modifiers[i]);
    if (type != PTX_NO_TYPE) return type;
  }
  return PTX_NO_TYPE;
}
