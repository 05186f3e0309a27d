// Declarations of registers and variables, PTX ISA 5.1 to 5.4.
//
//   .reg .b32 %r<100>;    .shared .align 16 .b8 tile[2][4096];    .visible .const .f32 scale = 0f3E000000;
#include <stdio.h>
#include <string.h>

#include "parser.h"

// What the names of one declaration have in common.
typedef struct Declaration {
  PtxSpace space;
  PtxType type;
  int vector;
  uint64_t alignment;  // 0: natural
  bool managed;
} Declaration;

// .extern .visible .weak .common: whether there was any.
bool accept_linkage(Parser *parser, Linkage *linkage) {
  bool found = false;
  for (;; found = true) {
    if (accept_directive(parser, "extern"))
      linkage->is_extern = true;
    else if (accept_directive(parser, "visible"))
      linkage->is_visible = true;
    else if (accept_directive(parser, "weak"))
      linkage->is_weak = true;
    else if (accept_directive(parser, "common"))
      linkage->is_common = true;
    else
      return found;
  }
}

static const char *const space_names[] = {
    [PTX_REG] = "reg",     [PTX_GLOBAL] = "global", [PTX_SHARED] = "shared",
    [PTX_LOCAL] = "local", [PTX_PARAM] = "param",   [PTX_CONST] = "const",
};

// True at the state space that begins a variable's declaration: any but .reg.
bool at_space(const Parser *parser) {
  for (int space = PTX_GLOBAL; space <= PTX_CONST; space++)
    if (is_directive(parser, space_names[space])) return true;
  return false;
}

static PtxSpace parse_space(Parser *parser) {
  for (int space = PTX_REG; space <= PTX_CONST; space++)
    if (accept_directive(parser, space_names[space])) return (PtxSpace)space;
  parser_expected(parser, "a state space");
}

static PtxType parse_type(Parser *parser) {
  if (parser->token.kind != TOKEN_DOT_WORD) parser_expected(parser, "a type");
  PtxType type = ptx_type_from_name(parser->token.name);
  if (type == PTX_NO_TYPE || type == PTX_OTHER_TYPE) parser_expected(parser, "a fundamental type such as .b32");
  next_token(parser);
  return type;
}

// .align N, behind the directive.
static uint64_t parse_alignment(Parser *parser) {
  int line = parser->token.line;
  uint64_t alignment = expect_integer(parser, "an alignment", MAX_ALIGNMENT);
  if (alignment == 0 || (alignment & (alignment - 1)))
    parser_fail(parser, line, "alignment %d is not a power of two", (int)alignment);
  return alignment;
}

// (.managed, ...), behind .attribute: whether .managed is among them.
static bool parse_attributes(Parser *parser) {
  bool managed = false;
  expect(parser, "(");
  for (int depth = 1; depth > 0;) {
    if (accept_directive(parser, "managed"))
      managed = true;
    else if (accept_token(parser, ")"))
      depth--;
    else if (accept_token(parser, "("))
      depth++;
    else if (parser->token.kind == TOKEN_END)
      parser_expected(parser, "')'");
    else
      next_token(parser);
  }
  return managed;
}

// .shared .attribute(...) .align 16 .v4 .f32
static Declaration parse_declaration(Parser *parser) {
  Declaration declaration = {.vector = 1};
  int line = parser->token.line;
  declaration.space = parse_space(parser);
  for (;;) {
    if (accept_directive(parser, "align"))
      declaration.alignment = parse_alignment(parser);
    else if (accept_directive(parser, "v2"))
      declaration.vector = 2;
    else if (accept_directive(parser, "v4"))
      declaration.vector = 4;
    else if (accept_directive(parser, "attribute"))
      declaration.managed = parse_attributes(parser);
    else
      break;
  }
  declaration.type = parse_type(parser);
  if (declaration.type == PTX_PRED && declaration.space != PTX_REG)
    parser_fail(parser, line, "a predicate can only be a register");
  return declaration;
}

// ---- registers ----

static void count_registers(Parser *parser, uint64_t count, int line) {
  parser->body->declared_registers += count;
  parser->declared_registers += count;
  if (parser->body->declared_registers > MAX_FUNCTION_REGISTERS)
    parser_fail(parser, line, "more than %d registers in one function", MAX_FUNCTION_REGISTERS);
  if (parser->declared_registers > MAX_MODULE_REGISTERS)
    parser_fail(parser, line, "more than %d registers in one module", MAX_MODULE_REGISTERS);
}

static void add_register(Parser *parser, const Declaration *declaration, const char *name, int line) {
  Symbol *symbol = declare(parser, parser->body->scope, name, SYMBOL_REGISTER, line);
  symbol->type = declaration->type;
  symbol->vector = declaration->vector;
}

// %r<100>: %r0 to %r99, behind the name.
static void add_register_range(Parser *parser, const Declaration *declaration, const char *prefix, int line) {
  uint64_t count = expect_integer(parser, "a number of registers", MAX_FUNCTION_REGISTERS);
  expect(parser, ">");
  count_registers(parser, count, line);
  Symbol like = {.type = declaration->type, .vector = declaration->vector, .line = line};
  if (declare_range(parser, parser->body->scope, prefix, (RegisterRange){count, like})) return;
  size_t size = strlen(prefix) + 16;
  char *name = parser_allocate(parser, size);
  for (uint64_t i = 0; i < count; i++) {
    int length = snprintf(name, size, "%s%d", prefix, (int)i);
    add_register(parser, declaration, intern(parser, name, (size_t)length), line);
  }
}

void parse_registers(Parser *parser) {
  Declaration declaration = parse_declaration(parser);
  do {
    int line = parser->token.line;
    const char *name = expect_word(parser, "a register's name");
    if (accept_token(parser, "<"))
      add_register_range(parser, &declaration, name, line);
    else {
      count_registers(parser, 1, line);
      add_register(parser, &declaration, name, line);
    }
  } while (accept_token(parser, ","));
  expect(parser, ";");
}

// ---- variables ----

// [2][8] or [] behind a name. Returns how many there are; *unsized when the first is [].
static int parse_dimensions(Parser *parser, uint64_t dimensions[MAX_DIMENSIONS], bool *unsized) {
  int count = 0;
  *unsized = false;
  while (accept_token(parser, "[")) {
    if (count == MAX_DIMENSIONS) parser_fail(parser, parser->token.line, "more than %d dimensions", MAX_DIMENSIONS);
    if (count == 0 && is_punctuation(parser, "]")) {
      *unsized = true;
      dimensions[count] = 0;
    } else {
      int line = parser->token.line;
      int64_t extent = parse_integer_constant(parser);
      if (extent < 0) parser_fail(parser, line, "array dimension %lld is negative", (long long)extent);
      dimensions[count] = (uint64_t)extent;
    }
    count++;
    expect(parser, "]");
  }
  return count;
}

// Fills in count and size from the dimensions.
static void set_size(Parser *parser, PtxVariable *variable, const uint64_t *dimensions, int dimension_count) {
  uint64_t element = ptx_type_size(variable->type) * (uint64_t)variable->vector;
  uint64_t bound = 1;  // the product without the extents of 0, so that no part of it overflows either
  variable->count = 1;
  for (int i = 0; i < dimension_count; i++) {
    uint64_t extent = dimensions[i] ? dimensions[i] : 1;
    if (bound > MAX_VARIABLE_SIZE / element / extent)
      parser_fail(parser, variable->line, "'%.60s' is larger than %llu bytes", variable->name,
                  (unsigned long long)MAX_VARIABLE_SIZE);
    bound *= extent;
    variable->count *= dimensions[i];
  }
  variable->size = variable->count * element;
}

static PtxVariable *new_variable(Parser *parser, const Declaration *declaration, const char *name, int line) {
  PtxVariable *variable = parser_allocate(parser, sizeof *variable);
  variable->name = name;
  variable->space = declaration->space;
  variable->type = declaration->type;
  variable->vector = declaration->vector;
  variable->alignment = declaration->alignment;
  variable->is_managed = declaration->managed;
  if (!variable->alignment) variable->alignment = ptx_type_size(declaration->type) * (uint64_t)declaration->vector;
  variable->owner = parser->body ? parser->body->function : -1;
  variable->line = line;
  return variable;
}

// Gives a variable its name. An .extern one and its definition are one variable, which keeps its place.
static void declare_variable(Parser *parser, Scope *scope, List *list, PtxVariable *variable, const Linkage *linkage) {
  Symbol *known = find_own(parser, scope, variable->name);
  if (known && known->kind == SYMBOL_VARIABLE && (known->variable->is_extern || variable->is_extern)) {
    if (known->variable->space != variable->space || known->variable->type != variable->type)
      parser_fail(parser, variable->line, "'%.60s' was declared otherwise on line %d", variable->name, known->line);
    if (known->variable->is_extern) {
      *known->variable = *variable;
      known->linkage = *linkage;
    }
    return;
  }
  Symbol *symbol = declare(parser, scope, variable->name, SYMBOL_VARIABLE, variable->line);
  symbol->variable = variable;
  if (variable->owner < 0) remember_linkage(parser, variable->name, symbol, linkage);
  *(PtxVariable **)list_add(parser, list, sizeof variable) = variable;
}

// name[4] = {1, 2}
static void parse_variable(Parser *parser, const Declaration *declaration, const Linkage *linkage) {
  int line = parser->token.line;
  PtxVariable *variable = new_variable(parser, declaration, expect_word(parser, "a variable's name"), line);
  variable->is_extern = linkage->is_extern;
  uint64_t dimensions[MAX_DIMENSIONS];
  bool unsized;
  int dimension_count = parse_dimensions(parser, dimensions, &unsized);
  set_size(parser, variable, dimensions, dimension_count);
  if (accept_token(parser, "="))
    parse_initializer(parser, variable, dimensions, dimension_count, unsized);
  else if (unsized && !variable->is_extern)
    parser_fail(parser, line, "array '%.60s' has no size: only .extern arrays and parameters may have none",
                variable->name);

  Body *body = parser->body;
  if (body)
    declare_variable(parser, body->scope, &body->variables, variable, linkage);
  else
    declare_variable(parser, parser->text->scope, &parser->variables, variable, linkage);
}

void parse_variables(Parser *parser, const Linkage *linkage) {
  if (!parser->body && (is_directive(parser, "param") || is_directive(parser, "local")))
    parser_fail(parser, parser->token.line, ".%s outside a function", parser->token.name);
  Declaration declaration = parse_declaration(parser);
  do parse_variable(parser, &declaration, linkage);
  while (accept_token(parser, ","));
  expect(parser, ";");
}

// .ptr .global .align 16: what a pointer parameter points to, which changes nothing here.
static void skip_pointer_attributes(Parser *parser) {
  if (!accept_directive(parser, "ptr")) return;
  if (at_space(parser)) next_token(parser);
  if (accept_directive(parser, "align")) parse_alignment(parser);
}

// .param .align 8 .b8 name[16]
void parse_parameter(Parser *parser, List *list) {
  Body *body = parser->body;
  int line = parser->token.line;
  Declaration declaration = parse_declaration(parser);
  if (declaration.space != PTX_PARAM && declaration.space != PTX_REG)
    parser_fail(parser, line, "a parameter is .param or .reg, not .%s", space_names[declaration.space]);
  skip_pointer_attributes(parser);
  line = parser->token.line;
  PtxVariable *variable = new_variable(parser, &declaration, expect_word(parser, "a parameter's name"), line);
  uint64_t dimensions[MAX_DIMENSIONS];
  bool unsized;
  int dimension_count = parse_dimensions(parser, dimensions, &unsized);
  set_size(parser, variable, dimensions, dimension_count);

  *(PtxVariable **)list_add(parser, list, sizeof variable) = variable;
  if (strcmp(variable->name, "_") == 0) return;
  if (declaration.space == PTX_REG) {
    count_registers(parser, 1, line);
    add_register(parser, &declaration, variable->name, line);
  } else
    declare(parser, body->scope, variable->name, SYMBOL_VARIABLE, line)->variable = variable;
}
