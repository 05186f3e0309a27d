// Loads that are judged when their value is stored.
//
// All threads may load a number that only one of them needs, because only it stores the sum: Triton does so with
// scalars, and so does `x = *p; if (threadIdx.x == 0) *p = x + 1;`. In the other threads the load is dead, and the
// store of the one does them no harm. So the race check is told of such a load at the store, and of the lanes that
// store.
//
//   ld.global.u32 %r1, [%rd1];     <- reads for nobody yet
//   add.u32 %r2, %r1, %r3;
//   @%p1 st.global.u32 [%rd1], %r2;   <- the lanes of %p1 have read
//
// That is exact if nothing between the two orders accesses, and if the value is used nowhere else.
#pragma once

#include "../warp/program.h"

// Called after a program is decoded: finds such loads, and marks them and their stores.
void find_postponed_loads(Program *program);
