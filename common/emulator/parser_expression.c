// Constant expressions, PTX ISA 4.5.5 to 4.5.7: C's integer operators over 64-bit numbers. A number is signed unless it
// has the suffix U or is too large; of two operands, one unsigned makes the result unsigned. A floating-point number
// stands alone, but for its sign.
#include <string.h>

#include "parser.h"

static Constant integer(uint64_t value, bool is_unsigned) {
  return (Constant){.value = value, .is_unsigned = is_unsigned};
}

static Constant parse_conditional(Parser *parser);
static Constant parse_unary(Parser *parser);

static void require_integer(Parser *parser, int line, Constant value) {
  if (value.is_float) parser_fail(parser, line, "this operator does not take a floating-point number");
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

static Constant negate(Constant value) {
  if (!value.is_float) return integer(-value.value, value.is_unsigned);
  value.value ^= value.is_f32 ? (uint64_t)1 << 31 : (uint64_t)1 << 63;
  return value;
}

// Applies a unary operator.
static Constant unary(Parser *parser, int line, char operator, Constant value) {
  if (operator== '+') return value;
  if (operator== '-') return negate(value);
  require_integer(parser, line, value);
  return operator== '~' ? integer(~value.value, value.is_unsigned) : integer(!value.value, false);
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
    value = accept(parser, "(") ? parse_parentheses(parser) : parse_literal(parser);
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

// a / b or a % b. The most negative number by -1 wraps, as all of PTX's 64-bit arithmetic does.
static Constant divide(Parser *parser, int line, char operator, Constant a, Constant b, bool is_unsigned) {
  if (b.value == 0) parser_fail(parser, line, "division by zero");
  if (is_unsigned) return integer(operator== '/' ? a.value / b.value : a.value % b.value, true);
  if (b.value == UINT64_MAX) return integer(operator== '/' ? -a.value : 0, false);
  int64_t dividend = (int64_t)a.value, divisor = (int64_t)b.value;
  return integer((uint64_t)(operator== '/' ? dividend / divisor : dividend % divisor), false);
}

// a << b or a >> b; a shift by the whole width or more leaves 0, or the sign.
static Constant shift(char operator, Constant a, Constant b) {
  if (operator== '<') return integer(b.value < 64 ? a.value << b.value : 0, a.is_unsigned);
  if (a.is_unsigned) return integer(b.value < 64 ? a.value >> b.value : 0, true);
  return integer((uint64_t)((int64_t)a.value >> (b.value < 64 ? b.value : 63)), false);
}

static bool compare(const char *operator, Constant a, Constant b, bool is_unsigned) {
  if (strcmp(operator, "==") == 0) return a.value == b.value;
  if (strcmp(operator, "!=") == 0) return a.value != b.value;
  bool less = is_unsigned ? a.value < b.value : (int64_t)a.value < (int64_t)b.value;
  bool equal = a.value == b.value;
  if (operator[0] == '<') return less || (operator[1] == '=' && equal);
  return !less && (operator[1] == '=' || !equal);
}

static Constant binary(Parser *parser, int line, const char *operator, Constant a, Constant b) {
  require_integer(parser, line, a);
  require_integer(parser, line, b);
  bool is_unsigned = a.is_unsigned || b.is_unsigned;
  if (strcmp(operator, "||") == 0) return integer(a.value || b.value, false);
  if (strcmp(operator, "&&") == 0) return integer(a.value && b.value, false);
  if (strcmp(operator, "<<") == 0 || strcmp(operator, ">>") == 0) return shift(*operator, a, b);
  switch (*operator) {
  case '|': return integer(a.value | b.value, is_unsigned);
  case '^': return integer(a.value ^ b.value, is_unsigned);
  case '&': return integer(a.value & b.value, is_unsigned);
  case '+': return integer(a.value + b.value, is_unsigned);
  case '-': return integer(a.value - b.value, is_unsigned);
  case '*': return integer(a.value * b.value, is_unsigned);
  case '/':
  case '%': return divide(parser, line, *operator, a, b, is_unsigned);
  default: return integer(compare(operator, a, b, is_unsigned), false);
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
  if (!accept(parser, "?")) return condition;
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
