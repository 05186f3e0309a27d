// Conditional nodes of graphs: IF, WHILE and SWITCH, each with bodies, which are graphs. Which body runs is decided by
// the number behind a handle, which kernels set by cudaGraphSetConditional. A handle is the address of this number in
// the emulator's memory: the low 32 bits are the value, and bit 32 is set when there is one (system_call.c).
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define IS_SET (1ull << 32)

struct Conditional {
  uint64_t address;
  uint64_t initial;      // at each launch: the default, or 0
  const void *graph;     // for which it was created, until that is destroyed
  int users;             // that graph, and nodes
  bool is_instantiated;  // by an executable graph
  Conditional *next;
};

static Conditional *conditionals;

static void release_conditional(Conditional *conditional) {
  if (--conditional->users) return;
  Conditional **link = &conditionals;
  while (*link != conditional) link = &(*link)->next;
  *link = conditional->next;
  emulator_free(core.emulator, conditional->address);
  free(conditional);
}

void conditional_forget_graph(const struct CUgraph_st *graph) {
  for (Conditional *c = conditionals, *next; c; c = next) {
    next = c->next;
    if (c->graph != graph) continue;
    c->graph = NULL;
    release_conditional(c);
  }
}

static void set(const Conditional *conditional, uint64_t value) {
  emulator_write(core.emulator, conditional->address, &value, sizeof value);
}

// ---- nodes ----

Condition condition_clone(const Condition *condition) {
  Condition clone = *condition;
  clone.handle->users++;
  clone.bodies = calloc(condition->size, sizeof *clone.bodies);
  for (unsigned i = 0; clone.bodies && i < condition->size; i++) clone.bodies[i] = graph_clone(condition->bodies[i]);
  return clone;
}

void condition_free(Condition *condition) {
  for (unsigned i = 0; condition->bodies && i < condition->size; i++) graph_free(condition->bodies[i]);
  free(condition->bodies);
  release_conditional(condition->handle);
}

static unsigned condition_value(const Conditional *conditional) {
  uint64_t value = 0;
  emulator_read(core.emulator, &value, conditional->address, sizeof value);
  if (!(value & IS_SET))
    core_unwritten(
        conditional->address,
        "a conditional node of a graph reads a handle that has no default (cudaGraphCondAssignDefault), before "
        "a kernel sets it");
  return (unsigned)value;
}

// The body that runs next, or NULL. A WHILE node's runs until the value is 0.
static CUgraph next_body(const Condition *condition) {
  unsigned value = condition_value(condition->handle);
  unsigned body = condition->type == CONDITION_SWITCH ? value : value ? 0 : 1;
  return body < condition->size ? condition->bodies[body] : NULL;
}

CUresult condition_run(const Condition *condition) {
  CUgraph body;
  CUresult status = CUDA_SUCCESS;
  do {
    body = next_body(condition);
    if (body) status = graph_run(body);
  } while (body && condition->type == CONDITION_WHILE && status == CUDA_SUCCESS && core.sticky == CUDA_SUCCESS);
  return status;
}

// ---- graphs with such nodes ----

// Calls visit for each conditional of a graph and of its bodies, until one returns false.
static bool each_conditional(const struct CUgraph_st *graph, bool visit(Conditional *)) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const Operation *operation = &graph->nodes.items[i]->operation;
    if (operation->kind != OPERATION_CONDITION) continue;
    const Condition *condition = &operation->as.condition;
    if (!visit(condition->handle)) return false;
    for (unsigned b = 0; b < condition->size; b++)
      if (!each_conditional(condition->bodies[b], visit)) return false;
  }
  return true;
}

static bool none(Conditional *conditional) { return conditional == NULL; }

bool conditional_in(const struct CUgraph_st *graph) { return !each_conditional(graph, none); }

static bool initialise(Conditional *conditional) {
  set(conditional, conditional->initial);
  return true;
}

void conditional_begin(const struct CUgraph_st *graph) { each_conditional(graph, initialise); }

static bool is_free(Conditional *conditional) { return !conditional->is_instantiated; }

static bool occupy(Conditional *conditional) { return conditional->is_instantiated = true; }

static bool vacate(Conditional *conditional) {
  conditional->is_instantiated = false;
  return true;
}

// A body has kernels, copies, fills, child graphs and conditionals. The name of what else it has, or NULL.
static const char *misplaced(const struct CUgraph_st *graph, bool is_body) {
  const char *found = NULL;
  for (size_t i = 0; i < graph->nodes.count && !found; i++) {
    const Operation *operation = &graph->nodes.items[i]->operation;
    switch (operation->kind) {
    case OPERATION_HOST: found = is_body ? "a host function" : NULL; break;
    case OPERATION_RECORD:
    case OPERATION_WAIT: found = is_body ? "an event" : NULL; break;
    case OPERATION_ALLOCATE:
    case OPERATION_FREE: found = is_body ? "an allocation" : NULL; break;
    case OPERATION_GRAPH: found = misplaced(operation->as.graph, is_body); break;
    case OPERATION_CONDITION:
      for (unsigned b = 0; b < operation->as.condition.size && !found; b++)
        found = misplaced(operation->as.condition.bodies[b], true);
      break;
    default: break;
    }
  }
  return found;
}

CUresult conditional_instantiate(const struct CUgraph_st *graph) {
  const char *found = misplaced(graph, false);
  if (found) {
    core_say("the body of a conditional node has %s: CUDA allows kernels, copies, fills, child graphs and conditionals",
             found);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (!each_conditional(graph, is_free)) {
    core_say("a graph with conditional nodes is instantiated twice: CUDA allows one executable graph of it at a time");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  each_conditional(graph, occupy);
  return CUDA_SUCCESS;
}

void conditional_end(const struct CUgraph_st *graph) { each_conditional(graph, vacate); }

#if CUDA_VERSION >= 12030
API(cuGraphConditionalHandleCreate,
    (CUgraphConditionalHandle * handle, CUgraph graph, CUcontext context, unsigned value, unsigned flags)) {
  ENTER();
  (void)context;
  if (!handle || !graph || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)) return CUDA_ERROR_INVALID_VALUE;
  Conditional *conditional = calloc(1, sizeof *conditional);
  uint64_t address = conditional ? emulator_alloc(core.emulator, sizeof(uint64_t)) : 0;
  if (!address) {
    free(conditional);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *conditional = (Conditional){.address = address,
                               .initial = flags & CU_GRAPH_COND_ASSIGN_DEFAULT ? IS_SET | value : 0,
                               .graph = graph,
                               .users = 1,
                               .next = conditionals};
  conditionals = conditional;
  set(conditional, conditional->initial);
  *handle = address;
  return CUDA_SUCCESS;
}

CUresult condition_of(const CUgraphNodeParams *p, Operation *operation) {
  const CUDA_CONDITIONAL_NODE_PARAMS *given = &p->conditional;
  Conditional *handle = conditionals;
  while (handle && handle->address != given->handle) handle = handle->next;
  bool sized = given->type == CU_GRAPH_COND_TYPE_IF      ? given->size == 1 || given->size == 2
               : given->type == CU_GRAPH_COND_TYPE_WHILE ? given->size == 1
                                                         : given->type == CU_GRAPH_COND_TYPE_SWITCH && given->size > 0;
  if (!handle || !sized) return CUDA_ERROR_INVALID_VALUE;
  CUgraph *bodies = calloc(given->size, sizeof *bodies);
  if (!bodies) return CUDA_ERROR_OUT_OF_MEMORY;
  for (unsigned i = 0; i < given->size; i++) bodies[i] = graph_new();
  handle->users++;
  *operation = (Operation){.kind = OPERATION_CONDITION,
                           .function = "cuGraphLaunch",
                           .as.condition = {handle, (ConditionType)given->type, given->size, bodies}};
  return CUDA_SUCCESS;
}
#endif
