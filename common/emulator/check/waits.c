// The text of a deadlock's report: see waits.h.
#include "waits.h"

#include <stdarg.h>
#include <stdio.h>

#include "hazard.h"

// The parts of one entry.
typedef struct Entry {
  char text[400];
  size_t used;
} Entry;

static void put(Entry *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(Entry *entry, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = sizeof entry->text - entry->used;
  size_t length = (size_t)vsnprintf(entry->text + entry->used, left, format, arguments);
  entry->used += length < left ? length : left - 1;
  va_end(arguments);
}

// "warp 3", "warps 4 to 7", "warps 0, 2 to 5"
static void put_warps(Entry *entry, uint32_t warps) {
  put(entry, "warp%s ", warps & (warps - 1) ? "s" : "");
  for (bool more = false; warps; more = true) {
    int first = __builtin_ctz(warps), last = first;
    while (last < LANES - 1 && warps >> (last + 1) & 1) last++;
    put(entry, "%s%d", more ? ", " : "", first);
    if (last > first) put(entry, " to %d", last);
    warps &= last == LANES - 1 ? 0 : ~0u << (last + 1);
  }
}

static void put_line(Entry *entry, const Warp *warp, const Inst *inst) {
  const char *file;
  int line;
  bool known = instruction_line(warp_launch(warp)->program->module, inst->source, &file, &line);
  put(entry, " at %s %d", known ? "line" : "PTX line", known ? line : inst->source->line);
}

// Room that entries leave: for the end of the list and the sentence around it.
enum { RESERVED = 200 };

static void append(WaitList *list, const char *text) {
  list->used +=
      (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s", list->used ? "; " : "", text);
}

static void add(WaitList *list, const Entry *entry) {
  if (list->left_out || list->used + entry->used + RESERVED > sizeof list->text)
    list->left_out++;
  else
    append(list, entry->text);
}

static Entry begin(const Block *block, uint32_t warps) {
  Entry entry = {.used = 0};
  if (block->cluster->block_count > 1) put(&entry, "block %d of the cluster: ", block->rank);
  put_warps(&entry, warps);
  return entry;
}

void waits_add(WaitList *list, const Warp *warp, uint32_t warps, Mask lanes, const Inst *inst, const char *format,
               ...) {
  Entry entry = begin(warp->block, warps);
  if (lanes != warp->live) put(&entry, " lanes 0x%08x", lanes);
  put_line(&entry, warp, inst);
  char why[240];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  put(&entry, "%s", why);
  add(list, &entry);
}

// Threads that have exited come nowhere: often they are what the others wait for.
static void add_exits(WaitList *list, const Block *block) {
  uint32_t exited = 0;
  for (int w = 0; w < block->warp_count; w++) exited |= (uint32_t)!block->warps[w].live << w;
  if (!exited) return;
  Entry entry = begin(block, exited);
  put(&entry, exited & (exited - 1) ? " have exited" : " has exited");
  add(list, &entry);
}

const char *waits_text(WaitList *list, const Cluster *cluster) {
  for (int b = 0; b < cluster->block_count; b++) add_exits(list, &cluster->blocks[b]);
  char more[40];
  snprintf(more, sizeof more, "and %d more place%s", list->left_out, list->left_out == 1 ? "" : "s");
  if (list->left_out) append(list, more);
  return list->text;
}
