// What hopper-run leaves in the environment for compilers that a program calls while it runs: stand-ins for ptxas and
// nvcc, and caches of the run's own. Triton, PyCUDA, TileLang and others keep the cubins that they have compiled. Here
// such a "cubin" is PTX: no other run may find it, and this run must find none.
#pragma once

#include <stdbool.h>

// stand_ins: the folder of libcuda.so.1; run: the temporary folder of this run, which remove_folder removes at the end.
// False, with errno, when a folder cannot be made.
bool prepare_compilers(const char *stand_ins, const char *run);
// Puts a value in front of those that a variable of the environment has. False when memory is exhausted.
bool prepend(const char *variable, const char *value, const char *separator);
// Removes a folder with everything in it, and follows no link.
void remove_folder(const char *folder);
