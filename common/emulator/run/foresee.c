// A look ahead: see foresee.h. The warps run as always, with a copy of the program in which instructions that change memory,
// start copies or wait for them do nothing; barriers and mbarriers ask foresee() what to do.
#include "foresee.h"

#include <stdlib.h>
#include <string.h>

#include "../check/hazard.h"
#include "../warp/host_memory.h"
#include "../warp/instruction.h"
#include "../warp/warp.h"
#include "interpreter.h"

enum { STEPS = 1 << 14 };  // of a warp

static void do_nothing(Warp *warp, const Inst *inst, Mask mask) { (void)warp, (void)inst, (void)mask; }

// printf, malloc and the like
static bool is_system_call(const Program *program, const PtxInstruction *source) {
  if (strcmp(source->opcode, "call")) return false;
  for (int i = 0; i < source->operand_count; i++)
    if (source->operands[i].kind == PTX_OPERAND_FUNCTION) return !program_function(program, &source->operands[i]);
  return false;
}

// Whether it signals something: then it asks foresee().
static bool may_signal(const PtxInstruction *source, MemoryUse memory) {
  bool is_async_store = ptx_has(source, "async") && (!strcmp(source->opcode, "st") || !strcmp(source->opcode, "red"));
  return is_async_store || memory == MEMORY_BULK_LOAD || memory == MEMORY_BULK_CLUSTER ||
         (ptx_has(source, "mbarrier") && ptx_has(source, "arrive"));
}

static bool changes_memory(const PtxInstruction *source, MemoryUse memory) {
  if (memory == MEMORY_NONE || memory == MEMORY_LOAD) return false;
  return !ptx_has(source, "local") && !ptx_has(source, "param");
}

// Whether the instruction is executed while warps are only followed.
static bool is_followed(const Program *program, const Inst *inst) {
  static const char *const left_out[] = {"cp",     "wgmma",     "wmma",      "mma",      "setmaxnreg",    "fence",
                                         "membar", "nanosleep", "tensormap", "ldmatrix", "griddepcontrol"};
  const PtxInstruction *source = inst->source;
  MemoryUse memory = inst->row->memory;
  if (may_signal(source, memory)) return true;
  if (changes_memory(source, memory) || is_system_call(program, source)) return false;
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (!strcmp(source->opcode, left_out[i])) return false;
  return strcmp(source->opcode, "mbarrier") || !(ptx_has(source, "init") || ptx_has(source, "inval"));
}

static Inst *copy_code(const Program *program) {
  Inst *code = host_allocate(program->count, sizeof *code);
  memcpy(code, program->code, program->count * sizeof *code);
  for (uint32_t i = 0; i < program->count; i++)
    if (!is_followed(program, &code[i])) code[i].execute = do_nothing;
  return code;
}

// False when it has not come to its end. What reports ask of the warp stays as it was, but not its registers.
static bool follow_to_end(Warp *warp) {
  Warp before = *warp;
  warp->undefined = NULL;  // nothing is checked
  warp->has_undefined = false;
  for (int g = 0; g < warp->group_count; g++) {
    Group *group = &warp->groups[g];
    if (group->state == GROUP_BARRIER) group->pc++;
    group->state = GROUP_READY;
  }
  for (int left = STEPS; left > 0 && warp_ready(warp) && !warp_launch(warp)->stopped;) left -= warp_run(warp, left);
  bool ended = !warp->live;
  // Made when they are first needed, perhaps just now: the warp frees them.
  before.calls = warp->calls;
  before.groups_in_flight = warp->groups_in_flight;
  before.wgmma = warp->wgmma;
  before.flights = warp->flights;
  *warp = before;
  return ended;
}

Foresight foresee_signals(Cluster *cluster) {
  Foresight foresight = {.items = NULL};
  HazardList list = {.items = NULL};
  Launch *running = cluster->launch, launch = *running;
  Program program = *running->program;
  InstCounts *counts = cluster->worker->counts;
  pthread_mutex_init(&list.lock, NULL);
  program.code = copy_code(running->program);
  launch.program = &program;
  launch.hazard_list = &list;
  launch.hazards = false;
  launch.step_limit = 0;
  cluster->launch = &launch;
  cluster->foresight = &foresight;
  cluster->worker->counts = host_allocate(program.count, sizeof(InstCounts));
  for (int w = 0; w < cluster_warps(cluster); w++) {
    Warp *warp = (Warp *)cluster_warp(cluster, w);
    launch.stopped = false;
    if (!warp->live || follow_to_end(warp)) continue;
    foresight.cut_short = true;
    foresight.failed |= launch.stopped;
  }
  free(cluster->worker->counts);
  cluster->worker->counts = counts;
  cluster->foresight = NULL;
  cluster->launch = running;
  free(program.code);
  hazards_clear(&list);
  hazards_free(&list);
  pthread_mutex_destroy(&list.lock);
  return foresight;
}
