// Random scripts: see order_script.h.
#include "order_script.h"

#include <stdio.h>
#include <string.h>

#include "order_model.h"

// Lanes of a warp that mostly act together.
typedef struct Team {
  int warp;
  Mask lanes;
  Event last;  // access to data
} Team;

enum { MOST_TEAMS = 4, FLAGS = 1024 };  // flags are from that offset on

typedef struct Generator {
  uint64_t random;
  Script *script;
  Model *model;
  Team teams[MOST_TEAMS];
  int team_count;
  bool careful;  // does nothing that the model finds
  Finding finding;
} Generator;

static int draw(Generator *generator, int below) {
  generator->random = generator->random * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((generator->random >> 33) % (uint64_t)below);
}

static bool one_in(Generator *generator, int count) { return draw(generator, count) == 0; }

// The event happens. One that the model finds mostly does not; if it does it is the last.
static void happen(Generator *generator, Event event) {
  Script *script = generator->script;
  bool reaches = !event.spot.region || (event.spot.region - 1) / script->blocks == cluster_of_warp(script, event.warp);
  if (generator->finding.verdict || script->count == SCRIPT_EVENTS || !reaches) return;
  if (model_objects(generator->model, &event) && (generator->careful || one_in(generator, 2))) return;
  script->events[script->count++] = event;
  model_follow(generator->model, script->count - 1, &generator->finding);
}

// ---- what may happen ----

static Strength draw_scope(Generator *generator) {
  return one_in(generator, 2) ? STRONG_GPU : (Strength)(STRONG_CTA + draw(generator, 3));
}

// Global memory, or shared memory of the team's cluster.
static int draw_region(Generator *generator, const Team *team) {
  const Script *script = generator->script;
  if (!one_in(generator, 3)) return 0;
  return 1 + cluster_of_warp(script, team->warp) * script->blocks + draw(generator, script->blocks);
}

static Event event_of(const Team *team, Action action) {
  return (Event){.action = action, .warp = team->warp, .mask = team->lanes};
}

static Event fence_of(Generator *generator, const Team *team) {
  Event event = event_of(team, one_in(generator, 6) ? PROXY_FENCE : FENCE);
  event.scope = draw_scope(generator);
  return event;
}

// Where the team did something before, or elsewhere.
static void draw_data(Generator *generator, const Team *team, Event *event) {
  static const int offsets[] = {0, 0, 0, 4, 8, 16, 248, FLAGS};
  event->size = 1 << draw(generator, 4);
  event->spot = (Spot){draw_region(generator, team), offsets[draw(generator, 8)] / event->size * event->size};
  event->stride = event->size * (one_in(generator, 4) ? 0 : one_in(generator, 4) ? 2 : 1);
  event->value = (uint8_t)(one_in(generator, 3) ? 1 : draw(generator, 200));
  event->differs = one_in(generator, 2);
}

static Mask draw_lanes(Generator *generator, Mask lanes) {
  if (!one_in(generator, 3)) return lanes;
  Mask some = lanes & (Mask)(generator->random >> 20);
  return one_in(generator, 2) || !some ? lanes & -lanes : some;
}

// The team accesses some data; with `like` mostly what that access has left.
static void access_data(Generator *generator, Team *team, const Event *like) {
  Event event = event_of(team, one_in(generator, 2) ? LOAD : STORE);
  draw_data(generator, team, &event);
  if (like && like->size && !one_in(generator, 4)) {
    event.spot = like->spot;
    event.size = like->size;
    event.stride = one_in(generator, 4) ? 0 : like->stride;
  }
  event.mask = draw_lanes(generator, team->lanes);
  team->last = event;
  happen(generator, event);
}

static Event operation_of(Generator *generator, const Team *team) {
  Event event = event_of(team, BEGIN);
  draw_data(generator, team, &event);
  event.to = (Spot){draw_region(generator, team), one_in(generator, 4) ? FLAGS : draw(generator, 3) * 8};
  event.name = draw(generator, SCRIPT_NAMES);
  event.at = draw(generator, SCRIPT_NAMES);
  event.proxy = !one_in(generator, 3);
  event.collective = one_in(generator, 3);
  event.writes = one_in(generator, 2);
  event.reads = !event.writes || one_in(generator, 2);
  event.scope = event.size >= 4 && one_in(generator, 4) ? STRONG_GPU : WEAK;
  return event;
}

// ---- one team hands on to another ----

static Event draw_flag(Generator *generator, const Team *team) {
  return (Event){.spot = {one_in(generator, 2) ? 0 : draw_region(generator, team), FLAGS + draw(generator, 2) * 8},
                 .size = one_in(generator, 4) ? 8 : 4,
                 .value = (uint8_t)draw(generator, 200)};
}

// The first lane of the team, or some, access the flag.
static void access_flag(Generator *generator, const Team *team, const Event *flag, Action action) {
  static const MemoryOrder orders[] = {
      [STRONG_LOAD] = ORDER_ACQUIRE, [STRONG_STORE] = ORDER_RELEASE, [ATOMIC] = ORDER_ACQ_REL};
  Event event = *flag;
  if (one_in(generator, 3)) action = ATOMIC;
  event.action = action;
  event.warp = team->warp;
  event.mask = team->lanes & -team->lanes;
  if (one_in(generator, 8)) event.mask |= team->lanes & (event.mask << 1 | event.mask << 3);
  if (one_in(generator, 16)) event.size = event.size == 8 ? 4 : 8;
  event.stride = one_in(generator, 8) ? event.size : 0;
  event.scope = draw_scope(generator);
  event.order = one_in(generator, 2) ? ORDER_RELAXED : orders[action];
  if (action == ATOMIC && event.order != ORDER_RELAXED && one_in(generator, 2))
    event.order = one_in(generator, 2) ? ORDER_ACQUIRE : ORDER_RELEASE;
  happen(generator, event);
}

static void gather(Generator *generator, const Team *team) {
  if (one_in(generator, 3)) happen(generator, event_of(team, WARP_BARRIER));
}

static void maybe_fence(Generator *generator, const Team *team) {
  if (one_in(generator, 2)) happen(generator, fence_of(generator, team));
}

static void hand_on_by_flag(Generator *generator, const Team *from, const Team *to) {
  Event flag = draw_flag(generator, from);
  const Team *another = &generator->teams[draw(generator, generator->team_count)];
  gather(generator, from);
  maybe_fence(generator, from);
  access_flag(generator, from, &flag, STRONG_STORE);
  if (one_in(generator, 6)) access_flag(generator, another, &flag, one_in(generator, 2) ? ATOMIC : STRONG_STORE);
  access_flag(generator, to, &flag, STRONG_LOAD);
  maybe_fence(generator, to);
  gather(generator, to);
}

static void hand_on_by_mbarrier(Generator *generator, const Team *from, const Team *to) {
  Event arrival = event_of(from, ARRIVE), wait = event_of(to, WAIT), begin = operation_of(generator, from);
  arrival.name = wait.name = begin.at;
  arrival.relaxed = one_in(generator, 3);
  wait.relaxed = one_in(generator, 3);
  maybe_fence(generator, from);
  if (one_in(generator, 2)) {
    happen(generator, begin);
    begin.action = COMPLETE;
    happen(generator, begin);
  } else {
    happen(generator, arrival);
  }
  happen(generator, wait);
  maybe_fence(generator, to);
}

static void hand_on_by_barrier(Generator *generator, const Team *from, const Team *to) {
  const Script *script = generator->script;
  Event event = event_of(from, BARRIER);
  int count = one_in(generator, 2) ? script->blocks * script->warps : script->warps;
  event.warps = 1u << from->warp | 1u << to->warp;
  if (one_in(generator, 3)) event.warps = ((1u << count) - 1) << from->warp / count * count;
  event.mask = script->lanes;
  if (from->warp == to->warp)
    event = (Event){.action = WARP_BARRIER, .warp = to->warp, .mask = from->lanes | to->lanes};
  bool near = cluster_of_warp(script, from->warp) == cluster_of_warp(script, to->warp);
  if (near) happen(generator, event);
}

static void hand_on(Generator *generator) {
  Team *from = &generator->teams[draw(generator, generator->team_count)];
  Team *to = &generator->teams[draw(generator, generator->team_count)];
  bool near = cluster_of_warp(generator->script, from->warp) == cluster_of_warp(generator->script, to->warp);
  if (one_in(generator, 2)) access_data(generator, from, NULL);
  if (!near || one_in(generator, 2))
    hand_on_by_flag(generator, from, to);
  else
    (one_in(generator, 3) ? hand_on_by_barrier : hand_on_by_mbarrier)(generator, from, to);
  if (one_in(generator, 3)) from = &generator->teams[draw(generator, generator->team_count)];
  if (!one_in(generator, 4)) access_data(generator, to, &from->last);
}

// ---- scripts ----

static void draw_shape(Generator *generator) {
  static const Mask lanes[] = {1, 2, 0xf, 0x80000001, FULL_MASK, FULL_MASK};
  Script *script = generator->script;
  *script = (Script){.clusters = one_in(generator, 3) ? 2 + draw(generator, 2) : 1, .warps = 1 + draw(generator, 2)};
  script->blocks = script->clusters > 1 ? 1 : 1 + draw(generator, 2);
  generator->team_count = 2 + draw(generator, MOST_TEAMS - 1);
  for (int i = 0; i < generator->team_count; i++) {
    Team *team = &generator->teams[i];
    *team = (Team){.warp = draw(generator, script->clusters * script->blocks * script->warps),
                   .lanes = lanes[draw(generator, 6)]};
    script->lanes |= team->lanes;
  }
}

static void draw_step(Generator *generator) {
  Team *team = &generator->teams[draw(generator, generator->team_count)];
  const Team *other = &generator->teams[draw(generator, generator->team_count)];
  Event event = operation_of(generator, team), flag = draw_flag(generator, team);
  switch (draw(generator, 10)) {
  case 0: happen(generator, fence_of(generator, team)); break;
  case 1: happen(generator, event); break;
  case 2:
    event.action = AWAIT;
    happen(generator, event);
    break;
  case 3: access_data(generator, team, &other->last); break;
  case 4:
  case 5: access_flag(generator, team, &flag, one_in(generator, 4) ? STRONG_STORE : STRONG_LOAD); break;
  default: hand_on(generator);
  }
}

void random_script(Script *script, Model *model, Finding *finding, uint64_t seed) {
  Generator generator = {.random = seed * 0x9e3779b97f4a7c15ull + 1, .script = script, .model = model};
  draw_shape(&generator);
  generator.careful = one_in(&generator, 3);
  model_begin(model, script);
  int count = 4 + draw(&generator, SCRIPT_EVENTS - 12);
  for (int tries = 0; !generator.finding.verdict && script->count < count && tries < SCRIPT_EVENTS; tries++)
    draw_step(&generator);
  *finding = generator.finding;
}

// ---- what they are, in words ----

static void print_spot(char *text, size_t size, const char *words, Spot spot) {
  size_t used = strlen(text);
  if (spot.region)
    snprintf(text + used, size - used, "%s shared memory of block %d + %d", words, spot.region - 1, spot.offset);
  else
    snprintf(text + used, size - used, "%s global memory + %d", words, spot.offset);
}

typedef struct Line {
  char text[300];
} Line;

static Line line_of(const Event *event) {
  static const char *const names[ACTIONS] = {
      "load",         "store",   "strong load", "strong store", "atomic", "fence", "fence.proxy.async",
      "warp barrier", "barrier", "arrive",      "wait",         "begin",  "await", "complete"};
  static const char *const scopes[] = {"weak", ".cta", ".cluster", ".gpu"};
  static const char *const orders[] = {"", ".relaxed", ".acquire", ".release", ".acq_rel"};
  Line line = {""};
  char *text = line.text;
  size_t size = sizeof line.text;
  snprintf(text, size, "warp %d, lanes %08x: %s", event->warp, event->mask, names[event->action]);
  size_t used = strlen(text);
  if (event->action >= STRONG_LOAD && event->action <= FENCE)
    snprintf(text + used, size - used, "%s%s", orders[event->order], scopes[event->scope]);
  used = strlen(text);
  if (event->action <= ATOMIC || event->action == BEGIN)
    snprintf(text + used, size - used, " %d bytes, stride %d,", event->size, event->stride);
  if (event->action <= ATOMIC) print_spot(text, size, " at", event->spot);
  if (event->action == BEGIN && event->reads) print_spot(text, size, " from", event->spot);
  if (event->action == BEGIN && event->writes) print_spot(text, size, " to", event->to);
  used = strlen(text);
  if (event->action == STORE || event->action == STRONG_STORE)
    snprintf(text + used, size - used, ", value %d%s", event->value, event->differs ? " + lane" : "");
  if (event->action == BEGIN)
    snprintf(text + used, size - used, "%s%s, %s, number %d", event->proxy ? ", by the async proxy" : "",
             event->collective ? ", collective" : "", scopes[event->scope], event->name);
  if (event->action == BARRIER) snprintf(text + used, size - used, " of warps %x", event->warps);
  if (event->action == ARRIVE || event->action == WAIT)
    snprintf(text + used, size - used, "%s at mbarrier %d", event->relaxed ? ".relaxed" : "", event->name);
  if (event->action == AWAIT) snprintf(text + used, size - used, " number %d", event->name);
  if (event->action == COMPLETE)
    snprintf(text + used, size - used, " number %d at mbarrier %d", event->name, event->at);
  return line;
}

void script_print(const Script *script) {
  printf("%d clusters of %d blocks of %d warps\n", script->clusters, script->blocks, script->warps);
  for (int i = 0; i < script->count; i++) printf("  %2d: %s\n", i + 1, line_of(&script->events[i]).text);
}
