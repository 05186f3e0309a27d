// Functions: their headers (PTX ISA 5.5, 11.3, 11.4), bodies, labels and source locations.
#include <string.h>

#include "parser.h"

// ---- .loc, PTX ISA 11.6.2 ----

// Three numbers: file, line and column.
static PtxLocation parse_place(Parser *parser) {
  PtxLocation place = {0};
  place.file = (int)expect_integer(parser, "a file number", MAX_FILES - 1);
  place.line = (int)expect_integer(parser, "a line number", MAX_SOURCE_LINE);
  place.column = (int)expect_integer(parser, "a column number", MAX_SOURCE_COLUMN);
  return place;
}

// A key for the table of places; the limits of parse_place keep the three apart. Never 0.
static uint64_t place_key(const PtxLocation *place) {
  return (uint64_t)1 << 63 | (uint64_t)place->file << 47 | (uint64_t)place->line << 20 | (uint64_t)place->column;
}

static PtxLocation *new_location(Parser *parser, PendingLocation pending, PtxLocation place) {
  pending.location = parser_allocate(parser, sizeof place);
  *pending.location = place;
  pending.location->file += parser->text->first_file;
  *(PendingLocation *)list_add(parser, &parser->locations, sizeof pending) = pending;
  return pending.location;
}

static int inline_depth(const PtxLocation *location) {
  int depth = 0;
  for (; location; location = location->inlined_at) depth++;
  return depth;
}

// function_name label+8, inlined_at 1 7 3: the call site. A call site that is inlined itself was the place of an
// earlier .loc of this function: the latest one with its numbers is what the compiler means.
static const PtxLocation *parse_call_site(Parser *parser, PendingLocation *pending) {
  int line = pending->line;
  if (strcmp(expect_word(parser, "function_name"), "function_name") != 0)
    parser_fail(parser, line, "the attributes of .loc are function_name and inlined_at");
  pending->label = expect_word(parser, "a label");
  if (is_punctuation(parser, "+")) pending->offset = (uint64_t)parse_integer_constant(parser);
  expect(parser, ",");
  if (strcmp(expect_word(parser, "inlined_at"), "inlined_at") != 0)
    parser_fail(parser, line, "function_name of .loc must be followed by inlined_at");
  PtxLocation place = parse_place(parser);
  const PtxLocation *known = parser->body ? table_get(&parser->body->locations, place_key(&place)) : NULL;
  if (known && inline_depth(known) < MAX_INLINE_DEPTH) return known;
  return new_location(parser, (PendingLocation){.line = line}, place);
}

// .pragma "nounroll";
void parse_pragma(Parser *parser) {
  next_token(parser);
  do {
    if (parser->token.kind != TOKEN_STRING) parser_expected(parser, "a pragma in quotes");
    next_token(parser);
  } while (accept_token(parser, ","));
  expect(parser, ";");
}

// .loc 1 7 3, function_name $L__info_string0, inlined_at 1 9 2
void parse_location(Parser *parser) {
  PendingLocation pending = {.line = parser->token.line};
  bool in_asm = parser->lexer.in_asm;
  next_token(parser);
  PtxLocation place = parse_place(parser);
  if (accept_token(parser, ",")) place.inlined_at = parse_call_site(parser, &pending);
  PtxLocation *location = new_location(parser, pending, place);
  if (!parser->body) return;
  // Inside an asm statement LLVM counts the lines of its text as if they were the source's. The line of the statement
  // stands before it, and holds for its instructions and for the next statement of the same line.
  if (in_asm && parser->body->location) return;
  // Line 0 is the compiler's "no line in particular": the instructions go on belonging to the line before.
  if (location->line == 0 && parser->body->location) return;
  table_set(parser, &parser->body->locations, place_key(&place), location);
  parser->body->location = location;
}

// ---- tables of a body: name: .branchtargets ..., .callprototype ..., .calltargets ... ----

// .branchtargets L0, L1;
static void parse_branch_targets(Parser *parser, const char *name, int line) {
  Body *body = parser->body;
  declare(parser, body->scope, name, SYMBOL_BRANCH_TARGETS, line)->index = body->branch_targets.count;
  List names = {0};
  do {
    const char *label = expect_word(parser, "a label");
    *(const char **)list_add(parser, &names, sizeof label) = label;
  } while (accept_token(parser, ","));
  expect(parser, ";");
  ((PtxBranchTargets *)list_add(parser, &body->branch_targets, sizeof(PtxBranchTargets)))->name = name;
  *(PendingTargets *)list_add(parser, &body->pending_targets, sizeof(PendingTargets)) =
      (PendingTargets){body->scope, names.items, names.count, line};
}

// .calltargets f, g;
static void parse_call_targets(Parser *parser, const char *name, int line) {
  declare(parser, parser->body->scope, name, SYMBOL_CALL_TABLE, line);
  do {
    PendingName target = {.line = parser->token.line, .scope = parser->text->scope};
    target.name = expect_word(parser, "a function's name");
    *(PendingName *)list_add(parser, &parser->pending_names, sizeof target) = target;
  } while (accept_token(parser, ","));
  expect(parser, ";");
}

// The parameters of a prototype, ( .param .b32 _, ... ): checked, in a scope of their own, and forgotten.
static void skip_prototype_parameters(Parser *parser) {
  Body *body = parser->body;
  Scope *outer = body->scope;
  body->scope = open_scope(parser, outer, parser->token.line);
  List parameters = {0};
  expect(parser, "(");
  if (!is_punctuation(parser, ")")) {
    do parse_parameter(parser, &parameters);
    while (accept_token(parser, ","));
  }
  expect(parser, ")");
  body->scope = outer;
}

// .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _) .noreturn;
static void parse_call_prototype(Parser *parser, const char *name, int line) {
  declare(parser, parser->body->scope, name, SYMBOL_CALL_TABLE, line);
  if (is_punctuation(parser, "(")) skip_prototype_parameters(parser);
  if (strcmp(expect_word(parser, "'_'"), "_") != 0) parser_fail(parser, line, "a .callprototype's name is '_'");
  if (is_punctuation(parser, "(")) skip_prototype_parameters(parser);
  while (parser->token.kind == TOKEN_DOT_WORD) {
    bool counted = is_directive(parser, "abi_preserve") || is_directive(parser, "abi_preserve_control");
    if (!counted && !is_directive(parser, "noreturn")) parser_expected(parser, "';'");
    next_token(parser);
    if (counted) expect_integer(parser, "a number of registers", UINT32_MAX);
  }
  expect(parser, ";");
}

// What stands behind "name:".
static void parse_label(Parser *parser, const char *name, int line) {
  Body *body = parser->body;
  if (accept_directive(parser, "branchtargets")) return parse_branch_targets(parser, name, line);
  if (accept_directive(parser, "calltargets")) return parse_call_targets(parser, name, line);
  if (accept_directive(parser, "callprototype")) return parse_call_prototype(parser, name, line);
  declare(parser, body->scope, name, SYMBOL_LABEL, line)->index = body->labels.count;
  *(PtxLabel *)list_add(parser, &body->labels, sizeof(PtxLabel)) = (PtxLabel){name, body->instructions.count};
}

// ---- statements ----

// @p or @!p; NULL when the instruction is not guarded.
static const char *parse_guard(Parser *parser, bool *negated) {
  *negated = false;
  if (!accept_token(parser, "@")) return NULL;
  *negated = accept_token(parser, "!");
  return expect_word(parser, "a predicate");
}

static void parse_labelled_or_instruction(Parser *parser) {
  bool negated;
  const char *guard = parse_guard(parser, &negated);
  int line = parser->token.line;
  const char *word = expect_word(parser, guard ? "an instruction" : "a statement");
  if (!guard && accept_token(parser, ":")) return parse_label(parser, word, line);
  parse_instruction(parser, word, line, guard, negated);
}

static void parse_body_directive(Parser *parser) {
  if (is_directive(parser, "reg")) return parse_registers(parser);
  if (is_directive(parser, "loc")) return parse_location(parser);
  if (is_directive(parser, "pragma")) return parse_pragma(parser);
  Linkage linkage = {0};
  bool linked = accept_linkage(parser, &linkage);
  if (at_space(parser)) return parse_variables(parser, &linkage);
  parser_expected(parser, linked ? "a variable" : "a directive of a function's body");
}

// Everything between the braces, which may nest: each pair opens a scope.
static void parse_statements(Parser *parser) {
  Body *body = parser->body;
  int line = parser->token.line;
  Scope *outermost = body->scope;
  expect(parser, "{");
  for (;;) {
    if (parser->token.kind == TOKEN_END) parser_fail(parser, line, "the function's '{' is not closed");
    if (is_punctuation(parser, "{")) {
      body->scope = open_scope(parser, body->scope, parser->token.line);
      next_token(parser);
    } else if (accept_token(parser, "}")) {
      if (body->scope == outermost) return;
      body->scope = body->scope->parent;
    } else if (parser->token.kind == TOKEN_DOT_WORD) {
      parse_body_directive(parser);
    } else {
      parse_labelled_or_instruction(parser);
    }
  }
}

// A body, at its "{": all of it, or where it begins.
static void parse_body(Parser *parser) {
  if (!parser->headers_only) return parse_statements(parser);
  parser->body->pending = true;
  parser->body->lexer = parser->lexer;
  parser->body->lexer.cursor = parser->token.text;
  parser->body->lexer.line = parser->token.line;
  lex_skip_body(parser);
  next_token(parser);
}

// ---- headers ----

// .maxntid 128, 1, 1: up to three extents, those not written being 1.
static void parse_extents(Parser *parser, unsigned extents[3]) {
  for (int i = 0; i < 3; i++) extents[i] = 1;
  int i = 0;
  do {
    if (i == 3) parser_fail(parser, parser->token.line, "more than three extents");
    int line = parser->token.line;
    extents[i++] = (unsigned)expect_integer(parser, "an extent", UINT32_MAX);
    if (!extents[i - 1]) parser_fail(parser, line, "an extent is 0");
  } while (accept_token(parser, ","));
}

static void parse_count(Parser *parser, unsigned *count) {
  *count = (unsigned)expect_integer(parser, "a number", UINT32_MAX);
}

// One performance directive, or an attribute of a function; false when there is none.
static bool accept_function_directive(Parser *parser, PtxFunction *function) {
  unsigned ignored;
  if (accept_directive(parser, "maxntid"))
    parse_extents(parser, function->max_threads);
  else if (accept_directive(parser, "reqntid"))
    parse_extents(parser, function->required_threads);
  else if (accept_directive(parser, "reqnctapercluster"))
    parse_extents(parser, function->required_cluster);
  else if (accept_directive(parser, "maxnreg"))
    parse_count(parser, &function->max_registers);
  else if (accept_directive(parser, "minnctapersm"))
    parse_count(parser, &function->min_blocks_per_sm);
  else if (accept_directive(parser, "maxclusterrank"))
    parse_count(parser, &function->max_cluster_rank);
  else if (accept_directive(parser, "maxnctapersm") || accept_directive(parser, "abi_preserve") ||
           accept_directive(parser, "abi_preserve_control"))
    parse_count(parser, &ignored);
  else if (accept_directive(parser, "attribute"))
    skip_group(parser, "(", ")");
  else if (is_directive(parser, "pragma"))
    parse_pragma(parser);
  else
    return accept_directive(parser, "noreturn") || accept_directive(parser, "explicitcluster") ||
           accept_directive(parser, "blocksareclusters");
  return true;
}

// ( parameter, ... ) or nothing.
static void parse_parameters(Parser *parser, List *list) {
  if (!accept_token(parser, "(")) return;
  if (!is_punctuation(parser, ")")) {
    do parse_parameter(parser, list);
    while (accept_token(parser, ","));
  }
  expect(parser, ")");
}

// The function's name in the module. Declarations may repeat, one definition may follow or precede them.
static void declare_function(Parser *parser, const PtxFunction *function, const Linkage *linkage) {
  Symbol *symbol = find_own(parser, parser->text->scope, function->name);
  if (!symbol || symbol->kind != SYMBOL_FUNCTION || symbol->stands) {
    symbol = declare(parser, parser->text->scope, function->name, SYMBOL_FUNCTION, function->line);
    remember_linkage(parser, function->name, symbol, linkage);
  }
  if (symbol->is_defined && !function->is_declaration)
    parser_fail(parser, function->line, "function '%.60s' is already defined on line %d", function->name, symbol->line);
  if (symbol->is_defined) return;
  symbol->function = function->name;
  symbol->index = function->index;
  symbol->line = function->line;
  symbol->is_defined = !function->is_declaration;
  if (symbol->is_defined) symbol->linkage = *linkage;
}

// Hands what the body collected over to the function, but for the registers: which are named is known in the end.
static void complete_function(PtxFunction *function, const Body *body) {
  function->params = (const PtxVariable *const *)body->params.items;
  function->param_count = body->params.count;
  function->returns = (const PtxVariable *const *)body->returns.items;
  function->return_count = body->returns.count;
  function->variables = (const PtxVariable *const *)body->variables.items;
  function->variable_count = body->variables.count;
  function->instructions = body->instructions.items;
  function->instruction_count = body->instructions.count;
  function->labels = body->labels.items;
  function->label_count = body->labels.count;
  function->branch_targets = body->branch_targets.items;
  function->branch_targets_count = body->branch_targets.count;
}

// .func (.param .b32 r) name (.param .b64 a) .noreturn ; or { ... }
void parse_function(Parser *parser, const Linkage *linkage) {
  PtxFunction function = {
      .index = parser->functions.count, .line = parser->token.line, .header = &parser->text->header};
  function.is_entry = is_directive(parser, "entry");
  next_token(parser);

  Body *body = parser_allocate(parser, sizeof *body);
  body->function = function.index;
  body->text = parser->text;
  body->scope = open_scope(parser, parser->text->scope, function.line);
  parser->body = body;
  while (accept_function_directive(parser, &function)) continue;
  if (!function.is_entry) parse_parameters(parser, &body->returns);
  function.line = parser->token.line;
  function.name = expect_word(parser, "a function's name");
  function.readable = readable_name(parser, function.name);
  parse_parameters(parser, &body->params);
  while (accept_function_directive(parser, &function)) continue;

  function.is_declaration = !is_punctuation(parser, "{");
  declare_function(parser, &function, linkage);
  if (!function.is_declaration && linkage->is_extern)
    parser_fail(parser, function.line, ".extern function '%.60s' with a body", function.name);
  if (function.is_declaration)
    expect(parser, ";");
  else
    parse_body(parser);

  complete_function(&function, body);
  *(PtxFunction *)list_add(parser, &parser->functions, sizeof function) = function;
  *(Body **)list_add(parser, &parser->bodies, sizeof body) = body;
  parser->body = NULL;
}

void parse_pending_body(Parser *parser, int function) {
  parser->body = ((Body *const *)parser->bodies.items)[function];
  parser->text = parser->body->text;
  parser->lexer = parser->body->lexer;
  parser->nesting = parser->operands.count = 0;  // another body may have been malformed
  next_token(parser);
  parse_statements(parser);
  complete_function((PtxFunction *)parser->functions.items + function, parser->body);
  parser->body = NULL;
}

// .alias alias, function; where both have been declared.
void parse_alias(Parser *parser) {
  int line = parser->token.line;
  next_token(parser);
  const char *alias = expect_word(parser, "a function's name");
  expect(parser, ",");
  const char *name = expect_word(parser, "a function's name");
  expect(parser, ";");
  Symbol *symbol = find_own(parser, parser->text->scope, alias);
  Symbol *meant = find_own(parser, parser->text->scope, name);
  if (!symbol || symbol->kind != SYMBOL_FUNCTION || symbol->is_defined || symbol->stands)
    parser_fail(parser, line, "'%.60s' must be a function that is declared and not defined", alias);
  if (!meant || meant->kind != SYMBOL_FUNCTION || !meant->is_defined)
    parser_fail(parser, line, "'%.60s' must be a function that is defined", name);
  symbol->stands = meant;
}
