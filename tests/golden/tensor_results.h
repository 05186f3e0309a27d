// What a tensor copy did, as the text after " -> " in tensor_copies.txt:
//
//   refused 1                 the encoder refused the map, with this CUresult
//   stopped 715               the launch ended with this error: 715 is an illegal instruction
//   hung                      the kernel did not end, or a load's mbarrier did not complete
//   512 16384+8 0*4 =4 9      of a load: the bytes that the mbarrier counted, and the tile after the copy
//   =16384 0+8                of a store: the tensor's memory after the copy
//
// A tile or memory is its 16-bit words in order, in groups. What follows the last group is as it was before the copy.
//
//   7       the word 7              7+8     eight words that count up from 7
//   =8      eight words as before   7*8     eight words 7
//
// If the text would be too long, it ends in "#" and a hash of all bytes, after the first groups.
#pragma once

#include "tensor_cases.h"

typedef enum TensorState { TENSOR_UNTRIED, TENSOR_REFUSED, TENSOR_STOPPED, TENSOR_HUNG, TENSOR_DONE } TensorState;

typedef struct TensorResult {
  TensorState state;
  int error;                     // of the encoder or of the launch
  uint32_t bytes;                // that a load's mbarrier counted
  uint8_t after[TENSOR_MEMORY];  // the side that received the copy
  size_t known;   // of a result that was read: how many bytes of `after` it has; the others if has_hash is
  bool has_hash;  // false, too, because the copy left them as they were
  uint64_t hash;
} TensorResult;

enum { TENSOR_LINE = 1 << 13, TENSOR_GROUPS = 3000 };  // characters of a line, and of its groups

static inline unsigned tensor_at(const uint8_t *bytes, size_t word) {
  return bytes[2 * word] | bytes[2 * word + 1] << 8;
}

// How many words from `word` on go on by steps of `step`, at most to `end`.
static inline size_t tensor_run(const uint8_t *bytes, size_t word, size_t end, unsigned step) {
  size_t count = 1;
  while (word + count < end && tensor_at(bytes, word + count) == ((tensor_at(bytes, word) + count * step) & 0xffff))
    count++;
  return count;
}

static inline size_t tensor_same(const uint8_t *before, const uint8_t *after, size_t word, size_t end) {
  size_t count = 0;
  while (word + count < end && tensor_at(before, word + count) == tensor_at(after, word + count)) count++;
  return count;
}

// Writes the groups of `size` bytes.
static inline void tensor_write_groups(const uint8_t *before, const uint8_t *after, size_t size, char *text) {
  char *start = text;
  size_t words = size / 2;
  *text = 0;
  for (size_t word = 0; word < words;) {
    size_t same = tensor_same(before, after, word, words), count;
    if (word + same == words) return;
    if (text - start > TENSOR_GROUPS) {
      sprintf(text, " #%016llx", (unsigned long long)fnv1a(FNV1A_START, after, size));
      return;
    }
    unsigned first = tensor_at(after, word);
    size_t up = tensor_run(after, word, words, 1), equal = tensor_run(after, word, words, 0);
    if (same)
      text += sprintf(text, " =%zu", count = same);
    else if (up > 1)
      text += sprintf(text, " %u+%zu", first, count = up);
    else if (equal > 1)
      text += sprintf(text, " %u*%zu", first, count = equal);
    else
      text += sprintf(text, " %u", first), count = 1;
    word += count;
  }
}

// Reads groups into result->after, which holds what was before. False when they are none.
static inline bool tensor_read_groups(const char *text, size_t size, TensorResult *result) {
  size_t word = 0;
  result->has_hash = false;
  while (*text == ' ') {
    char *end;
    if (*++text == '#') {
      result->has_hash = true;
      result->hash = strtoull(text + 1, &end, 16);
      text = end;
      break;
    }
    bool same = *text == '=';
    unsigned long first = strtoul(text + same, &end, 10), count = same ? first : 1;
    if (end == text + same) return false;
    char how = same ? 0 : *end;
    if (how == '+' || how == '*') count = strtoul(end + 1, &end, 10);
    if (count == 0 || count > size / 2 - word) return false;
    for (unsigned long i = 0; i < count; i++, word++) {
      unsigned long value = how == '+' ? first + i : first;
      if (same) continue;
      result->after[2 * word] = (uint8_t)value;
      result->after[2 * word + 1] = (uint8_t)(value >> 8);
    }
    text = end;
  }
  result->known = result->has_hash ? 2 * word : size;
  return *text == 0;
}

// The tile or memory before a copy; `in` is overwritten.
static inline void tensor_before(const TensorCase *c, TensorInput *in, uint8_t before[TENSOR_MEMORY]) {
  tensor_prepare(c, before, in);
  if (!c->store) memcpy(before, in->tile, TENSOR_TILE);
}

// Writes what stands after " ->": nothing of a case that was not tried.
static inline void tensor_write_result(const TensorCase *c, const TensorResult *result, char text[TENSOR_LINE]) {
  static TensorInput in;
  static uint8_t before[TENSOR_MEMORY];
  switch (result->state) {
  case TENSOR_REFUSED: sprintf(text, " refused %d", result->error); return;
  case TENSOR_STOPPED: sprintf(text, " stopped %d", result->error); return;
  case TENSOR_HUNG: sprintf(text, " hung"); return;
  case TENSOR_DONE: break;
  default: *text = 0; return;
  }
  if (!c->store) text += sprintf(text, " %u", result->bytes);
  tensor_before(c, &in, before);
  tensor_write_groups(before, result->after, tensor_received(c), text);
  if (c->store && !*text) strcpy(text, " =1");
}

// Reads a line's result. False when the line has none, or it is no result.
static inline bool tensor_read_result(const TensorCase *c, const char *line, TensorResult *result) {
  static TensorInput in;
  const char *text = strstr(line, " ->");
  if (!text) return false;
  text += 3;
  memset(result, 0, sizeof *result);
  if (sscanf(text, " refused %d", &result->error) == 1) return result->state = TENSOR_REFUSED, true;
  if (sscanf(text, " stopped %d", &result->error) == 1) return result->state = TENSOR_STOPPED, true;
  if (!strcmp(text, " hung")) return result->state = TENSOR_HUNG, true;
  if (!c->store) result->bytes = (uint32_t)strtoul(text, (char **)&text, 10);
  tensor_before(c, &in, result->after);
  if (!tensor_read_groups(text, tensor_received(c), result)) return false;
  result->state = TENSOR_DONE;
  return true;
}
