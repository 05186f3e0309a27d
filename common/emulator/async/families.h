// The families of instructions of this room: each is decoded by one function, in the file of its name.
#pragma once

#include "../warp/decoder.h"

DecodeFamily decode_cp_async;     // cp.async and its groups
DecodeFamily decode_mbarrier;     // mbarrier and cp.async.mbarrier.arrive
DecodeFamily decode_bulk;         // cp.async.bulk, cp.reduce.async.bulk and bulk groups
DecodeFamily decode_tensor_copy;  // cp.async.bulk.tensor and its kin
