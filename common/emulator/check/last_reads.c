// What is remembered of reads: last_reads.h.
#include "last_reads.h"

#include "actor.h"

// Whether all writes that need no order with the actor's read, because both are strong, need none with a read of the
// strength, by the instruction at pc, of that warp or agent.
static bool is_no_stronger(const Actor *actor, Strength strength, uint32_t pc, uint32_t warp) {
  if (actor->strength == WEAK) return true;
  uint32_t block_warps = threads_of_block(actor->cluster) / LANES;
  bool same_block = warp / block_warps == actor->thread / LANES / block_warps;
  return actor->strength <= strength && same_block && actor_same_size(actor, pc);
}

// Whether an entry for the actor's read remembers all that the node does: the same lanes of the same warp, no earlier.
static bool covers(const Actor *actor, const ReadNode *entry, const ReadNode *node) {
  return entry->warp == node->warp && (node->mask & ~entry->mask) == 0 && node->clock <= entry->clock &&
         is_no_stronger(actor, (Strength)node->strength, node->pc, node->warp);
}

// Whether the node at the entry's clock remembers all that an entry for the actor's read would.
static bool is_covered(const Actor *actor, const ReadNode *entry, const ReadNode *node) {
  return entry->warp == node->warp && (entry->mask & ~node->mask) == 0 && node->clock == entry->clock &&
         (node->strength == WEAK || (node->strength <= entry->strength && actor_same_size(actor, node->pc)));
}

// Whether lanes of a warp, or an agent, that have read at the clock come before the reads of the actor and the lanes
// after it, one a turn, which can stand for them.
static bool superseded(const Actor *actor, int turns, uint32_t warp, Mask mask, uint32_t clock, uint32_t pc,
                       Strength strength) {
  uint32_t lanes = (uint32_t)actor->cluster->lane_count;
  if (!is_no_stronger(actor, strength, pc, warp) || (actor->thread >= lanes && warp * LANES < lanes)) return false;
  return actors_know(actor, turns, warp * LANES, mask, clock);
}

// The lanes of a mask in `turns` turns, one after the other.
static Mask turned_all(Mask mask, unsigned turn, int turns) {
  if (turns == LANES || mask == FULL_MASK) return mask ? FULL_MASK : 0;
  Mask all = 0;
  for (int i = 0; i < turns; i++) all |= turned(mask, turn + (unsigned)i);
  return all;
}

// Whether the two differ in the lanes of a warp alone, and one node can stand for both. Agents come and go one by one.
static bool differ_in_lanes(const Actor *actor, const ReadNode *a, const ReadNode *b) {
  return a->warp == b->warp && a->clock == b->clock && a->pc == b->pc && a->strength == b->strength &&
         actor->thread < (uint32_t)actor->cluster->lane_count;
}

// The set when its last node and the entry are one, as for lanes that diverge and read a byte one after the other. What
// stands below was judged when that node was added, at the same clock.
static uint32_t merge_entry(ReadSets *sets, uint32_t set, const ReadNode *entry) {
  ReadNode both = *read_sets_node(sets, set);
  both.mask |= entry->mask;
  return read_sets_push(sets, both.parent, both);
}

// The set with the entry, which is the actor's, added, and whatever it covers or supersedes left out: in so many turns,
// by as many lanes that know the same. *dropped: something was left out.
static uint32_t add_entry(ReadSets *sets, uint32_t set, unsigned turn, int turns, const ReadNode *entry,
                          const Actor *actor, bool *dropped) {
  uint32_t kept[64];
  int count = 0, above = 0;          // how many are kept, and how many of them stand above the last one left out
  uint32_t rest = set, below = set;  // what stands below that one is the chain that it was
  for (; rest && count < 64; rest = read_sets_node(sets, rest)->parent) {
    const ReadNode *node = read_sets_node(sets, rest);
    if (is_covered(actor, entry, node)) return set;
    if (covers(actor, entry, node) || superseded(actor, turns, node->warp, turned_all(node->mask, turn, turns),
                                                 node->clock, node->pc, (Strength)node->strength)) {
      *dropped = true;
      above = count;
      below = node->parent;
    } else {
      kept[count++] = rest;
    }
  }
  while (above > 0) below = read_sets_push(sets, below, *read_sets_node(sets, kept[--above]));
  return read_sets_push(sets, below, *entry);
}

// The same, remembered. What an actor knows grows while its clock stands: then more is kept than need be. What another
// lane of its warp knows is another matter: of what was superseded, in another turn, nothing is said.
static uint32_t add_read(ReadSets *sets, uint32_t set, unsigned turn, int turns, const ReadNode *entry,
                         const Actor *actor) {
  uint32_t result = read_sets_recall(sets, set, entry, turns == 1 ? turn : ANY_TURN);
  if (result) return result;
  bool merges = set && differ_in_lanes(actor, read_sets_node(sets, set), entry), dropped = false;
  result = merges ? merge_entry(sets, set, entry) : add_entry(sets, set, turn, turns, entry, actor, &dropped);
  if (!dropped || turns == 1) read_sets_remember(sets, set, entry, dropped ? turn : ANY_TURN, result);
  return result;
}

// The set that a cell's read, of this cluster, stands for, in its turn.
static uint32_t as_set(const CheckCluster *cluster, Epoch read) {
  const EpochLayout *layout = &cluster->launch->epochs;
  if (read == EPOCH_NONE) return 0;
  if (read & EPOCH_SET) return epoch_set(layout, read);
  uint32_t thread = epoch_thread(layout, read);
  return read_sets_push(cluster->read_sets, 0,
                        (ReadNode){.warp = (uint16_t)(thread / LANES),
                                   .mask = 1,
                                   .clock = epoch_clock(layout, read),
                                   .pc = epoch_pc(layout, read),
                                   .strength = (uint8_t)epoch_strength(read)});
}

// Whether the cell's only read comes before the actor's.
static bool only_superseded(const Actor *actor, Epoch read) {
  const EpochLayout *layout = actor->layout;
  if (!(read & EPOCH_KERNEL) || read & EPOCH_SET) return false;
  uint32_t thread = epoch_thread(layout, read);
  return superseded(actor, 1, thread / LANES, 1u << thread % LANES, epoch_clock(layout, read), epoch_pc(layout, read),
                    epoch_strength(read));
}

Epoch last_reads_add(const Actor *actor, Mask mask, Epoch read, unsigned step, int turns) {
  const CheckCluster *cluster = actor->cluster;
  const EpochLayout *layout = &cluster->launch->epochs;
  Epoch own = actor_epoch(actor);
  uint32_t set = as_set(cluster, read);
  bool any_turn = !set || read_sets_node(cluster->read_sets, set)->any_turn;
  if (turns > 1 && step == 0 && !any_turn) return EPOCH_NONE;
  unsigned turn = any_turn ? (unsigned)__builtin_ctz(mask) : epoch_turn(read);
  ReadNode entry = {.warp = (uint16_t)(actor->thread / LANES),
                    .mask = turned_back(mask, turn),
                    .clock = actor->clock,
                    .pc = actor_pc(actor),
                    .strength = (uint8_t)actor->strength};
  set = add_read(cluster->read_sets, set, turn, turns, &entry, actor);
  if (set > layout->set_mask >> LANE_BITS) {
    cluster->launch->report(
        &(CheckFinding){.kind = FOUND_SET_LIMIT, .warp = actor->warp, .lane = actor->lane, .actor = actor});
    return own;
  }
  uint64_t keep = layout->cluster_mask << layout->cluster_shift | layout->pc_mask << layout->pc_shift;
  // A set of another cluster's is judged by this word alone: it is as strong as the weakest of its reads.
  Strength least =
      read == EPOCH_NONE || actor->strength < epoch_strength(read) ? actor->strength : epoch_strength(read);
  return EPOCH_KERNEL | EPOCH_SET | (uint64_t)least << EPOCH_STRENGTH_SHIFT | (own & keep) |
         (uint64_t)set << LANE_BITS | turn;
}

Epoch last_reads_with(const Actor *actor, Mask mask, Epoch read) {
  const CheckCluster *cluster = actor->cluster;
  const EpochLayout *layout = &cluster->launch->epochs;
  Epoch own = actor_epoch(actor);
  bool single = (mask & (mask - 1)) == 0;
  bool own_before = (read & layout->identity_mask) == actor->identity &&
                    is_no_stronger(actor, epoch_strength(read), epoch_pc(layout, read), actor->thread / LANES);
  if (single && (read == EPOCH_NONE || own_before)) return own;
  if (only_superseded(actor, read)) read = EPOCH_NONE;
  if (single && read == EPOCH_NONE) return own;
  return last_reads_add(actor, mask, read, 0, 1);
}

void last_reads_make_room(const CheckCluster *cluster, Cell *cell) {
  if (!cell->read || epoch_cluster(&cluster->launch->epochs, cell->read) == cluster->id) return;
  cell->foreign = cell->read;
  cell->read = EPOCH_NONE;
}

// Releases the sets that no byte holds any more. Those that bytes of global memory have held stay: other clusters use
// it at the same time.
static void collect_sets(const CheckCluster *cluster) {
  const CheckLaunch *launch = cluster->launch;
  for (int rank = 0; rank < cluster->block_count; rank++) {
    const Region *shared = cluster->shared[rank];
    for (uint64_t offset = 0, run; offset < shared->size; offset += run) {
      Cell cell;
      run = (uint64_t)shadow_run(&shared->shadow, offset, (int)(shared->size - offset), launch->number, &cell);
      if (cell.read & EPOCH_SET) read_sets_keep(cluster->read_sets, epoch_set(&launch->epochs, cell.read));
    }
  }
  read_sets_sweep(cluster->read_sets);
}

void last_reads_keep(const CheckCluster *cluster, const Region *region, Epoch read) {
  if (!(read & EPOCH_SET)) return;
  if (region->kind != REGION_SHARED) read_sets_pin(cluster->read_sets, epoch_set(&cluster->launch->epochs, read));
  if (read_sets_full(cluster->read_sets)) collect_sets(cluster);
}

void last_reads_remember(const CheckCluster *cluster, Region *region, uint64_t offset, int size, const Cell *cell,
                         Epoch read) {
  if (read == cell->read) return;
  shadow_read(&region->shadow, offset, size, cluster->launch->number, read, cell->foreign);
  last_reads_keep(cluster, region, read);
}

bool last_reads_known(const Actor *actor, Epoch read, unsigned step, int turns) {
  const ReadNode *node;
  uint32_t self = actor->thread / LANES;
  Mask own = 1u << actor->thread % LANES;
  for (uint32_t n = epoch_set(actor->layout, read); n; n = node->parent) {
    node = read_sets_node(actor->cluster->read_sets, n);
    bool is_own = node->warp == self && turned(node->mask, epoch_turn(read)) == own && (step || turns == 1);
    Mask mask = turned_all(node->mask, epoch_turn(read), step ? turns : 1);
    if (!is_own && !actors_know(actor, turns, node->warp * (uint32_t)LANES, mask, node->clock)) return false;
  }
  return true;
}
