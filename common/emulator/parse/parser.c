// Tokens -> module: the module's own directives. PTX ISA, chapter 5 and 11.
#include "parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- directives of the module ----

// .version 9.0
static void parse_version(Parser *parser) {
  if (!accept_directive(parser, "version")) parser_expected(parser, ".version, with which PTX begins,");
  const Token *token = &parser->token;
  PtxHeader *header = &parser->text->header;
  header->version_line = token->line;
  char text[16] = "";
  int used = 0;
  if (token->kind == TOKEN_FLOAT && token->length < (int)sizeof text) memcpy(text, token->text, (size_t)token->length);
  int fields = sscanf(text, "%2d.%2d%n", &header->version_major, &header->version_minor, &used);
  if (fields != 2 || text[used] != 0) parser_expected(parser, "a version such as 8.0");
  next_token(parser);
}

// .target sm_90a, debug
static void parse_target(Parser *parser) {
  if (!accept_directive(parser, "target")) parser_expected(parser, ".target");
  parser->text->header.target_line = parser->token.line;
  parser->text->header.target = expect_word(parser, "an architecture such as sm_90a");
  while (accept_token(parser, ",")) expect_word(parser, "an option of .target");
}

// .address_size 64
static void parse_address_size(Parser *parser) {
  int line = parser->token.line;
  next_token(parser);
  uint64_t size = expect_integer(parser, "an address size", 64);
  if (size != 64) parser_fail(parser, line, "address size %d; only 64 is supported", (int)size);
}

// "\303": a byte that is not ASCII, in octal digits.
static bool is_escaped_byte(const char *text) {
  return text[0] == '\\' && (text[1] == '2' || text[1] == '3') && text[2] >= '0' && text[2] <= '7' && text[3] >= '0' &&
         text[3] <= '7';
}

// A file's name as it is: nvcc writes \\ and \" for these two, and \303 for a byte that is not ASCII.
static const char *unescape(Parser *parser, const char *text) {
  char *name = parser_allocate(parser, strlen(text) + 1), *to = name;
  while (*text) {
    if (is_escaped_byte(text)) {
      *to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
      text += 4;
      continue;
    }
    text += text[0] == '\\' && (text[1] == '\\' || text[1] == '"');
    *to++ = *text++;
  }
  return intern(parser, name, (size_t)(to - name));
}

// .file 1 "name", timestamp, size
static void parse_file(Parser *parser) {
  int line = parser->token.line;
  next_token(parser);
  int index = (int)expect_integer(parser, "a file number", MAX_FILES - 1);
  if (parser->token.kind != TOKEN_STRING) parser_expected(parser, "a file name in quotes");
  Text *in = parser->text;
  for (; in->file_count <= index; in->file_count++) list_add(parser, &parser->files, sizeof(const char *));
  const char **file = (const char **)parser->files.items + in->first_file + index;
  const char *name = unescape(parser, parser->token.name);
  if (*file && *file != name) parser_fail(parser, line, "file %d has a name already", index);
  *file = name;
  next_token(parser);
  if (!accept_token(parser, ",")) return;
  expect_integer(parser, "a time stamp", UINT64_MAX);
  expect(parser, ",");
  expect_integer(parser, "a file size", UINT64_MAX);
}

// label: .b8 95, 90, 51, 0 ... of .debug_str: names of functions, for .loc. What else it may hold is passed over.
static void parse_strings(Parser *parser) {
  int line = parser->token.line;
  expect(parser, "{");
  while (!is_punctuation(parser, "}")) {
    if (parser->token.kind == TOKEN_END) parser_fail(parser, line, "'{' is not closed");
    const char *word = parser->token.kind == TOKEN_WORD ? parser->token.name : NULL;
    bool bytes = is_directive(parser, "b8");
    next_token(parser);
    if (word && accept_token(parser, ":")) {
      DebugLabel *label = parser_allocate(parser, sizeof *label);
      label->start = parser->strings.count;
      table_set(parser, &parser->text->labels, (uint64_t)(uintptr_t)word, label);
    }
    for (; bytes && parser->token.kind == TOKEN_INTEGER; accept_token(parser, ",")) {
      *(char *)list_add(parser, &parser->strings, 1) = (char)parser->token.value;
      next_token(parser);
    }
  }
  expect(parser, "}");
}

// .section .debug_str { ... }: DWARF, of which the strings alone are read.
static void parse_section(Parser *parser) {
  next_token(parser);
  if (parser->token.kind != TOKEN_DOT_WORD && parser->token.kind != TOKEN_WORD)
    parser_expected(parser, "a section's name");
  bool strings = parser->token.kind == TOKEN_DOT_WORD && !strcmp(parser->token.name, "debug_str");
  next_token(parser);
  if (strings)
    parse_strings(parser);
  else
    skip_group(parser, "{", "}");
}

static void parse_module_statement(Parser *parser) {
  if (is_directive(parser, "file")) return parse_file(parser);
  if (is_directive(parser, "section")) return parse_section(parser);
  if (is_directive(parser, "pragma")) return parse_pragma(parser);
  if (is_directive(parser, "alias")) return parse_alias(parser);
  if (is_directive(parser, "loc")) return parse_location(parser);
  if (is_directive(parser, "address_size")) return parse_address_size(parser);

  Linkage linkage = {0};
  bool linked = accept_linkage(parser, &linkage);
  if (is_directive(parser, "entry") || is_directive(parser, "func")) return parse_function(parser, &linkage);
  if (at_space(parser)) return parse_variables(parser, &linkage);
  parser_expected(parser, linked ? "a variable or a function" : "a directive of the module");
}

// The name of the function at a label of .debug_str; NULL when there is none.
static const char *function_at(Parser *parser, const char *word, uint64_t offset) {
  DebugLabel *label = word ? table_get(&parser->text->labels, (uint64_t)(uintptr_t)word) : NULL;
  if (!label || offset >= (uint64_t)(parser->strings.count - label->start)) return NULL;
  const char *mangled = (const char *)parser->strings.items + label->start;
  if (offset > 0) return readable_name(parser, mangled + offset);
  if (!label->name) label->name = readable_name(parser, mangled);
  return label->name;
}

// Every .loc must name a file that some .file of its text declares, before it or after. Its function's name stands
// behind it, too.
static void resolve_locations(Parser *parser) {
  const PendingLocation *pending = parser->locations.items;
  const char *const *files = parser->files.items;
  for (int i = parser->located; i < parser->locations.count; i++) {
    int file = pending[i].location->file, number = file - parser->text->first_file;
    if (number >= parser->text->file_count || !files[file])
      parser_fail(parser, pending[i].line, "file %d is not declared by a .file", number);
    pending[i].location->function = function_at(parser, pending[i].label, pending[i].offset);
  }
  parser->located = parser->locations.count;
}

static void parse_text(Parser *parser, const PtxText *text) {
  Text *in = parser->text = parser_allocate(parser, sizeof *in);
  in->scope = parser_allocate(parser, sizeof *in->scope);
  in->first_file = parser->files.count;
  *(PtxHeader **)list_add(parser, &parser->headers, sizeof(PtxHeader *)) = &in->header;
  parser->lexer = (Lexer){
      .begin = text->bytes, .cursor = text->bytes, .end = text->bytes + text->length, .line = parser->lexer.line + 1};
  parser->declared_registers = 0;
  next_token(parser);
  parse_version(parser);
  parse_target(parser);
  while (parser->token.kind != TOKEN_END) parse_module_statement(parser);
  *(char *)list_add(parser, &parser->strings, 1) = 0;
  resolve_locations(parser);
}

static void parse_module(Parser *parser, const PtxText *texts, int count) {
  for (int i = 0; i < count; i++) parse_text(parser, &texts[i]);
  link_texts(parser);

  PtxModule *module = parser->module;
  module->headers = (const PtxHeader *const *)parser->headers.items;
  module->header_count = parser->headers.count;
  module->functions = parser->functions.items;
  module->function_count = parser->functions.count;
  module->variables = (const PtxVariable *const *)parser->variables.items;
  module->variable_count = parser->variables.count;
  module->files = (const char **)parser->files.items;
  module->file_count = parser->files.count;
  resolve_module(parser);
}

// ---- the interface ----

// What a parse starts from; NULL when memory is exhausted. All of it lives in the arena.
static Parser *create_parser(PtxError *error) {
  PtxArena *arena = arena_create();
  Parser *parser = arena ? arena_allocate(arena, sizeof *parser) : NULL;
  PtxModule *module = parser ? arena_allocate(arena, sizeof *module) : NULL;
  if (!module) {
    arena_destroy(arena);
    return NULL;
  }
  module->arena = arena;
  module->parser = parser;
  parser->arena = arena;
  parser->error = error;
  parser->module = module;
  return parser;
}

static PtxModule *parse(const PtxText *texts, int count, bool headers_only, PtxError *error) {
  PtxError ignored;
  if (!error) error = &ignored;
  *error = (PtxError){0};
  size_t left = MAX_TEXT;
  for (int i = 0; i < count; i++) {
    if (texts[i].length > left) {
      snprintf(error->message, sizeof error->message, "PTX text of more than %d bytes", MAX_TEXT);
      return NULL;
    }
    left -= texts[i].length;
  }
  Parser *parser = create_parser(error);
  if (!parser) {
    *error = (PtxError){.message = "out of memory", .out_of_memory = true};
    return NULL;
  }
  if (setjmp(parser->failed)) {
    arena_destroy(parser->arena);
    return NULL;
  }
  parser->headers_only = headers_only;
  parse_module(parser, texts, count);
  return parser->module;
}

PtxModule *ptx_link(const PtxText *texts, int count, PtxError *error) { return parse(texts, count, false, error); }

PtxModule *ptx_parse(const char *text, size_t length, PtxError *error) {
  return parse(&(PtxText){length ? text : "", length}, 1, false, error);
}

PtxModule *ptx_parse_headers(const char *text, size_t length, PtxError *error) {
  return parse(&(PtxText){length ? text : "", length}, 1, true, error);
}

bool ptx_parse_body(PtxModule *module, int function, PtxError *error) {
  Parser *parser = module->parser;
  Body *body = ((Body *const *)parser->bodies.items)[function];
  *error = body->malformed;
  if (!body->pending || error->line) return !body->pending;
  parser->error = error;
  if (setjmp(parser->failed)) {
    body->malformed = *error;
    return false;
  }
  parse_pending_body(parser, function);
  resolve_function(parser, function);
  resolve_locations(parser);
  body->pending = false;
  return true;
}

void ptx_free(PtxModule *module) {
  if (module) arena_destroy(module->arena);
}
