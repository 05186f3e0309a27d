// What strong stores and atomics release at an address, for the loads that acquire it.
#pragma once

#include "clocks.h"

// Orders of a strong access; a weak one is the plain ld or st. PTX ISA 8.9.
typedef enum MemoryOrder { ORDER_WEAK, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL } MemoryOrder;

// What strong stores have released, by place: of a cluster's shared memory, or of global memory. A place is where the
// emulator has the bytes, and not an address: one of shared memory means other bytes in each block, and bytes have
// several.
typedef struct SyncTable SyncTable;
SyncTable *sync_table_new(Usage *usage);
void sync_table_free(SyncTable *table);
// A strong load, store or read-modify-write by one lane: it learns from, or adds to, what is released at the places. A
// vector is several accesses of its elements (PTX ISA 8.2.2). Only an access of the same place and size synchronises
// with another: "morally strong" operations overlap completely, PTX ISA 8.7.1.
typedef struct Elements {
  const void *first;
  size_t size;
  int count;
} Elements;
void sync_load(SyncTable *table, const Elements *elements, CheckWarp *warp, int lane, MemoryOrder order,
               Strength scope);
void sync_store(SyncTable *table, const Elements *elements, CheckWarp *warp, int lane, MemoryOrder order,
                Strength scope);
void sync_atomic(SyncTable *table, const Elements *elements, CheckWarp *warp, int lane, MemoryOrder order,
                 Strength scope);
// A strong load of the place has returned what the write stored, which was strong for it: the write comes before what
// the load comes before, even if neither releases and acquires. PTX ISA 8.9.5, causality order. Of each write a few
// loads are kept.
enum { OBSERVERS = 8 };
void sync_observe(SyncTable *table, const void *place, Epoch write, Epoch load);
// Those loads. Returns how many.
int sync_observers(SyncTable *table, const void *place, Epoch write, Epoch loads[OBSERVERS]);
