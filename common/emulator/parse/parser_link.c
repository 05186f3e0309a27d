// Linking: a name that several texts have means what one of them defines (PTX ISA 11.6).
//
// A name with .extern, .visible, .weak or .common is one name in all texts; any other belongs to its text. At most one
// definition may be without .weak and .common. It counts then, else the largest .common, else the first .weak.
#include "parser.h"

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
