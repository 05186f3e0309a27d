// A CUDA driver without a GPU, for tests of code that is called inside a CUDA program: it does nothing, says that all
// went well, and remembers what it was asked. A test loads build/driver/libcuda.so.1 before the code under test loads
// "libcuda.so.1": the dynamic linker then takes the one that is there.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FAKE_LAUNCHES = 64, FAKE_FILLS = 16, FAKE_EVENTS = 4, FAKE_DIMENSIONS = 5 };

typedef struct FakeLaunch {
  char kernel[32];
  void *stream;
  uint64_t taken;  // 8 bytes of a parameter
  unsigned grid[3], block[3], shared;
  unsigned cluster[3];  // 0: the launch names none
} FakeLaunch;

typedef struct FakeFill {
  void *stream;
  uint64_t address;
  size_t size;
  unsigned char byte;
} FakeFill;

// A tensor map, as its encoder was asked for it. The numbers are those of <cuda.h>.
typedef struct FakeTensorMap {
  int type, swizzle, promotion, fill;
  unsigned rank, box[FAKE_DIMENSIONS], step[FAKE_DIMENSIONS];
  uint64_t address, size[FAKE_DIMENSIONS], stride[FAKE_DIMENSIONS - 1];
} FakeTensorMap;

typedef struct FakeDriver {
  // What the test sets.
  unsigned long long context;  // id of the one that is current; 0: none
  int capability, minor;       // 9, 0: compute capability 9.0
  const char *fails;           // the function that fails; NULL: none
  int result;                  // with which CUresult
  int parameter;               // of a kernel: which one's bytes are taken down
  size_t offset, size;         // which of its bytes; size 0: 8 of them
  double now;                  // milliseconds, on the GPU's clock
  void *capturing;             // the stream that is captured; NULL: none
  // What was done.
  int loaded, unloaded;  // modules
  int allocated, freed;  // pieces of memory
  size_t largest;        // of them, in bytes
  int launches;          // the first of them are here
  FakeLaunch launch[FAKE_LAUNCHES];
  unsigned largest_grid[3];  // of all launches
  int fills;                 // the same
  FakeFill fill[FAKE_FILLS];
  int attributes, attribute;  // how often a kernel got one, and the last of them
  int attribute_value;
  FakeTensorMap map;             // the last one
  int events;                    // that were made
  double time[FAKE_EVENTS + 1];  // when each was last recorded
} FakeDriver;

// The library exports it as fake_driver; at first it has a Hopper GPU, and context 1 is current.
