// Analyses of a program's loads. Each runs once, after the program is decoded and before it is launched.
#pragma once

#include "../warp/program.h"

// ---- loads that are judged when their value is stored: postponed.c ----
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

// Finds such loads, and marks them and their stores.
void find_postponed_loads(Program *program);

// ---- elements that nobody reads: dead_elements.c ----
//
// nvcc turns the loads of p[0] and p[2] into one of four elements, two of which nobody reads. The last of them may lie
// beyond the end of an array, or be another thread's to write. ptxas loads the others alone:
//
//   ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];   <- LDG [R2], LDG [R2+8], if nothing reads %f2 and %f4
//
// So only elements that an instruction reads are accesses. All count as one, as PTX has it.

// Finds weak loads with such elements, and divides them into parts. To be called after find_postponed_loads.
void find_dead_elements(Program *program);
// How many instructions of the whole program read each register, at most 65535, by slot / READS_UNIT. The caller frees
// it.
uint16_t *count_register_reads(const Program *program);
enum { READS_UNIT = 64 };  // slots start at multiples of it

// ---- first guesses: first_guess.c ----
//
// Loads that make the first guess of a loop around an atomic compare-and-swap, and nothing else.
//
//     int seen = *place, guess;
//     do guess = seen;
//     while ((seen = atomicCAS(place, guess, f(guess))) != guess);
//
// By PTX the plain load races with the others' atomics. But whatever it reads, the compare-and-swap compares it with
// what is there: the guess has no other effect than one more round.

// Finds such loads (Site.first_guess).
void find_first_guesses(Program *program);

// ---- loads that are late: late_loads.c ----
//
// Loads from shared memory whose value is used only behind an instruction that hands memory on.

// Finds such loads, if the program has copies that could overwrite what they read,
// and has them and the first uses of their values watched. check/order.h says why.
void find_late_loads(Program *program);
