// Loads that make the first guess of a loop around an atomic compare-and-swap, and nothing else.
//
//     int seen = *place, guess;
//     do guess = seen;
//     while ((seen = atomicCAS(place, guess, f(guess))) != guess);
//
// By PTX the plain load races with the others' atomics. But whatever it reads, the compare-and-swap compares it with
// what is there: the guess has no other effect than one more round.
#pragma once

#include "../warp/program.h"

// Called after a program is decoded: finds such loads (Site.first_guess).
void find_first_guesses(Program *program);
