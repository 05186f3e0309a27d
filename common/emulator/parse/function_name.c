// The name of a function as its source has it, of the name that the C++ compiler gave it: without types and template
// arguments, "cute::copy" for _ZN4cute4copyIfEEvT_. The grammar is that of the Itanium C++ ABI, 5.1.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "parser.h"

typedef struct Names {
  const char *at;  // what is left of the mangled name
  char text[240];
  size_t used;
  const char *last;  // the name added last, for a constructor's and a destructor's
  size_t last_length;
} Names;

static void add_name(Names *names, const char *text, size_t length) {
  size_t separator = names->used ? 2 : 0;
  if (names->used + separator + length >= sizeof names->text) return;
  memcpy(names->text + names->used, "::", separator);
  memcpy(names->text + names->used + separator, text, length);
  names->used += separator + length;
  names->text[names->used] = 0;
}

static size_t take_number(Names *names) {
  size_t number = 0;
  while (isdigit((unsigned char)*names->at) && number < 1 << 20) number = 10 * number + (size_t)(*names->at++ - '0');
  return number;
}

// "4cute". A name of the compiler's own, for what is private to a file, is left out.
static void take_source_name(Names *names) {
  size_t length = take_number(names);
  const char *text = names->at;
  length = strnlen(text, length);
  names->at += length;
  if (!strncmp(text, "_INTERNAL_", 10) || !strncmp(text, "_GLOBAL__", 9)) return;
  add_name(names, text, length);
  names->last = text;
  names->last_length = length;
}

// S_, S12_, T_, T0_, A8_: up to the underscore. St, Sa, ... stand for names in std.
static void skip_reference(Names *names) {
  if (*names->at++ == 'S' && islower((unsigned char)*names->at)) {
    names->at++;
    return;
  }
  while (isdigit((unsigned char)*names->at) || isupper((unsigned char)*names->at)) names->at++;
  if (*names->at == '_') names->at++;
}

// A literal of a builtin type, "Li64E"; of another type the type is left, and the value looks like a name that is cut.
static void skip_literal(Names *names) {
  names->at++;
  if (!islower((unsigned char)*names->at)) return;
  while (*names->at && *names->at != 'E') names->at++;
}

// Skips to the E that ends what has begun, and over it.
static void skip_to_end(Names *names) {
  for (int depth = 1; *names->at && depth > 0;) {
    char c = *names->at;
    if (isdigit((unsigned char)c)) {
      size_t length = take_number(names);
      names->at += strnlen(names->at, length);
    } else if (c == 'S' || c == 'T' || c == 'A') {
      skip_reference(names);
    } else {
      depth += c == 'N' || c == 'I' || c == 'X' || c == 'J' || c == 'F' || c == 'L' || !strncmp(names->at, "Ul", 2);
      depth -= c == 'E';
      if (c == 'L')
        skip_literal(names);
      else
        names->at++;
    }
  }
}

static void take_operator(Names *names) {
  static const char *const operators[][2] = {
      {"cl", "operator()"}, {"ix", "operator[]"}, {"aS", "operator="},  {"pl", "operator+"},  {"mi", "operator-"},
      {"ml", "operator*"},  {"pL", "operator+="}, {"eq", "operator=="}, {"lt", "operator<"},  {"de", "operator*"},
      {"pt", "operator->"}, {"dv", "operator/"},  {"pp", "operator++"}, {"ne", "operator!="}, {"gt", "operator>"}};
  const char *name = "operator";
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (!strncmp(names->at, operators[i][0], 2)) name = operators[i][1];
  add_name(names, name, strlen(name));
  names->at += strnlen(names->at, 2);
}

// A constructor has the name of its class, a destructor a tilde before it.
static void add_class_name(Names *names, const char *tilde) {
  char name[sizeof names->text];
  snprintf(name, sizeof name, "%s%.*s", tilde, (int)names->last_length, names->last);
  add_name(names, name, strlen(name));
}

// One part of a name. False where no name goes on.
static bool take_part(Names *names) {
  char c = *names->at;
  if (isdigit((unsigned char)c)) {
    take_source_name(names);
  } else if (c == 'I') {
    names->at++;
    skip_to_end(names);
  } else if (!strncmp(names->at, "St", 2)) {
    add_name(names, "std", 3);
    names->at += 2;
  } else if (c == 'S' || c == 'T') {
    skip_reference(names);
  } else if (!strncmp(names->at, "Ul", 2)) {
    add_name(names, "lambda", 6);
    names->at += 2;
    skip_to_end(names);
    take_number(names);
    names->at += *names->at == '_';
  } else if ((c == 'C' || c == 'D') && isdigit((unsigned char)names->at[1])) {
    if (names->last) add_class_name(names, c == 'D' ? "~" : "");
    names->at += 2;
  } else if (c == 'L') {
    names->at++;
  } else if (islower((unsigned char)c)) {
    take_operator(names);
  } else {
    return false;
  }
  return true;
}

// N ... E, or one name; and Z function E name, for what is inside of a function.
static void take_name(Names *names) {
  if (*names->at == 'Z') {
    Names rest = {.at = ++names->at};
    if (*names->at == 'Z') return;  // a function in a function in a function
    take_name(names);
    skip_to_end(&rest);
    names->at = rest.at;
    if (*names->at == 'Z') return;
  }
  bool nested = *names->at == 'N';
  if (!nested) {
    bool in_std = !strncmp(names->at, "St", 2), internal = *names->at == 'L';
    for (int parts = 1 + in_std + internal; parts > 0; parts--)
      if (!take_part(names)) return;
    return;
  }
  for (names->at++; *names->at && strchr("rVKRO", *names->at);) names->at++;
  while (*names->at && *names->at != 'E' && take_part(names)) continue;
}

const char *readable_name(Parser *parser, const char *mangled) {
  Names names = {.at = mangled + 2};
  if (!strncmp(mangled, "_Z", 2)) take_name(&names);
  if (!names.used) return intern(parser, mangled, strlen(mangled));
  return intern(parser, names.text, names.used);
}
