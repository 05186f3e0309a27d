// Happens-before by brute force: see order_model.h.
#include "order_model.h"

#include <stdlib.h>
#include <string.h>

// ---- nodes ----

static int new_node(Model *model) {
  int node = ++model->nodes;
  if (node >= MODEL_NODES) abort();
  memset(model->before[node], 0, sizeof model->before[node]);
  return node;
}

// Whether a is b or comes before it.
static bool reaches(const Model *model, int a, int b) { return a == b || (model->before[b][a / 64] >> a % 64 & 1); }

// Without what comes before the first one.
static void put_alone_before(Model *model, int first, int second) {
  model->before[second][first / 64] |= 1ull << first % 64;
}

static void put_before(Model *model, int first, int second) {
  if (!first) return;
  for (int i = 0; i <= model->nodes / 64; i++) model->before[second][i] |= model->before[first][i];
  put_alone_before(model, first, second);
}

// The thread's next node.
static int next_node(Model *model, int thread) {
  int node = new_node(model);
  put_before(model, model->last[thread], node);
  return model->last[thread] = node;
}

static void add_link(Model *model, int *list, int node, Strength scope) {
  if (++model->link_count >= (int)(sizeof model->links / sizeof *model->links)) abort();
  model->links[model->link_count] = (Link){*list, node, scope};
  *list = model->link_count;
}

// What the thread does from here on comes after the node.
static void acquire(Model *model, int thread, int node) {
  if (node) add_link(model, &model->known[thread], node, WEAK);
  if (node && !reaches(model, node, model->last[thread])) put_before(model, node, next_node(model, thread));
}

// What the lanes have done comes before a new node, and so does *node, which becomes it.
static void release(Model *model, int warp, Mask mask, int *node) {
  int joined = new_node(model);
  put_before(model, *node, joined);
  for (; mask; mask &= mask - 1) put_before(model, model->last[warp * LANES + __builtin_ctz(mask)], joined);
  *node = joined;
}

static void acquire_all(Model *model, int warp, Mask mask, int node) {
  for (; mask; mask &= mask - 1) acquire(model, warp * LANES + __builtin_ctz(mask), node);
}

// ---- two accesses ----

// The least scope that has both threads.
static Strength distance(const Model *model, int a, int b) {
  const Script *script = model->script;
  if (cluster_of_warp(script, a / LANES) != cluster_of_warp(script, b / LANES)) return STRONG_GPU;
  return block_of_warp(script, a / LANES) == block_of_warp(script, b / LANES) ? STRONG_CTA : STRONG_CLUSTER;
}

static bool comes_before(const Model *model, int node, const Doer *doer) {
  for (int i = 0; i < doer->count; i++)
    if (reaches(model, node, doer->nodes[i])) return true;
  return false;
}

// "Morally strong", PTX ISA 8.7.1. An operation's elements have no size of their own.
static bool both_strong(const Model *model, const Access *a, const Access *b) {
  Strength least = a->strength < b->strength ? a->strength : b->strength;
  bool same_size = a->by_operation || b->by_operation || a->size == b->size;
  return least != WEAK && same_size && least >= distance(model, a->thread, b->thread);
}

// A strong load that has read the write comes before the doer: PTX ISA 8.9.5, causality order.
static bool has_observed(const Model *model, const Access *write, int byte, const Doer *doer) {
  for (int i = 0; i < write->observer_count; i++) {
    const Observer *load = &write->observers[i];
    bool has_byte = byte >= load->offset && byte < load->offset + load->size;
    if (has_byte && comes_before(model, load->node, doer)) return true;
  }
  return false;
}

// A fence.proxy.async stands between the two.
static bool is_visible(const Model *model, const Access *write, const Doer *doer) {
  for (int i = 1; i <= model->proxy_fence_count; i++) {
    int fence = model->proxy_fences[i].node;
    if (reaches(model, write->node, fence) && comes_before(model, fence, doer)) return true;
  }
  return false;
}

// Of two that nothing orders.
static Verdict judge_unordered(const Access *access, const Access *earlier) {
  if (!access->stores || !earlier->stores || access->value != earlier->value) return RACE;
  if (access->event == earlier->event) return FINE;
  return earlier->strength == WEAK ? EQUAL : RACE;
}

// Of a byte.
static Verdict judge_pair(const Model *model, const Access *access, const Access *earlier, int byte, const Doer *doer) {
  bool ordered = comes_before(model, earlier->node, doer) || both_strong(model, access, earlier) ||
                 (access->writes && earlier->writes && has_observed(model, earlier, byte, doer));
  if (!access->writes && !earlier->writes) return FINE;
  if (!ordered) return judge_unordered(access, earlier);
  if (!access->by_proxy || earlier->by_proxy || !earlier->writes) return FINE;
  return is_visible(model, earlier, doer) ? FINE : UNSEEN;
}

// The access, and the reads of a byte since its last write. Of several reads the race check may forget some if another
// cluster's are among them.
static Verdict judge_reads(const Model *model, const Access *access, int byte, const Doer *doer, bool *may_be_missed) {
  int first = model->first_read[access->spot.region][byte];
  Verdict verdict = FINE;
  for (int i = first; i; i = model->reads[i].next) {
    const Access *read = &model->accesses[model->reads[i].access];
    *may_be_missed |= model->reads[first].next && distance(model, access->thread, read->thread) == STRONG_GPU;
    if (judge_pair(model, access, read, byte, doer) != FINE) verdict = RACE;
  }
  return verdict;
}

// The access, and what was done to a byte: the last write, and the reads since then.
static Verdict judge_byte(const Model *model, const Access *access, int byte, const Doer *doer, bool *may_be_missed) {
  int region = access->spot.region, write = model->last_write[region][byte];
  Verdict verdict = write ? judge_pair(model, access, &model->accesses[write], byte, doer) : FINE;
  *may_be_missed = false;
  if (verdict == RACE || verdict == EQUAL) return verdict;
  return judge_reads(model, access, byte, doer, may_be_missed) == RACE ? RACE : verdict;
}

// The first of some bytes of the access that is not fine.
static Finding judge_bytes(const Model *model, const Access *access, int first, int count, const Doer *doer) {
  Finding finding = {FINE, access->event, access->thread, {access->spot.region, access->spot.offset + first}, false};
  for (; count > 0; count--, finding.byte.offset++) {
    finding.verdict = judge_byte(model, access, finding.byte.offset, doer, &finding.may_be_missed);
    if (finding.verdict != FINE) break;
  }
  return finding;
}

static Finding judge(const Model *model, const Access *access, const Doer *doer) {
  return judge_bytes(model, access, 0, access->size, doer);
}

// Whether a report on the finding may name the access as the other one.
static bool may_be_named(const Model *model, const Finding *finding, const Access *other, int event, int thread) {
  bool is_far = distance(model, finding->thread, other->thread) == STRONG_GPU;
  if (other->event != event) return false;
  if (is_far && !other->writes) return true;  // one of several reads stands for all
  if (other->thread != thread && !(is_far && other->by_operation)) return false;
  return judge_pair(model, &model->found, other, finding->byte.offset, &model->found_doer) == finding->verdict;
}

bool model_agrees(const Model *model, const Finding *finding, int event, int thread) {
  int region = finding->byte.region, byte = finding->byte.offset, write = model->last_write[region][byte];
  if (write && may_be_named(model, finding, &model->accesses[write], event, thread)) return true;
  for (int i = model->first_read[region][byte]; i; i = model->reads[i].next)
    if (may_be_named(model, finding, &model->accesses[model->reads[i].access], event, thread)) return true;
  return false;
}

// ---- accesses happen ----

static void remember(Model *model, const Access *access) {
  int index = ++model->access_count, region = access->spot.region;
  if (index >= MODEL_ACCESSES) abort();
  model->accesses[index] = *access;
  for (int byte = access->spot.offset; byte < access->spot.offset + access->size; byte++) {
    int *read = &model->first_read[region][byte];
    if (access->writes) {
      model->last_write[region][byte] = index;
      *read = 0;
    } else {
      model->reads[++model->read_count] = (Read){*read, index};
      *read = model->read_count;
    }
  }
}

// A strong load is kept with what it has read, if it is one of the first few.
static void observe(Model *model, const Access *load) {
  Observer observer = {load->node, load->spot.offset, load->size};
  for (int i = 0; i < load->size; i++) {
    Access *write = &model->accesses[model->last_write[load->spot.region][load->spot.offset + i]];
    int count = write->observer_count;
    bool is_own = write->thread == load->thread && !write->by_operation;
    if (!write->node || is_own || !both_strong(model, load, write)) continue;
    if (count < OBSERVERS && (!count || write->observers[count - 1].node != load->node))
      write->observers[write->observer_count++] = observer;
  }
}

static bool is_fine(Model *model, const Access *access, int first, int count, const Doer *doer, Finding *finding) {
  *finding = judge_bytes(model, access, first, count, doer);
  model->found = *access;
  model->found_doer = *doer;
  return finding->verdict == FINE;
}

static bool make_access(Model *model, const Access *access, const Doer *doer, Finding *finding) {
  if (!is_fine(model, access, 0, access->size, doer, finding)) return false;
  if (access->strength != WEAK && !access->writes) observe(model, access);
  remember(model, access);
  return true;
}

static Access access_of(const Event *event, int lane) {
  bool stores = event->action == STORE || event->action == STRONG_STORE;
  return (Access){.event = -1,
                  .thread = event->warp * LANES + lane,
                  .spot = {event->spot.region, lane_offset(event, lane)},
                  .size = event->size,
                  .strength = event->action == LOAD || event->action == STORE ? WEAK : event->scope,
                  .writes = stores || event->action == ATOMIC,
                  .stores = stores,
                  .value = lane_value(event, lane)};
}

// ---- what memory hands on ----

// Fences of the async proxy that come before the thread, and after the fence whose node it hands on, count all the
// same, for what the fence has covered of the accesses of the thread's cluster.
static void add_late_proxy_fences(Model *model, int thread, int node) {
  int fences = model->proxy_fence_count;
  for (int a = 1; a <= model->access_count; a++) {
    const Access *access = &model->accesses[a];
    bool is_near = distance(model, access->thread, thread) != STRONG_GPU;
    if (!is_near || !access->writes || access->by_proxy || !reaches(model, access->node, node)) continue;
    if (!is_visible(model, access, &(Doer){{model->last[thread]}, 1}) || is_visible(model, access, &(Doer){{node}, 1}))
      continue;
    if (fences == model->proxy_fence_count)
      model->proxy_fences[++model->proxy_fence_count] = (Fence){.node = new_node(model)};
    put_alone_before(model, access->node, model->proxy_fences[model->proxy_fence_count].node);
  }
  if (fences < model->proxy_fence_count)
    put_alone_before(model, model->proxy_fences[model->proxy_fence_count].node, node);
}

// Of a relaxed write: what fences that reach so far have covered.
static int fenced(Model *model, int thread, Strength reader) {
  int node = 0;
  for (int i = 1; i <= model->fence_count; i++) {
    const Fence *fence = &model->fences[i];
    if (fence->scope < reader || !reaches(model, fence->token, model->last[thread])) continue;
    if (!node) node = new_node(model);
    put_before(model, fence->node, node);
  }
  if (node) add_late_proxy_fences(model, thread, node);
  return node;
}

static void add_fence(Model *model, int node, Strength scope) {
  int token = new_node(model);
  model->tokens[token / 64] |= 1ull << token % 64;
  model->fences[++model->fence_count] = (Fence){node, token, scope};
  put_alone_before(model, token, node);
}

// As another cluster gets it.
static int without_tokens(Model *model, int node) {
  int copy = new_node(model);
  for (int i = 0; i < MODEL_WORDS; i++) model->before[copy][i] = model->before[node][i] & ~model->tokens[i];
  return copy;
}

static bool releases(MemoryOrder order) { return order == ORDER_RELEASE || order == ORDER_ACQ_REL; }
static bool acquires(MemoryOrder order) { return order == ORDER_ACQUIRE || order == ORDER_ACQ_REL; }

static int add_handover(Model *model, const Handover *handover) {
  model->handovers[++model->handover_count] = *handover;
  return model->handover_count;
}

// An atomic of the thread continues what other clusters hand on: what fences of .gpu scope have covered, and as if by
// one of its own.
static int continued(Model *model, int thread, int index) {
  if (!index || distance(model, model->handovers[index].thread, thread) != STRONG_GPU) return index;
  int all = new_node(model);
  for (; index; index = model->handovers[index].next) {
    int node = model->handovers[index].nodes[STRONG_GPU];
    if (node) put_before(model, without_tokens(model, node), all);
  }
  add_fence(model, all, STRONG_GPU);
  return add_handover(model, &(Handover){0, thread, {0, all, all, all}});
}

// What the thread's strong write hands on now, and what it continues. A release is a fence for those who acquire it.
static int hand_over(Model *model, const Event *event, int thread, int next) {
  Handover handover = {.thread = thread};
  int released = 0;
  if (releases(event->order)) {
    release(model, thread / LANES, 1u << thread % LANES, &released);
    add_fence(model, released, event->scope);
  }
  for (Strength reader = STRONG_CTA; reader <= STRONG_GPU; reader++)
    handover.nodes[reader] = released && reader <= event->scope ? released : fenced(model, thread, reader);
  if (!handover.nodes[STRONG_CTA]) return next;
  handover.next = continued(model, thread, next);
  return add_handover(model, &handover);
}

// The write that a strong read finds, if it is one of the same place and size; else 0.
static int found_write(const Model *model, const Access *read) {
  int write = model->last_write[read->spot.region][read->spot.offset];
  const Access *found = &model->accesses[write];
  if (!write || found->spot.offset != read->spot.offset || found->size != read->size) return 0;
  for (int i = 0; i < read->size; i++)
    if (model->last_write[read->spot.region][read->spot.offset + i] != write) return 0;
  return write;
}

// The thread's strong read finds what was handed over.
static void take_over(Model *model, const Event *event, int thread, int index) {
  for (; index; index = model->handovers[index].next) {
    const Handover *handover = &model->handovers[index];
    Strength needed = distance(model, handover->thread, thread);
    int node = handover->nodes[needed];
    if (!node || event->scope < needed) continue;
    if (needed == STRONG_GPU) node = without_tokens(model, node);
    if (acquires(event->order))
      acquire(model, thread, node);
    else
      add_link(model, &model->pending[thread], node, needed);
  }
}

// ---- events ----

static bool follow_lane(Model *model, const Event *event, int index, int lane, Finding *finding) {
  Access access = access_of(event, lane);
  access.event = index;
  bool is_strong = access.strength != WEAK, reads = !access.stores;
  int found = is_strong && reads ? model->accesses[found_write(model, &access)].handover : 0;
  if (event->action == STRONG_STORE) access.handover = hand_over(model, event, access.thread, 0);
  access.node = next_node(model, access.thread);
  if (!make_access(model, &access, &(Doer){{access.node}, 1}, finding)) return false;
  if (is_strong && reads) take_over(model, event, access.thread, found);
  if (event->action == ATOMIC)
    model->accesses[model->access_count].handover = hand_over(model, event, access.thread, found);
  return true;
}

// Lanes that load one place together find the first byte before the second.
static bool is_fine_together(Model *model, const Event *event, int index, Finding *finding) {
  for (int i = 0; i < event->size; i++)
    for (Mask rest = event->mask; rest; rest &= rest - 1) {
      Access access = access_of(event, __builtin_ctz(rest));
      access.event = index;
      if (!is_fine(model, &access, i, 1, &(Doer){{model->last[access.thread]}, 1}, finding)) return false;
    }
  return true;
}

static bool follow_lanes(Model *model, const Event *event, int index, Finding *finding) {
  bool together = event->stride == 0 && (event->action == LOAD || event->action == STRONG_LOAD);
  if (together && !is_fine_together(model, event, index, finding)) return false;
  for (Mask rest = event->mask; rest; rest &= rest - 1)
    if (!follow_lane(model, event, index, __builtin_ctz(rest), finding)) return false;
  return true;
}

static void follow_fence(Model *model, const Event *event, int thread) {
  int node = next_node(model, thread);
  bool is_proxy_fence = event->action == PROXY_FENCE;
  for (int *at = &model->pending[thread]; *at && !is_proxy_fence;) {
    Link *pending = &model->links[*at];
    bool acquired = pending->scope <= event->scope;
    if (acquired) put_before(model, pending->node, node);
    if (acquired)
      *at = pending->next;
    else
      at = &pending->next;
  }
  model->known[thread] = 0;
  add_link(model, &model->known[thread], node, WEAK);
  if (is_proxy_fence)
    model->proxy_fences[++model->proxy_fence_count] = (Fence){.node = node};
  else
    add_fence(model, node, event->scope);
}

static void follow_barrier(Model *model, const Event *event) {
  int joined = 0;
  for (int warp = 0; warp < SCRIPT_WARPS; warp++)
    if (event->warps >> warp & 1) release(model, warp, event->mask, &joined);
  for (int warp = 0; warp < SCRIPT_WARPS; warp++)
    if (event->warps >> warp & 1) acquire_all(model, warp, event->mask, joined);
}

static void arrive(Model *model, const Event *event, int *mbarrier) {
  const Script *script = model->script;
  int own = block_of_warp(script, event->warp) % script->blocks;
  Strength scope = event->name % script->blocks == own ? STRONG_CTA : STRONG_CLUSTER;
  if (!event->relaxed) {
    release(model, event->warp, event->mask, mbarrier);
    return;
  }
  int joined = new_node(model);
  put_before(model, *mbarrier, joined);
  for (Mask rest = event->mask; rest; rest &= rest - 1)
    put_before(model, fenced(model, event->warp * LANES + __builtin_ctz(rest), scope), joined);
  *mbarrier = joined;
}

static void wait(Model *model, const Event *event, int mbarrier) {
  if (!event->relaxed) acquire_all(model, event->warp, event->mask, mbarrier);
  for (Mask rest = event->relaxed && mbarrier ? event->mask : 0; rest; rest &= rest - 1)
    add_link(model, &model->pending[event->warp * LANES + __builtin_ctz(rest)], mbarrier, STRONG_CTA);
}

static Access operation_access(const Event *event, bool writes) {
  return (Access){.event = -1,
                  .thread = event->warp * LANES + __builtin_ctz(event->mask),
                  .spot = writes ? event->to : event->spot,
                  .size = event->size,
                  .strength = writes ? event->scope : WEAK,
                  .writes = writes,
                  .by_operation = true,
                  .by_proxy = event->proxy,
                  .value = event->value};
}

static Mask issuers(const Event *event) { return event->collective ? event->mask : event->mask & -event->mask; }

// With an operation an mbarrier hands on what its issuer had acquired and its fences had covered.
static void end_operation(Model *model, const Event *event, int node, Operation *operation) {
  int issuer = event->warp * LANES + __builtin_ctz(event->mask);
  put_alone_before(model, node, operation->over = new_node(model));
  put_alone_before(model, node, operation->handed = new_node(model));
  if (event->collective) put_before(model, node, operation->handed);
  for (int at = model->known[issuer]; at; at = model->links[at].next)
    put_before(model, model->links[at].node, operation->handed);
}

static bool begin(Model *model, const Event *event, int index, Operation *operation, Finding *finding) {
  int node = 0;
  *operation = (Operation){.warp = event->warp, .lanes = issuers(event)};
  release(model, event->warp, operation->lanes, &node);
  for (int writes = 0; writes <= 1; writes++) {
    if (!(writes ? event->writes : event->reads)) continue;
    Access access = operation_access(event, writes);
    access.event = index;
    access.node = node;
    if (!make_access(model, &access, &(Doer){{node}, 1}, finding)) return false;
  }
  end_operation(model, event, node, operation);
  return true;
}

bool model_follow(Model *model, int index, Finding *finding) {
  const Event *event = &model->script->events[index];
  int cluster = cluster_of_warp(model->script, event->warp);
  Operation *operation = &model->operations[cluster][event->name];
  int *mbarriers = model->mbarriers[cluster];
  switch (event->action) {
  case FENCE:
  case PROXY_FENCE:
    for (Mask rest = event->mask; rest; rest &= rest - 1)
      follow_fence(model, event, event->warp * LANES + __builtin_ctz(rest));
    break;
  case WARP_BARRIER: follow_barrier(model, &(Event){.warps = 1u << event->warp, .mask = event->mask}); break;
  case BARRIER: follow_barrier(model, event); break;
  case ARRIVE: arrive(model, event, &mbarriers[event->name]); break;
  case WAIT: wait(model, event, mbarriers[event->name]); break;
  case BEGIN: return begin(model, event, index, operation, finding);
  case AWAIT: acquire_all(model, operation->warp, operation->lanes, operation->over); break;
  case COMPLETE:
    if (!operation->over) break;
    release(model, 0, 0, &mbarriers[event->at]);
    put_before(model, operation->handed, mbarriers[event->at]);
    break;
  default: return follow_lanes(model, event, index, finding);
  }
  return true;
}

bool model_objects(Model *model, const Event *event) {
  Doer all = {.count = 0};
  if (event->action > ATOMIC && event->action != BEGIN) return false;
  for (Mask rest = event->action == BEGIN ? issuers(event) : event->mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), last = model->last[event->warp * LANES + lane];
    Access access = access_of(event, lane);
    all.nodes[all.count++] = last;
    if (event->action != BEGIN && judge(model, &access, &(Doer){{last}, 1}).verdict != FINE) return true;
  }
  if (event->action != BEGIN) return false;
  Access read = operation_access(event, false), write = operation_access(event, true);
  return (event->reads && judge(model, &read, &all).verdict != FINE) ||
         (event->writes && judge(model, &write, &all).verdict != FINE);
}

void model_begin(Model *model, const Script *script) {
  memset((char *)model + offsetof(Model, nodes), 0, sizeof *model - offsetof(Model, nodes));
  model->script = script;
  for (int thread = 0; thread < SCRIPT_THREADS; thread++) model->last[thread] = 0;
  model->accesses[0] = (Access){0};
}
