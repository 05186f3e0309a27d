// Reports of two accesses that nothing orders, or that something orders only formally, with advice from the cause.
#pragma once

#include "actor.h"

// Reports a pair: its reader first; of two writes the one that stands later in the program.
void conflict_race(const Actor *actor, const Span *span, Epoch other, bool writes, bool other_writes);
void conflict_unseen(const Actor *actor, const Span *span, Epoch write);
void conflict_own_part(const Actor *actor, const Span *span, Epoch write);
void conflict_equal(const Actor *actor, const Span *span, Epoch write);
void conflict_guess(const Actor *actor, const Span *span, Epoch other, bool other_reads);
void conflict_narrow(const Actor *actor, const Span *span, Epoch other);
void conflict_late_load(const Actor *actor, const Span *span, Epoch read);
// What ld finds is reported when something depends on it: undefined.h.
void conflict_unwritten(const Actor *actor, const Span *span);
void conflict_block_end(const Actor *actor, const Span *span, Epoch other, bool formal);
