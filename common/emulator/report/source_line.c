// Where in the source an instruction stands: see source_line.h.
#include "source_line.h"

#include <stdio.h>
#include <string.h>

#include "../host/host_memory.h"

static bool has_file(const PtxModule *module, const PtxLocation *location) {
  return location && location->file >= 0 && location->file < module->file_count && module->files[location->file];
}

// The length of the path of the folder that has the file's folder; of the file's own folder where that would be the
// root.
static size_t surroundings(const char *file) {
  size_t length = strlen(file), folders = 0;
  while (length > 0 && (file[length - 1] != '/' || ++folders < 2)) length--;
  if (length > 1) return length;
  const char *slash = strrchr(file, '/');
  return slash ? (size_t)(slash + 1 - file) : 0;
}

// Whether a file is the kernel's own: the one where the kernel stands. When that is a header, the kernel has no file of
// its own, and the folder and those beside it count: stages share such headers.
static bool is_own(const char *file, const char *kernel) {
  size_t length = strlen(kernel);
  if (length > 3 && !strcmp(kernel + length - 3, ".cu")) return !strcmp(file, kernel);
  size_t folder = surroundings(kernel);
  return folder ? !strncmp(file, kernel, folder) : !strchr(file, '/');
}

// The innermost location in the kernel's own file; NULL when unknown.
static const PtxLocation *own_location(const PtxModule *module, const PtxInstruction *source) {
  const PtxLocation *outermost = source ? source->location : NULL;
  while (outermost && outermost->inlined_at) outermost = outermost->inlined_at;
  if (!has_file(module, outermost)) return NULL;
  const PtxLocation *location = source->location;
  while (!has_file(module, location) || !is_own(module->files[location->file], module->files[outermost->file]))
    location = location->inlined_at;
  return location;
}

bool instruction_line(const PtxModule *module, const PtxInstruction *source, const char **file, int *line) {
  const PtxLocation *location = own_location(module, source);
  *file = location ? module->files[location->file] : NULL;
  *line = location ? location->line : 0;
  return location != NULL;
}

int source_lines(const PtxModule *module, const PtxInstruction *source, int *lines, int most) {
  const PtxLocation *own = own_location(module, source);
  int count = 0;
  for (const PtxLocation *at = own; at && at->file == own->file && count < most; at = at->inlined_at)
    lines[count++] = at->line;
  return count;
}

LineText named_line(const PtxModule *module, const PtxInstruction *source) {
  LineText text;
  const PtxLocation *own = own_location(module, source), *call = own ? own->inlined_at : NULL;
  if (!own)
    snprintf(text.text, sizeof text.text, "PTX line %d", source->line);
  else if (has_file(module, call) && !strcmp(module->files[call->file], module->files[own->file]))
    snprintf(text.text, sizeof text.text, "line %d (called at %d)", own->line, call->line);
  else
    snprintf(text.text, sizeof text.text, "line %d", own->line);
  return text;
}

// The function that has the instruction: the last that begins before it.
static const PtxFunction *function_of(const PtxModule *module, const PtxInstruction *source) {
  const PtxFunction *found = NULL;
  for (int i = 0; i < module->function_count; i++) {
    const PtxFunction *function = &module->functions[i];
    if (!function->is_declaration && function->line <= source->line && (!found || function->line > found->line))
      found = function;
  }
  return found;
}

void find_frames(const PtxModule *module, const PtxInstruction *source, HazardPlace *place) {
  const PtxLocation *own = own_location(module, source);
  if (!own) return;
  int depth = 0;
  for (const PtxLocation *at = source->location; at; at = at->inlined_at) depth++;
  HazardFrame *frames = host_allocate((size_t)depth, sizeof *frames);
  for (const PtxLocation *at = source->location; at; at = at->inlined_at) {
    if (!has_file(module, at)) continue;
    if (at == own) place->own = place->frame_count;
    frames[place->frame_count++] = (HazardFrame){module->files[at->file], at->line, at->function};
  }
  const PtxFunction *function = function_of(module, source);
  if (function) frames[place->frame_count - 1].function = function->readable;
  place->frames = frames;
  place->file = frames[place->own].file;
  place->line = frames[place->own].line;
}
