// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// cp_async.c
DecodeFunction decode_cp_async;
DecodeFunction decode_cp_async_group;

// bulk.c
DecodeFunction decode_bulk;
DecodeFunction decode_bulk_group;
DecodeFunction decode_bulk_prefetch;

// store_async.c
DecodeFunction decode_st_async;
DecodeFunction decode_red_async;

// tensor_copy.c
DecodeFunction decode_tensor_load;
DecodeFunction decode_tensor_store;
DecodeFunction decode_tensor_prefetch;

// tensor_map_edit.c
DecodeFunction decode_tensormap_replace;
DecodeFunction decode_tensormap_copy;

// mbarrier.c
DecodeFunction decode_mbarrier_init;
DecodeFunction decode_mbarrier_inval;
DecodeFunction decode_mbarrier_bytes;
DecodeFunction decode_mbarrier_arrive;
DecodeFunction decode_mbarrier_arrive_async;
DecodeFunction decode_mbarrier_wait;
DecodeFunction decode_mbarrier_pending_count;
