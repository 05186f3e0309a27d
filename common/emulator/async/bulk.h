// What bulk copies and tensor copies share. PTX ISA 9.7.9.25.4 and .5.
//
// A copy is a list of pieces, each of bytes that lie together on both sides. One side is a block's shared memory; the
// other is global memory, or another block's shared memory:
//
//   load    other --> shared, and then the mbarrier of that block counts the bytes
//   store   shared --> other, in two operations, because a program can wait for the first alone (wait_group.read):
//           the shared memory is read, and then the global memory is written
//
// The pieces are checked for races when the copy is issued, and moved when it is performed.
#pragma once

#include "../memory/atomic.h"
#include "mbarrier_object.h"

typedef struct Piece {
  Region *other;          // NULL: the bytes are filled, not copied
  uint64_t other_offset;  // in the region
  uint64_t shared_offset;
  uint32_t size;  // bytes
} Piece;

typedef struct Pieces {
  Piece *items;
  int count, capacity;
  uint64_t sectors;  // that the other side moves for them
} Pieces;

// Adds a piece. other: NULL for one that is filled.
void pieces_add(Pieces *pieces, const Access *other, uint64_t shared_offset, uint32_t size);
void pieces_free(Pieces *pieces);

typedef enum Route { ROUTE_GLOBAL, ROUTE_MULTICAST, ROUTE_BLOCK_TO_BLOCK } Route;

// Counts the sectors of `size` bytes from an address on, which lie at `shared` in shared memory. A copy moves all of
// each that it touches, once for each request. notes/counters.md has the measurements.
void pieces_add_sectors(Pieces *pieces, uint64_t address, uint64_t shared, uint32_t size, Route route);

// How a copy changes its destination, when it does not just overwrite it, and what it fills with.
typedef struct BulkMode {
  Combine *combine;                    // of a reduction; NULL of a copy
  int element;                         // bytes of an element, for combine and fill
  uint64_t fill;                       // an element outside the tensor
  uint32_t (*convert)(uint32_t bits);  // of a load, what each 32-bit element becomes; NULL if it stays
  bool again;                          // of a multicast, for a block after the first: the source is read once for all
} BulkMode;

// Issues a copy for a lane into shared memory; bytes are what the mbarrier counts when it is done.
void bulk_issue_load(Warp *warp, const Inst *inst, int lane, const Pieces *pieces, Region *shared,
                     const Mbarrier *mbarrier, uint32_t bytes, BulkMode mode);
// Issues a copy from shared to global memory, into the open bulk groups of the lanes. They are one, or several that
// start the same copy by one instruction: ptxas makes one copy of it, unless it is a reduction.
void bulk_issue_store(Warp *warp, const Inst *inst, Mask lanes, const Pieces *pieces, Region *shared, BulkMode mode);
// The lanes whose values, so many bytes each, equal the first one's.
Mask bulk_alike(Mask lanes, const void *values, size_t size);

// How a reduction names its operation; NULL when it names none.
const char *bulk_reduction_name(const PtxInstruction *source);

// The blocks of a multicast: `mask` has one bit per rank. False after a report of one that the cluster does not have.
bool bulk_check_ranks(Warp *warp, const Inst *inst, int lane, uint32_t mask);
// The same place in the shared memory of another block of the cluster.
uint64_t bulk_address_in(uint64_t address, int rank);

// Lanes of the warp exit: reports bulk stores whose reading they have not waited for.
void bulk_check_exit(Warp *warp, Mask mask);
