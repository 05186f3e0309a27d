// A ring of places in shared memory that a producer fills and consumers empty, each place with two mbarriers, full and
// empty. Both sides count along with one of these.
#pragma once

#include <stdint.h>

// The parity is that of the place's next full; its last empty has the other one. At first all places are empty: the first
// wait for an empty asks for the phase before the first, which counts as complete.
template <int PLACES> struct Ring {
  int place = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++place == PLACES) {
      place = 0;
      parity ^= 1;
    }
  }
};
