// The control-flow graph of a function: where divergent groups may meet, and which of them should run first.
//
// Threads that went different ways meet again soonest if the group that is furthest behind runs first. "Behind" is an
// order of the basic blocks in which a block comes after everything that can lead to it, loops aside, and a loop's body
// before its exit: the reverse postorder of a depth-first search that leaves loops first (thread frontiers, Diamos et al.,
// MICRO 2011). Nothing but speed depends on it: instructions that need other lanes wait for them wherever they are.
#include "cfg.h"

#include <stdlib.h>

#include "../warp/host_memory.h"

typedef struct BasicBlock {
  uint32_t start, end;  // instructions
  int *successors;
  int successor_count;
  int loop_depth;
  int next_successor;  // of the search
  int state;           // of the search: 0 new, 1 on the stack, 2 finished
} BasicBlock;

typedef struct BackEdge {
  int from, to;
} BackEdge;

typedef struct Graph {
  const Inst *code;
  BasicBlock *blocks;
  int count;
  int *block_of;  // by instruction, from the function's start
  uint32_t start;
  int *stack;
  int *finished;  // blocks in postorder
  int finished_count;
  BackEdge *back_edges;
  int back_edge_count;
} Graph;

static void mark_leaders(Inst *code, const Function *function) {
  code[function->start].leader = true;
  for (uint32_t i = function->start; i < function->end; i++) {
    if (code[i].control == CONTROL_NEXT) continue;
    if (i + 1 < function->end) code[i + 1].leader = true;
    if (code[i].control == CONTROL_BRANCH) code[code[i].immediate].leader = true;
    const BranchTable *table = code[i].extra;
    for (uint32_t t = 0; code[i].control == CONTROL_TABLE && t < table->count; t++)
      code[table->targets[t]].leader = true;
  }
}

static void split_blocks(Graph *graph, const Function *function) {
  for (uint32_t i = function->start; i < function->end; i++) graph->count += graph->code[i].leader;
  graph->blocks = host_allocate((size_t)graph->count, sizeof *graph->blocks);
  graph->block_of = host_allocate(function->end - function->start, sizeof(int));
  int block = -1;
  for (uint32_t i = function->start; i < function->end; i++) {
    if (graph->code[i].leader) graph->blocks[++block].start = i;
    graph->blocks[block].end = i + 1;
    graph->block_of[i - function->start] = block;
  }
}

static void add_successor(Graph *graph, BasicBlock *block, uint32_t target) {
  block->successors[block->successor_count++] = graph->block_of[target - graph->start];
}

static void link_blocks(Graph *graph, const Function *function) {
  for (int b = 0; b < graph->count; b++) {
    BasicBlock *block = &graph->blocks[b];
    const Inst *last = &graph->code[block->end - 1];
    const BranchTable *table = last->control == CONTROL_TABLE ? last->extra : NULL;
    block->successors = host_allocate(2 + (table ? table->count : 0), sizeof(int));
    bool falls_through = last->control == CONTROL_NEXT || last->guarded;
    if (falls_through && block->end < function->end) add_successor(graph, block, block->end);
    if (last->control == CONTROL_BRANCH) add_successor(graph, block, (uint32_t)last->immediate);
    for (uint32_t t = 0; table && t < table->count; t++) add_successor(graph, block, table->targets[t]);
  }
}

// Depth-first search from a block, without recursion. Appends blocks to `finished` in postorder and remembers every edge
// to a block that is on the stack: the back edge of a loop.
static void search(Graph *graph, int root) {
  int depth = 0;
  if (graph->blocks[root].state) return;
  graph->stack[depth++] = root;
  graph->blocks[root].state = 1;
  while (depth > 0) {
    int b = graph->stack[depth - 1];
    BasicBlock *block = &graph->blocks[b];
    if (block->next_successor == block->successor_count) {
      block->state = 2;
      graph->finished[graph->finished_count++] = b;
      depth--;
      continue;
    }
    int to = block->successors[block->next_successor++];
    if (graph->blocks[to].state == 1 && graph->back_edge_count < graph->count)
      graph->back_edges[graph->back_edge_count++] = (BackEdge){b, to};
    if (graph->blocks[to].state) continue;
    graph->blocks[to].state = 1;
    graph->stack[depth++] = to;
  }
}

// Blocks that measure_loops looks at. A kernel of thousands of loops in each other, which no compiler writes, has some of
// them uncounted: it runs slower for that.
enum { MOST_VISITS = 1 << 22 };

// Counts for every block the loops it is in: a loop is the blocks that reach its back edge without passing its head.
static void measure_loops(Graph *graph) {
  int *first_predecessor = host_allocate((size_t)graph->count + 1, sizeof(int));
  for (int b = 0; b < graph->count; b++)
    for (int s = 0; s < graph->blocks[b].successor_count; s++) first_predecessor[graph->blocks[b].successors[s] + 1]++;
  for (int b = 0; b < graph->count; b++) first_predecessor[b + 1] += first_predecessor[b];
  int *predecessors = host_allocate((size_t)first_predecessor[graph->count], sizeof(int));
  int *filled = host_allocate((size_t)graph->count, sizeof(int));
  for (int b = 0; b < graph->count; b++)
    for (int s = 0; s < graph->blocks[b].successor_count; s++) {
      int to = graph->blocks[b].successors[s];
      predecessors[first_predecessor[to] + filled[to]++] = b;
    }
  int *seen = host_allocate((size_t)graph->count, sizeof(int));
  for (int e = 0, visits = 0; e < graph->back_edge_count && visits < MOST_VISITS; e++) {
    int depth = 0, mark = e + 1;
    seen[graph->back_edges[e].to] = mark;
    graph->blocks[graph->back_edges[e].to].loop_depth++;
    graph->stack[depth++] = graph->back_edges[e].from;
    while (depth > 0) {
      int b = graph->stack[--depth];
      if (seen[b] == mark) continue;
      seen[b] = mark;
      visits++;
      graph->blocks[b].loop_depth++;
      for (int p = first_predecessor[b]; p < first_predecessor[b + 1]; p++)
        if (seen[predecessors[p]] != mark && depth < graph->count) graph->stack[depth++] = predecessors[p];
    }
  }
  free(first_predecessor);
  free(predecessors);
  free(filled);
  free(seen);
}

// Puts the successors that leave loops first: they finish first, and so come last in the reverse postorder.
static void sort_successors(Graph *graph) {
  for (int b = 0; b < graph->count; b++) {
    int *list = graph->blocks[b].successors, count = graph->blocks[b].successor_count;
    for (int i = 1; i < count; i++) {
      int block = list[i], at = i;
      for (; at > 0 && graph->blocks[list[at - 1]].loop_depth > graph->blocks[block].loop_depth; at--)
        list[at] = list[at - 1];
      list[at] = block;
    }
  }
}

void cfg_analyse(Program *program, const Function *function) {
  mark_leaders(program->code, function);
  Graph graph = {.code = program->code, .start = function->start};
  split_blocks(&graph, function);
  link_blocks(&graph, function);
  graph.stack = host_allocate((size_t)graph.count + 1, sizeof(int));
  graph.finished = host_allocate((size_t)graph.count, sizeof(int));

  graph.back_edges = host_allocate((size_t)graph.count, sizeof(BackEdge));

  search(&graph, 0);
  measure_loops(&graph);

  sort_successors(&graph);
  for (int b = 0; b < graph.count; b++) graph.blocks[b].state = graph.blocks[b].next_successor = 0;
  graph.finished_count = 0;
  search(&graph, 0);
  for (int b = 1; b < graph.count; b++) search(&graph, b);  // what cannot be reached

  uint32_t priority = function->start;
  for (int f = graph.finished_count - 1; f >= 0; f--) {
    const BasicBlock *block = &graph.blocks[graph.finished[f]];
    for (uint32_t i = block->start; i < block->end; i++) program->code[i].priority = priority++;
  }
  for (int b = 0; b < graph.count; b++) free(graph.blocks[b].successors);
  free(graph.blocks);
  free(graph.block_of);
  free(graph.stack);
  free(graph.finished);
  free(graph.back_edges);
}
