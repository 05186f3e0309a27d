// A ring of slots in shared memory. A producer fills them and consumers empty them; each slot has two mbarriers, full
// and empty. Producer and consumers each keep a Ring of their own to know which slot is next.
#pragma once

#include <stdint.h>

// `parity` is that of the next phase of the slot's full barrier; the empty barrier's last phase has the other parity.
// At first every slot is empty: the first wait for an empty slot names the phase before the first, which counts as
// complete.
template <int SLOTS> struct Ring {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == SLOTS) {
      slot = 0;
      parity ^= 1;
    }
  }
};
