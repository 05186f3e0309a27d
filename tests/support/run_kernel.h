// Runs whole kernels, written as PTX text, on the emulator: for the tests of instructions that need several threads.
//
// A text may hold two kernels in one, a faulty one and its repaired twin. A line that begins with "F:" is part of the faulty
// one alone, one with "R:" of the repaired one alone, and "// here" ends the line that the report must name.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/emulator.h"

enum { SCHEDULES = 7, MAX_ARGUMENTS = 8 };  // seeds 0 to 6

#define PTX_HEADER ".version 8.6\n.target sm_90a\n.address_size 64\n"

typedef struct Machine {
  Emulator *emulator;
  EmulatorModule *module;
  char *text;  // as it was loaded
} Machine;

typedef enum Variant { REPAIRED, FAULTY } Variant;

// An emulator with the kernel loaded; fails the test when the text does not decode.
Machine machine_open(const char *text, Variant variant, uint64_t schedule);
void machine_close(Machine *machine);
// Global memory with the bytes in it; NULL for memory that nobody has written.
uint64_t machine_upload(Machine *machine, const void *bytes, size_t size);
void machine_download(Machine *machine, void *bytes, uint64_t address, size_t size);
// Launches the only kernel, named "test": one grid dimension, one block dimension.
EmulatorStatus machine_launch(Machine *machine, unsigned grid, unsigned block, unsigned cluster, const void *const *arguments, int count);
// Fails the test, with the reports, when there is a hazard.
void expect_clean(Machine *machine);
// Fails the test unless there is a hazard of the kind at the line marked "// here", whose detail contains the word.
void expect_hazard(Machine *machine, HazardKind kind, const char *word);
