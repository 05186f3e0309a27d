// Instructions and their operands, PTX ISA 4.3.2 and chapter 6. Names stay names here: parser_resolve.c gives them
// their meaning once every label and function is known.
//
//   @!%p1 ld.global.v2.f32 {%f1, _}, [%rd1+8];
#include <string.h>

#include "parser.h"

static PtxOperand parse_operand(Parser *parser, const char *opcode);

// Moves the operands above base from the parser's stack into an array of their own.
static const PtxOperand *pop_operands(Parser *parser, int base, int *count) {
  *count = parser->operands.count - base;
  parser->operands.count = base;
  if (*count == 0) return NULL;
  PtxOperand *items = parser_allocate(parser, (size_t)*count * sizeof *items);
  memcpy(items, (PtxOperand *)parser->operands.items + base, (size_t)*count * sizeof *items);
  return items;
}

static void push_operand(Parser *parser, PtxOperand operand) {
  *(PtxOperand *)list_add(parser, &parser->operands, sizeof operand) = operand;
}

static PtxOperand new_operand(PtxOperandKind kind) { return (PtxOperand){.kind = kind, .index = -1, .component = -1}; }

// A constant expression.
static PtxOperand parse_constant_operand(Parser *parser) {
  Constant constant = parse_constant(parser);
  PtxOperand operand = new_operand(constant.is_float ? PTX_OPERAND_FLOAT : PTX_OPERAND_INTEGER);
  operand.value = (int64_t)constant.value;
  operand.is_f32 = constant.is_f32;
  return operand;
}

// .x .y .z .w or .r .g .b .a behind a name; -1 when there is none.
static int accept_component(Parser *parser) {
  static const char *const names[] = {"x", "y", "z", "w", "r", "g", "b", "a"};
  for (int i = 0; i < 8; i++)
    if (accept_directive(parser, names[i])) return i % 4;
  return -1;
}

// .b0 .h1 .b3210 and so on behind a register of a video instruction; NULL when there is none.
static const char *accept_part(Parser *parser) {
  const char *name = parser->token.name;
  if (parser->token.kind != TOKEN_DOT_WORD || (*name != 'b' && *name != 'h') || name[1] < '0' || name[1] > '9')
    return NULL;
  next_token(parser);
  return name;
}

// name, name.x, name+8 (an address with an offset, never name-8), _
static PtxOperand parse_name(Parser *parser) {
  const char *name = expect_word(parser, "an operand");
  if (strcmp(name, "_") == 0) return new_operand(PTX_OPERAND_SINK);
  PtxOperand operand = new_operand(PTX_OPERAND_NAME);
  operand.name = name;
  operand.component = accept_component(parser);
  operand.part = accept_part(parser);
  if (is_punctuation(parser, "+")) operand.value = parse_integer_constant(parser);
  return operand;
}

// a, b, ... up to the closing punctuation, which it consumes; only the arguments of a call may be none.
static PtxOperand parse_list(Parser *parser, PtxOperandKind kind, const char *close, const char *opcode) {
  int base = parser->operands.count, line = parser->token.line;
  if (!is_punctuation(parser, close)) {
    do push_operand(parser, parse_operand(parser, opcode));
    while (accept_token(parser, ","));
  }
  expect(parser, close);
  PtxOperand operand = new_operand(kind);
  operand.items = pop_operands(parser, base, &operand.item_count);
  if (operand.item_count == 0 && kind != PTX_OPERAND_LIST) parser_fail(parser, line, "nothing before '%s'", close);
  return operand;
}

// [base], [base+8], [base, {c0, c1}], behind the bracket. The offset moves from the base to the address.
static PtxOperand parse_address(Parser *parser, const char *opcode) {
  int line = parser->token.line;
  PtxOperand operand = parse_list(parser, PTX_OPERAND_ADDRESS, "]", opcode);
  PtxOperand *base = (PtxOperand *)operand.items;
  if (base->negated || (base->kind != PTX_OPERAND_NAME && base->kind != PTX_OPERAND_INTEGER))
    parser_fail(parser, line, "an address is [register], [name] or [integer], with an offset +n behind the first two");
  if (base->kind == PTX_OPERAND_NAME) {
    operand.value = base->value;
    base->value = 0;
  }
  return operand;
}

// p|q, behind the first operand.
static PtxOperand parse_pair(Parser *parser, PtxOperand first) {
  expect(parser, "|");
  int base = parser->operands.count;
  push_operand(parser, first);
  push_operand(parser, parse_name(parser));
  PtxOperand operand = new_operand(PTX_OPERAND_PAIR);
  operand.items = pop_operands(parser, base, &operand.item_count);
  return operand;
}

// A name, negated or not, or a pair.
static PtxOperand parse_name_or_pair(Parser *parser, bool negated) {
  PtxOperand operand = parse_name(parser);
  operand.negated = negated;
  return is_punctuation(parser, "|") ? parse_pair(parser, operand) : operand;
}

// "-" and "!" stand before a name or begin a constant expression: what follows decides.
static bool negation_before_name(Parser *parser) {
  if (!is_punctuation(parser, "-") && !is_punctuation(parser, "!")) return false;
  const Lexer lexer = parser->lexer;
  const Token token = parser->token;
  next_token(parser);
  if (parser->token.kind == TOKEN_WORD && strcmp(parser->token.name, "WARP_SZ") != 0) return true;
  parser->lexer = lexer;
  parser->token = token;
  return false;
}

// name[3], the address of an element: mov alone has it (PTX ISA 9.7.9, mov).
static PtxOperand parse_indexed_name(Parser *parser, PtxOperand operand) {
  expect(parser, "[");
  operand.is_element = true;
  operand.value = parse_integer_constant(parser);
  expect(parser, "]");
  return operand;
}

static PtxOperand parse_bare_operand(Parser *parser, const char *opcode) {
  if (accept_token(parser, "[")) return parse_address(parser, opcode);
  if (accept_token(parser, "{")) return parse_list(parser, PTX_OPERAND_VECTOR, "}", opcode);
  if (is_punctuation(parser, "(") && strcmp(opcode, "call") == 0) {
    next_token(parser);
    return parse_list(parser, PTX_OPERAND_LIST, ")", opcode);
  }
  if (negation_before_name(parser)) return parse_name_or_pair(parser, true);
  bool is_name = parser->token.kind == TOKEN_WORD && strcmp(parser->token.name, "WARP_SZ") != 0;
  if (!is_name) return parse_constant_operand(parser);
  PtxOperand operand = parse_name_or_pair(parser, false);
  bool is_element = strcmp(opcode, "mov") == 0 && operand.kind == PTX_OPERAND_NAME && operand.value == 0;
  return is_element && is_punctuation(parser, "[") ? parse_indexed_name(parser, operand) : operand;
}

static PtxOperand parse_operand(Parser *parser, const char *opcode) {
  enter_nesting(parser);
  PtxOperand operand = parse_bare_operand(parser, opcode);
  leave_nesting(parser);
  return operand;
}

static void parse_modifiers(Parser *parser, PtxInstruction *instruction) {
  const char *modifiers[PTX_MAX_MODIFIERS];
  int count = 0;
  while (parser->token.kind == TOKEN_DOT_WORD) {
    if (count == PTX_MAX_MODIFIERS)
      parser_fail(parser, parser->token.line, "'%.40s' has more than %d modifiers", instruction->opcode,
                  PTX_MAX_MODIFIERS);
    modifiers[count++] = parser->token.name;
    next_token(parser);
  }
  if (!count) return;
  const char **kept = parser_allocate(parser, (size_t)count * sizeof *kept);
  memcpy(kept, modifiers, (size_t)count * sizeof *kept);
  instruction->modifiers = kept;
  instruction->modifier_count = count;
}

void parse_instruction(Parser *parser, const char *opcode, int line, const char *guard, bool guard_negated) {
  PtxInstruction instruction = {.opcode = opcode, .line = line, .guard = -1, .guard_negated = guard_negated};
  if (*opcode == '%') parser_fail(parser, line, "expected an instruction but found '%.60s'", opcode);
  instruction.location = parser->body->location;
  parse_modifiers(parser, &instruction);

  int base = parser->operands.count;
  if (!is_punctuation(parser, ";")) {
    do push_operand(parser, parse_operand(parser, opcode));
    while (accept_token(parser, ","));
  }
  expect(parser, ";");
  instruction.operands = pop_operands(parser, base, &instruction.operand_count);

  *(PtxInstruction *)list_add(parser, &parser->body->instructions, sizeof instruction) = instruction;
  *(Reference *)list_add(parser, &parser->body->references, sizeof(Reference)) =
      (Reference){parser->body->scope, guard};
}
