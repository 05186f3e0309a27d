// The decode functions of this room, for the table of instructions: run/instructions.c.
#pragma once

#include "../warp/decoder.h"

// barrier.c
Decode decode_barrier;
Decode decode_warp_barrier;

// cluster.c
Decode decode_cluster_barrier;
Decode decode_cluster_address;

// fence.c
Decode decode_fence;
Decode decode_proxy_fence;

// control.c
Decode decode_stack;
Decode decode_bra;
Decode decode_brx;
Decode decode_call;
Decode decode_ret;
Decode decode_exit;
Decode decode_trap;
