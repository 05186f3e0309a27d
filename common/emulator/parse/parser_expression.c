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
