// Updates without an atomic: "total += x" is a load, an addition and a store.
#pragma once

#include "../warp/machine.h"

// Whether a load and a store, or its copy in an unrolled loop, belong to one update: each thread that executes the load
// stores to the same address soon after, and what or whether it stores follows from what it has loaded. Between two
// threads no barrier repairs that.
bool is_update(const Program *program, const Inst *load, const Inst *store);

// Whether a store ends an update.
bool ends_update(const Program *program, const Inst *store);
