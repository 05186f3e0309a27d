// What the files of the PTX front end share: memory, names, tokens, scopes and the parser's state. Private to them.
//
//   ptx.c                  errors, memory, growing lists, hash tables, interned names; the names and sizes of the types
//   lexer.c                bytes -> tokens, and walking over them
//   parser_expression.c    constant expressions, and initializers: = { ... }
//   parser_declaration.c   .reg, variables and their attributes
//   parser_instruction.c   instructions and operands
//   parser_function.c      function headers, bodies, .loc
//   function_name.c        mangled names made readable
//   parser_resolve.c       names -> registers, labels, variables, functions; .extern names of one text -> what another
//                          text defines
//   parser.c               the module: ptx_parse
//
// The first error ends the parse: parser_fail jumps back to ptx_parse, which frees the arena.
#pragma once

#include <setjmp.h>

#include "float_bits.h"
#include "ptx.h"

// Bounds on what a text may ask for; no kernel comes near them.
enum {
  MAX_TEXT = 1 << 30,  // bytes; so that every count of things in the text fits an int
  MAX_NESTING = 64,    // of parentheses and braces inside an expression, operand or initializer
  MAX_SCOPES = 256,    // open braces in a function body
  MAX_FUNCTION_REGISTERS = 1 << 18,
  MAX_MODULE_REGISTERS = 1 << 19,
  MAX_ALIGNMENT = 1 << 20,           // bytes
  MAX_INITIALIZED_BYTES = 64 << 20,  // of all initializers together
  MAX_FILES = 1 << 16,
  MAX_SOURCE_LINE = (1 << 28) - 1,
  MAX_SOURCE_COLUMN = (1 << 20) - 1,
  MAX_INLINE_DEPTH = 64,
  MAX_DIMENSIONS = 8,  // of an array
};
#define MAX_VARIABLE_SIZE ((uint64_t)1 << 40)

typedef struct Parser Parser;
typedef struct PtxArena PtxArena;

// ---- ptx.c ----

PtxArena *arena_create(void);
void arena_destroy(PtxArena *arena);
// Zeroed, aligned for any type; NULL when memory is exhausted.
void *arena_allocate(PtxArena *arena, size_t size);
// The same, but fails the parse.
void *parser_allocate(Parser *parser, size_t size);

// A growing array. Its items move when it grows.
typedef struct List {
  void *items;
  int count, capacity;
} List;

// The address of a new zeroed item at the end.
void *list_add(Parser *parser, List *list, size_t item_size);

// A map from nonzero 64-bit keys, most often the addresses of interned names, to pointers.
typedef struct Table {
  struct TableSlot *slots;
  int count, capacity;
} Table;

static inline uint64_t name_key(const char *interned) { return (uint64_t)(uintptr_t)interned; }
void *table_get(const Table *table, uint64_t key);
void table_set(Parser *parser, Table *table, uint64_t key, void *value);

// The one copy of a name: equal names have equal addresses.
const char *intern(Parser *parser, const char *text, size_t length);

// ---- function_name.c ----

// "cute::copy" of _ZN4cute4copyIfEEvT_, interned; a name that is not mangled as it is.
const char *readable_name(Parser *parser, const char *mangled);

// ---- lexer.c ----

typedef enum TokenKind {
  TOKEN_END,
  TOKEN_WORD,      // name, %name, _
  TOKEN_DOT_WORD,  // .name, .1d, .shared::cta: a directive, type or modifier
  TOKEN_INTEGER,
  TOKEN_FLOAT,
  TOKEN_STRING,
  TOKEN_PUNCTUATION,  // one or two characters
} TokenKind;

typedef struct Token {
  TokenKind kind;
  int line;
  const char *text;  // as written, inside the PTX text
  int length;
  const char *name;  // WORD, DOT_WORD (without its dot), STRING (without its quotes): interned
  char punctuation[3];
  uint64_t value;    // INTEGER; FLOAT: bits, as PtxOperand has them
  bool is_unsigned;  // INTEGER: suffix U, or too large for a signed 64-bit number
  bool is_f32;       // FLOAT: written 0f...
} Token;

typedef struct Lexer {
  const char *begin, *cursor, *end;
  int line;
  bool in_asm;  // between LLVM's comments "begin inline asm" and "end inline asm"
} Lexer;

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
Token lex(Parser *parser);
// Skips to behind the '}' that closes a body. Nothing else of it is looked at, so this is fast.
void lex_skip_body(Parser *parser);

// ---- names ----

// Linking directives, in front of a declaration (PTX ISA 11.6).
typedef struct Linkage {
  bool is_extern, is_visible, is_weak, is_common;
} Linkage;

typedef enum SymbolKind {
  SYMBOL_REGISTER,
  SYMBOL_VARIABLE,
  SYMBOL_LABEL,
  SYMBOL_BRANCH_TARGETS,
  SYMBOL_CALL_TABLE,  // .callprototype, .calltargets
  SYMBOL_FUNCTION,
} SymbolKind;

typedef struct Symbol {
  SymbolKind kind;
  int index;     // of a label or branch table; of a function's latest statement; of a register, -1 until it is named
  PtxType type;  // of a register
  int vector;    // of a register
  PtxVariable *variable;
  const char *function;   // a function's name
  bool is_defined;        // a function with a body
  struct Symbol *stands;  // for this other function: of an .alias, or one that another text defines
  Linkage linkage;        // of a name of the module
  int order;              // instructions of the body before the declaration: it is visible to later ones only
  int line;
} Symbol;

// %r<100>: %r0 to %r99. Those that are named become symbols of their own then.
typedef struct RegisterRange {
  uint64_t count;
  Symbol like;
} RegisterRange;

typedef struct Scope {
  struct Scope *parent;  // NULL: the module
  int depth;             // 0: the module, 1: a function's outermost
  Table symbols;
  Table ranges;    // RegisterRange, by the name before the number
  Table numbered;  // by the name before the number: whether a symbol was declared that a range might have, too
} Scope;

// What an instruction leaves to be resolved at the end of the module.
typedef struct Reference {
  Scope *scope;
  const char *guard;  // NULL when not guarded
} Reference;

// A table of .branchtargets whose labels are not resolved yet.
typedef struct PendingTargets {
  Scope *scope;
  const char **names;
  int count, line;
} PendingTargets;

// A module-level name used in an initializer or .calltargets.
typedef struct PendingName {
  const char *name;
  Scope *scope;
  PtxRelocation *relocation;  // which learns what is meant; NULL: none
  int line;
} PendingName;

// One of the texts that make up the module.
typedef struct Text {
  PtxHeader header;
  Scope *scope;                // its names
  int first_file, file_count;  // in Parser.files
  Table labels;                // of .debug_str: DebugLabel
} Text;

// A name of the module that other texts may have, too.
typedef struct LinkedName {
  const char *name;
  Symbol *symbol;
} LinkedName;

// A function while it is being parsed.
typedef struct Body {
  bool pending;        // it is not parsed yet, or malformed
  Lexer lexer;         // where it begins
  PtxError malformed;  // what was found wrong with it
  int function;        // index into the module's functions
  Text *text;
  Scope *scope;                          // innermost open one
  List params, returns, variables;       // PtxVariable *
  List registers, instructions, labels;  // PtxRegister, PtxInstruction, PtxLabel
  uint64_t declared_registers;
  List branch_targets;          // PtxBranchTargets
  List references;              // Reference, one per instruction
  List pending_targets;         // PendingTargets, one per branch_targets
  Table locations;              // by file, line and column: the latest
  const PtxLocation *location;  // current
} Body;

struct Parser {
  PtxArena *arena;
  PtxError *error;
  jmp_buf failed;
  bool headers_only;
  Lexer lexer;
  Token token;  // the next one
  int nesting;
  PtxModule *module;
  Text *text;          // the one that is being parsed
  List headers;        // PtxHeader *
  List linked_names;   // LinkedName
  Body *body;          // NULL at module level
  List bodies;         // Body *
  List functions;      // PtxFunction
  List variables;      // PtxVariable *
  List files;          // const char *
  List operands;       // PtxOperand: a stack of those whose list is not complete yet
  List pending_names;  // PendingName
  List locations;      // PendingLocation
  int named, located;  // so many of pending_names and locations are resolved
  List strings;        // char: the bytes of .debug_str
  struct InternSlot *interned;
  int interned_count, interned_capacity;
  uint64_t declared_registers;
  uint64_t initialized_bytes;
};

// ---- errors: ptx.c ----

_Noreturn void parser_fail(Parser *parser, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

// ---- tokens: lexer.c ----

// "expected X but found Y", at the next token.
_Noreturn void parser_expected(Parser *parser, const char *what);
void next_token(Parser *parser);
bool is_punctuation(const Parser *parser, const char *text);
bool is_directive(const Parser *parser, const char *name);
// Consumes the token and returns true, or leaves it.
bool accept_token(Parser *parser, const char *punctuation);
bool accept_directive(Parser *parser, const char *name);
void expect(Parser *parser, const char *punctuation);
// Consumes a word and returns it; what names it in the message.
const char *expect_word(Parser *parser, const char *what);
// Consumes an integer constant between 0 and limit.
uint64_t expect_integer(Parser *parser, const char *what, uint64_t limit);
// Skips ( ... ) or { ... } with what is inside, the next token being its opening.
void skip_group(Parser *parser, const char *open, const char *close);
// Count one more level of nesting and back.
void enter_nesting(Parser *parser);
void leave_nesting(Parser *parser);

// ---- parser_expression.c ----

typedef struct Constant {
  bool is_float, is_f32, is_unsigned;
  uint64_t value;
} Constant;

Constant parse_constant(Parser *parser);
int64_t parse_integer_constant(Parser *parser);

// ---- parser_declaration.c ----

bool accept_linkage(Parser *parser, Linkage *linkage);
bool at_space(const Parser *parser);
void parse_registers(Parser *parser);
void parse_variables(Parser *parser, const Linkage *linkage);
// One parameter of a function header; .reg parameters become registers as well.
void parse_parameter(Parser *parser, List *list);

// ---- initializers: parser_expression.c ----

void parse_initializer(Parser *parser, PtxVariable *variable, const uint64_t *dimensions, int dimension_count,
                       bool unsized);

// ---- parser_instruction.c ----

// name is the opcode, consumed already; guard the predicate's name or NULL.
void parse_instruction(Parser *parser, const char *opcode, int line, const char *guard, bool guard_negated);

// ---- parser_function.c ----

void parse_function(Parser *parser, const Linkage *linkage);
void parse_pending_body(Parser *parser, int function);
void parse_alias(Parser *parser);

typedef struct PendingLocation {
  PtxLocation *location;
  int line;
  const char *label;  // of the function's name in .debug_str; NULL when not inlined
  uint64_t offset;    // from the label
} PendingLocation;

typedef struct DebugLabel {
  int start;         // in Parser.strings
  const char *name;  // the function's, readable; NULL until it is asked for
} DebugLabel;

void parse_location(Parser *parser);
void parse_pragma(Parser *parser);

// ---- parser_resolve.c ----

Scope *open_scope(Parser *parser, Scope *parent, int line);
// A new symbol of the scope; fails when the name is taken there.
Symbol *declare(Parser *parser, Scope *scope, const char *name, SymbolKind kind, int line);
// The same for count registers, the prefix with a number each. False when they have to be declared one by one, because
// other names begin with the prefix.
bool declare_range(Parser *parser, Scope *scope, const char *prefix, RegisterRange range);
// The scope's own symbol, NULL when it has none of that name.
Symbol *find_own(Parser *parser, Scope *scope, const char *name);
// The function that a symbol means in the end.
const Symbol *function_meant(const Symbol *symbol);
void resolve_module(Parser *parser);
// Of a function whose body was pending.
void resolve_function(Parser *parser, int function);

// Lists a name of the module that has a linking directive, and keeps the directive.
void remember_linkage(Parser *parser, const char *name, Symbol *symbol, const Linkage *linkage);
// Lets each name mean what one of the texts defines.
void link_texts(Parser *parser);
