// Races, found by rule: two accesses of which one writes, by two threads, neither ordered before the other.
//
// "Ordered before" is the happens-before relation of the PTX memory model (PTX ISA chapter 8), kept with vector
// clocks as in FastTrack (Flanagan and Freund, PLDI 2009). A thread's own clock counts its releases (barriers,
// fences, ...). What a thread knows of the others is a vector of their clocks, joined at every acquire. An
// asynchronous operation is a thread of its own, an agent: it starts with what its issuer knows, and is known to the
// threads that wait for it. Each byte of memory has a cell that remembers its last write and the reads since; an
// access is ordered after a remembered one if the thread knows that thread's clock of that moment. So a race is
// reported in every schedule, not only in those where it bites.
#pragma once

#include "actor.h"

// Checks and remembers a read or a write of region bytes [offset, offset + size) by the actor, before it happens.
// value: the bytes to be written, or NULL; lanes of one instruction may write the same value to one place (CUDA C++
// programming guide, SIMT architecture).
void race_read_by(const Actor *actor, Region *region, uint64_t offset, int size);
void race_write_by(const Actor *actor, Region *region, uint64_t offset, int size, const void *value);

// Checks and remembers a read of region bytes [offset, offset + size) by the lanes of mask, which all read the same
// bytes. Reports uninitialised reads and races.
void race_read(CheckWarp *warp, uint32_t pc, Mask mask, Region *region, uint64_t offset, int size, Strength strength);
// The same of an atomic read-modify-write by one lane.
void race_atomic(CheckWarp *warp, uint32_t pc, int lane, Region *region, uint64_t offset, int size, Strength strength);

// The last writes of some bytes.
typedef struct LastWrites {
  uint64_t hash;    // differs if they differ
  Epoch by_kernel;  // one of them by a thread of this launch, or EPOCH_NONE
  bool ordered;     // all come before the actor
} LastWrites;

// Adds those of the region bytes [offset, offset + size), on which nothing is reported.
void race_last_writes(const Actor *actor, const Region *region, uint64_t offset, int size, LastWrites *writes);

// ---- the end of a block ----

// The actor, which knows what all threads of its block knew when they exited, is the last of them: reports a thread
// of another block that may still access the block's shared memory.
void race_end_block(const Actor *actor, const Region *shared);
