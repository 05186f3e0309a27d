// A functional emulator of sm_90a PTX: the public interface.
//
// It runs the PTX that nvcc emits, on the CPU, and checks it harder than a GPU would. It answers "is it right, is it
// race-free, what does it do" and never "how long": there is no clock in this interface.
//
// One Emulator is used from one host thread at a time; a launch spreads its blocks over threads of its own. When the
// host has no memory for what a launch needs, the process ends with a line on standard error and exit code 2.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Emulator Emulator;
typedef struct EmulatorModule EmulatorModule;

typedef struct EmulatorOptions {
  bool hazards;         // report hazards; without, only what stops a launch is reported
  uint64_t schedule;    // seed of the warp schedule and of async completion times; 0 is the adversarial default
  int threads;          // host threads for a launch; 0: one per core
  uint64_t step_limit;  // warp instructions a launch may execute, 0: no limit
  // Sets glibc's malloc for the whole process so that it keeps what is freed: small launches take two thirds of the
  // time. For programs of which the emulator is the main part.
  bool tunes_malloc;
  // The warps of a cluster execute one instruction each in turn. That resembles an SM more than the default, by which a
  // warp runs until it waits.
  bool fair;
  int steps;  // how many steps are recorded, 0: none. They need a fair schedule and one host thread, and get both
  int values_of;  // a thread of each block whose results are steps too, from 1; 0: none
} EmulatorOptions;

typedef struct EmulatorError {
  int line;  // of the PTX text, 0 when it does not apply
  char message[400];
} EmulatorError;

Emulator *emulator_open(const EmulatorOptions *options);
void emulator_close(Emulator *emulator);

// Global memory. Addresses are the emulator's own and mean nothing to the host. Fresh memory is poisoned, and reading
// it before writing is a hazard. alloc returns 0 when size is 0 or memory is exhausted, aligned to 256 bytes otherwise.
// free, write, read and fill return false when the range is not inside one allocation.
uint64_t emulator_alloc(Emulator *emulator, size_t size);
bool emulator_free(Emulator *emulator, uint64_t address);
// emulator_renew allocates what was freed once more, at its address, as fresh memory; false when nothing freed begins
// there.
bool emulator_renew(Emulator *emulator, uint64_t address);
bool emulator_write(Emulator *emulator, uint64_t address, const void *source, size_t size);
bool emulator_read(Emulator *emulator, void *destination, uint64_t address, size_t size);
bool emulator_fill(Emulator *emulator, uint64_t address, uint8_t byte, size_t size);
// How many of the bytes at the address, from the first on, have been written by anything: size when all of them, or
// when it is not known, because hazards are off or the range is not inside one allocation.
size_t emulator_written(const Emulator *emulator, uint64_t address, size_t size);

// The host's own memory as global memory: both reach it by one pointer, as with CUDA's managed and pinned memory.
// Kernels may access [memory, memory + size) and, because the checks work in units of 256 bytes, what precedes it in
// its unit. What the host does there is not seen: the bytes count as written. The caller keeps the memory until it is
// unmapped. False when a part of it is mapped already, or for unmap when memory is not what was mapped.
bool emulator_map(Emulator *emulator, void *memory, size_t size);
bool emulator_unmap(Emulator *emulator, void *memory);

// How many bytes malloc may give out in kernels: 8 MiB, if this is never called. They belong to the kernels, which free
// them.
void emulator_set_heap(Emulator *emulator, size_t bytes);

// The allocation or variable at an address of global memory.
typedef struct EmulatorRange {
  uint64_t base;
  size_t size;       // bytes
  const char *name;  // of a variable, NULL for an allocation
  bool is_host;      // the host may access it by the same address: it is mapped, or a managed variable
} EmulatorRange;

// The allocation or variable that contains the address; false when there is none.
bool emulator_find(const Emulator *emulator, uint64_t address, EmulatorRange *range);
// Whether the address is the emulator's to give out, so that no pointer of the host has it.
bool emulator_owns(const Emulator *emulator, uint64_t address);

// Bytes of the host's memory, the most at a time since the emulator opened.
typedef struct EmulatorMemory {
  size_t program;  // what a program has: allocations, variables, shared and local memory of the blocks that run
  // What the hazard checks remember of it: the last accesses of each byte. It is one and a half bytes for a byte that a
  // kernel touches in elements of four bytes or more, and five to seven for single bytes: shadow.h says by what it is
  // bounded.
  size_t shadow;
  // What they remember of threads and copies: vector clocks, sets of reads. It depends on how many there are at a time.
  size_t order;
} EmulatorMemory;

EmulatorMemory emulator_memory(const Emulator *emulator);

// ---- modules: the kernels and the variables of a PTX text ----

// Loads a PTX module; NULL and *error when the text is malformed or for another GPU. It lives until the emulator
// closes. An instruction that the emulator does not know fails later: when a kernel is launched that may execute it.
EmulatorModule *emulator_load(Emulator *emulator, const char *ptx, size_t length, EmulatorError *error);
// The same for a text that ptxas has accepted. The text must stay in memory until the emulator closes, because a
// kernel's body is read at its first launch: modules have many kernels, and most programs launch few of them.
EmulatorModule *emulator_load_assembled(Emulator *emulator, const char *ptx, size_t length, EmulatorError *error);

// The PTX of one file of a program.
typedef struct EmulatorText {
  const char *ptx;
  size_t length;
} EmulatorText;

// Loads the PTX of several files as one module, as nvlink links them: .extern variables and functions of one are what
// another defines. NULL and *error also when two define the same, or none an .extern variable. A function that none
// defines is an error of the kernels that call it.
EmulatorModule *emulator_link(Emulator *emulator, const EmulatorText *texts, int count, EmulatorError *error);
// Takes the module's variables out of memory. It must not be used any more.
void emulator_unload(EmulatorModule *module);
// Whether a launch of the kernel would know all its instructions; *error names the first that it does not, with its
// line. kernel may be NULL: all of the module.
bool emulator_check(EmulatorModule *module, const char *kernel, EmulatorError *error);
// The module's kernels in the order of the text; NULL past the last.
const char *emulator_kernel_name(const EmulatorModule *module, int index);
// -1: the module has no such kernel.
int emulator_parameter_count(const EmulatorModule *module, const char *kernel);
// Bytes of one parameter, from 0; 0 when there is none.
size_t emulator_parameter_size(const EmulatorModule *module, const char *kernel, int index);
// Where a parameter begins in the bytes that all of them make up.
size_t emulator_parameter_offset(const EmulatorModule *module, const char *kernel, int index);

// What a kernel needs, and what its PTX says of a launch; 0 where it says nothing. Registers are ptxas's and not known.
typedef struct EmulatorKernel {
  size_t static_shared, local;  // bytes of a block's shared memory and of a thread's local memory, 0 for unknown
                                // instructions
  size_t constants;             // bytes of the module's constant variables, which all its kernels have
  size_t parameter_bytes;
  unsigned max_threads[3];             // .maxntid
  unsigned required_threads[3];        // .reqntid
  unsigned required_cluster[3];        // .reqnctapercluster
  unsigned max_registers, min_blocks;  // .maxnreg, .minnctapersm
} EmulatorKernel;

// False when the module has no such kernel.
bool emulator_kernel(EmulatorModule *module, const char *kernel, EmulatorKernel *result);
// Where a global or constant variable is, from load to close, and its bytes; emulator_read and emulator_write reach it.
// False when the module has none of that name. address and size may be NULL.
bool emulator_symbol(const EmulatorModule *module, const char *name, uint64_t *address, size_t *size);

// ---- launches ----

typedef struct EmulatorLaunch {
  const char *kernel;  // the entry's name
  unsigned grid[3], block[3];
  unsigned cluster[3];           // 0: no cluster (or what the kernel itself requires)
  size_t dynamic_shared;         // bytes
  const void *const *arguments;  // one pointer per parameter, in order, as cuLaunchKernel takes them
  int argument_count;
  // The number of the launch in front, if this one may begin before it has ended (programmatic dependent launch); else
  // 0.
  uint32_t prerequisite;
  bool cooperative;  // all blocks run at a time, as cudaLaunchCooperativeKernel promises: grid.sync() may be used
} EmulatorLaunch;

typedef enum EmulatorStatus {
  EMULATOR_OK,       // ran to its end (hazards may have been reported)
  EMULATOR_FAULT,    // stopped by a hazard after which the kernel cannot go on; the error names it
  EMULATOR_INVALID,  // the launch itself is wrong: no such kernel, a grid too large, too much shared memory, ...
} EmulatorStatus;

EmulatorStatus emulator_launch(Emulator *emulator, EmulatorModule *module, const EmulatorLaunch *launch,
                               EmulatorError *error);

// The number of the last launch, from 1; 0: none yet.
uint32_t emulator_last_launch(const Emulator *emulator);

// ---- tensor maps: what a tensor copy (cp.async.bulk.tensor) knows of a tensor in global memory ----

enum { EMULATOR_TENSOR_RANK = 5, EMULATOR_TENSOR_MAP_BYTES = 128 };

typedef enum EmulatorTensorType {
  EMULATOR_TENSOR_U8,
  EMULATOR_TENSOR_U16,
  EMULATOR_TENSOR_U32,
  EMULATOR_TENSOR_S32,
  EMULATOR_TENSOR_U64,
  EMULATOR_TENSOR_S64,
  EMULATOR_TENSOR_F16,
  EMULATOR_TENSOR_BF16,
  EMULATOR_TENSOR_F32,
  EMULATOR_TENSOR_F64,
  EMULATOR_TENSOR_F32_FTZ,  // additions flush subnormals
  EMULATOR_TENSOR_TF32,     // loads round
  EMULATOR_TENSOR_TF32_FTZ,
} EmulatorTensorType;

typedef enum EmulatorTensorSwizzle {
  EMULATOR_SWIZZLE_NONE,
  EMULATOR_SWIZZLE_32B,
  EMULATOR_SWIZZLE_64B,
  EMULATOR_SWIZZLE_128B,
} EmulatorTensorSwizzle;

// The fields of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col that have a meaning here; dimensions innermost
// first.
typedef struct EmulatorTensorSpec {
  EmulatorTensorType type;
  int rank;                               // 1 to 5
  uint64_t address;                       // a multiple of 16
  uint64_t size[EMULATOR_TENSOR_RANK];    // elements
  uint64_t stride[EMULATOR_TENSOR_RANK];  // bytes, multiples of 16; that of the first dimension is not looked at
  uint32_t box[EMULATOR_TENSOR_RANK];     // elements that one copy spans, at most 256 each
  uint32_t element_stride[EMULATOR_TENSOR_RANK];  // 1 to 8; 0 counts as 1
  EmulatorTensorSwizzle swizzle;
  // Bytes of a slice of channels in an interleaved layout, 16 or 32; 0: no interleave. The dimensions are then W, (H,
  // (D,)) slices, N. Along W slices follow each other without a gap and count as one element each, whatever the type
  // is; stride[1] and those behind it are those of H, (D,) slices, N. A box has one slice of channels, whatever
  // box[rank - 2] is.
  int interleave;
  bool fill_nan;  // elements outside the tensor read as NaN, not as zero
  // In im2col mode, of 3 to 5 dimensions C, W, (H, (D,)) N, or those of an interleaved layout, a copy moves so many
  // pixels, 1 to 1024, each of box[0] channels or of one slice. Without the copy's offsets they are in a box of W, H,
  // D: along dimension d from lower[i] to size[d] - 1 + upper[i], with i = 0 for W. 0: tile mode.
  uint32_t pixels;
  int lower[EMULATOR_TENSOR_RANK - 2], upper[EMULATOR_TENSOR_RANK - 2];
} EmulatorTensorSpec;

// Fills map, which a kernel takes as a CUtensorMap parameter. False and *error when the driver would refuse it.
bool emulator_tensor_map(const EmulatorTensorSpec *spec, uint8_t map[EMULATOR_TENSOR_MAP_BYTES], EmulatorError *error);

// ---- hazards ----

typedef enum HazardKind {
  HAZARD_OUT_OF_BOUNDS,
  HAZARD_MISALIGNED,
  HAZARD_UNINITIALISED_READ,
  HAZARD_SHARED_RACE,
  HAZARD_GLOBAL_RACE,
  HAZARD_DIVERGENT_ALIGNED,
  HAZARD_BARRIER_MISUSE,
  HAZARD_DEADLOCK,
  HAZARD_PROXY_FENCE,          // generic-proxy writes that the async proxy may not see yet
  HAZARD_READ_BEFORE_WAIT,     // of what an asynchronous operation writes, after its beginning; else it is a race
  HAZARD_OVERWRITE_IN_FLIGHT,  // of what an asynchronous operation reads or writes, after its beginning; else a race
  HAZARD_REGISTER_IN_FLIGHT,   // a register that wgmma still uses
  HAZARD_WGMMA_FENCE,
  HAZARD_DESCRIPTOR,
  HAZARD_MBARRIER_MISUSE,
  HAZARD_EXPECT_TX,
  HAZARD_TENSOR_MAP,
  HAZARD_SETMAXNREG,
  HAZARD_TRAP,  // trap, a failed assert, a stack overflow
  HAZARD_STEP_LIMIT,
  HAZARD_KIND_COUNT,
} HazardKind;

// How much a finding weighs.
typedef enum HazardGrade {
  HAZARD_FAULT,   // wrong on the hardware, or undefined there
  HAZARD_FORMAL,  // PTX does not promise it, but the hardware is known to do it: the detail says how that is known
  HAZARD_NOTE,    // worth knowing
  HAZARD_GRADES,
} HazardGrade;

// "shared-memory race", the name the reports and the tests use.
const char *hazard_name(HazardKind kind);
// One sentence: what helps against every cause of the kind, or NULL.
const char *hazard_advice(HazardKind kind);

// A line of the source: that of an instruction, or of a call that was inlined.
typedef struct HazardFrame {
  const char *file;
  int line;
  const char *function;  // that the line is in: "cute::copy"; NULL when the PTX does not tell
} HazardFrame;

typedef struct HazardPlace {
  const char *file;  // source file, NULL when the PTX has no -lineinfo
  int line;          // source line, 0 when unknown: the innermost one in the kernel's own file
  int ptx_line;
  const HazardFrame *frames;  // the instruction's line, then that of each call that brought it there; NULL when unknown
  int frame_count;
  int own;    // which frame file and line are
  int inner;  // how many frames before it a report names: none where the line calls a header from elsewhere
  unsigned block[3], thread[3];
} HazardPlace;

enum { HAZARD_DETAIL = 1600, HAZARD_ADVICE = 600 };

typedef struct Hazard {
  HazardKind kind;
  HazardGrade grade;
  bool stopped;        // the launch could not go on after it
  const char *kernel;  // as the PTX names it
  HazardPlace here;
  bool has_other;
  HazardPlace other;  // the access this one conflicts with
  bool of_stores;     // both are ordinary stores
  uint64_t address;   // in its own space
  int size;           // bytes
  uint64_t count;     // how often this pair of PTX lines was met
  // Of a pair of source lines so many pairs of PTX lines are kept (an unrolled loop has hundreds). The last one that is
  // kept also counts those that are not.
  bool more;
  const char *lines;           // of a deadlock: who waits where and for what, a line each; NULL: none
  char detail[HAZARD_DETAIL];  // one sentence on this very case
  char advice[HAZARD_ADVICE];  // what to change, as it follows from the cause; empty if that is not known
} Hazard;

// Hazards since the emulator opened or the last clear, one per kind, grade and pair of PTX lines, sorted by source
// lines. What may follow from others comes behind them: uninitialised reads and wrong expect_tx, then what stopped a
// launch. At most 1000, and whatever stopped a launch. The array is valid until the next launch or call of this
// function, what it points to until the next clear.
const Hazard *emulator_hazards(const Emulator *emulator, int *count);
void emulator_clear_hazards(Emulator *emulator);

// As many reports as a reader sees: hazards that differ in their PTX lines alone are one.
typedef struct HazardReports {
  int count[HAZARD_GRADES];
} HazardReports;

HazardReports emulator_count_reports(const Hazard *hazards, int count);
// Prints them, each as a few lines of text: of an array as emulator_hazards gives it.
void emulator_print_hazards(FILE *out, const Hazard *hazards, int count);
// Prints one hazard.
void emulator_print_hazard(FILE *out, const Hazard *hazard);

// ---- counters, named as Nsight Compute names them where it has one ----

typedef enum CounterKind {
  COUNTER_INST_EXECUTED,                 // smsp__inst_executed: warp instructions
  COUNTER_THREAD_INST_EXECUTED,          // smsp__thread_inst_executed: those of its lanes, also where @p is false
  COUNTER_THREAD_INST_EXECUTED_PRED_ON,  // smsp__thread_inst_executed_pred_on: where it is true
  COUNTER_INST_INTEGER,                  // warp instructions by class, from here ...
  COUNTER_INST_FP32,
  COUNTER_INST_FP64,
  COUNTER_INST_FP16,
  COUNTER_INST_SPECIAL,  // ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh; see COUNTER_INST_MUFU too
  COUNTER_INST_CONVERT,
  COUNTER_INST_MEMORY,
  COUNTER_INST_CONTROL,
  COUNTER_INST_SYNCHRONISATION,
  COUNTER_INST_TENSOR,
  COUNTER_INST_ASYNC_COPY,
  COUNTER_INST_OTHER,                    // ... to here
  COUNTER_SHARED_LOADS,                  // warp requests, with ldmatrix and stmatrix; cp.async is none. ncu's
  COUNTER_SHARED_STORES,                 // smsp__sass_inst_executed_op_shared is the sum of the three, and wgmma
  COUNTER_SHARED_ATOMICS,                // atom and red
  COUNTER_SHARED_LOAD_WAVEFRONTS,        // l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld
  COUNTER_SHARED_STORE_WAVEFRONTS,       // ..._op_st
  COUNTER_SHARED_ATOMIC_WAVEFRONTS,      // ..._op_atom
  COUNTER_SHARED_LOAD_BANK_CONFLICTS,    // l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld
  COUNTER_SHARED_STORE_BANK_CONFLICTS,   // ..._op_st
  COUNTER_SHARED_ATOMIC_BANK_CONFLICTS,  // ..._op_atom
  COUNTER_GLOBAL_LOAD_REQUESTS,          // l1tex__t_requests_pipe_lsu_mem_global_op_ld: ld and cp.async
  COUNTER_GLOBAL_STORE_REQUESTS,         // ..._op_st
  COUNTER_GLOBAL_ATOMIC_REQUESTS,        // ..._op_atom
  COUNTER_GLOBAL_REDUCTION_REQUESTS,     // ..._op_red
  COUNTER_GLOBAL_COPY_REQUESTS,          // ..._op_ldgsts_cache_access: cp.async.ca, which the loads include
  COUNTER_GLOBAL_LOAD_SECTORS,           // l1tex__t_sectors_pipe_lsu_mem_global_op_ld, 32 bytes each; and so on
  COUNTER_GLOBAL_STORE_SECTORS,
  COUNTER_GLOBAL_ATOMIC_SECTORS,
  COUNTER_GLOBAL_REDUCTION_SECTORS,
  COUNTER_GLOBAL_COPY_SECTORS,
  COUNTER_GLOBAL_LOAD_BYTES,  // bytes that the threads asked for
  COUNTER_GLOBAL_STORE_BYTES,
  COUNTER_GLOBAL_ATOMIC_BYTES,  // atom and red
  COUNTER_TENSOR_FLOPS,
  // Warp instructions MUFU, of the special-function unit: exponentials, logarithms, reciprocals, roots, sines, and the
  // one in each division. An SM does 16 lanes of one a clock, so it is busy for 2 clocks with each. Those on f16x2 and
  // bf16x2 count twice. ncu's pipe "xu" counts these and conversions.
  COUNTER_INST_MUFU,
  // Local memory: arrays with an index known only at run time. Spilled registers are not in PTX, so not here.
  COUNTER_LOCAL_LOAD_REQUESTS,   // l1tex__t_requests_pipe_lsu_mem_local_op_ld: one for each 4 bytes of a thread
  COUNTER_LOCAL_STORE_REQUESTS,  // ..._op_st
  COUNTER_LOCAL_LOAD_SECTORS,    // l1tex__t_sectors_pipe_lsu_mem_local_op_ld
  COUNTER_LOCAL_STORE_SECTORS,   // ..._op_st
  COUNTER_LOCAL_LOAD_BYTES,      // bytes that the threads asked for
  COUNTER_LOCAL_STORE_BYTES,
  // Bytes of shared memory that go past the loads and stores above: 128 of them are one wavefront, when they conflict
  // with nothing. All traffic of shared memory is 128 times the wavefronts above, plus these four.
  COUNTER_WGMMA_SHARED_READ_BYTES,      // operands in shared memory: A 64 x 16, B N x 16, once for the four warps
  COUNTER_CP_ASYNC_SHARED_WRITE_BYTES,  // also the zeros that it fills with
  COUNTER_BULK_SHARED_WRITE_BYTES,      // cp.async.bulk and TMA: into each block of a multicast; also what is filled
  COUNTER_BULK_SHARED_READ_BYTES,       // copies out of shared memory
  // Bytes of global memory that bulk copies and TMA move, as no warp's request: beside GLOBAL_LOAD_BYTES and its kin.
  COUNTER_BULK_GLOBAL_READ_BYTES,   // what lies inside the tensor; once for a multicast
  COUNTER_BULK_GLOBAL_WRITE_BYTES,  // copies and reductions
  // The sectors of those, of each that a copy touches all 32 bytes.
  COUNTER_BULK_LOAD_SECTORS,   // l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld: also of what is filled; in each
                               // block of a multicast, where sectors come in twos
  COUNTER_BULK_STORE_SECTORS,  // l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st
  COUNTER_BULK_REDUCTION_SECTORS,  // ..._op_tma_red
  COUNTER_BULK_CLUSTER_SECTORS,    // l1tex__m_l1tex2xbar_write_sectors_mem_dshared_op_tma_st: from block to block
  // Of another block's shared memory, at an address that mapa made: no shared loads and stores.
  COUNTER_CLUSTER_LOAD_REQUESTS,    // l1tex__t_requests_pipe_lsu_mem_dshared_op_ld
  COUNTER_CLUSTER_STORE_REQUESTS,   // ..._op_st
  COUNTER_CLUSTER_ATOMIC_REQUESTS,  // ..._op_atom: atom and red, each a wavefront of SHARED_ATOMIC too
  COUNTER_CLUSTER_LOAD_SECTORS,     // l1tex__t_sectors_pipe_lsu_mem_dshared_op_ld
  COUNTER_CLUSTER_STORE_SECTORS,    // ..._op_st
  COUNTER_CLUSTER_ATOMIC_SECTORS,   // ..._op_atom
  // Overlap: what a warp executes while something else is under way. No counterpart in ncu; notes/counters.md. Of each
  // warp instructions of all classes, those of COUNTER_INST_FP32, and COUNTER_INST_MUFU.
  COUNTER_INST_UNDER_WGMMA,  // from the warp's wgmma to the wait after which none of its own is pending
  COUNTER_FP32_UNDER_WGMMA,
  COUNTER_MUFU_UNDER_WGMMA,
  COUNTER_INST_UNDER_LOAD,  // while a bulk or tensor load of the cluster, or cp.async of the warp, is pending
  COUNTER_FP32_UNDER_LOAD,
  COUNTER_MUFU_UNDER_LOAD,
  COUNTER_INST_IN_TURN,  // from a barrier that a bar.arrive of others has opened to the warp's next bar.arrive
  COUNTER_FP32_IN_TURN,
  COUNTER_MUFU_IN_TURN,
  COUNTER_INST_UNTIL_ARRIVAL,  // from an mbarrier wait that finds its phase complete to the warp's next arrival at one
  COUNTER_FP32_UNTIL_ARRIVAL,
  COUNTER_MUFU_UNTIL_ARRIVAL,
  COUNTER_LOADS_UNDER_MUFU,  // for each of COUNTER_INST_MUFU the bulk and tensor loads of the cluster that are pending
  // Those of COUNTER_INST_SYNCHRONISATION that are barriers of a block (bar, barrier). None of them polls, so their
  // number does not depend on the order of the warps.
  COUNTER_INST_BARRIER,
  // COUNTER_INST_SYNCHRONISATION without the polls of mbarriers that failed: it does not depend on that order either.
  COUNTER_INST_SYNCHRONISATION_ONCE,
  // COUNTER_INST_UNDER_LOAD without those polls.
  COUNTER_INST_UNDER_LOAD_ONCE,
  // Those of COUNTER_INST_MUFU that must also take and give subnormal numbers: ex2, lg2, rcp, rsqrt and sqrt of fp32
  // without .ftz. ptxas makes at least four instructions of each.
  COUNTER_INST_MUFU_SCALED,
  // Waits for an mbarrier (test_wait, try_wait) whose phase was over already when the warp looked first, and
  // barrier.cluster.wait where all threads of the cluster have arrived. Under the default schedule loads complete as
  // late as possible, in the order in which they were issued: such a wait is for something that was issued before what
  // other waits needed earlier.
  COUNTER_WAITS_AT_ONCE,
  // For each bulk or tensor load, how many loads into the cluster's shared memory are pending once it has started,
  // itself included. Their sum: divided by the number of loads it is the mean.
  COUNTER_LOADS_IN_FLIGHT,
  // For each setmaxnreg that changes a warp's share, the registers of its 32 threads afterwards. Where each warp
  // executes one, the sum is what all threads have together; the launch gave the rest in vain.
  COUNTER_SETMAXNREG_REGISTERS,
  // red instructions to global memory of warps that hold what they have waited for: as COUNTER_INST_UNTIL_ARRIVAL.
  COUNTER_REDUCTIONS_UNTIL_ARRIVAL,
  COUNTER_KIND_COUNT,
} CounterKind;

// "smsp__inst_executed.sum" and the like.
const char *counter_name(CounterKind kind);

typedef struct EmulatorCounters {
  uint64_t value[COUNTER_KIND_COUNT];
} EmulatorCounters;

typedef struct LineCounters {
  const char *file;  // NULL: PTX without a source line
  int line;
  EmulatorCounters counters;
} LineCounters;

// Totals of all launches since the emulator opened or the last clear.
EmulatorCounters emulator_counters(const Emulator *emulator);
// The same per source line (of the kernel's own files; functions inlined from others count under the line that calls
// them), most instructions first. Valid until the next launch.
const LineCounters *emulator_line_counters(const Emulator *emulator, int *count);
void emulator_clear_counters(Emulator *emulator);

// ---- steps: what launches did, in the order in which they did it. That is an order, and no time ----

typedef enum EmulatorStepKind {
  EMULATOR_STEP_LAUNCH_BEGINS,     // what: its number
  EMULATOR_STEP_INSTRUCTION,       // a warp executes an instruction; a poll that fails is one too
  EMULATOR_STEP_OPERATION_BEGINS,  // a copy, or a warp's part of a wgmma; what: its number, from 1
  EMULATOR_STEP_OPERATION_ENDS,    // its data has moved; what: the number
  EMULATOR_STEP_MBARRIER_BEGINS,   // an mbarrier is initialised
  EMULATOR_STEP_MBARRIER_CHANGES,  // arrivals, or bytes that are announced or have come; what: the number of the
                                   // operation that did it, 0: the warp itself
  EMULATOR_STEP_PHASE_ENDS,        // of an mbarrier; pending: of the next phase
  EMULATOR_STEP_WAIT_PASSES,       // the lanes ask for a phase, and it is over
  EMULATOR_STEP_WAIT_FAILS,        // and it is not
  EMULATOR_STEP_VALUE,             // what: the bits of a 32-bit result that the instruction before it computed in one
                                   // lane, in the order of its operands: EmulatorOptions.values_of
} EmulatorStepKind;

// Numbers of 32 bits each, so that an array of them can be written to a file and read as one.
typedef struct EmulatorStep {
  int32_t kind;
  uint32_t block;  // in the grid
  int32_t warp;    // in the block, of what it issued too; -1: none
  uint32_t lanes;  // a bit for each
  int32_t ptx_line;
  int32_t file, line;  // the source line; file: emulator_step_file, -1 when unknown
  uint32_t what;
  uint32_t mbarrier;  // its address in the block's shared memory; of a copy, that which counts its bytes, or 0
  int32_t phase;      // of the mbarrier, from 0: the one that ends, is under way, or is asked for (-1 before the first)
  int32_t pending;    // arrivals that the phase still waits for
  int32_t bytes;      // that it still waits for; of a copy, those that it brings
} EmulatorStep;

// The steps since the emulator opened, and whether there was room for all.
const EmulatorStep *emulator_steps(const Emulator *emulator, int *count, bool *complete);
// NULL past the last.
const char *emulator_step_file(const Emulator *emulator, int number);

#ifdef __cplusplus
}
#endif
