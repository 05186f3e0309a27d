// Short numbers that tell long results apart: FNV-1a (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv), which
// must not be used where someone may choose the bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FNV1A_START 0xcbf29ce484222325ull
#define FNV1A_32_START 2166136261u

// The hash of the bytes so far and these. Begin with FNV1A_START.
static inline uint64_t fnv1a(uint64_t hash, const void *data, size_t size) {
  const uint8_t *bytes = (const uint8_t *)data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

// The same with 32 bits. Begin with FNV1A_32_START.
static inline uint32_t fnv1a_32(uint32_t hash, const void *data, size_t size) {
  const uint8_t *bytes = (const uint8_t *)data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}
