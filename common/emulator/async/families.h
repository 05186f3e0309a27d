// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// cp_async.c
Decode decode_cp_async;
Decode decode_cp_async_group;

// bulk.c
Decode decode_bulk;
Decode decode_bulk_group;
Decode decode_bulk_prefetch;

// store_async.c
Decode decode_st_async;
Decode decode_red_async;

// tensor_copy.c
Decode decode_tensor_load;
Decode decode_tensor_store;
Decode decode_tensor_prefetch;

// tensor_map_edit.c
Decode decode_tensormap_replace;
Decode decode_tensormap_copy;

// mbarrier.c
Decode decode_mbarrier_init;
Decode decode_mbarrier_inval;
Decode decode_mbarrier_bytes;
Decode decode_mbarrier_arrive;
Decode decode_mbarrier_arrive_async;
Decode decode_mbarrier_wait;
Decode decode_mbarrier_pending_count;
