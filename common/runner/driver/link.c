// The linker. It takes one text of PTX, or one fatbin, and gives it back: most programs use it only to compile PTX. The
// emulator cannot link, so a second input is missing here.
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct CUlinkState_st {
  char *image;  // what cuModuleLoadData gets in a cubin's place
  size_t size;
};

// Takes over the image.
static CUresult add_input(CUlinkState state, CUjitInputType type, char *image, size_t size) {
  bool fits = type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY;
  if (!fits || state->image) {
    free(image);
    return core_missing(fits ? "cuLinkAddData of a second input" : "cuLinkAddData of anything but PTX and fatbins");
  }
  state->image = image;
  state->size = size;
  return CUDA_SUCCESS;
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
  (void)name, (void)count, (void)options, (void)values;
  if (!state || !data) return CUDA_ERROR_INVALID_VALUE;
  char *image = calloc(size + 16, 1);
  if (!image) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(image, data, size);
  return add_input(state, type, image, size);
}

API(cuLinkAddFile_v2,
    (CUlinkState state, CUjitInputType type, const char *path, unsigned count, CUjit_option *options, void **values)) {
  ENTER();
  (void)count, (void)options, (void)values;
  size_t size = 0;
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  char *image = module_read_file(path, &size);
  return image ? add_input(state, type, image, size) : CUDA_ERROR_FILE_NOT_FOUND;
}

// The image is the linker's, until cuLinkDestroy.
API(cuLinkComplete, (CUlinkState state, void **image, size_t *size)) {
  ENTER();
  if (!state || !state->image || !image) return CUDA_ERROR_INVALID_VALUE;
  *image = state->image;
  if (size) *size = state->size + 1;
  return CUDA_SUCCESS;
}

API(cuLinkDestroy, (CUlinkState state)) {
  ENTER();
  if (!state) return CUDA_ERROR_INVALID_HANDLE;
  free(state->image);
  free(state);
  return CUDA_SUCCESS;
}
