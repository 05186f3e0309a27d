// The families of instructions of this room: each is decoded by one function, in the file of its name.
#pragma once

#include "../warp/decoder.h"

DecodeFamily decode_barrier;  // bar barrier
DecodeFamily decode_fence;    // fence membar
DecodeFamily decode_cluster;  // mapa, getctarank, barrier.cluster
DecodeFamily decode_control;  // bra brx call ret exit trap
