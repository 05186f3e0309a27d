// --steps: the record of steps, as a program reads it: an array of numbers of 32 bits, twelve for each step.
#include "../emulator/emulator.h"
#include "harness.h"

bool steps_write(const char *path, const Device *device) {
  int count;
  bool complete;
  const EmulatorStep *steps = device_steps(device, &count, &complete);
  FILE *out = fopen(path, "wb");
  if (!out) return false;
  bool written = fwrite(steps, sizeof *steps, (size_t)count, out) == (size_t)count;
  return !fclose(out) && written;
}
