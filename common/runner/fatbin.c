// Finds PTX in fatbins: see fatbin.h.
//
// A fatbin is a header of 16 bytes, followed by entries. An entry is a header, which contains its own size, and a
// payload: PTX text or a cubin, possibly compressed. The nvcc of CUDA 12 compresses with LZ4, that of CUDA 13 with
// zstd. The layout is not documented; these are the fields that programs built with CUDA 11 to 13 have in common.
#include "fatbin.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRAPPER_OF_PARTS = 2 };  // a version
enum { WRAPPER_MAGIC = 0x466243b1, FATBIN_MAGIC = 0xba55ed50, KIND_PTX = 1, NEWEST = 90 };
enum { COMPRESSED_LZ4 = 0x2000, COMPRESSED_ZSTD = 0x8000 };

typedef struct Wrapper {
  uint32_t magic, version;
  const void *fatbin;
  const void *parts;  // of a program built with -rdc=true: fatbins that are not linked, a list
} Wrapper;

typedef struct Header {
  uint32_t magic;
  uint16_t version, header_size;
  uint64_t size;  // of all entries
} Header;

typedef struct Entry {
  uint16_t kind, version;
  uint32_t header_size;
  uint64_t size;  // of the payload with what pads it
  uint32_t compressed_size, options_offset;
  uint16_t minor, major;
  uint32_t architecture;
  uint32_t name_offset, name_length;
  uint64_t flags, reserved;
  uint64_t uncompressed_size;
} Entry;

static uint32_t first_word(const void *image) {
  uint32_t word;
  memcpy(&word, image, sizeof word);
  return word;
}

bool fatbin_is(const void *image) {
  return first_word(image) == (uint32_t)WRAPPER_MAGIC || first_word(image) == (uint32_t)FATBIN_MAGIC;
}

bool fatbin_is_elf(const void *image) { return !memcmp(image, "\177ELF", 4); }

// ---- decompression ----

// Reads a length of LZ4: four bits. If they are 15, the following bytes are added, up to the first that is not 255.
static size_t lz4_length(const uint8_t **in, const uint8_t *end, unsigned nibble) {
  size_t length = nibble;
  uint8_t more = 255;
  while ((nibble == 15) && more == 255 && *in < end) length += more = *(*in)++;
  return length;
}

// Decompresses an LZ4 block: literals, then a copy of earlier output, and so on. Returns whether all of it fits.
static bool lz4(uint8_t *out, size_t size, const uint8_t *in, size_t in_size) {
  const uint8_t *end = in + in_size;
  size_t done = 0;
  while (in < end) {
    unsigned token = *in++;
    size_t literals = lz4_length(&in, end, token >> 4);
    if (literals > (size_t)(end - in) || literals > size - done) return false;
    memcpy(out + done, in, literals);
    done += literals;
    in += literals;
    if (in == end) break;  // the last sequence has no copy
    if (end - in < 2) return false;
    size_t distance = in[0] | (size_t)in[1] << 8;
    in += 2;
    size_t length = lz4_length(&in, end, token & 15) + 4;
    if (distance == 0 || distance > done || length > size - done) return false;
    for (; length > 0; length--, done++) out[done] = out[done - distance];
  }
  return done == size;
}

// Decompresses with the system's libzstd, which Debian's package manager itself needs.
static bool zstd(uint8_t *out, size_t size, const uint8_t *in, size_t in_size, const char **why) {
  typedef size_t Decompress(void *, size_t, const void *, size_t);
  void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  Decompress *decompress = library ? (Decompress *)dlsym(library, "ZSTD_decompress") : NULL;
  if (!decompress) *why = "the program's PTX is compressed by zstd, and libzstd.so.1 is missing (Debian: libzstd1)";
  return decompress && decompress(out, size, in, in_size) == size;
}

static char *payload(const Entry *entry, const char **why) {
  const uint8_t *bytes = (const uint8_t *)entry + entry->header_size;
  bool is_compressed = entry->flags & (COMPRESSED_LZ4 | COMPRESSED_ZSTD);
  size_t size = is_compressed ? entry->uncompressed_size : entry->size;
  char *text = malloc(size + 1);
  *why = "the program's PTX cannot be decompressed";
  if (!text) return NULL;
  bool right = true;
  if (entry->flags & COMPRESSED_ZSTD)
    right = zstd((uint8_t *)text, size, bytes, entry->compressed_size, why);
  else if (entry->flags & COMPRESSED_LZ4)
    right = lz4((uint8_t *)text, size, bytes, entry->compressed_size);
  else
    memcpy(text, bytes, size);
  text[size] = 0;
  if (right) return text;
  free(text);
  return NULL;
}

// ---- entries ----

// "a" of ".target sm_90a": code for one architecture alone.
static bool is_specific(const char *ptx) {
  const char *target = strstr(ptx, ".target sm_");
  if (!target) return false;
  target += strlen(".target sm_");
  target += strspn(target, "0123456789");
  return *target == 'a' || *target == 'f';
}

// Whether one entry's text is for a newer architecture than another's; code for sm_90a is newer than that for sm_90.
static bool is_better(const Entry *entry, const char *text, const Entry *best, const char *best_text) {
  if (!best) return true;
  if (entry->architecture != best->architecture) return entry->architecture > best->architecture;
  return is_specific(text) && !is_specific(best_text);
}

static bool usable(const Entry *entry) { return entry->kind == KIND_PTX && entry->architecture <= NEWEST; }

// The entries of a fatbin, or of the one behind a wrapper, and their end. NULL when it is neither.
static const Entry *first_entry(const void *image, const uint8_t **end) {
  const Wrapper *wrapper = image;
  const Header *header = first_word(image) == (uint32_t)WRAPPER_MAGIC ? wrapper->fatbin : image;
  if (header->magic != (uint32_t)FATBIN_MAGIC) return NULL;
  const uint8_t *entries = (const uint8_t *)header + header->header_size;
  *end = entries + header->size;
  return (const Entry *)(const void *)entries;
}

static const Entry *next_entry(const Entry *entry, const uint8_t *end) {
  const uint8_t *next = (const uint8_t *)entry + entry->header_size + entry->size;
  return end - next >= (ptrdiff_t)sizeof(Entry) ? (const Entry *)(const void *)next : NULL;
}

size_t fatbin_next(const void *bytes, size_t size, size_t from) {
  for (size_t at = from; at + sizeof(Header) <= size; at++) {
    Header header;
    memcpy(&header, (const uint8_t *)bytes + at, sizeof header);
    if (header.magic == (uint32_t)FATBIN_MAGIC && header.header_size == sizeof header &&
        header.size <= size - at - sizeof header)
      return at;
  }
  return size;
}

bool fatbin_has_ptx(const void *image) {
  const uint8_t *end = NULL;
  const Entry *entry = first_entry(image, &end);
  for (; entry && (const uint8_t *)entry < end; entry = next_entry(entry, end))
    if (usable(entry)) return true;
  return false;
}

const void *const *fatbin_parts(const void *image) {
  const Wrapper *wrapper = image;
  return first_word(image) == (uint32_t)WRAPPER_MAGIC && wrapper->version == WRAPPER_OF_PARTS ? wrapper->parts : NULL;
}

char *fatbin_ptx(const void *image, const char **why) {
  *why = "there is no PTX in the program that a Hopper GPU runs";
  const uint8_t *end = NULL;
  const Entry *best = NULL, *entry = first_entry(image, &end);
  char *text = NULL;
  for (; entry && (const uint8_t *)entry < end; entry = next_entry(entry, end)) {
    if (!usable(entry)) continue;
    char *candidate = payload(entry, why);
    if (candidate && is_better(entry, candidate, best, text)) {
      free(text);
      text = candidate;
      best = entry;
    } else {
      free(candidate);
    }
  }
  return text;
}
