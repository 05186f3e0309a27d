// The PTX front end: what the files of tests/ptx/valid parse to, field by field.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/parse/ptx.h"
#include "support/program.h"
#include "support/ptx_files.h"

TestSuite(ptx);

// Parses a file of tests/ptx/valid, which must succeed.
static PtxModule *parse_valid(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/ptx/valid/%s", root_path(), name);
  Text text = read_text(path);
  PtxError error;
  PtxModule *module = ptx_parse(text.bytes, text.length, &error);
  cr_assert(module, "%s:%d: %s", path, error.line, error.message);
  free(text.bytes);
  return module;
}

// ---- looking into a module ----

// The function with a body, or the last declaration.
static const PtxFunction *function_named(const PtxModule *module, const char *name) {
  const PtxFunction *found = NULL;
  for (int i = 0; i < module->function_count; i++)
    if (strcmp(module->functions[i].name, name) == 0 && (!found || found->is_declaration))
      found = &module->functions[i];
  cr_assert(found, "no function %s", name);
  return found;
}

static const PtxVariable *variable_named(const PtxModule *module, const char *name) {
  const PtxVariable *found = NULL;
  for (int i = 0; i < module->variable_count; i++) {
    if (strcmp(module->variables[i]->name, name) != 0) continue;
    cr_assert(!found, "%s is there twice", name);
    found = module->variables[i];
  }
  cr_assert(found, "no variable %s", name);
  return found;
}

static void expect_opcode(const PtxInstruction *instruction, const char *opcode, const char *modifiers) {
  char written[256] = "";
  for (int i = 0; i < instruction->modifier_count; i++) {
    strcat(written, ".");
    strcat(written, instruction->modifiers[i]);
  }
  cr_expect_str_eq(instruction->opcode, opcode);
  cr_expect_str_eq(written, modifiers, "modifiers of %s on line %d: %s", opcode, instruction->line, written);
}

static void expect_register(const PtxFunction *function, const PtxOperand *operand, const char *name) {
  cr_assert_eq(operand->kind, PTX_OPERAND_REGISTER, "expected %s, kind is %d", name, (int)operand->kind);
  cr_expect_str_eq(function->registers[operand->index].name, name);
}

static void expect_integer(const PtxOperand *operand, int64_t value) {
  cr_expect_eq(operand->kind, PTX_OPERAND_INTEGER, "expected %lld, kind is %d", (long long)value, (int)operand->kind);
  cr_expect_eq(operand->value, value, "expected %lld, got %lld", (long long)value, (long long)operand->value);
}

// ---- the module and its constants ----

Test(ptx, module_directives) {
  PtxModule *module = parse_valid("minimal.ptx");
  cr_expect_eq(module->headers[0]->version_major, 7);
  cr_expect_eq(module->headers[0]->version_minor, 8);
  cr_expect_str_eq(module->headers[0]->target, "sm_90a");
  cr_expect_eq(module->function_count + module->variable_count + module->file_count, 0);
  ptx_free(module);
}

Test(ptx, comments_and_layout_do_not_matter) {
  PtxModule *module = parse_valid("layout.ptx");
  const PtxFunction *f = function_named(module, "layout");
  cr_assert_eq(f->instruction_count, 4);
  expect_opcode(&f->instructions[0], "mov", ".b32");
  expect_register(f, &f->instructions[0].operands[0], "$a");
  expect_opcode(&f->instructions[1], "add", ".s32");
  cr_expect_eq(f->instructions[1].line, 8);
  expect_opcode(&f->instructions[2], "bra", "");
  cr_expect_eq(f->instructions[2].line, 10);
  cr_expect(f->instructions[2].guard_negated);
  cr_expect_str_eq(f->registers[f->instructions[2].guard].name, "p");
  cr_expect_eq(f->labels[f->instructions[2].operands[0].index].instruction, 3);
  ptx_free(module);
}

Test(ptx, integer_constants_and_expressions) {
  static const int64_t expected[] = {
      0,
      123,
      0x1f,
      0xff,
      11,
      1,
      511,
      42,
      0x80000000ll,
      -1,
      INT64_MIN,
      32,
      -1,
      5,
      7,
      -1,
      0,
      1,  // literals and signs
      7,
      9,
      11,
      -3,
      0,
      INT64_MAX,
      (1ll << 40) | 1,
      -4,
      15,
      -4,
      2,
      10,  // arithmetic
      1,
      0,
      0,
      1,
      10,
      30,
      127,
      INT64_MIN / 2,
      0,
      3,  // comparison and choice
  };
  PtxModule *module = parse_valid("literals.ptx");
  const PtxFunction *f = function_named(module, "literals");
  int count = (int)(sizeof expected / sizeof *expected);
  for (int i = 0; i < count; i++) {
    const PtxOperand *operand = &f->instructions[i].operands[1];
    cr_expect_eq(operand->kind, PTX_OPERAND_INTEGER);
    cr_expect_eq(operand->value, expected[i], "line %d: expected %lld, got %lld", f->instructions[i].line,
                 (long long)expected[i], (long long)operand->value);
  }
  expect_opcode(&f->instructions[count], "mov", ".f32");  // the first that is none
  ptx_free(module);
}

Test(ptx, floating_point_constants) {
  static const struct {
    uint64_t bits;
    bool is_f32;
  } expected[] = {
      {0x3f800000, true},          {0x7fc00001, true},          {0x3ff0000000000000, false},
      {0xc000000000000000, false}, {0x3ff8000000000000, false}, {0x4097700000000000, false},
      {0xbfd0000000000000, false}, {0x4059000000000000, false}, {0x3fe0000000000000, false},
      {0x4014000000000000, false},
  };
  PtxModule *module = parse_valid("literals.ptx");
  const PtxFunction *f = function_named(module, "literals");
  int count = (int)(sizeof expected / sizeof *expected), first = f->instruction_count - 1 - count;
  for (int i = 0; i < count; i++) {
    const PtxOperand *operand = &f->instructions[first + i].operands[1];
    cr_expect_eq(operand->kind, PTX_OPERAND_FLOAT);
    cr_expect_eq((uint64_t)operand->value, expected[i].bits, "line %d: 0x%llx", f->instructions[first + i].line,
                 (unsigned long long)operand->value);
    cr_expect_eq(operand->is_f32, expected[i].is_f32);
  }
  ptx_free(module);
}

Test(ptx, registers_resolve_to_the_innermost_declared_before) {
  PtxModule *module = parse_valid("scopes.ptx");
  const PtxFunction *f = function_named(module, "scopes");
  static const struct {
    int instruction, operand, reg;
    PtxType type;
  } expected[] = {
      {0, 0, 0, PTX_B32}, {3, 0, 0, PTX_B32},  {4, 0, 1, PTX_F32},  {6, 0, 2, PTX_B64},  {8, 1, 1, PTX_F32},
      {9, 0, 4, PTX_B64}, {10, 0, 5, PTX_B32}, {10, 1, 0, PTX_B32}, {12, 0, 6, PTX_B32}, {12, 1, 7, PTX_B32},
  };
  cr_assert_eq(f->register_count, 9, "those that instructions name: %d", f->register_count);
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    const PtxOperand *operand = &f->instructions[expected[i].instruction].operands[expected[i].operand];
    cr_expect_eq(operand->kind, PTX_OPERAND_REGISTER);
    cr_expect_eq(operand->index, expected[i].reg, "instruction %d: register %d", expected[i].instruction,
                 operand->index);
    cr_expect_eq(f->registers[operand->index].type, expected[i].type);
  }
  cr_expect_eq(f->instructions[7].guard, 3);
  cr_expect_eq(f->instructions[13].guard, 8);
  cr_expect_eq(f->instructions[0].guard, -1);
  cr_expect_eq(function_named(module, "later")->instructions[0].operands[0].index, 0);
  ptx_free(module);
}

Test(ptx, labels_resolve_in_their_scope_whether_before_or_behind) {
  PtxModule *module = parse_valid("scopes.ptx");
  const PtxFunction *f = function_named(module, "scopes");
  static const int targets[][2] = {{1, 17}, {2, 6}, {5, 14}, {7, 6}, {11, 10}, {13, 17}};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    const PtxOperand *operand = &f->instructions[targets[i][0]].operands[0];
    cr_expect_eq(operand->kind, PTX_OPERAND_LABEL);
    cr_expect_eq(f->labels[operand->index].instruction, targets[i][1], "instruction %d goes to %d", targets[i][0],
                 f->labels[operand->index].instruction);
  }
  cr_expect_eq(f->instruction_count, 18);
  cr_expect_str_eq(f->labels[f->label_count - 1].name, "end");
  cr_expect_eq(f->labels[f->label_count - 1].instruction, 18);
  const PtxFunction *later = function_named(module, "later");
  cr_expect_eq(later->labels[later->instructions[1].operands[0].index].instruction, 0);
  ptx_free(module);
}

Test(ptx, variables_and_functions_resolve_by_scope) {
  PtxModule *module = parse_valid("scopes.ptx");
  const PtxFunction *f = function_named(module, "scopes");
  cr_assert_eq(f->variable_count, 1);
  cr_expect_eq(f->variables[0]->owner, f->index);
  cr_expect_eq(f->instructions[6].operands[1].kind, PTX_OPERAND_VARIABLE);
  cr_expect_eq(f->instructions[6].operands[1].variable, variable_named(module, "shadowed"));
  cr_expect_eq(f->instructions[9].operands[1].variable, f->variables[0]);
  cr_expect_eq(f->instructions[14].operands[1].variable, variable_named(module, "global_only"));
  cr_expect_eq(f->instructions[15].operands[1].variable, f->params[0]);
  cr_expect_eq(f->instructions[16].operands[1].kind, PTX_OPERAND_FUNCTION);
  cr_expect_str_eq(f->instructions[16].operands[1].name, "later");
  ptx_free(module);
}

// The operands of tests/ptx/valid/operands.ptx, in its order.
static void check_plain_operands(const PtxFunction *f) {
  const PtxInstruction *i = f->instructions;
  expect_opcode(&i[0], "mad", ".lo.s32");
  cr_assert_eq(i[0].operand_count, 4);
  expect_register(f, &i[0].operands[2], "%r3");
  expect_integer(&i[0].operands[3], -4);
  cr_expect_str_eq(f->registers[i[1].guard].name, "%p1");
  cr_expect(!i[1].guard_negated);
  expect_register(f, &i[1].operands[3], "%r5");
  cr_expect(i[1].operands[3].negated && !i[1].operands[2].negated);
  cr_expect(ptx_has(&i[2], "lt") && ptx_has(&i[2], "and") && !ptx_has(&i[2], "an"));

  cr_expect(i[2].guard_negated);
  cr_assert_eq(i[2].operands[0].kind, PTX_OPERAND_PAIR);
  expect_register(f, &i[2].operands[0].items[0], "%p1");
  expect_register(f, &i[2].operands[0].items[1], "%p2");
  expect_register(f, &i[2].operands[3], "%p1");
  cr_expect(i[2].operands[3].negated);
  cr_expect_eq(i[3].operands[0].items[1].kind, PTX_OPERAND_SINK);
  expect_register(f, &i[3].operands[0].items[0], "%r1");
  cr_expect_eq(i[4].operands[0].items[0].kind, PTX_OPERAND_SINK);
  expect_integer(&i[4].operands[1], 0xffffffffll);
}

static void check_special_operands(const PtxFunction *f) {
  static const struct {
    const char *name;
    int component;
  } expected[] = {{"tid", 0}, {"ctaid", 2}, {"laneid", -1}, {"clock64", -1}, {"envreg31", -1}, {"ntid", -1}};
  const PtxInstruction *i = f->instructions;
  for (int n = 0; n < 6; n++) {
    const PtxOperand *operand = &i[5 + n].operands[1];
    cr_expect_eq(operand->kind, PTX_OPERAND_SPECIAL);
    cr_expect_str_eq(operand->name, expected[n].name);
    cr_expect_eq(operand->component, expected[n].component);
  }
  cr_assert_eq(i[10].operands[0].kind, PTX_OPERAND_VECTOR);
  cr_assert_eq(i[10].operands[0].item_count, 4);
  expect_register(f, &i[10].operands[0].items[2], "%r3");
  cr_expect_eq(i[10].operands[0].items[3].kind, PTX_OPERAND_SINK);
  expect_register(f, &i[11].operands[1], "%v");
  cr_expect_eq(i[11].operands[1].component, 3);
  cr_expect_eq(i[12].operands[0].component, 0);
  expect_register(f, &i[13].operands[0], "%w1");
  cr_expect_eq(i[13].operands[0].component, 1);
  cr_expect_eq(f->registers[i[13].operands[0].index].vector, 2);
  cr_expect_eq(i[15].operands[0].component, -1);
}

static void check_addresses(const PtxModule *module, const PtxFunction *f) {
  const PtxInstruction *i = f->instructions;
  static const int64_t offsets[] = {0, 8, -8, -16, 128, 0, 8};  // of instructions 15 to 21
  for (int n = 0; n < 7; n++) {
    cr_assert_eq(i[15 + n].operands[1].kind, PTX_OPERAND_ADDRESS);
    cr_assert_eq(i[15 + n].operands[1].item_count, 1);
    cr_expect_eq(i[15 + n].operands[1].value, offsets[n], "instruction %d", 15 + n);
  }
  expect_register(f, &i[15].operands[1].items[0], "%rd1");
  expect_opcode(&i[16], "ld", ".global.nc.L1::no_allocate.L2::256B.v2.b32");
  cr_expect_eq(ptx_instruction_type(&i[16]), PTX_B32);
  cr_expect_eq(i[19].operands[1].items[0].variable, variable_named(module, "smem"));
  expect_integer(&i[20].operands[1].items[0], 20);
  cr_expect_eq(i[21].operands[1].items[0].variable, f->params[0]);
  cr_expect_eq(i[22].operands[1].kind, PTX_OPERAND_VARIABLE);
  cr_expect_eq(i[22].operands[1].value, 0);
  cr_expect_eq(i[23].operands[1].variable, variable_named(module, "smem"));
  cr_expect_eq(i[23].operands[1].value, 32);
}

static void check_tensor_operands(const PtxFunction *f) {
  const PtxInstruction *i = f->instructions;
  expect_opcode(&i[25], "cp",
                ".async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                ".multicast::cluster.L2::cache_hint");
  cr_expect_eq(i[25].line, 43);
  const PtxOperand *source = &i[25].operands[1];
  cr_assert_eq(source->item_count, 2);
  expect_register(f, &source->items[0], "%rd1");
  cr_assert_eq(source->items[1].kind, PTX_OPERAND_VECTOR);
  cr_assert_eq(source->items[1].item_count, 3);
  expect_integer(&source->items[1].items[2], -1);
  cr_expect_eq(i[25].operands[2].value, 8);
  cr_expect_eq(i[25].operand_count, 5);
  expect_register(f, &i[26].operands[0].items[0], "%rd1");
  expect_register(f, &i[26].operands[0].items[1].items[0], "%r2");
  expect_opcode(&i[27], "wgmma", ".mma_async.sync.aligned.m64n8k16.f32.f16.f16");
  cr_expect_eq(ptx_instruction_type(&i[27]), PTX_F16);
  cr_assert_eq(i[27].operand_count, 7);
  expect_register(f, &i[27].operands[1].items[3], "%r4");
  expect_register(f, &i[27].operands[3], "%p1");
  expect_integer(&i[27].operands[5], -1);
  expect_opcode(&i[29], "bar", ".sync");
  cr_expect_eq(ptx_instruction_type(&i[29]), PTX_NO_TYPE);
  expect_integer(&i[29].operands[1], 128);
  cr_expect_eq(i[30].operand_count, 0);
}

Test(ptx, operands) {
  PtxModule *module = parse_valid("operands.ptx");
  const PtxFunction *f = function_named(module, "operands");
  cr_assert_eq(f->instruction_count, 31);
  check_plain_operands(f);
  check_special_operands(f);
  check_addresses(module, f);
  check_tensor_operands(f);
  ptx_free(module);
}

// ---- variables ----

static void expect_variable(const PtxVariable *v, PtxSpace space, PtxType type, int vector, uint64_t count,
                            uint64_t alignment, uint64_t size) {
  cr_expect_eq(v->space, space, "%s", v->name);
  cr_expect_eq(v->type, type, "%s", v->name);
  cr_expect_eq(v->vector, vector, "%s", v->name);
  cr_expect_eq(v->count, count, "%s: count %llu", v->name, (unsigned long long)v->count);
  cr_expect_eq(v->alignment, alignment, "%s: alignment %llu", v->name, (unsigned long long)v->alignment);
  cr_expect_eq(v->size, size, "%s: size %llu", v->name, (unsigned long long)v->size);
}

static void expect_bytes(const PtxModule *module, const char *name, const void *bytes, size_t size) {
  const PtxVariable *v = variable_named(module, name);
  cr_assert_eq(v->size, size, "%s: size %llu", name, (unsigned long long)v->size);
  cr_assert(v->initial, "%s has no initial value", name);
  cr_expect_eq(memcmp(v->initial, bytes, size), 0, "initial value of %s", name);
}
#define EXPECT_BYTES(module, name, type, ...)                                                                          \
  do {                                                                                                                 \
    const type bytes[] = {__VA_ARGS__};                                                                                \
    expect_bytes(module, name, bytes, sizeof bytes);                                                                   \
  } while (0)

Test(ptx, variables_have_their_space_type_and_size) {
  PtxModule *module = parse_valid("data.ptx");
  expect_variable(variable_named(module, "number"), PTX_GLOBAL, PTX_U32, 1, 1, 4, 4);
  expect_variable(variable_named(module, "quad"), PTX_GLOBAL, PTX_F32, 4, 1, 16, 16);
  expect_variable(variable_named(module, "pairs"), PTX_GLOBAL, PTX_U16, 2, 2, 4, 8);
  expect_variable(variable_named(module, "matrix"), PTX_GLOBAL, PTX_B32, 1, 6, 4, 24);
  expect_variable(variable_named(module, "unsized"), PTX_GLOBAL, PTX_B16, 1, 3, 2, 6);
  expect_variable(variable_named(module, "wide"), PTX_GLOBAL, PTX_B128, 1, 1, 16, 16);
  expect_variable(variable_named(module, "pi"), PTX_CONST, PTX_F32, 1, 1, 4, 4);
  expect_variable(variable_named(module, "second_of_two"), PTX_GLOBAL, PTX_B32, 1, 8, 4, 32);
  expect_variable(variable_named(module, "shared_array"), PTX_SHARED, PTX_B8, 1, 2048, 1024, 2048);
  expect_variable(variable_named(module, "dynamic"), PTX_SHARED, PTX_B8, 1, 0, 16, 0);
  cr_expect(variable_named(module, "dynamic")->is_extern && variable_named(module, "elsewhere")->is_extern);
  cr_expect(!variable_named(module, "defined_later")->is_extern);
  cr_expect(!variable_named(module, "tentative")->initial && !variable_named(module, "shared_array")->initial);
  cr_expect_eq(variable_named(module, "number")->owner, -1);
  cr_expect_eq(variable_named(module, "number")->line, 7);

  const PtxFunction *k = function_named(module, "k");
  cr_assert_eq(k->param_count, 3);
  expect_variable(k->params[0], PTX_PARAM, PTX_U64, 1, 1, 8, 8);
  expect_variable(k->params[1], PTX_PARAM, PTX_B8, 1, 24, 8, 24);
  expect_variable(k->params[2], PTX_PARAM, PTX_F16, 1, 1, 2, 2);
  cr_assert_eq(k->variable_count, 3);
  expect_variable(k->variables[0], PTX_LOCAL, PTX_B8, 1, 96, 16, 96);
  expect_variable(k->variables[1], PTX_SHARED, PTX_F64, 2, 4, 16, 64);
  expect_variable(k->variables[2], PTX_PARAM, PTX_B32, 1, 1, 4, 4);
  ptx_free(module);
}

Test(ptx, initial_values) {
  PtxModule *module = parse_valid("data.ptx");
  EXPECT_BYTES(module, "number", uint32_t, 0xaabbccdd);
  EXPECT_BYTES(module, "negative", int8_t, -1);
  EXPECT_BYTES(module, "pi", uint32_t, 0x40490fdb);
  EXPECT_BYTES(module, "third", uint64_t, 0x3fd5555555555555, 0x3fe0000000000000, 0x3ff8000000000000);
  EXPECT_BYTES(module, "floats", uint32_t, 0x3f800000, 0xc0200000, 0x7fc00001, 0);
  EXPECT_BYTES(module, "pairs", uint16_t, 1, 2, 3, 4);
  EXPECT_BYTES(module, "quad", float, 1, 2, 3, 4);
  EXPECT_BYTES(module, "matrix", uint32_t, 1, 2, 0, 4, 5, 6);
  EXPECT_BYTES(module, "bits", uint32_t, 0x3fc00000, 0x3f800001, UINT32_MAX);
  EXPECT_BYTES(module, "double_bits", uint64_t, 0xbff8000000000000);
  EXPECT_BYTES(module, "unsized", uint16_t, 1, 2, 3);
  EXPECT_BYTES(module, "rows", uint8_t, 1, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0);
  EXPECT_BYTES(module, "text", char, 'h', 'i', '!', '\n', 0, 0);
  EXPECT_BYTES(module, "wide", uint64_t, (uint64_t)-2, UINT64_MAX);
  EXPECT_BYTES(module, "defined_later", uint32_t, 5);
  EXPECT_BYTES(module, "managed", uint64_t, 1ull << 33);
  EXPECT_BYTES(module, "packed", uint8_t, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  ptx_free(module);
}

static void expect_relocation(const PtxModule *module, const PtxVariable *v, int index, PtxRelocation expected) {
  cr_assert_lt(index, v->relocation_count);
  const PtxRelocation *r = &v->relocations[index];
  cr_expect_str_eq(r->symbol, expected.symbol);
  cr_expect_str_eq(r->variable ? r->variable->name : module->functions[r->function].name, expected.symbol);
  cr_expect(r->offset == expected.offset && r->addend == expected.addend && r->generic == expected.generic &&
                r->size == expected.size && r->shift == expected.shift,
            "relocation %d of %s: offset %llu, addend %lld, size %d, shift %d", index, v->name,
            (unsigned long long)r->offset, (long long)r->addend, r->size, r->shift);
}

Test(ptx, initial_addresses) {
  PtxModule *module = parse_valid("data.ptx");
  const PtxVariable *addresses = variable_named(module, "addresses"), *packed = variable_named(module, "packed");
  cr_assert_eq(addresses->relocation_count, 4);
  expect_relocation(module, addresses, 0, (PtxRelocation){0, "number", 4, true, 8, 0, NULL, 0});
  expect_relocation(module, addresses, 1, (PtxRelocation){8, "matrix", 0, false, 8, 0, NULL, 0});
  expect_relocation(module, addresses, 2, (PtxRelocation){16, "callee", 0, false, 8, 0, NULL, 0});
  expect_relocation(module, addresses, 3, (PtxRelocation){24, "floats", -8, false, 8, 0, NULL, 0});
  cr_assert_eq(packed->relocation_count, 4);
  expect_relocation(module, packed, 0, (PtxRelocation){1, "number", 0, false, 1, 0, NULL, 0});
  expect_relocation(module, packed, 2, (PtxRelocation){3, "number", 0, true, 1, 16, NULL, 0});
  expect_relocation(module, packed, 3, (PtxRelocation){4, "number", 1, false, 1, 56, NULL, 0});
  expect_relocation(module, variable_named(module, "low_half"), 0,
                    (PtxRelocation){0, "number", 0, false, 4, 0, NULL, 0});
  ptx_free(module);
}

static void expect_lines(const PtxFunction *f, const int lines[], int count) {
  cr_assert_eq(f->instruction_count, count);
  for (int i = 0; i < count; i++) cr_expect_eq(f->instructions[i].location->line, lines[i], "instruction %d", i);
}

Test(ptx, lines_inside_an_asm_statement) {
  PtxModule *module = parse_valid("locations.ptx");
  expect_lines(function_named(module, "inline_asm"), (const int[]){40, 41, 41, 41, 41, 41, 50}, 7);
  expect_lines(function_named(module, "asm_before_any_line"), (const int[]){60, 60}, 2);
  ptx_free(module);
}

// ---- functions ----

Test(ptx, function_headers) {
  PtxModule *module = parse_valid("functions.ptx");
  const PtxFunction *calls = function_named(module, "calls"), *scaled = function_named(module, "scaled");
  cr_expect(calls->is_entry && !calls->is_declaration);
  static const unsigned max_threads[3] = {128, 2, 1}, cluster[3] = {2, 1, 1}, required[3] = {32, 1, 1},
                        none[3] = {0, 0, 0};
  cr_expect_eq(memcmp(calls->max_threads, max_threads, sizeof none), 0);
  cr_expect_eq(memcmp(calls->required_cluster, cluster, sizeof none), 0);
  cr_expect_eq(memcmp(calls->required_threads, none, sizeof none), 0);
  cr_expect_eq(memcmp(function_named(module, "sized")->required_threads, required, sizeof none), 0);
  cr_expect_eq(calls->min_blocks_per_sm, 3);
  cr_expect_eq(calls->max_registers, 96);
  cr_expect_eq(function_named(module, "ranked")->max_cluster_rank, 8);
  cr_expect_eq(calls->line, 14);

  cr_expect_eq(scaled->param_count, 3);
  cr_expect_eq(scaled->return_count, 1);
  cr_expect_eq(scaled->params[2]->space, PTX_REG);
  expect_register(scaled, &scaled->instructions[0].operands[0], "result");
  expect_register(scaled, &scaled->instructions[0].operands[2], "by");
  cr_expect(function_named(module, "bare")->is_entry);
  cr_expect(!function_named(module, "plain")->is_entry);
  ptx_free(module);
}

Test(ptx, declarations_and_definitions) {
  PtxModule *module = parse_valid("functions.ptx");
  const PtxFunction *print = function_named(module, "vprintf"), *twice = function_named(module, "twice");
  cr_expect(print->is_declaration && print->param_count == 2 && print->return_count == 1);
  cr_expect_str_eq(print->params[1]->name, "vprintf_param_1");
  cr_expect(function_named(module, "stop")->is_declaration);
  cr_expect_eq(function_named(module, "variadic")->params[1]->size, 0);
  cr_expect(!twice->is_declaration && twice->instruction_count == 4);
  int statements = 0;
  for (int i = 0; i < module->function_count; i++) {
    cr_expect_eq(module->functions[i].index, i);
    statements += strcmp(module->functions[i].name, "twice") == 0;
  }
  cr_expect_eq(statements, 2);  // its declaration and its definition
  cr_expect_str_eq(variable_named(module, "aliased")->relocations[0].symbol, "twice");
  ptx_free(module);
}

Test(ptx, calls_and_jump_tables) {
  PtxModule *module = parse_valid("functions.ptx");
  const PtxFunction *f = function_named(module, "calls");
  const PtxInstruction *i = f->instructions;
  cr_assert_eq(i[1].operand_count, 3);
  cr_assert_eq(i[1].operands[0].kind, PTX_OPERAND_LIST);
  cr_expect_eq(i[1].operands[0].items[0].variable, i[2].operands[1].items[0].variable);
  cr_expect_eq(i[1].operands[1].kind, PTX_OPERAND_FUNCTION);
  cr_expect_eq(i[1].operands[2].items[0].variable, i[0].operands[0].items[0].variable);
  cr_expect_neq(i[1].operands[2].items[0].variable, i[3].operands[2].items[0].variable);

  expect_register(f, &i[3].operands[1], "%rd1");
  cr_expect_eq(i[3].operands[3].kind, PTX_OPERAND_NAME);
  cr_expect_str_eq(i[3].operands[3].name, "prototype_0");
  cr_expect_eq(i[3].operands[3].index, -1);
  cr_expect_str_eq(i[4].operands[3].name, "targets");
  cr_expect_str_eq(i[5].operands[1].name, "twice");  // the alias "again"
  cr_expect_eq(i[6].operand_count, 1);
  cr_expect(i[7].operands[1].kind == PTX_OPERAND_LIST && i[7].operands[1].item_count == 0);
  expect_integer(&i[8].operands[2].items[1], 3);
  cr_expect_eq(i[9].operands[1].kind, PTX_OPERAND_FUNCTION);

  cr_assert_eq(f->branch_targets_count, 2);
  expect_opcode(&i[10], "brx", ".idx");
  const PtxBranchTargets *table = &f->branch_targets[i[10].operands[1].index];
  static const int targets[] = {11, 12, 12, 11};
  cr_expect_str_eq(table->name, "table");
  cr_assert_eq(table->label_count, 4);
  for (int n = 0; n < 4; n++) cr_expect_eq(f->labels[table->labels[n]].instruction, targets[n], "case %d", n);
  cr_expect_eq(i[11].operands[1].index, 1);
  ptx_free(module);
}

Test(ptx, names_may_be_used_before_they_are_declared) {
  PtxModule *module = parse_valid("forward.ptx");
  const PtxFunction *f = function_named(module, "k");
  expect_relocation(module, variable_named(module, "address"), 0, (PtxRelocation){0, "later", 0, false, 8, 0, NULL, 0});
  cr_expect_eq(f->instructions[0].operands[0].kind, PTX_OPERAND_FUNCTION);
  cr_expect_eq(f->instructions[1].operands[1].variable, variable_named(module, "later"));
  cr_assert_eq(f->instructions[2].operands[1].index, 0);
  cr_expect_eq(f->labels[f->branch_targets[0].labels[0]].instruction, 3);
  const PtxOperand *address = &f->instructions[3].operands[0];
  cr_expect_eq(address->items[0].variable, f->params[0]);
  expect_register(f, &address->items[1].items[0], "%r1");
  ptx_free(module);
}

// Checks a location from the inside out: file, line, column of each level; ended by a file of -1.
static void expect_location(const PtxLocation *location, const int (*expected)[3]) {
  for (; (*expected)[0] >= 0; expected++, location = location->inlined_at) {
    cr_assert(location);
    cr_expect(location->file == (*expected)[0] && location->line == (*expected)[1] &&
                  location->column == (*expected)[2],
              "%d %d %d", location->file, location->line, location->column);
  }
  cr_expect(!location);
}

Test(ptx, locations_keep_the_chain_of_call_sites) {
  PtxModule *module = parse_valid("locations.ptx");
  const PtxFunction *k = function_named(module, "k"), *f = function_named(module, "f");
  cr_expect(!k->instructions[0].location);
  expect_location(k->instructions[1].location, (int[][3]){{1, 10, 5}, {-1}});
  expect_location(k->instructions[2].location, (int[][3]){{2, 20, 3}, {1, 10, 5}, {-1}});
  expect_location(k->instructions[3].location, (int[][3]){{3, 30, 1}, {2, 20, 3}, {1, 10, 5}, {-1}});
  cr_expect_eq(k->instructions[4].location, k->instructions[3].location);
  expect_location(k->instructions[5].location, (int[][3]){{3, 30, 1}, {2, 20, 3}, {1, 11, 7}, {-1}});
  expect_location(k->instructions[6].location, (int[][3]){{3, 31, 1}, {2, 99, 9}, {-1}});
  expect_location(k->instructions[7].location, (int[][3]){{1, 12, 0}, {-1}});
  cr_expect(!f->instructions[0].location);
  expect_location(f->instructions[1].location, (int[][3]){{3, 30, 1}, {2, 20, 3}, {-1}});
  cr_assert_eq(module->file_count, 4);
  cr_expect(!module->files[0]);
  cr_expect_str_eq(module->files[1], "dir/a.cu");
  cr_expect_str_eq(module->files[3], "c.cuh");
  ptx_free(module);
}

Test(ptx, types) {
  cr_expect_eq(ptx_type_from_name("bf16x2"), PTX_BF16X2);
  cr_expect_eq(ptx_type_from_name("e4m3"), PTX_OTHER_TYPE);
  cr_expect_eq(ptx_type_from_name("none"), PTX_NO_TYPE);
  cr_expect_eq(ptx_type_from_name("other"), PTX_NO_TYPE);
  cr_expect_eq(ptx_type_size(PTX_B128), 16);
  cr_expect_eq(ptx_type_size(PTX_PRED), 1);
  for (int type = PTX_PRED; type < PTX_OTHER_TYPE; type++)
    cr_expect_eq((int)ptx_type_from_name(ptx_type_name((PtxType)type)), type);
}
