// What nvcc puts into a program: "fatbins" with PTX and machine code for several architectures.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Finds the PTX for the newest architecture up to sm_90a in a fatbin, or behind the wrapper that a program registers.
// The text is the caller's to free, and ends with a 0. NULL and *why, one sentence, when there is none.
char *fatbin_ptx(const void *image, const char **why);
// Whether there is such PTX.
bool fatbin_has_ptx(const void *image);
// The fatbins of a program built with -rdc=true, a list that ends with NULL; NULL when the image is no such wrapper.
const void *const *fatbin_parts(const void *image);
// Where the next fatbin begins in the bytes of an object or a library, at `from` or behind it; size when there is none.
size_t fatbin_next(const void *bytes, size_t size, size_t from);
// Whether the bytes begin like a fatbin or its wrapper, or like an ELF file, which a cubin is.
bool fatbin_is(const void *image);
bool fatbin_is_elf(const void *image);
