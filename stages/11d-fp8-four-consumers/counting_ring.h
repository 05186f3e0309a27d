// A ring of four slots whose state is one number instead of two.
#pragma once

// It counts the slots used so far, and computes slot and parity from that number when they are needed. It needs one
// register instead of two. Ring is a template over the number of slots; Ring<COUNTING> is this ring.
enum { COUNTING = -1 };

template <> struct Ring<COUNTING> {
  struct Slot {
    uint32_t used;
    __device__ operator int() const { return used % 4; }
  };
  struct Parity {
    uint32_t used;
    __device__ operator uint32_t() const { return used / 4 % 2; }
  };
  union {
    Slot slot = {0};
    Parity parity;
  };

  __device__ __forceinline__ void advance() { slot.used++; }
};

static_assert(SLOTS_OF(64) == 4 && SLOTS_OF(128) == 4);
template <> struct KeyRing<64> : Ring<COUNTING> {};
template <> struct KeyRing<128> : Ring<COUNTING> {};
