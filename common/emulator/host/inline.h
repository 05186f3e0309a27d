// A function of which no call is left: what is constant where it is used is constant in it.
#pragma once

#define ALWAYS_INLINE static inline __attribute__((always_inline))
