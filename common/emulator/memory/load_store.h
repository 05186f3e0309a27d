// What other files of this room ask of a decoded ld or st.
#pragma once

#include "../warp/program.h"

// A weak ld or st of memory that other threads reach.
bool is_plain_load(const Inst *inst);
bool is_plain_store(const Inst *inst);
// The register of its address.
Slot address_register(const Inst *inst);
// The store is where the load is judged: postponed.h. False when it is already that of another load.
bool can_judge_load(const Inst *store);
void judge_load_at(Inst *load, Inst *store);
