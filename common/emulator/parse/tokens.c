// What all parser files use to walk over tokens.
#include <stdio.h>
#include <string.h>

#include "parser.h"

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
