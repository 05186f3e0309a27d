// What a launch may ask for.
#pragma once

#include "state.h"

// Fills *error with one line. Always EMULATOR_INVALID.
EmulatorStatus launch_invalid(EmulatorError *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Whether an H100 could run the launch, whose shape and program are known: EMULATOR_INVALID and *error when not.
EmulatorStatus launch_check(const Launch *launch, EmulatorError *error);
// How many of its clusters an H100 holds at a time, by threads and shared memory; PTX does not tell the registers.
uint32_t launch_resident_clusters(const Launch *launch);
