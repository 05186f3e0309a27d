// How stage 20b cuts the product into tiles. kernel.cu and stage.c both include this.
#pragma once

#include "../20-gemm/tiles.h"

enum { CLUSTER = 2 };                         // blocks: their tiles of C lie one below the other
enum { SHARE = COLUMNS / CLUSTER };           // rows of B that a block loads for its cluster
enum { GROUP_PAIRS = GROUP / CLUSTER };       // rows of pairs of tiles that are worked on together
enum { RELEASES = CLUSTER * CONSUMERS * 4 };  // consumer warps of the cluster
enum { CLUSTER_SHARED_BYTES = SHARED_BYTES + 4 * SLOTS * RELEASES };
