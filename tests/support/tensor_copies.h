// The tensor copies of tests/golden/tensor_copies.txt on the emulator.
#pragma once

#include "../golden/tensor_results.h"

// Runs a case, with an mbarrier that expects so many bytes of a load. result->error is 0, because the emulator gives no
// numbers to its errors; `why` gets the error's text.
void tensor_copy_run(const TensorCase *c, uint32_t bytes, TensorResult *result, char why[400]);
// The same, and finds out how many bytes a load brings.
void tensor_copy_record(const TensorCase *c, TensorResult *result, char why[400]);
