// Tensor maps in global memory. The GPU keeps copies of maps that it has used, and a write through the generic proxy
// does not reach them: fence.proxy.tensormap::generic.acquire makes a block read a map afresh. PTX ISA 9.7.13.4; CUDA
// C++ programming guide, "Using TMA to transfer multi-dimensional arrays": a map in global memory "requires a fence in
// each thread block before any thread in the block uses the updated tensor map". Parameters and constants need none.
#pragma once

#include "../memory/memory.h"
#include "tensor_map.h"

// fence.proxy.tensormap::generic.acquire of the scope, by the lanes of mask for the maps at their addresses.
void map_fences_acquire(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES], Strength scope);
// A tensor copy by the lane uses the map that lies there: reports a race with a write of it, and a missing fence.
void map_fences_check(Warp *warp, const Inst *inst, int lane, const Access *map, const TensorMapFields *fields);
void map_fences_free(Block *block);
