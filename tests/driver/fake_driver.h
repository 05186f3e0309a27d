// A CUDA driver without a GPU, for tests of code that is called inside a CUDA program: it does nothing, says that all
// went well, and remembers what it was asked. A test loads build/driver/libcuda.so.1 before the code under test loads
// "libcuda.so.1": the dynamic linker then takes the one that is there.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FAKE_LAUNCHES = 64, FAKE_FILLS = 16 };

typedef struct FakeLaunch {
  char kernel[32];
  void *stream;
  uint64_t first;  // 8 bytes of the kernel's first parameter
} FakeLaunch;

typedef struct FakeFill {
  void *stream;
  uint64_t address;
  size_t size;
  unsigned char byte;
} FakeFill;

typedef struct FakeDriver {
  // What the test sets.
  unsigned long long context;  // id of the one that is current; 0: none
  int capability;              // 9: compute capability 9.0
  const char *fails;           // the function that fails; NULL: none
  int result;                  // with which CUresult
  size_t offset;               // of the 8 bytes of a first parameter that are taken down
  // What was done.
  int loaded, unloaded;  // modules
  int allocated, freed;  // pieces of memory
  size_t largest;        // of them, in bytes
  int launches;          // the first of them are here
  FakeLaunch launch[FAKE_LAUNCHES];
  int fills;  // the same
  FakeFill fill[FAKE_FILLS];
} FakeDriver;

// The library exports it as fake_driver; at first it has a Hopper GPU, and context 1 is current.
