// The linker. Its inputs are PTX, fatbins, and the objects and libraries that contain fatbins. What it makes is their
// PTX, one text after another, which cuModuleLoadData takes in a cubin's place and links.
#include <stdlib.h>
#include <string.h>

#include "../fatbin.h"
#include "driver.h"

struct CUlinkState_st {
  Texts texts;
  char *image;  // what cuModuleLoadData gets, after cuLinkComplete
};

// NVIDIA's device runtime has no PTX, and nothing of it is missing: what the emulator has of it, it has built in.
CUresult texts_of_object(const char *bytes, size_t size, const char *name, Texts *texts) {
  const char *why = NULL;
  int before = texts->count;
  for (size_t at = 0; (at = fatbin_next(bytes, size, at)) < size; at++) {
    // A copy, because an archive does not align its members.
    char *copy = malloc(size - at);
    if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, bytes + at, size - at);
    if (fatbin_has_ptx(copy) && !texts_add(texts, fatbin_ptx(copy, &why)))
      core_say_once("%s: %s", name, why ? why : "out of memory");
    free(copy);
  }
  if (texts->count == before && !strstr(name, "cudadevrt"))
    core_say_once("%s: there is no PTX in it that a Hopper GPU runs; build it with nvcc -gencode "
                  "arch=compute_90a,code=compute_90a",
                  name);
  return CUDA_SUCCESS;
}

// bytes end with zeros behind the size.
static CUresult add_input(CUlinkState state, CUjitInputType type, const char *bytes, size_t size, const char *name) {
  switch (type) {
  case CU_JIT_INPUT_PTX:
  case CU_JIT_INPUT_FATBINARY: return texts_of(bytes, &state->texts);
  case CU_JIT_INPUT_OBJECT:
  case CU_JIT_INPUT_LIBRARY: return texts_of_object(bytes, size, name, &state->texts);
  default: return core_missing("cuLinkAddData of a cubin or of NVVM's code");
  }
}

API(cuLinkCreate_v2, (unsigned count, CUjit_option *options, void **values, CUlinkState *state)) {
  ENTER();
  (void)count, (void)options, (void)values;
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  *state = calloc(1, sizeof **state);
  return *state ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// PTX need not end with a 0 here: its size says where it ends.
API(cuLinkAddData_v2, (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                       unsigned count, CUjit_option *options, void **values)) {
  ENTER();
  (void)count, (void)options, (void)values;
  if (!state || !data || state->image) return CUDA_ERROR_INVALID_VALUE;
  char *bytes = calloc(size + 16, 1);
  if (!bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(bytes, data, size);
  CUresult status = add_input(state, type, bytes, size, name ? name : "an input of the linker");
  free(bytes);
  return status;
}

API(cuLinkAddFile_v2,
    (CUlinkState state, CUjitInputType type, const char *path, unsigned count, CUjit_option *options, void **values)) {
  ENTER();
  (void)count, (void)options, (void)values;
  size_t size = 0;
  if (!state || state->image) return CUDA_ERROR_INVALID_VALUE;
  char *bytes = module_read_file(path, &size);
  CUresult status = bytes ? add_input(state, type, bytes, size, path) : CUDA_ERROR_FILE_NOT_FOUND;
  free(bytes);
  return status;
}

char *texts_join(const Texts *texts) {
  size_t size = 1;
  for (int i = 0; i < texts->count; i++) size += texts->items[i].length + strlen(TEXT_BORDER);
  char *image = malloc(size), *end = image;
  for (int i = 0; image && i < texts->count; i++) {
    if (i > 0) end = stpcpy(end, TEXT_BORDER);
    end = stpcpy(end, texts->items[i].ptx);
  }
  return image;
}

// The image is the linker's, until cuLinkDestroy. It is loaded once to see whether it can be linked.
API(cuLinkComplete, (CUlinkState state, void **image, size_t *size)) {
  ENTER();
  CUmodule module;
  if (!state || state->texts.count == 0 || !image) return CUDA_ERROR_INVALID_VALUE;
  if (!state->image) state->image = texts_join(&state->texts);
  if (!state->image) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult status = cuModuleLoadData(&module, state->image);
  if (status != CUDA_SUCCESS) return status;
  cuModuleUnload(module);
  *image = state->image;
  if (size) *size = strlen(state->image) + 1;
  return CUDA_SUCCESS;
}

API(cuLinkDestroy, (CUlinkState state)) {
  ENTER();
  if (!state) return CUDA_ERROR_INVALID_HANDLE;
  texts_free(&state->texts);
  free(state->image);
  free(state);
  return CUDA_SUCCESS;
}
