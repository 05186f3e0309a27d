// Scopes, and what a name means in them (PTX ISA 4.4, 5.4.6, 5.5).
//
// A name is looked up from the innermost braces outwards. A label is visible in all of its scope, before it stands
// there too; a register or variable from its declaration on. So names are resolved when the module is complete.
#include <string.h>

#include "parser.h"

Scope *open_scope(Parser *parser, Scope *parent, int line) {
  Scope *scope = parser_allocate(parser, sizeof *scope);
  scope->parent = parent;
  scope->depth = parent->depth + 1;
  if (scope->depth > MAX_SCOPES) parser_fail(parser, line, "braces nested deeper than %d", MAX_SCOPES);
  return scope;
}

// ---- %r<100>: a range of registers ----

// "%r" of "%r17", interned, and 17. NULL when the name does not end in a number, or in one that no range writes so.
static const char *split_name(Parser *parser, const char *name, uint64_t *number) {
  size_t length = strlen(name), start = length;
  while (start > 0 && is_digit(name[start - 1])) start--;
  if (start == length || length - start > 9 || (name[start] == '0' && length - start > 1)) return NULL;
  *number = 0;
  for (size_t i = start; i < length; i++) *number = 10 * *number + (uint64_t)(name[i] - '0');
  return intern(parser, name, start);
}

static Symbol *add_symbol(Parser *parser, Scope *scope, const char *name, Symbol symbol) {
  Symbol *added = parser_allocate(parser, sizeof symbol);
  *added = symbol;
  table_set(parser, &scope->symbols, name_key(name), added);
  return added;
}

// The register of a range that has that name, as a symbol of its own; NULL when there is none.
static Symbol *find_in_range(Parser *parser, Scope *scope, const char *name) {
  uint64_t number;
  const char *prefix = scope->ranges.count ? split_name(parser, name, &number) : NULL;
  const RegisterRange *range = prefix ? table_get(&scope->ranges, name_key(prefix)) : NULL;
  return range && number < range->count ? add_symbol(parser, scope, name, range->like) : NULL;
}

// Where the prefix ends in a digit itself, or is that of another symbol, two declarations may have the same names.
bool declare_range(Parser *parser, Scope *scope, const char *prefix, RegisterRange range) {
  if (is_digit(prefix[strlen(prefix) - 1]) || table_get(&scope->ranges, name_key(prefix)) ||
      table_get(&scope->numbered, name_key(prefix)))
    return false;
  RegisterRange *added = parser_allocate(parser, sizeof range);
  *added = range;
  added->like.kind = SYMBOL_REGISTER;
  added->like.index = -1;
  added->like.order = parser->body->instructions.count;
  table_set(parser, &scope->ranges, name_key(prefix), added);
  return true;
}

// ---- symbols ----

Symbol *find_own(Parser *parser, Scope *scope, const char *name) {
  Symbol *symbol = table_get(&scope->symbols, name_key(name));
  return symbol ? symbol : find_in_range(parser, scope, name);
}

Symbol *declare(Parser *parser, Scope *scope, const char *name, SymbolKind kind, int line) {
  if (strcmp(name, "_") == 0) parser_fail(parser, line, "'_' cannot be declared");
  const Symbol *known = find_own(parser, scope, name);
  if (known) parser_fail(parser, line, "'%.60s' is already declared on line %d", name, known->line);
  uint64_t number;
  const char *prefix = split_name(parser, name, &number);
  if (prefix) table_set(parser, &scope->numbered, name_key(prefix), scope);
  int order = parser->body ? parser->body->instructions.count : 0;
  return add_symbol(parser, scope, name, (Symbol){.kind = kind, .index = -1, .order = order, .line = line});
}

// The symbol that name means to the instruction with the index order, NULL when it means none.
static Symbol *find(Parser *parser, Scope *scope, const char *name, int order) {
  for (; scope; scope = scope->parent) {
    Symbol *symbol = find_own(parser, scope, name);
    if (!symbol) continue;
    bool everywhere = scope->depth == 0 || (symbol->kind >= SYMBOL_LABEL && symbol->kind <= SYMBOL_CALL_TABLE);
    if (everywhere || symbol->order <= order) return symbol;
  }
  return NULL;
}

const Symbol *function_meant(const Symbol *symbol) {
  while (symbol->stands) symbol = symbol->stands;
  return symbol;
}

// ---- special registers, PTX ISA chapter 10 ----

static const char *const vector_specials[] = {
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
};

// clang-format off
static const char *const scalar_specials[] = {
    "laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid",
    "is_explicit_cluster", "cluster_ctarank", "cluster_nctarank",
    "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt",
    "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi",
    "pm0", "pm1", "pm2", "pm3", "pm4", "pm5", "pm6", "pm7",
    "pm0_64", "pm1_64", "pm2_64", "pm3_64", "pm4_64", "pm5_64", "pm6_64", "pm7_64",
    "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
    "reserved_smem_offset_0", "reserved_smem_offset_1",
    "total_smem_size", "aggr_smem_size", "dynamic_smem_size", "current_graph_exec",
};
// clang-format on

static bool contains(const char *const *names, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

static bool is_vector_special(const char *name) {
  return contains(vector_specials, sizeof vector_specials / sizeof *vector_specials, name);
}

// %envreg0 to %envreg31
static bool is_environment_register(const char *name) {
  if (strncmp(name, "envreg", 6) != 0) return false;
  const char *digits = name + 6;
  if (digits[0] < '0' || digits[0] > '9') return false;
  if (!digits[1]) return true;
  return digits[0] >= '1' && digits[0] <= '3' && digits[1] >= '0' && digits[1] <= (digits[0] == '3' ? '1' : '9') &&
         !digits[2];
}

static bool is_special_register(const char *name) {
  return is_vector_special(name) || is_environment_register(name) ||
         contains(scalar_specials, sizeof scalar_specials / sizeof *scalar_specials, name);
}

// ---- operands ----

// What is being resolved: the names of one instruction.
typedef struct Place {
  Parser *parser;
  Scope *scope;
  int order;
  Body *body;
  const PtxInstruction *instruction;
} Place;

_Noreturn static void fail_undefined(const Place *place, const char *name) {
  const char *opcode = place->instruction->opcode;
  const char *what = "name";
  if (*name == '%')
    what = "register";
  else if (strcmp(opcode, "bra") == 0)
    what = "label";
  else if (strcmp(opcode, "call") == 0)
    what = "function or parameter";
  parser_fail(place->parser, place->instruction->line, "undefined %s '%.60s'", what, name);
}

// The index of a register, which an instruction names.
static int register_index(const Place *place, const char *name, Symbol *symbol) {
  List *registers = &place->body->registers;
  if (symbol->index >= 0) return symbol->index;
  symbol->index = registers->count;
  *(PtxRegister *)list_add(place->parser, registers, sizeof(PtxRegister)) =
      (PtxRegister){name, symbol->type, symbol->vector};
  return symbol->index;
}

static void resolve_register(const Place *place, PtxOperand *operand, Symbol *symbol) {
  operand->kind = PTX_OPERAND_REGISTER;
  operand->index = register_index(place, operand->name, symbol);
  if (operand->component >= symbol->vector)
    parser_fail(place->parser, place->instruction->line, "register '%.60s' has no component .%c", operand->name,
                "xyzw"[operand->component]);
  if (operand->component >= 0 && symbol->vector == 1)
    parser_fail(place->parser, place->instruction->line, "register '%.60s' is not a vector", operand->name);
}

static void resolve_special(const Place *place, PtxOperand *operand) {
  const char *name = operand->name + 1;
  if (*operand->name != '%' || !is_special_register(name)) fail_undefined(place, operand->name);
  operand->kind = PTX_OPERAND_SPECIAL;
  operand->name = name;
  if (operand->component >= 0 && !is_vector_special(name))
    parser_fail(place->parser, place->instruction->line, "special register '%%%.60s' is not a vector", name);
}

static void resolve_name(const Place *place, PtxOperand *operand) {
  Symbol *symbol = find(place->parser, place->scope, operand->name, place->order);
  if (!symbol)
    resolve_special(place, operand);
  else if (symbol->kind == SYMBOL_REGISTER)
    resolve_register(place, operand, symbol);
  else if (symbol->kind == SYMBOL_VARIABLE) {
    operand->kind = PTX_OPERAND_VARIABLE;
    operand->variable = symbol->variable;
    // ptxas counts single numbers, also those of a vector or of a row.
    if (operand->is_element) operand->value *= (int64_t)ptx_type_size(symbol->variable->type);
  } else if (symbol->kind == SYMBOL_FUNCTION) {
    const Symbol *meant = function_meant(symbol);
    operand->kind = PTX_OPERAND_FUNCTION;
    operand->name = meant->function;
    operand->index = meant->is_defined ? meant->index : -1;
  } else {
    operand->kind = symbol->kind == SYMBOL_LABEL ? PTX_OPERAND_LABEL : PTX_OPERAND_NAME;
    operand->index = symbol->index;
  }
  int line = place->instruction->line;
  if (operand->component >= 0 && operand->kind != PTX_OPERAND_REGISTER && operand->kind != PTX_OPERAND_SPECIAL)
    parser_fail(place->parser, line, "'%.60s' has no components", operand->name);
  const char *opcode = place->instruction->opcode;
  if (operand->part && (operand->kind != PTX_OPERAND_REGISTER || *opcode != 'v' || strcmp(opcode, "vote") == 0))
    parser_fail(place->parser, line, "'%.60s.%.20s': only registers of video instructions have parts", operand->name,
                operand->part);
  if (operand->is_element && operand->kind != PTX_OPERAND_VARIABLE)
    parser_fail(place->parser, line, "only a variable has elements, '%.60s' is none", operand->name);
  if (operand->value != 0 && operand->kind != PTX_OPERAND_VARIABLE)
    parser_fail(place->parser, line, "only a variable takes an offset outside brackets, '%.60s' is none",
                operand->name);
}

// Resolves the names of an operand and of its items. The parser bounded the depth.
static void resolve_operand(const Place *place, PtxOperand *operand) {
  if (operand->kind == PTX_OPERAND_NAME) return resolve_name(place, operand);
  for (int i = 0; i < operand->item_count; i++) resolve_operand(place, (PtxOperand *)&operand->items[i]);
}

// The predicate of @p.
static int resolve_guard(const Place *place, const char *name) {
  Symbol *symbol = find(place->parser, place->scope, name, place->order);
  if (!symbol) fail_undefined(place, name);
  if (symbol->kind != SYMBOL_REGISTER || symbol->type != PTX_PRED)
    parser_fail(place->parser, place->instruction->line, "guard '%.60s' is not a predicate register", name);
  return register_index(place, name, symbol);
}

// ---- bodies and the module ----

static void resolve_instructions(Parser *parser, Body *body) {
  PtxInstruction *instructions = body->instructions.items;
  const Reference *references = body->references.items;
  for (int i = 0; i < body->instructions.count; i++) {
    PtxInstruction *instruction = &instructions[i];
    Place place = {parser, references[i].scope, i, body, instruction};
    if (references[i].guard) instruction->guard = resolve_guard(&place, references[i].guard);
    for (int j = 0; j < instruction->operand_count; j++)
      resolve_operand(&place, (PtxOperand *)&instruction->operands[j]);
  }
}

static void resolve_branch_targets(Parser *parser, const Body *body) {
  PtxBranchTargets *tables = body->branch_targets.items;
  const PendingTargets *pending = body->pending_targets.items;
  for (int i = 0; i < body->branch_targets.count; i++) {
    int *labels = parser_allocate(parser, (size_t)pending[i].count * sizeof *labels);
    for (int j = 0; j < pending[i].count; j++) {
      const Symbol *symbol = find(parser, pending[i].scope, pending[i].names[j], 0);
      if (!symbol || symbol->kind != SYMBOL_LABEL)
        parser_fail(parser, pending[i].line, "undefined label '%.60s'", pending[i].names[j]);
      labels[j] = symbol->index;
    }
    tables[i].labels = labels;
    tables[i].label_count = pending[i].count;
  }
}

// Names in initializers and .calltargets: variables and functions of the module.
static void resolve_pending_names(Parser *parser) {
  const PendingName *names = parser->pending_names.items;
  for (int i = parser->named; i < parser->pending_names.count; i++) {
    PtxRelocation *relocation = names[i].relocation;
    const Symbol *symbol = find_own(parser, names[i].scope, names[i].name);
    bool is_function = symbol && symbol->kind == SYMBOL_FUNCTION;
    if (!symbol || (!relocation && !is_function))
      parser_fail(parser, names[i].line, "undefined %s '%.60s'", relocation ? "name" : "function", names[i].name);
    if (symbol->kind == SYMBOL_VARIABLE && symbol->variable->space != PTX_GLOBAL &&
        symbol->variable->space != PTX_CONST)
      parser_fail(parser, names[i].line,
                  "'%.60s' is neither .global nor .const: its address is not known before a launch", names[i].name);
    if (!relocation) continue;
    const Symbol *meant = is_function ? function_meant(symbol) : symbol;
    if (is_function) relocation->symbol = meant->function;
    relocation->variable = meant->variable;
    relocation->function = is_function && meant->is_defined ? meant->index : -1;
  }
  parser->named = parser->pending_names.count;
}

void resolve_function(Parser *parser, int function) {
  Body *body = ((Body *const *)parser->bodies.items)[function];
  PtxFunction *functions = parser->functions.items;
  resolve_instructions(parser, body);
  resolve_branch_targets(parser, body);
  functions[function].registers = body->registers.items;
  functions[function].register_count = body->registers.count;
  resolve_pending_names(parser);
}

void resolve_module(Parser *parser) {
  for (int i = 0; i < parser->bodies.count; i++) resolve_function(parser, i);
  resolve_pending_names(parser);
}

// Linking: a name that several texts have means what one of them defines (PTX ISA 11.6).
//
// A name with .extern, .visible, .weak or .common is one name in all texts; any other belongs to its text. At most one
// definition may be without .weak and .common. It counts then, else the largest .common, else the first .weak.

void remember_linkage(Parser *parser, const char *name, Symbol *symbol, const Linkage *linkage) {
  symbol->linkage = *linkage;
  *(LinkedName *)list_add(parser, &parser->linked_names, sizeof(LinkedName)) = (LinkedName){name, symbol};
}

// A kernel is launched by its name, so that no other text may have it.
static bool is_entry(const Parser *parser, const Symbol *symbol) {
  return symbol->kind == SYMBOL_FUNCTION && ((const PtxFunction *)parser->functions.items)[symbol->index].is_entry;
}

static bool is_shared(const Parser *parser, const Symbol *symbol) {
  const Linkage *linkage = &symbol->linkage;
  return linkage->is_extern || linkage->is_visible || linkage->is_weak || linkage->is_common ||
         is_entry(parser, symbol);
}

static bool defines(const Symbol *symbol) {
  return symbol->kind == SYMBOL_VARIABLE ? !symbol->variable->is_extern : symbol->is_defined || symbol->stands;
}

// How much a definition counts: .weak, .common, neither.
static int rank(const Symbol *symbol) { return symbol->linkage.is_weak ? 0 : symbol->linkage.is_common ? 1 : 2; }

// Which of two definitions counts; first stands in an earlier text.
static Symbol *better(Parser *parser, const char *name, Symbol *first, Symbol *second) {
  if (rank(first) == 2 && rank(second) == 2)
    parser_fail(parser, second->line, "'%.100s' is defined in two files of the program, first on line %d",
                readable_name(parser, name), first->line);
  if (rank(first) != rank(second)) return rank(first) > rank(second) ? first : second;
  bool larger = rank(first) == 1 && first->kind == SYMBOL_VARIABLE && second->kind == SYMBOL_VARIABLE &&
                second->variable->size > first->variable->size;
  return larger ? second : first;
}

// Whether a declaration fits a definition: a type is no part of a name, its size is.
static bool fits(const Symbol *declared, const Symbol *meant) {
  if (declared->kind != meant->kind) return false;
  if (declared->kind != SYMBOL_VARIABLE) return true;
  const PtxVariable *a = declared->variable, *b = meant->variable;
  return a->space == b->space && (a->count == 0 || a->size <= b->size);
}

// Lets a symbol mean another text's definition. Its own is dropped.
static void redirect(Parser *parser, const char *name, Symbol *symbol, Symbol *meant, Table *dropped) {
  if (!fits(symbol, meant))
    parser_fail(parser, symbol->line, "'%.100s' is declared otherwise in another file of the program, on line %d",
                readable_name(parser, name), meant->line);
  if (symbol->kind == SYMBOL_VARIABLE) {
    table_set(parser, dropped, (uint64_t)(uintptr_t)symbol->variable, symbol);
    symbol->variable = meant->variable;
    return;
  }
  ((PtxFunction *)parser->functions.items)[symbol->index].is_declaration = true;
  symbol->stands = meant;
}

static void remove_dropped(Parser *parser, const Table *dropped) {
  PtxVariable **variables = parser->variables.items;
  int kept = 0;
  for (int i = 0; i < parser->variables.count; i++)
    if (!table_get(dropped, (uint64_t)(uintptr_t)variables[i])) variables[kept++] = variables[i];
  parser->variables.count = kept;
}

void link_texts(Parser *parser) {
  Table definitions = {0}, dropped = {0};
  const LinkedName *names = parser->linked_names.items;
  if (parser->headers.count < 2) return;
  for (int i = 0; i < parser->linked_names.count; i++) {
    Symbol *symbol = names[i].symbol, *other = table_get(&definitions, name_key(names[i].name));
    if (!is_shared(parser, symbol) || !defines(symbol)) continue;
    table_set(parser, &definitions, name_key(names[i].name),
              other ? better(parser, names[i].name, other, symbol) : symbol);
  }
  for (int i = 0; i < parser->linked_names.count; i++) {
    Symbol *symbol = names[i].symbol, *meant = table_get(&definitions, name_key(names[i].name));
    if (meant && meant != symbol && is_shared(parser, symbol)) redirect(parser, names[i].name, symbol, meant, &dropped);
  }
  remove_dropped(parser, &dropped);
}
