// PTX text -> tokens, one at a time. PTX ISA, chapter 4.
//
//   mad.lo.s32 %r1, 0x10, -2;  ->  mad .lo .s32 %r1 , 16 , - 2 ;
//
// A dot and the word behind it are one token, "::" included: modifiers such as .1d or .shared::cta need no other rule.
// Only a dot that follows no word begins a number, such as .5.
// The text may hold any bytes and is not NUL-terminated: every read is behind a check of the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parser.h"

// The byte offset places after the cursor, 0 behind the end.
static char peek(const Lexer *lexer, ptrdiff_t offset) {
  return lexer->end - lexer->cursor > offset ? lexer->cursor[offset] : 0;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// followsym of PTX ISA 4.4.
static bool is_follow(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

// The value of a digit in bases up to 16, 99 when c is none.
static unsigned digit_value(char c) {
  if (is_digit(c)) return (unsigned)(c - '0');
  if (c >= 'a' && c <= 'f') return (unsigned)(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return (unsigned)(c - 'A') + 10;
  return 99;
}

// Skips a comment that starts at the cursor with slash and star; line numbers go on.
static void skip_block_comment(Parser *parser) {
  Lexer *lexer = &parser->lexer;
  int line = lexer->line;
  lexer->cursor += 2;
  while (!(peek(lexer, 0) == '*' && peek(lexer, 1) == '/')) {
    if (lexer->cursor == lexer->end) parser_fail(parser, line, "comment is not closed");
    if (*lexer->cursor++ == '\n') lexer->line++;
  }
  lexer->cursor += 2;
}

static void skip_line_comment(Lexer *lexer) {
  static const char begin[] = "// begin inline asm", end[] = "// end inline asm";
  size_t left = (size_t)(lexer->end - lexer->cursor);
  bool begins = left >= sizeof begin - 1 && !memcmp(lexer->cursor, begin, sizeof begin - 1);
  if (begins || (left >= sizeof end - 1 && !memcmp(lexer->cursor, end, sizeof end - 1))) lexer->in_asm = begins;
  while (lexer->cursor < lexer->end && *lexer->cursor != '\n') lexer->cursor++;
}

static void skip_space_and_comments(Parser *parser) {
  Lexer *lexer = &parser->lexer;
  while (lexer->cursor < lexer->end) {
    char c = *lexer->cursor;
    if (c == '\n') {
      lexer->line++;
      lexer->cursor++;
    } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
      lexer->cursor++;
    } else if (c == '/' && peek(lexer, 1) == '/') {
      skip_line_comment(lexer);
    } else if (c == '/' && peek(lexer, 1) == '*') {
      skip_block_comment(parser);
    } else {
      return;
    }
  }
}

static void skip_string(Parser *parser) {
  Lexer *lexer = &parser->lexer;
  int line = lexer->line;
  for (lexer->cursor++; peek(lexer, 0) != '"'; lexer->cursor++) {
    if (peek(lexer, 0) == '\\' && (peek(lexer, 1) == '"' || peek(lexer, 1) == '\\')) lexer->cursor++;
    if (peek(lexer, 0) == 0 || peek(lexer, 0) == '\n') parser_fail(parser, line, "string is not closed");
  }
  lexer->cursor++;
}

// Skips characters that mean nothing in a body, in blocks: the compiler makes wide instructions of a block.
static void skip_plain(Lexer *lexer) {
  enum { BLOCK = 64 };
  for (; lexer->end - lexer->cursor >= BLOCK; lexer->cursor += BLOCK) {
    unsigned char special = 0, lines = 0;
    for (int i = 0; i < BLOCK; i++) {
      char c = lexer->cursor[i];
      special |= (c == '{') | (c == '}') | (c == '"') | (c == '/');
      lines = (unsigned char)(lines + (c == '\n'));
    }
    if (special) return;
    lexer->line += lines;
  }
}

void lex_skip_body(Parser *parser) {
  Lexer *lexer = &parser->lexer;
  int line = lexer->line;
  for (int depth = 1; depth > 0;) {
    if (lexer->cursor[-1] == '\n') skip_plain(lexer);
    if (lexer->cursor == lexer->end) parser_fail(parser, line, "the function's '{' is not closed");
    char c = *lexer->cursor;
    bool comment = c == '/' && (peek(lexer, 1) == '/' || peek(lexer, 1) == '*');
    if (c == '"') skip_string(parser);
    if (comment) skip_space_and_comments(parser);
    if (c == '"' || comment) continue;
    depth += (c == '{') - (c == '}');
    lexer->line += c == '\n';
    lexer->cursor++;
  }
}

// ---- numbers, PTX ISA 4.5 ----

// Digits of one base at the cursor; at least one.
static uint64_t lex_digits(Parser *parser, unsigned base) {
  Lexer *lexer = &parser->lexer;
  uint64_t value = 0;
  if (digit_value(peek(lexer, 0)) >= base) parser_fail(parser, lexer->line, "number without a digit of base %u", base);
  for (unsigned digit; (digit = digit_value(peek(lexer, 0))) < base; lexer->cursor++) {
    if (value > (UINT64_MAX - digit) / base) parser_fail(parser, lexer->line, "integer does not fit 64 bits");
    value = value * base + digit;
  }
  return value;
}

// 0f and 8 hexadecimal digits, or 0d and 16: the bits of a float or double.
static void lex_float_bits(Parser *parser, Token *token) {
  Lexer *lexer = &parser->lexer;
  token->kind = TOKEN_FLOAT;
  token->is_f32 = peek(lexer, 1) == 'f' || peek(lexer, 1) == 'F';
  int digits = token->is_f32 ? 8 : 16;
  lexer->cursor += 2;
  for (int i = 0; i < digits; i++, lexer->cursor++) {
    unsigned digit = digit_value(peek(lexer, 0));
    if (digit > 15) parser_fail(parser, token->line, "0%c needs %d hexadecimal digits", token->text[1], digits);
    token->value = token->value << 4 | digit;
  }
}

// The length of a decimal number at the cursor; *is_float when it has a point or an exponent.
static size_t scan_decimal(const Lexer *lexer, bool *is_float) {
  ptrdiff_t i = 0;
  *is_float = false;
  while (is_digit(peek(lexer, i))) i++;
  if (peek(lexer, i) == '.') {
    *is_float = true;
    for (i++; is_digit(peek(lexer, i));) i++;
  }
  if (peek(lexer, i) == 'e' || peek(lexer, i) == 'E') {
    ptrdiff_t exponent = i + 1;
    if (peek(lexer, exponent) == '+' || peek(lexer, exponent) == '-') exponent++;
    if (is_digit(peek(lexer, exponent))) {
      *is_float = true;
      for (i = exponent; is_digit(peek(lexer, i));) i++;
    }
  }
  return (size_t)i;
}

static void lex_decimal_float(Parser *parser, Token *token, size_t length) {
  char digits[128];
  if (length >= sizeof digits)
    parser_fail(parser, token->line, "number is longer than %zu characters", sizeof digits - 1);
  memcpy(digits, token->text, length);
  digits[length] = 0;
  double number = strtod(digits, NULL);
  token->kind = TOKEN_FLOAT;
  token->value = f64_bits(number);
  parser->lexer.cursor += length;
}

static void lex_integer(Parser *parser, Token *token) {
  Lexer *lexer = &parser->lexer;
  char second = peek(lexer, 1);
  unsigned base = 10;
  if (peek(lexer, 0) == '0') {
    if (second == 'x' || second == 'X') base = 16;
    if (second == 'b' || second == 'B') base = 2;
    if (is_digit(second)) base = 8;
    if (base == 16 || base == 2) lexer->cursor += 2;
  }
  token->kind = TOKEN_INTEGER;
  token->value = lex_digits(parser, base);
  token->is_unsigned = token->value > INT64_MAX;
  if (peek(lexer, 0) == 'U') {
    token->is_unsigned = true;
    lexer->cursor++;
  }
}

static void lex_number(Parser *parser, Token *token) {
  Lexer *lexer = &parser->lexer;
  char second = peek(lexer, 1);
  bool is_float;
  size_t length = scan_decimal(lexer, &is_float);
  if (*token->text == '0' && second != 0 && strchr("fFdD", second))
    lex_float_bits(parser, token);
  else if (is_float)
    lex_decimal_float(parser, token, length);
  else
    lex_integer(parser, token);
  if (is_follow(peek(lexer, 0))) parser_fail(parser, token->line, "malformed number: '%c' inside it", peek(lexer, 0));
}

// ---- words and strings ----

static void lex_word(Parser *parser, Token *token) {
  Lexer *lexer = &parser->lexer;
  lexer->cursor++;
  while (is_follow(peek(lexer, 0))) lexer->cursor++;
  token->kind = TOKEN_WORD;
  token->name = intern(parser, token->text, (size_t)(lexer->cursor - token->text));
}

// .word or .word::word...
static void lex_dot_word(Parser *parser, Token *token) {
  Lexer *lexer = &parser->lexer;
  lexer->cursor++;
  for (;;) {
    while (is_follow(peek(lexer, 0))) lexer->cursor++;
    if (!(peek(lexer, 0) == ':' && peek(lexer, 1) == ':' && is_follow(peek(lexer, 2)))) break;
    lexer->cursor += 2;
  }
  token->kind = TOKEN_DOT_WORD;
  token->name = intern(parser, token->text + 1, (size_t)(lexer->cursor - token->text - 1));
}

static void lex_string(Parser *parser, Token *token) {
  const char *start = parser->lexer.cursor + 1;
  skip_string(parser);
  token->kind = TOKEN_STRING;
  token->name = intern(parser, start, (size_t)(parser->lexer.cursor - 1 - start));
}

static void lex_punctuation(Parser *parser, Token *token) {
  static const char *const pairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
  Lexer *lexer = &parser->lexer;
  char first = peek(lexer, 0), second = peek(lexer, 1);
  if (first == 0 || !strchr(";,:(){}[]<>@!|=+-*/%&^~?.", first))
    parser_fail(parser, token->line, "unexpected character 0x%02x", (unsigned)(unsigned char)first);
  token->kind = TOKEN_PUNCTUATION;
  token->punctuation[0] = first;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (pairs[i][0] == first && pairs[i][1] == second) token->punctuation[1] = second;
  lexer->cursor += strlen(token->punctuation);
}

Token lex(Parser *parser) {
  skip_space_and_comments(parser);
  Lexer *lexer = &parser->lexer;
  Token token = {.kind = TOKEN_END, .line = lexer->line, .text = lexer->cursor};
  if (lexer->cursor == lexer->end) return token;
  char c = *lexer->cursor;
  bool is_fraction =
      c == '.' && is_digit(peek(lexer, 1)) && (lexer->cursor == lexer->begin || !is_follow(lexer->cursor[-1]));
  if (is_letter(c) || c == '_' || ((c == '%' || c == '$') && is_follow(peek(lexer, 1))))
    lex_word(parser, &token);
  else if (is_digit(c) || is_fraction)
    lex_number(parser, &token);
  else if (c == '.' && is_follow(peek(lexer, 1)))
    lex_dot_word(parser, &token);
  else if (c == '"')
    lex_string(parser, &token);
  else
    lex_punctuation(parser, &token);
  token.length = (int)(lexer->cursor - token.text);
  return token;
}

// ---- walking over tokens ----

_Noreturn void parser_expected(Parser *parser, const char *what) {
  const Token *token = &parser->token;
  if (token->kind == TOKEN_END) parser_fail(parser, token->line, "expected %s but the text ends", what);
  parser_fail(parser, token->line, "expected %s but found '%.*s'", what, token->length < 60 ? token->length : 60,
              token->text);
}

// ---- tokens ----

void next_token(Parser *parser) { parser->token = lex(parser); }

bool is_punctuation(const Parser *parser, const char *text) {
  const char *is = parser->token.punctuation;
  return is[0] == text[0] && is[1] == text[1];  // at most two characters; empty for other tokens
}

bool is_directive(const Parser *parser, const char *name) {
  return parser->token.kind == TOKEN_DOT_WORD && strcmp(parser->token.name, name) == 0;
}

bool accept_token(Parser *parser, const char *punctuation) {
  if (!is_punctuation(parser, punctuation)) return false;
  next_token(parser);
  return true;
}

bool accept_directive(Parser *parser, const char *name) {
  if (!is_directive(parser, name)) return false;
  next_token(parser);
  return true;
}

void expect(Parser *parser, const char *punctuation) {
  if (accept_token(parser, punctuation)) return;
  char quoted[8];
  snprintf(quoted, sizeof quoted, "'%s'", punctuation);
  parser_expected(parser, quoted);
}

const char *expect_word(Parser *parser, const char *what) {
  if (parser->token.kind != TOKEN_WORD) parser_expected(parser, what);
  const char *name = parser->token.name;
  next_token(parser);
  return name;
}

uint64_t expect_integer(Parser *parser, const char *what, uint64_t limit) {
  if (parser->token.kind != TOKEN_INTEGER) parser_expected(parser, what);
  uint64_t value = parser->token.value;
  if (value > limit)
    parser_fail(parser, parser->token.line, "%s is %llu, the largest allowed is %llu", what, (unsigned long long)value,
                (unsigned long long)limit);
  next_token(parser);
  return value;
}

void skip_group(Parser *parser, const char *open, const char *close) {
  int line = parser->token.line;
  expect(parser, open);
  for (int64_t depth = 1; depth > 0; next_token(parser)) {
    if (parser->token.kind == TOKEN_END) parser_fail(parser, line, "'%s' is not closed", open);
    if (is_punctuation(parser, open)) depth++;
    if (is_punctuation(parser, close)) depth--;
  }
}

void enter_nesting(Parser *parser) {
  if (++parser->nesting > MAX_NESTING) parser_fail(parser, parser->token.line, "nested deeper than %d", MAX_NESTING);
}

void leave_nesting(Parser *parser) { parser->nesting--; }
