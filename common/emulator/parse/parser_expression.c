// Constant expressions, PTX ISA 4.5.4 to 4.5.6: C's operators over 64-bit integers and doubles, which do not mix. A
// number is signed unless it has the suffix U or is too large; of two operands, one unsigned makes the result unsigned.
// Where the ISA leaves a choice, this does what ptxas 13.0 was seen to do: % is unsigned, a shift counts modulo 64.
#include <string.h>

#include "parser.h"

static Constant integer(uint64_t value, bool is_unsigned) {
  return (Constant){.value = value, .is_unsigned = is_unsigned};
}

static Constant real(double number) { return (Constant){.is_float = true, .value = f64_bits(number)}; }

static double as_double(Constant constant) { return f64_from_bits(constant.value); }

static Constant parse_conditional(Parser *parser);
static Constant parse_unary(Parser *parser);

static void require_integer(Parser *parser, int line, Constant value) {
  if (value.is_float) parser_fail(parser, line, "this operator does not take a floating-point number");
}

static void require_double(Parser *parser, int line, Constant value) {
  if (!value.is_float) parser_fail(parser, line, "integers and floating-point numbers do not mix: write 1.0 for 1");
  if (value.is_f32) parser_fail(parser, line, "a 0f number takes no operator");
}

// 7, 1.5, WARP_SZ
static Constant parse_literal(Parser *parser) {
  const Token token = parser->token;
  if (token.kind == TOKEN_WORD && strcmp(token.name, "WARP_SZ") == 0) {
    next_token(parser);
    return integer(32, false);
  }
  if (token.kind != TOKEN_INTEGER && token.kind != TOKEN_FLOAT) parser_expected(parser, "a constant");
  next_token(parser);
  return (Constant){token.kind == TOKEN_FLOAT, token.is_f32, token.is_unsigned, token.value};
}

// "(.s64) x", "(.u64) x" or "(expression)", behind the opening parenthesis.
static Constant parse_parentheses(Parser *parser) {
  int line = parser->token.line;
  bool to_unsigned = is_directive(parser, "u64");
  if (to_unsigned || is_directive(parser, "s64")) {
    next_token(parser);
    expect(parser, ")");
    Constant value = parse_unary(parser);
    require_integer(parser, line, value);
    return integer(value.value, to_unsigned);
  }
  Constant value = parse_conditional(parser);
  expect(parser, ")");
  return value;
}

// Applies a unary operator.
static Constant unary(Parser *parser, int line, char operator, Constant value) {
  if (value.is_float && (operator== '+' || operator== '-')) {
    require_double(parser, line, value);
    return real(operator== '-' ? -as_double(value) : as_double(value));
  }
  require_integer(parser, line, value);
  if (operator== '-') return integer(-value.value, value.is_unsigned);
  if (operator== '~') return integer(~value.value, value.is_unsigned);
  return operator== '!' ? integer(!value.value, false) : value;
}

static Constant parse_unary(Parser *parser) {
  int line = parser->token.line;
  enter_nesting(parser);
  Constant value;
  if (is_punctuation(parser, "+") || is_punctuation(parser, "-") || is_punctuation(parser, "!") ||
      is_punctuation(parser, "~")) {
    char operator= parser->token.punctuation[0];
    next_token(parser);
    value = unary(parser, line, operator, parse_unary(parser));
  } else {
    value = accept_token(parser, "(") ? parse_parentheses(parser) : parse_literal(parser);
  }
  leave_nesting(parser);
  return value;
}

// ---- binary operators ----

// Weakest first, as in C.
static const struct {
  const char *text;
  int precedence;
} operators[] = {
    {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {"<=", 7},
    {">", 7},  {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};

// The precedence of the next token, 0 when it is no binary operator.
static int next_precedence(const Parser *parser) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (is_punctuation(parser, operators[i].text)) return operators[i].precedence;
  return 0;
}

// a / b. The most negative number by -1 wraps, as all of PTX's 64-bit arithmetic does.
static Constant divide(Parser *parser, int line, Constant a, Constant b, bool is_unsigned) {
  if (b.value == 0) parser_fail(parser, line, "division by zero");
  if (is_unsigned) return integer(a.value / b.value, true);
  if (b.value == UINT64_MAX) return integer(-a.value, false);
  return integer((uint64_t)((int64_t)a.value / (int64_t)b.value), false);
}

static Constant remainder_of(Parser *parser, int line, Constant a, Constant b) {
  if (b.value == 0) parser_fail(parser, line, "division by zero");
  return integer(a.value % b.value, true);
}

static Constant shift(char operator, Constant a, Constant b) {
  int count = (int)(b.value & 63);
  if (operator== '<') return integer(a.value << count, a.is_unsigned);
  if (a.is_unsigned) return integer(a.value >> count, true);
  return integer((uint64_t)((int64_t)a.value >> count), false);
}

// The value of a comparison, from how its operands compare.
static Constant compare(const char *operator, bool less, bool equal, bool greater) {
  if (strcmp(operator, "==") == 0) return integer(equal, false);
  if (strcmp(operator, "!=") == 0) return integer(!equal, false);
  bool strict = *operator== '<' ? less : greater;
  return integer(strict || (operator[1] == '=' && equal), false);
}

static bool is_comparison(const char *operator) {
  return operator[1] == '=' || strcmp(operator, "<") == 0 || strcmp(operator, ">") == 0;
}

// An operator of doubles: + - * / and the comparisons.
static Constant binary_double(Parser *parser, int line, const char *operator, Constant a, Constant b) {
  require_double(parser, line, a);
  require_double(parser, line, b);
  double x = as_double(a), y = as_double(b);
  if (is_comparison(operator)) return compare(operator, x<y, x == y, x> y);
  if (operator[1] || !strchr("+-*/", *operator)) require_integer(parser, line, a);
  if (*operator== '/' && y == 0) parser_fail(parser, line, "division by zero");
  switch (*operator) {
  case '+': return real(x + y);
  case '-': return real(x - y);
  case '*': return real(x * y);
  default: return real(x / y);
  }
}

static Constant binary(Parser *parser, int line, const char *operator, Constant a, Constant b) {
  if (a.is_float || b.is_float) return binary_double(parser, line, operator, a, b);
  bool is_unsigned = a.is_unsigned || b.is_unsigned;
  if (strcmp(operator, "||") == 0) return integer(a.value || b.value, false);
  if (strcmp(operator, "&&") == 0) return integer(a.value && b.value, false);
  if (strcmp(operator, "<<") == 0 || strcmp(operator, ">>") == 0) return shift(*operator, a, b);
  if (is_comparison(operator)) {
    bool less = is_unsigned ? a.value < b.value : (int64_t)a.value < (int64_t)b.value, equal = a.value == b.value;
    return compare(operator, less, equal, !less && !equal);
  }
  switch (*operator) {
  case '|': return integer(a.value | b.value, is_unsigned);
  case '^': return integer(a.value ^ b.value, is_unsigned);
  case '&': return integer(a.value & b.value, is_unsigned);
  case '+': return integer(a.value + b.value, is_unsigned);
  case '-': return integer(a.value - b.value, is_unsigned);
  case '*': return integer(a.value * b.value, is_unsigned);
  case '%': return remainder_of(parser, line, a, b);
  default: return divide(parser, line, a, b, is_unsigned);
  }
}

// Operators that bind at least as strongly as weakest, left to right.
static Constant parse_binary(Parser *parser, int weakest) {
  Constant value = parse_unary(parser);
  for (int precedence; (precedence = next_precedence(parser)) >= weakest;) {
    const Token operator= parser->token;
    next_token(parser);
    value = binary(parser, operator.line, operator.punctuation, value, parse_binary(parser, precedence + 1));
  }
  return value;
}

// a ? b : c
static Constant parse_conditional(Parser *parser) {
  int line = parser->token.line;
  Constant condition = parse_binary(parser, 1);
  if (!accept_token(parser, "?")) return condition;
  require_integer(parser, line, condition);
  enter_nesting(parser);
  Constant yes = parse_conditional(parser);
  expect(parser, ":");
  Constant no = parse_conditional(parser);
  leave_nesting(parser);
  require_integer(parser, line, yes);
  require_integer(parser, line, no);
  return integer(condition.value ? yes.value : no.value, yes.is_unsigned || no.is_unsigned);
}

Constant parse_constant(Parser *parser) { return parse_conditional(parser); }

int64_t parse_integer_constant(Parser *parser) {
  int line = parser->token.line;
  Constant value = parse_constant(parser);
  if (value.is_float) parser_fail(parser, line, "expected an integer, not a floating-point number");
  return (int64_t)value.value;
}

// ---- initializers ----
//
//   = 5    = {1, {2, 3}}    = {name+8, generic(name)}    = {0xff(name), 0xff00(name)}

// The variable being initialised. One element is a scalar: a vector's components count as a last dimension.
typedef struct Initializer {
  PtxVariable *variable;
  size_t element_size;
  uint64_t extents[MAX_DIMENSIONS + 1];  // the first is 0 for an unsized array
  int dimension_count;
  bool unsized;
  uint8_t *bytes;
  uint64_t capacity;  // bytes
  List relocations;
} Initializer;

// Makes room for size bytes: all of a sized variable at once, an unsized array doubles as it grows.
static void reserve(Parser *parser, Initializer *initializer, uint64_t size) {
  if (size <= initializer->capacity) return;
  uint64_t capacity = initializer->unsized ? 2 * size : size;
  parser->initialized_bytes += capacity - initializer->capacity;
  if (parser->initialized_bytes > MAX_INITIALIZED_BYTES)
    parser_fail(parser, initializer->variable->line, "more than %d bytes of initial values", MAX_INITIALIZED_BYTES);
  uint8_t *bytes = parser_allocate(parser, capacity);
  if (initializer->bytes) memcpy(bytes, initializer->bytes, initializer->capacity);
  initializer->bytes = bytes;
  initializer->capacity = capacity;
}

// ---- one element ----

// Stores the low bytes of an integer: PTX ISA 4.5.1 converts it to the variable's size.
static void store_integer(const Initializer *initializer, uint64_t offset, uint64_t value) {
  size_t size = initializer->element_size;
  memcpy(initializer->bytes + offset, &value, size < 8 ? size : 8);
  if (size == 16 && (int64_t)value < 0) memset(initializer->bytes + offset + 8, 0xff, 8);
}

// Stores a floating-point number in the format of the element's size. A 0f literal keeps its bits, NaN payloads
// included.
static void store_float(Parser *parser, const Initializer *initializer, uint64_t offset, int line, Constant constant) {
  uint8_t *bytes = initializer->bytes + offset;
  double number = f64_from_bits(constant.value);
  float narrow = (float)number;
  if (constant.is_f32 && initializer->element_size == 8)
    parser_fail(parser, line, "a 0f number has 32 bits: a 64-bit variable takes 0d and 16 digits");
  if (constant.is_f32)
    memcpy(bytes, &constant.value, 4);
  else if (initializer->element_size == 4)
    memcpy(bytes, &narrow, sizeof narrow);
  else
    memcpy(bytes, &number, sizeof number);
}

static void store_constant(Parser *parser, const Initializer *initializer, uint64_t offset, int line,
                           Constant constant) {
  PtxType type = initializer->variable->type;
  bool only_float = type == PTX_F32 || type == PTX_F64;
  bool takes_float = only_float || type == PTX_B32 || type == PTX_B64;
  if (type == PTX_F16 || type == PTX_F16X2 || type == PTX_BF16 || type == PTX_BF16X2)
    parser_fail(parser, line, "a .%s variable takes no initial value; .b16 and .b32 do", ptx_type_name(type));
  if (constant.is_float && !takes_float)
    parser_fail(parser, line, "floating-point value for a variable of type .%s", ptx_type_name(type));
  if (!constant.is_float && only_float)
    parser_fail(parser, line, "integer value for a variable of type .%s: write 1.0 for 1", ptx_type_name(type));
  if (constant.is_float)
    store_float(parser, initializer, offset, line, constant);
  else
    store_integer(initializer, offset, constant.value);
}

// name, name+8, generic(name), generic(name)+8
static PtxRelocation parse_symbol(Parser *parser) {
  PtxRelocation relocation = {0};
  relocation.symbol = expect_word(parser, "a variable's or function's name");
  if (strcmp(relocation.symbol, "generic") == 0 && accept_token(parser, "(")) {
    relocation.generic = true;
    relocation.symbol = expect_word(parser, "a variable's name");
    expect(parser, ")");
  }
  if (is_punctuation(parser, "+")) relocation.addend = parse_integer_constant(parser);
  return relocation;
}

static void add_relocation(Parser *parser, Initializer *initializer, PtxRelocation relocation, int line) {
  PtxType type = initializer->variable->type;
  bool is_integer = type >= PTX_B8 && type <= PTX_S64 && type != PTX_B128;
  if (!is_integer || (relocation.size != 1 && relocation.size != 4 && relocation.size != 8))
    parser_fail(parser, line, "an address does not fit .%s", ptx_type_name(type));
  *(PtxRelocation *)list_add(parser, &initializer->relocations, sizeof relocation) = relocation;
}

// 0xff00(name): the byte of the address that the mask selects, behind the mask.
static void parse_masked_symbol(Parser *parser, Initializer *initializer, uint64_t offset, uint64_t mask, int line) {
  int shift = 0;
  while (shift < 56 && mask != (uint64_t)0xff << shift) shift += 8;
  if (mask != (uint64_t)0xff << shift)
    parser_fail(parser, line, "mask 0x%llx does not select one byte: 0xff, 0xff00, ...", (unsigned long long)mask);
  if (initializer->element_size != 1) parser_fail(parser, line, "a masked address initialises one byte");
  expect(parser, "(");
  PtxRelocation relocation = parse_symbol(parser);
  expect(parser, ")");
  relocation.offset = offset;
  relocation.size = 1;
  relocation.shift = shift;
  add_relocation(parser, initializer, relocation, line);
}

static void parse_element(Parser *parser, Initializer *initializer, uint64_t offset) {
  int line = parser->token.line;
  reserve(parser, initializer, offset + initializer->element_size);
  if (parser->token.kind == TOKEN_WORD && strcmp(parser->token.name, "WARP_SZ") != 0) {
    PtxRelocation relocation = parse_symbol(parser);
    relocation.offset = offset;
    relocation.size = (int)initializer->element_size;
    if (relocation.size == 1) parser_fail(parser, line, "an address does not fit one byte: write 0xff(name), ...");
    return add_relocation(parser, initializer, relocation, line);
  }
  Constant constant = parse_constant(parser);
  if (is_punctuation(parser, "(") && !constant.is_float)
    return parse_masked_symbol(parser, initializer, offset, constant.value, line);
  store_constant(parser, initializer, offset, line, constant);
}

// ---- nested braces ----

// Elements of one item of dimension level: 1 in the last.
static uint64_t elements_below(const Initializer *initializer, int level) {
  uint64_t count = 1;
  for (int i = level + 1; i < initializer->dimension_count; i++) count *= initializer->extents[i];
  return count;
}

// { item, ... } of dimension level, from element first on: an item is a value in the last dimension, braces above it.
// What is not written stays zero. Returns the number of items.
static uint64_t parse_braces(Parser *parser, Initializer *initializer, int level, uint64_t first) {
  enter_nesting(parser);
  bool innermost = level + 1 == initializer->dimension_count;
  uint64_t stride = elements_below(initializer, level), count = 0;
  uint64_t limit = level == 0 && initializer->unsized ? MAX_VARIABLE_SIZE / stride : initializer->extents[level];
  expect(parser, "{");
  if (!is_punctuation(parser, "}")) {
    do {
      if (count == limit)
        parser_fail(parser, parser->token.line, "more initial values than '%.60s' has room for",
                    initializer->variable->name);
      uint64_t position = first + count++ * stride;
      if (innermost)
        parse_element(parser, initializer, position * initializer->element_size);
      else
        parse_braces(parser, initializer, level + 1, position);
    } while (accept_token(parser, ","));
  }
  expect(parser, "}");
  leave_nesting(parser);
  return count;
}

// Lists the symbols to be looked up when the module is complete.
static void remember_names(Parser *parser, const Initializer *initializer, int line) {
  PtxRelocation *relocations = initializer->relocations.items;
  for (int i = 0; i < initializer->relocations.count; i++)
    *(PendingName *)list_add(parser, &parser->pending_names, sizeof(PendingName)) =
        (PendingName){relocations[i].symbol, parser->text->scope, &relocations[i], line};
}

static void check_initializable(Parser *parser, const PtxVariable *variable) {
  if (variable->space != PTX_GLOBAL && variable->space != PTX_CONST)
    parser_fail(parser, variable->line, "only .global and .const variables take an initial value");
  if (variable->is_extern) parser_fail(parser, variable->line, ".extern variable with an initial value");
}

// An unsized array has as many rows as its initializer.
static void complete_size(PtxVariable *variable, const Initializer *initializer, uint64_t rows) {
  uint64_t elements = rows * elements_below(initializer, 0);
  variable->size = elements * initializer->element_size;
  variable->count = elements / (uint64_t)variable->vector;
}

void parse_initializer(Parser *parser, PtxVariable *variable, const uint64_t *dimensions, int dimension_count,
                       bool unsized) {
  check_initializable(parser, variable);
  Initializer initializer = {.variable = variable, .element_size = ptx_type_size(variable->type), .unsized = unsized};
  for (int i = 0; i < dimension_count; i++) initializer.extents[initializer.dimension_count++] = dimensions[i];
  if (variable->vector > 1) initializer.extents[initializer.dimension_count++] = (uint64_t)variable->vector;
  if (initializer.dimension_count && elements_below(&initializer, 0) == 0)
    parser_fail(parser, variable->line, "'%.60s' has a dimension of no elements", variable->name);
  if (!unsized) reserve(parser, &initializer, variable->size);

  if (initializer.dimension_count == 0) {
    parse_element(parser, &initializer, 0);
  } else {
    uint64_t rows = parse_braces(parser, &initializer, 0, 0);
    if (unsized) complete_size(variable, &initializer, rows);
    reserve(parser, &initializer, variable->size);
  }
  variable->initial = initializer.bytes;
  variable->relocations = initializer.relocations.items;
  variable->relocation_count = initializer.relocations.count;
  remember_names(parser, &initializer, variable->line);
}
