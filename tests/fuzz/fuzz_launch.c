// A libFuzzer target for the execution of kernels: any PTX is loaded or refused, and each of its entries runs to its
// end, to a hazard that stops it or to its step limit, with all its memory given back. `make test-deep` runs a bounded
// round of it; for more, see common/build/fuzz.sh.
//
// launch_text.h says how they are launched. A mutator of its own changes lines and words of the text, so that what
// comes out is still PTX; libFuzzer's changes of bytes come between.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch_text.h"

// ---- the target ----

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

// Kernels print: not here.
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  return freopen("/dev/null", "w", stdout) ? 0 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  launch_text((const char *)data, size);
  return 0;
}

// ---- the mutator ----

typedef struct Span {
  size_t start, end;  // bytes of the text; a line's include its newline
} Span;

// A random line of the text.
static Span some_line(const uint8_t *text, size_t size) {
  Span line = {(size_t)rand() % size, 0};
  line.end = line.start;
  while (line.start > 0 && text[line.start - 1] != '\n') line.start--;
  while (line.end < size && text[line.end] != '\n') line.end++;
  if (line.end < size) line.end++;
  return line;
}

static bool in_word(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
         byte == '$';
}

// A random word of the text with the sign before it: ".modifier", "%register", "-12", "opcode". Empty when there is
// none.
static Span some_word(const uint8_t *text, size_t size) {
  Span word = {(size_t)rand() % size, 0};
  while (word.start < size && !in_word(text[word.start])) word.start++;
  while (word.start > 0 && in_word(text[word.start - 1])) word.start--;
  word.end = word.start;
  while (word.end < size && in_word(text[word.end])) word.end++;
  if (word.start > 0 && word.end > word.start && strchr(".%-", text[word.start - 1])) word.start--;
  return word;
}

// Puts `length` bytes in the place of a span. Returns the new size; the old one when there is no room.
static size_t replace(uint8_t *text, size_t size, size_t max_size, Span span, const uint8_t *bytes, size_t length) {
  size_t rest = size - span.end;
  if (span.start + length + rest > max_size) return size;
  memmove(text + span.start + length, text + span.end, rest);
  memcpy(text + span.start, bytes, length);
  return span.start + length + rest;
}

// Replaces a word by another of its kind: one that begins with the same sign, a digit or a letter.
static size_t change_word(uint8_t *text, size_t size, size_t max_size) {
  enum { TRIES = 50, LONGEST = 64 };
  static const char *const numbers[] = {
      "0", "1", "-1", "16", "31", "32", "255", "4096", "0x7fffffff", "0xffffffff", "0xfffffffffffffff0"};
  Span word = some_word(text, size);
  uint8_t copy[LONGEST];
  if (word.end == word.start) return size;
  bool number = text[word.start] == '-' || (text[word.start] >= '0' && text[word.start] <= '9');
  if (number && rand() % 2) {
    const char *other = numbers[(size_t)rand() % (sizeof numbers / sizeof *numbers)];
    return replace(text, size, max_size, word, (const uint8_t *)other, strlen(other));
  }
  for (int i = 0; i < TRIES; i++) {
    Span other = some_word(text, size);
    bool alike = in_word(text[word.start]) ? in_word(text[other.start]) : text[other.start] == text[word.start];
    if (!alike || other.end == other.start || other.end - other.start > LONGEST) continue;
    memcpy(copy, text + other.start, other.end - other.start);
    return replace(text, size, max_size, word, copy, other.end - other.start);
  }
  return size;
}

// Copies a line to another place, or in the place of another line, or leaves it out.
static size_t move_line(uint8_t *text, size_t size, size_t max_size) {
  enum { LONGEST = 512 };
  uint8_t copy[LONGEST];
  Span line = some_line(text, size), other = some_line(text, size);
  size_t length = line.end - line.start;
  if (length > LONGEST) return size;
  memcpy(copy, text + line.start, length);
  switch (rand() % 3) {
  case 0: return replace(text, size, max_size, line, copy, 0);
  case 1: return replace(text, size, max_size, other, copy, length);
  default: return replace(text, size, max_size, (Span){other.start, other.start}, copy, length);
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  srand(seed);
  if (size < 2 || rand() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (int changes = 1 + rand() % 4; changes > 0 && size > 1; changes--)
    size = rand() % 3 ? change_word(data, size, max_size) : move_line(data, size, max_size);
  return size;
}
