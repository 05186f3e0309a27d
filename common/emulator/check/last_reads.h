// The reads of a byte since its last write: what is remembered of them. The sets are in read_sets.h.
//
// A read that comes before another need not be remembered beside it: what comes after the later one comes after both.
// That is so of what threads read, for they hand on all that they know. A thread that has waited for an operation
// knows of it and of the operations before it, and not of all that its threads had read. And a weak read is not
// replaced by a strong one, which strong writes need not come after.
#pragma once

#include "actor.h"
#include "read_sets.h"

// The reads of a cell after the actor, and with it the lanes of mask that share its warp and clock, have read it too.
Epoch last_reads_with(const Actor *actor, Mask mask, Epoch read);
// A cell's reads before one of this cluster is added: one of another is moved aside.
void last_reads_make_room(const CheckCluster *cluster, Cell *cell);
// The bytes, whose cells are equal, have been read: `read` takes the place of the cell's.
void last_reads_remember(const CheckCluster *cluster, Region *region, uint64_t offset, int size, const Cell *cell,
                         Epoch read);

// A cell's reads, none or of this cluster, when the lanes of mask, which share the actor's warp and clock, have read it
// too: a set. With several turns (read_sets.h) the actor is a row's first lane, and each lane after it has the next
// cell, in the next turn; step: whether the cells' reads so far differ by one from turn to turn, or not at all.
// EPOCH_NONE: they form no row.
Epoch last_reads_add(const Actor *actor, Mask mask, Epoch read, unsigned step, int turns);
// Keeps the set of reads that bytes of the region remember, if they remember one.
void last_reads_keep(const CheckCluster *cluster, const Region *region, Epoch read);
// Whether all reads of the set come before a row of writes: by the actor and the lanes that follow it, one for each
// turn.
bool last_reads_known(const Actor *actor, Epoch read, unsigned step, int turns);
