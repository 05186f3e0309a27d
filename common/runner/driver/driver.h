// What the files of the driver API tell each other.
#pragma once

#include "../core.h"

// ---- context.c ----

// The context that is current on this thread, or NULL.
CUcontext context_current(void);

// ---- memory.c: allocations and copies ----

typedef enum MemoryKind { MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_HOST, MEMORY_REGISTERED } MemoryKind;

typedef struct Allocation {
  uint64_t base;
  size_t size;
  MemoryKind kind;
  unsigned flags;  // of cuMemHostAlloc, cuMemHostRegister
  uint64_t id;
} Allocation;

// The allocation that contains the address, or NULL.
Allocation *memory_at(uint64_t address);
CUresult memory_allocate(MemoryKind kind, size_t size, unsigned flags, uint64_t *address);
CUresult memory_release(uint64_t address, const char *function);
// An address for device memory that does not exist yet, and the memory there: fresh each time. 0: no room.
uint64_t memory_reserve(size_t size);
CUresult memory_renew(uint64_t address, size_t size);
void memory_free_all(void);
size_t memory_used(void);
// Copies between memory of any kind: an address that is not the emulator's is the host's.
CUresult memory_copy(uint64_t to, uint64_t from, size_t size, const char *function);
// Fills count elements of 1, 2 or 4 bytes.
CUresult memory_fill(uint64_t to, uint32_t value, int size, size_t count, const char *function);

// ---- module.c ----

typedef struct Function {
  struct CUmod_st *module;
  struct Function *next;
  char *name;
  EmulatorKernel info;  // function_info() fills it
  bool info_known;
  int parameter_count;
  unsigned max_dynamic_shared;  // opted into
  bool large_clusters;          // more than 8 blocks opted into
  int carveout;
  unsigned cluster[3];  // required by an attribute
} Function;

struct CUmod_st {
  EmulatorModule *loaded;
  Function *functions;
  struct CUmod_st *next;
};

const EmulatorKernel *function_info(Function *function);

// The PTX that a module consists of: more than one text, if it is linked.
typedef struct Texts {
  EmulatorText *items;
  int count;
} Texts;

// Stands between the texts that the linker hands on in one image.
#define TEXT_BORDER "\n//// hopper-run: the next file ////\n"

// Reads a fatbin, its wrapper, or PTX that ends with a 0.
CUresult texts_of(const void *image, Texts *texts);
// Adds the PTX of each fatbin in an object or a library of `size` bytes; in link.c, as is texts_join.
CUresult texts_of_object(const char *bytes, size_t size, const char *name, Texts *texts);
// All texts in one, with borders, which the caller frees; NULL when memory is exhausted.
char *texts_join(const Texts *texts);
// Takes over the text. False when memory is exhausted, or the text is NULL.
bool texts_add(Texts *texts, char *text);
void texts_free(Texts *texts);
// Adds the barrier of a grid, if the texts call it and none defines it: grid_barrier.c.
void add_grid_barrier(Texts *texts);
// The bytes of a file, with zeros behind them, which the caller frees; or NULL.
char *module_read_file(const char *path, size_t *size);

// ---- stream.c: what is put into a stream is done at once, or becomes a node of a graph while the stream captures ----

typedef enum OperationKind {
  OPERATION_EMPTY,
  OPERATION_LAUNCH,
  OPERATION_COPY,
  OPERATION_FILL,
  OPERATION_HOST,
  OPERATION_RECORD,
  OPERATION_WAIT,
  OPERATION_GRAPH,
  OPERATION_ALLOCATE,
  OPERATION_FREE,
  OPERATION_CONDITION,
} OperationKind;

typedef struct Launch {
  Function *function;
  unsigned grid[3], block[3], cluster[3];  // cluster 0: none
  unsigned shared;
  bool cooperative;
  bool programmatic;      // may begin before the launch in front of it in the stream has ended
  uint32_t prerequisite;  // that launch's number (EmulatorLaunch), or 0
  uint8_t *parameters;    // packed as in PTX; the operation owns it
} Launch;

typedef struct Fill {
  uint64_t to;
  uint32_t value;
  int size;  // of an element
  size_t width, height, pitch;
} Fill;

typedef struct Conditional Conditional;  // a handle of conditional.c

// The numbers of CUgraphConditionalNodeType.
typedef enum ConditionType { CONDITION_IF, CONDITION_WHILE, CONDITION_SWITCH } ConditionType;

typedef struct Condition {
  Conditional *handle;
  ConditionType type;
  unsigned size;
  CUgraph *bodies;  // so many
} Condition;

typedef struct Operation {
  OperationKind kind;
  const char *function;  // of the API, for messages
  union {
    Launch launch;
    CUDA_MEMCPY3D copy;
    Fill fill;
    CUDA_HOST_NODE_PARAMS host;
    CUevent event;
    CUgraph graph;
    Condition condition;
    struct {
      uint64_t address;
      size_t size;
    } memory;
  } as;
} Operation;

// The host has waited: all launches so far have ended.
void stream_settle(void);
// A programmatic event is recorded by the last launch: what waits for it may begin before that launch has ended.
void event_record_early(CUevent event);
// Takes over what the operation owns.
CUresult stream_do(CUstream stream, Operation *operation);
CUresult operation_run(const Operation *operation);
void operation_free(Operation *operation);
// Copies a thing with what it owns.
Operation operation_clone(const Operation *operation);
// The default streams' handles, which are no pointers, and NULL become the default stream; NULL: no stream.
struct CUstream_st *stream_of(CUstream handle);
bool stream_captures(CUstream handle);

// ---- launch.c ----

CUresult launch_do(const Launch *launch);
// Packs the arguments; *parameters is the caller's to free.
CUresult launch_pack(Function *function, void **arguments, void **extra, uint8_t **parameters);
Launch launch_clone(const Launch *launch);

// ---- copy.c ----

CUresult copy_run(const CUDA_MEMCPY3D *copy, const char *function);

// ---- occupancy.c ----

int occupancy_blocks(Function *function, int threads, size_t dynamic_shared);

// ---- device.c ----

enum { SM_COUNT = 132, MAX_SHARED_BLOCK = 227 * 1024, MAX_SHARED_SM = 228 * 1024, RESERVED_SHARED = 1024 };
#define DEVICE_MEMORY 85045542912ull  // bytes, of an H100 SXM with 80 GB
#define DEVICE_NAME "NVIDIA H100 80GB HBM3"

// ---- stream.c and graph.c ----

// What a stream records of itself between cuStreamBeginCapture and cuStreamEndCapture. A stream that waits for an event
// of the capture takes part in it.
typedef struct Capture {
  CUgraph graph;
  uint64_t id;
  bool broken;
  struct CUstream_st *origin;
} Capture;

// Nodes, in no particular order.
typedef struct NodeList {
  CUgraphNode *items;
  size_t count, capacity;
} NodeList;

bool node_list_add(NodeList *list, CUgraphNode node);
void node_list_copy(NodeList *to, const NodeList *from);

// Takes over what the operation owns; NULL when memory is exhausted.
CUgraphNode graph_add(CUgraph graph, const CUgraphNode *dependencies, size_t count, Operation *operation);
CUgraph graph_new(void);
void graph_free(CUgraph graph);
CUgraph graph_clone(const struct CUgraph_st *graph);
CUresult graph_run(CUgraph graph);

// ---- graph_memory.c: what a graph allocates ----

// Adds a node to the graph that a stream captures. An address that no graph has allocated is an error.
CUresult graph_memory_capture(CUstream stream, CUdeviceptr *address, size_t size);
CUresult graph_memory_capture_free(CUstream stream, CUdeviceptr address);
CUresult graph_memory_allocate(uint64_t address, size_t size);
CUresult graph_memory_free(uint64_t address);

// ---- conditional.c ----

Condition condition_clone(const Condition *condition);
void condition_free(Condition *condition);
CUresult condition_run(const Condition *condition);
