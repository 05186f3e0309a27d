// The first error ends the parse: parser_fail jumps back to ptx_parse.
#include <stdarg.h>
#include <stdio.h>

#include "parser.h"

_Noreturn void parser_fail(Parser *parser, int line, const char *format, ...) {
  parser->error->line = line;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(parser->error->message, sizeof parser->error->message, format, arguments);
  va_end(arguments);
  longjmp(parser->failed, 1);
}
