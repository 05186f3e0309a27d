// Programmatic dependent launch: a kernel that begins before the one in front of it has ended. PTX ISA 9.7.13.13
// (griddepcontrol); CUDA programming guide 4.5.
//
// The emulator runs one launch after another all the same. The shadow of a page keeps what such an earlier launch did
// there, and an access of the later launch is compared with that, in both directions. Ordered are the accesses
//
//   - of a thread after a griddepcontrol.wait of its grid: the grid in front, its prerequisite, is over then;
//   - that a fence.gpu covers before a block of the earlier launch executes griddepcontrol.launch_dependents.
//
// A launch begins when each block in front has executed launch_dependents or has ended. So what a block did that never
// executed it was done before, but CUDA promises nothing of its memory without a wait: that is formal. The prerequisite
// may itself have begun early. If none of its threads has waited, its own prerequisite may run even after it has ended.
#pragma once

#include <pthread.h>

#include "actor.h"

enum { OVERLAPS = 4, PAST_LAUNCHES = 8 };

// Launches by their numbers.
typedef struct LaunchSet {
  uint32_t numbers[OVERLAPS];
  int count;
} LaunchSet;

// What a report needs to know about a launch.
typedef struct LaunchShape {
  const struct Program *program;
  const struct PtxModule *module;
  unsigned grid[3], block[3], cluster[3];
} LaunchShape;

// A launch, as later launches need it.
typedef struct PastLaunch {
  uint32_t number;  // 0: none
  LaunchShape shape;
  EpochLayout epochs;
  uint32_t clusters;
  uint32_t block_lanes, cluster_lanes, cluster_blocks;
  LaunchSet at_start;    // those that may run when it begins,
  LaunchSet after_wait;  // and those that may still run after its griddepcontrol.wait
  bool waited;           // a thread of it has executed that
  uint8_t *blocks;       // of each block BlockPast bits, or NULL
  uint32_t **released;   // of each cluster NULL, or each thread's clock up to which a fence has covered what it did
  pthread_mutex_t lock;
} PastLaunch;

typedef struct LaunchHistory {
  PastLaunch items[PAST_LAUNCHES];
  bool keeps;  // shadows keep what earlier launches did
} LaunchHistory;

// A launch of so many clusters begins. prerequisite: the number of the launch in front that may still run, or 0.
void overlap_begin(CheckLaunch *launch, const LaunchShape *shape, LaunchHistory *history, const RegionTable *global,
                   uint32_t prerequisite, uint32_t clusters);
// A module's programs are about to be freed; NULL: all.
void overlap_forget(LaunchHistory *history, const struct PtxModule *module);

// griddepcontrol.wait and .launch_dependents by the lanes of mask.
void overlap_wait(CheckWarp *warp, Mask mask);
void overlap_trigger(CheckWarp *warp, Mask mask);

// Whether an access by one of the lanes of mask may have to be compared with earlier launches.
bool overlap_concerns(const CheckWarp *warp, Mask mask);
// Reports an access to region bytes [offset, offset + size) that is not ordered with one of an earlier launch. Of a
// launch with `overlaps` alone.
void overlap_check(const Actor *actor, Region *region, uint64_t offset, int size, bool writes);
