// The front end's memory: an arena, and the lists, tables and names that live in it. Freed all at once, so that an
// error anywhere in the parse leaks nothing.
#include "ptx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../host/fnv.h"
#include "parser.h"

enum { CHUNK_SIZE = 64 << 10, ALIGNMENT = 16 };

typedef struct Chunk {
  struct Chunk *next;
  size_t used, size;
  _Alignas(ALIGNMENT) char bytes[];
} Chunk;

struct PtxArena {
  Chunk *chunks;  // the newest with room first
};

PtxArena *arena_create(void) { return calloc(1, sizeof(PtxArena)); }

void arena_destroy(PtxArena *arena) {
  if (!arena) return;
  for (Chunk *chunk = arena->chunks; chunk;) {
    Chunk *next = chunk->next;
    free(chunk);
    chunk = next;
  }
  free(arena);
}

// A large request gets a chunk of its own, behind the current one so that this one's room is not lost.
static void *allocate_large(PtxArena *arena, size_t size) {
  Chunk *chunk = calloc(1, sizeof(Chunk) + size);
  if (!chunk) return NULL;
  chunk->used = chunk->size = size;
  if (arena->chunks) {
    chunk->next = arena->chunks->next;
    arena->chunks->next = chunk;
  } else {
    arena->chunks = chunk;
  }
  return chunk->bytes;
}

void *arena_allocate(PtxArena *arena, size_t size) {
  if (size > SIZE_MAX / 2) return NULL;
  size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (size > CHUNK_SIZE / 4) return allocate_large(arena, size);
  Chunk *chunk = arena->chunks;
  if (!chunk || chunk->size - chunk->used < size) {
    chunk = calloc(1, sizeof(Chunk) + CHUNK_SIZE);
    if (!chunk) return NULL;
    chunk->size = CHUNK_SIZE;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
  }
  void *memory = chunk->bytes + chunk->used;
  chunk->used += size;
  return memory;
}

void *parser_allocate(Parser *parser, size_t size) {
  void *memory = arena_allocate(parser->arena, size);
  parser->error->out_of_memory = !memory;
  if (!memory) parser_fail(parser, parser->token.line, "out of memory");
  return memory;
}

void *list_add(Parser *parser, List *list, size_t item_size) {
  if (list->count == list->capacity) {
    int capacity = list->capacity ? 2 * list->capacity : 4;
    char *items = parser_allocate(parser, (size_t)capacity * item_size);
    if (list->count) memcpy(items, list->items, (size_t)list->count * item_size);
    list->items = items;
    list->capacity = capacity;
  }
  void *item = (char *)list->items + (size_t)list->count++ * item_size;
  memset(item, 0, item_size);  // a stack's slot may have been used before
  return item;
}

// ---- tables: open addressing, at most half full ----

struct TableSlot {
  uint64_t key;  // 0: empty
  void *value;
};

static uint64_t mix_key(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdu;
  key ^= key >> 33;
  return key;
}

// The slot that holds key, or the empty one where it would go.
static struct TableSlot *find_slot(const Table *table, uint64_t key) {
  uint64_t index_mask = (uint64_t)table->capacity - 1;
  uint64_t i = mix_key(key) & index_mask;
  while (table->slots[i].key && table->slots[i].key != key) i = (i + 1) & index_mask;
  return &table->slots[i];
}

void *table_get(const Table *table, uint64_t key) { return table->count ? find_slot(table, key)->value : NULL; }

void table_set(Parser *parser, Table *table, uint64_t key, void *value) {
  if (2 * table->count >= table->capacity) {
    Table old = *table;
    table->capacity = old.capacity ? 2 * old.capacity : 8;
    table->slots = parser_allocate(parser, (size_t)table->capacity * sizeof(struct TableSlot));
    for (int i = 0; i < old.capacity; i++)
      if (old.slots[i].key) *find_slot(table, old.slots[i].key) = old.slots[i];
  }
  struct TableSlot *slot = find_slot(table, key);
  if (!slot->key) table->count++;
  slot->key = key;
  slot->value = value;
}

// ---- interned names ----

struct InternSlot {
  const char *name;  // NULL: empty
  size_t length;
  uint64_t hash;
};

static uint64_t hash_text(const char *text, size_t length) {
  return mix_key(fnv1a(FNV1A_START, text, length));
}

static void grow_interned(Parser *parser) {
  struct InternSlot *old = parser->interned;
  int old_capacity = parser->interned_capacity;
  int capacity = old_capacity ? 2 * old_capacity : 256;
  struct InternSlot *slots = parser_allocate(parser, (size_t)capacity * sizeof *slots);
  for (int i = 0; i < old_capacity; i++) {
    if (!old[i].name) continue;
    uint64_t place = old[i].hash & ((uint64_t)capacity - 1);
    while (slots[place].name) place = (place + 1) & ((uint64_t)capacity - 1);
    slots[place] = old[i];
  }
  parser->interned = slots;
  parser->interned_capacity = capacity;
}

const char *intern(Parser *parser, const char *text, size_t length) {
  if (2 * parser->interned_count >= parser->interned_capacity) grow_interned(parser);
  uint64_t hash = hash_text(text, length);
  uint64_t place = hash & ((uint64_t)parser->interned_capacity - 1);
  for (struct InternSlot *slot; (slot = &parser->interned[place])->name;) {
    if (slot->hash == hash && slot->length == length && memcmp(slot->name, text, length) == 0) return slot->name;
    place = (place + 1) & ((uint64_t)parser->interned_capacity - 1);
  }
  char *name = parser_allocate(parser, length + 1);
  memcpy(name, text, length);
  parser->interned[place] = (struct InternSlot){name, length, hash};
  parser->interned_count++;
  return name;
}

// ---- types ----

// clang-format off
static const struct {
  const char *name;
  size_t size;
} ptx_types[] = {
    [PTX_NO_TYPE] = {"none", 0}, [PTX_PRED] = {"pred", 1},
    [PTX_B8] = {"b8", 1}, [PTX_B16] = {"b16", 2}, [PTX_B32] = {"b32", 4}, [PTX_B64] = {"b64", 8},
    [PTX_B128] = {"b128", 16},
    [PTX_U8] = {"u8", 1}, [PTX_U16] = {"u16", 2}, [PTX_U32] = {"u32", 4}, [PTX_U64] = {"u64", 8},
    [PTX_S8] = {"s8", 1}, [PTX_S16] = {"s16", 2}, [PTX_S32] = {"s32", 4}, [PTX_S64] = {"s64", 8},
    [PTX_F16] = {"f16", 2}, [PTX_F16X2] = {"f16x2", 4}, [PTX_BF16] = {"bf16", 2}, [PTX_BF16X2] = {"bf16x2", 4},
    [PTX_F32] = {"f32", 4}, [PTX_F64] = {"f64", 8},
    [PTX_OTHER_TYPE] = {"other", 0},
};
// clang-format on

// Types that exist only as modifiers: alternate floating-point formats (5.2.3), packed integers (5.2.5), sub-byte and
// single-bit matrix elements (9.7.14).
static const char *const other_types[] = {
    "tf32",   "e4m3",   "e5m2",   "e4m3x2", "e5m2x2",  "e4m3x4", "e5m2x4", "e3m2",  "e2m3", "e2m1",
    "e3m2x2", "e2m3x2", "e2m1x2", "ue8m0",  "ue8m0x2", "ue4m3",  "u16x2",  "s16x2", "u8x4", "s8x4",
    "f32x2",  "b1",     "b4",     "u4",     "s4",      "u2",     "s2",     "b1024",
};

PtxType ptx_type_from_name(const char *name) {
  for (int i = PTX_PRED; i < PTX_OTHER_TYPE; i++)
    if (ptx_types[i].name[0] == name[0] && strcmp(ptx_types[i].name, name) == 0) return (PtxType)i;
  for (size_t i = 0; i < sizeof other_types / sizeof *other_types; i++)
    if (other_types[i][0] == name[0] && strcmp(other_types[i], name) == 0) return PTX_OTHER_TYPE;
  return PTX_NO_TYPE;
}

size_t ptx_type_size(PtxType type) { return ptx_types[type].size; }

const char *ptx_type_name(PtxType type) { return ptx_types[type].name; }

bool ptx_has(const PtxInstruction *instruction, const char *modifier) {
  for (int i = 0; i < instruction->modifier_count; i++)
    if (strcmp(instruction->modifiers[i], modifier) == 0) return true;
  return false;
}

PtxType ptx_instruction_type(const PtxInstruction *instruction) {
  for (int i = instruction->modifier_count; i-- > 0;) {
    PtxType type = ptx_type_from_name(instruction->modifiers[i]);
    if (type != PTX_NO_TYPE) return type;
  }
  return PTX_NO_TYPE;
}

// ---- errors ----

_Noreturn void parser_fail(Parser *parser, int line, const char *format, ...) {
  parser->error->line = line;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(parser->error->message, sizeof parser->error->message, format, arguments);
  va_end(arguments);
  longjmp(parser->failed, 1);
}
