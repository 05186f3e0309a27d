// The table of instructions: the function that decodes each, its class, its use of memory and registers, and the oldest
// target that has it. A new instruction is a row here and a function in the room it belongs to: notes/emulator.md shows
// how.
#include "module.h"

#include <stdio.h>
#include <string.h>

#include "../async/families.h"
#include "../flow/families.h"
#include "../memory/families.h"
#include "../scalar/families.h"
#include "../tensor/families.h"

// Sets of types, for Instruction.types.
enum {
  SINGLE = 1 << PTX_F32,
  DOUBLE = 1 << PTX_F64,
  HALF = 1 << PTX_F16 | 1 << PTX_BF16,
  HALF_PAIR = 1 << PTX_F16X2 | 1 << PTX_BF16X2,
  HALVES = HALF | HALF_PAIR,
  INTEGERS = ~(SINGLE | DOUBLE | HALVES),  // bits and predicates too
};

#define COMPUTED VALUES_COMPUTED
#define MOVED VALUES_MOVED
#define OF_MEMORY VALUES_OF_MEMORY
#define COPIED ADDRESS_COPIED
#define ADDED ADDRESS_ADDED
#define DERIVED ADDRESS_DERIVED

#define ROW(syntax, function, class, ...)                                                                              \
  { .name = syntax, .decode = function, .counter = COUNTER_INST_##class, __VA_ARGS__ }

// Of the rows that an instruction fits, the one with the most modifiers is its own. The order of rows means nothing.
// clang-format off
static const Instruction table[] = {
    //  opcode and modifiers              decoded by                     class
    // arithmetic of integers, bits
    ROW("add",                            decode_integer,                INTEGER, .types = INTEGERS, .address = ADDED),
    ROW("sub",                            decode_integer,                INTEGER,
        .types = INTEGERS, .address = DERIVED),
    ROW("mul",                            decode_integer,                INTEGER, .types = INTEGERS),
    ROW("mad",                            decode_integer,                INTEGER,
        .types = INTEGERS, .address = DERIVED),
    ROW("mul24",                          decode_integer,                INTEGER, .types = INTEGERS),
    ROW("mad24",                          decode_integer,                INTEGER, .types = INTEGERS),
    ROW("sad",                            decode_integer,                INTEGER, .types = INTEGERS),
    ROW("min",                            decode_integer,                INTEGER, .types = INTEGERS),
    ROW("max",                            decode_integer,                INTEGER, .types = INTEGERS),
    ROW("abs",                            decode_integer,                INTEGER, .types = INTEGERS),
    ROW("neg",                            decode_integer,                INTEGER, .types = INTEGERS),
    ROW("dp4a",                           decode_integer,                INTEGER, .types = INTEGERS),
    ROW("dp2a",                           decode_integer,                INTEGER, .types = INTEGERS),
    ROW("addc",                           decode_integer,                INTEGER, .types = INTEGERS),
    ROW("subc",                           decode_integer,                INTEGER, .types = INTEGERS),
    ROW("madc",                           decode_integer,                INTEGER, .types = INTEGERS),
    ROW("div",                            decode_integer,                INTEGER, .types = INTEGERS, .mufu = 1),
    ROW("rem",                            decode_integer,                INTEGER, .types = INTEGERS, .mufu = 1),
    ROW("and",                            decode_bits,                   INTEGER,
        .types = INTEGERS, .values = MOVED, .address = DERIVED),
    ROW("or",                             decode_bits,                   INTEGER,
        .types = INTEGERS, .values = MOVED, .address = DERIVED),
    ROW("xor",                            decode_bits,                   INTEGER,
        .types = INTEGERS, .values = MOVED, .address = DERIVED),
    ROW("not",                            decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("cnot",                           decode_bits,                   INTEGER, .types = INTEGERS),
    ROW("shl",                            decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("shr",                            decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("shf",                            decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("prmt",                           decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("popc",                           decode_bits,                   INTEGER, .types = INTEGERS),
    ROW("clz",                            decode_bits,                   INTEGER, .types = INTEGERS),
    ROW("bfind",                          decode_bits,                   INTEGER, .types = INTEGERS),
    ROW("fns",                            decode_bits,                   INTEGER, .types = INTEGERS),
    ROW("brev",                           decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("bfe",                            decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("bfi",                            decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("bmsk",                           decode_bits,                   INTEGER, .types = INTEGERS),
    ROW("szext",                          decode_bits,                   INTEGER, .types = INTEGERS, .values = MOVED),
    ROW("lop3",                           decode_lop3,                   INTEGER, .values = MOVED),

    // video instructions
    ROW("vadd",                           decode_video,                  INTEGER),
    ROW("vsub",                           decode_video,                  INTEGER),
    ROW("vabsdiff",                       decode_video,                  INTEGER),
    ROW("vmin",                           decode_video,                  INTEGER),
    ROW("vmax",                           decode_video,                  INTEGER),
    ROW("vshl",                           decode_video,                  INTEGER),
    ROW("vshr",                           decode_video,                  INTEGER),
    ROW("vset",                           decode_video,                  INTEGER),
    ROW("vmad",                           decode_video,                  INTEGER),
    ROW("vadd2",                          decode_video,                  INTEGER),
    ROW("vsub2",                          decode_video,                  INTEGER),
    ROW("vavrg2",                         decode_video,                  INTEGER),
    ROW("vabsdiff2",                      decode_video,                  INTEGER),
    ROW("vmin2",                          decode_video,                  INTEGER),
    ROW("vmax2",                          decode_video,                  INTEGER),
    ROW("vset2",                          decode_video,                  INTEGER),
    ROW("vadd4",                          decode_video,                  INTEGER),
    ROW("vsub4",                          decode_video,                  INTEGER),
    ROW("vavrg4",                         decode_video,                  INTEGER),
    ROW("vabsdiff4",                      decode_video,                  INTEGER),
    ROW("vmin4",                          decode_video,                  INTEGER),
    ROW("vmax4",                          decode_video,                  INTEGER),
    ROW("vset4",                          decode_video,                  INTEGER),

    // arithmetic of floating-point numbers
    ROW("add",                            decode_float,                  FP32, .types = SINGLE),
    ROW("sub",                            decode_float,                  FP32, .types = SINGLE),
    ROW("mul",                            decode_float,                  FP32, .types = SINGLE),
    ROW("mad",                            decode_float,                  FP32, .types = SINGLE),
    ROW("fma",                            decode_float,                  FP32, .types = SINGLE),
    ROW("abs",                            decode_float,                  FP32, .types = SINGLE),
    ROW("neg",                            decode_float,                  FP32, .types = SINGLE),
    ROW("copysign",                       decode_float,                  FP32, .types = SINGLE),
    ROW("min",                            decode_float,                  FP32, .types = SINGLE),
    ROW("max",                            decode_float,                  FP32, .types = SINGLE),
    ROW("div",                            decode_float,                  FP32, .types = SINGLE, .mufu = 1),
    ROW("add",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("sub",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("mul",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("mad",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("fma",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("abs",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("neg",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("copysign",                       decode_float,                  FP64, .types = DOUBLE),
    ROW("min",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("max",                            decode_float,                  FP64, .types = DOUBLE),
    ROW("div",                            decode_float,                  FP64, .types = DOUBLE, .mufu = 1),
    ROW("add",                            decode_half,                   FP16, .types = HALVES),
    ROW("sub",                            decode_half,                   FP16, .types = HALVES),
    ROW("mul",                            decode_half,                   FP16, .types = HALVES),
    ROW("fma",                            decode_half,                   FP16, .types = HALVES),
    ROW("abs",                            decode_half,                   FP16, .types = HALVES),
    ROW("neg",                            decode_half,                   FP16, .types = HALVES),
    ROW("min",                            decode_half,                   FP16, .types = HALVES),
    ROW("max",                            decode_half,                   FP16, .types = HALVES),

    // special functions
    ROW("rcp",                            decode_float,                  SPECIAL,
        .types = SINGLE, .mufu = 1, .scaled = true),
    ROW("rcp.ftz",                        decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("sqrt",                           decode_float,                  SPECIAL,
        .types = SINGLE, .mufu = 1, .scaled = true),
    ROW("sqrt.ftz",                       decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("rsqrt",                          decode_float,                  SPECIAL,
        .types = SINGLE, .mufu = 1, .scaled = true),
    ROW("rsqrt.ftz",                      decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("sin",                            decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("cos",                            decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("lg2",                            decode_float,                  SPECIAL,
        .types = SINGLE, .mufu = 1, .scaled = true),
    ROW("lg2.ftz",                        decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("ex2",                            decode_float,                  SPECIAL,
        .types = SINGLE, .mufu = 1, .scaled = true),
    ROW("ex2.ftz",                        decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("tanh",                           decode_float,                  SPECIAL, .types = SINGLE, .mufu = 1),
    ROW("rcp",                            decode_float,                  SPECIAL, .types = DOUBLE, .mufu = 1),
    ROW("sqrt",                           decode_float,                  SPECIAL, .types = DOUBLE, .mufu = 1),
    ROW("rsqrt",                          decode_float,                  SPECIAL, .types = DOUBLE, .mufu = 1),
    ROW("ex2",                            decode_half,                   SPECIAL, .types = HALF, .mufu = 1),
    ROW("ex2",                            decode_half,                   SPECIAL, .types = HALF_PAIR, .mufu = 2),
    ROW("tanh",                           decode_half,                   SPECIAL, .types = HALF, .mufu = 1),
    ROW("tanh",                           decode_half,                   SPECIAL, .types = HALF_PAIR, .mufu = 2),

    // conversions, comparisons
    ROW("cvt",                            decode_convert,                CONVERT, .values = MOVED, .address = DERIVED),
    ROW("cvt.pack",                       decode_convert_pack,           CONVERT, .values = MOVED),
    ROW("setp",                           decode_setp,                   INTEGER, .types = INTEGERS, .compares = true),
    ROW("setp",                           decode_setp,                   FP32, .types = SINGLE, .compares = true),
    ROW("setp",                           decode_setp,                   FP64, .types = DOUBLE, .compares = true),
    ROW("setp",                           decode_setp,                   FP16, .types = HALVES, .compares = true),
    ROW("set",                            decode_set,                    INTEGER, .types = INTEGERS),
    ROW("set",                            decode_set,                    FP32, .types = SINGLE),
    ROW("set",                            decode_set,                    FP64, .types = DOUBLE),
    ROW("set",                            decode_set,                    FP16, .types = HALVES),
    ROW("testp",                          decode_testp,                  FP32, .types = SINGLE),
    ROW("testp",                          decode_testp,                  FP64, .types = ~SINGLE),
    ROW("selp",                           decode_selp,                   INTEGER, .values = MOVED, .address = DERIVED),
    ROW("slct",                           decode_slct,                   INTEGER, .values = MOVED),

    // moves, addresses
    ROW("mov",                            decode_mov,                    OTHER,
        .registers = REGISTERS_RENAMED, .values = MOVED, .address = COPIED),
    ROW("cvta",                           decode_cvta,                   INTEGER, .values = MOVED, .address = COPIED),
    ROW("isspacep",                       decode_isspacep,               INTEGER),
    ROW("mapa",                           decode_cluster_address,        OTHER, .target = SM_90),
    ROW("getctarank",                     decode_cluster_address,        OTHER, .target = SM_90),

    // other lanes of the warp
    ROW("shfl",                           decode_shfl,                   SYNCHRONISATION, .values = MOVED),
    ROW("vote",                           decode_vote,                   SYNCHRONISATION, .values = COMPUTED),
    ROW("match",                          decode_match,                  SYNCHRONISATION, .values = COMPUTED),
    ROW("redux",                          decode_redux,                  SYNCHRONISATION,
        .target = SM_80, .values = COMPUTED),
    ROW("elect",                          decode_elect,                  SYNCHRONISATION, .target = SM_90),
    ROW("activemask",                     decode_activemask,             SYNCHRONISATION),

    // memory
    ROW("ld",                             decode_ld,                     MEMORY,
        .memory = MEMORY_LOAD, .values = OF_MEMORY),
    ROW("ldu",                            decode_ld,                     MEMORY,
        .memory = MEMORY_LOAD, .values = OF_MEMORY),
    ROW("st",                             decode_st,                     MEMORY,
        .memory = MEMORY_STORE, .values = OF_MEMORY),
    ROW("atom",                           decode_atom,                   MEMORY, .memory = MEMORY_ATOMIC),
    ROW("atom.exch",                      decode_atom,                   MEMORY,
        .memory = MEMORY_ATOMIC, .values = OF_MEMORY),
    ROW("atom.cas",                       decode_atom,                   MEMORY, .memory = MEMORY_SWAP),
    ROW("red",                            decode_red,                    MEMORY, .memory = MEMORY_REDUCTION),
    ROW("prefetch",                       decode_cache_hint,             MEMORY),
    ROW("prefetchu",                      decode_cache_hint,             MEMORY),
    ROW("applypriority",                  decode_cache_hint,             MEMORY),
    ROW("discard",                        decode_cache_hint,             MEMORY),
    ROW("createpolicy",                   decode_createpolicy,           OTHER, .target = SM_80),

    // asynchronous copies
    ROW("st.async",                       decode_st_async,               MEMORY,
        .memory = MEMORY_STORE, .target = SM_90),
    ROW("red.async",                      decode_red_async,              MEMORY,
        .memory = MEMORY_REDUCTION, .target = SM_90),
    ROW("cp.async",                       decode_cp_async,               ASYNC_COPY,
        .memory = MEMORY_COPY, .target = SM_80),
    ROW("cp.async.ca",                    decode_cp_async,               ASYNC_COPY,
        .memory = MEMORY_CACHED_COPY, .target = SM_80),
    ROW("cp.async.commit_group",          decode_cp_async_group,         SYNCHRONISATION,
        .target = SM_80, .skipped = true),
    ROW("cp.async.wait_group",            decode_cp_async_group,         SYNCHRONISATION,
        .target = SM_80, .skipped = true),
    ROW("cp.async.wait_all",              decode_cp_async_group,         SYNCHRONISATION,
        .target = SM_80, .skipped = true),
    ROW("cp.async.bulk.shared::cluster.shared::cta", decode_bulk, ASYNC_COPY,
        .memory = MEMORY_BULK_CLUSTER, .target = SM_90),
    ROW("cp.async.bulk",                  decode_bulk,                   ASYNC_COPY,
        .memory = MEMORY_BULK_LOAD, .target = SM_90),
    ROW("cp.async.bulk.bulk_group",       decode_bulk,                   ASYNC_COPY,
        .memory = MEMORY_BULK_STORE, .target = SM_90),
    ROW("cp.reduce.async.bulk",           decode_bulk,                   ASYNC_COPY,
        .memory = MEMORY_BULK_CLUSTER, .target = SM_90),
    ROW("cp.reduce.async.bulk.bulk_group", decode_bulk,                   ASYNC_COPY,
        .memory = MEMORY_BULK_REDUCE, .target = SM_90),
    ROW("cp.async.bulk.prefetch",         decode_bulk_prefetch,          ASYNC_COPY, .target = SM_90, .skipped = true),
    ROW("cp.async.bulk.commit_group",     decode_bulk_group,             ASYNC_COPY, .target = SM_90, .skipped = true),
    ROW("cp.async.bulk.wait_group",       decode_bulk_group,             ASYNC_COPY, .target = SM_90, .skipped = true),
    ROW("cp.async.bulk.tensor",           decode_tensor_load,            ASYNC_COPY,
        .memory = MEMORY_BULK_LOAD, .target = SM_90),
    ROW("cp.async.bulk.tensor.bulk_group", decode_tensor_store,           ASYNC_COPY,
        .memory = MEMORY_BULK_STORE, .target = SM_90),
    ROW("cp.reduce.async.bulk.tensor.bulk_group", decode_tensor_store, ASYNC_COPY,
        .memory = MEMORY_BULK_REDUCE, .target = SM_90),
    ROW("cp.async.bulk.prefetch.tensor",  decode_tensor_prefetch,        ASYNC_COPY, .target = SM_90, .skipped = true),

    // tensor maps
    ROW("tensormap.replace",              decode_tensormap_replace,      MEMORY, .target = SM_90A, .skipped = true),
    ROW("tensormap.cp_fenceproxy",        decode_tensormap_copy,         MEMORY, .target = SM_90, .skipped = true),

    // mbarriers
    ROW("mbarrier.init",                  decode_mbarrier_init,          SYNCHRONISATION,
        .target = SM_80, .skipped = true),
    ROW("mbarrier.inval",                 decode_mbarrier_inval,         SYNCHRONISATION,
        .target = SM_80, .skipped = true),
    ROW("mbarrier.arrive",                decode_mbarrier_arrive,        SYNCHRONISATION, .target = SM_80),
    ROW("mbarrier.arrive.expect_tx",      decode_mbarrier_arrive,        SYNCHRONISATION, .target = SM_90),
    ROW("mbarrier.arrive_drop",           decode_mbarrier_arrive,        SYNCHRONISATION, .target = SM_80),
    ROW("mbarrier.arrive_drop.expect_tx", decode_mbarrier_arrive,        SYNCHRONISATION, .target = SM_90),
    ROW("mbarrier.expect_tx",             decode_mbarrier_bytes,         SYNCHRONISATION, .target = SM_90),
    ROW("mbarrier.complete_tx",           decode_mbarrier_bytes,         SYNCHRONISATION, .target = SM_90),
    ROW("mbarrier.test_wait",             decode_mbarrier_wait,          SYNCHRONISATION, .target = SM_80),
    ROW("mbarrier.try_wait",              decode_mbarrier_wait,          SYNCHRONISATION, .target = SM_90),
    ROW("mbarrier.pending_count",         decode_mbarrier_pending_count, SYNCHRONISATION, .target = SM_80),
    ROW("cp.async.mbarrier.arrive",       decode_mbarrier_arrive_async,  SYNCHRONISATION, .target = SM_80),

    // matrices
    ROW("ldmatrix",                       decode_ldmatrix,               MEMORY,
        .memory = MEMORY_LOAD, .in_warp_order = true, .skipped = true),
    ROW("stmatrix",                       decode_stmatrix,               MEMORY,
        .memory = MEMORY_STORE, .target = SM_90),
    ROW("movmatrix",                      decode_movmatrix,              OTHER, .values = MOVED),
    ROW("mma",                            decode_mma,                    TENSOR, .values = COMPUTED, .skipped = true),
    ROW("mma.e4m3",                       decode_mma,                    TENSOR,
        .target = SM_89, .values = COMPUTED, .skipped = true),
    ROW("mma.e5m2",                       decode_mma,                    TENSOR,
        .target = SM_89, .values = COMPUTED, .skipped = true),
    ROW("mma.e4m3.e5m2",                  decode_mma,                    TENSOR,
        .target = SM_89, .values = COMPUTED, .skipped = true),
    ROW("wmma.load",                      decode_wmma_load,              MEMORY,
        .memory = MEMORY_LOAD, .skipped = true),
    ROW("wmma.store",                     decode_wmma_store,             MEMORY,
        .memory = MEMORY_STORE, .skipped = true),
    ROW("wmma.mma",                       decode_wmma_mma,               TENSOR, .values = COMPUTED, .skipped = true),
    ROW("wgmma.mma_async",                decode_wgmma,                  TENSOR, .memory = MEMORY_MATRICES,
        .registers = REGISTERS_OF_WGMMA, .target = SM_90A, .skipped = true),
    ROW("wgmma.fence",                    decode_wgmma_group,            SYNCHRONISATION,
        .registers = REGISTERS_OF_WGMMA, .target = SM_90A, .skipped = true),
    ROW("wgmma.commit_group",             decode_wgmma_group,            SYNCHRONISATION,
        .registers = REGISTERS_OF_WGMMA, .target = SM_90A, .skipped = true),
    ROW("wgmma.wait_group",               decode_wgmma_group,            SYNCHRONISATION,
        .registers = REGISTERS_OF_WGMMA, .target = SM_90A, .skipped = true),
    ROW("setmaxnreg",                     decode_setmaxnreg,             SYNCHRONISATION,
        .target = SM_90A, .skipped = true),

    // barriers, fences
    ROW("bar",                            decode_barrier,                SYNCHRONISATION, .orders = ORDERS_BLOCK),
    ROW("bar.warp",                       decode_warp_barrier,           SYNCHRONISATION, .orders = ORDERS_WARP),
    ROW("barrier",                        decode_barrier,                SYNCHRONISATION, .orders = ORDERS_BLOCK),
    ROW("barrier.cluster",                decode_cluster_barrier,        SYNCHRONISATION,
        .target = SM_90, .orders = ORDERS_CLUSTER),
    ROW("fence",                          decode_fence,                  SYNCHRONISATION,
        .orders = ORDERS_MEMORY, .skipped = true),
    ROW("fence.proxy",                    decode_proxy_fence,            SYNCHRONISATION,
        .orders = ORDERS_PROXIES, .skipped = true),
    ROW("membar",                         decode_fence,                  SYNCHRONISATION,
        .orders = ORDERS_MEMORY, .skipped = true),
    ROW("membar.proxy",                   decode_proxy_fence,            SYNCHRONISATION,
        .orders = ORDERS_PROXIES, .skipped = true),
    ROW("nanosleep",                      decode_nanosleep,              SYNCHRONISATION, .skipped = true),
    ROW("griddepcontrol",                 decode_griddepcontrol,         SYNCHRONISATION,
        .target = SM_90, .skipped = true),

    // control flow
    ROW("bra",                            decode_bra,                    CONTROL),
    ROW("brx",                            decode_brx,                    CONTROL),
    ROW("call",                           decode_call,                   CONTROL, .calls = true),
    ROW("ret",                            decode_ret,                    CONTROL),
    ROW("exit",                           decode_exit,                   CONTROL),
    ROW("trap",                           decode_trap,                   CONTROL),
    ROW("stacksave",                      decode_stack,                  OTHER, .uses_stack = true),
    ROW("stackrestore",                   decode_stack,                  OTHER, .uses_stack = true),
    ROW("alloca",                         decode_stack,                  OTHER, .uses_stack = true),
    ROW("pmevent",                        decode_pmevent,                OTHER),
    ROW("brkpt",                          decode_trap,                   CONTROL),
};
// clang-format on

static bool has(const PtxInstruction *source, const char *modifier, size_t length) {
  for (int m = 0; m < source->modifier_count; m++)
    if (!strncmp(source->modifiers[m], modifier, length) && !source->modifiers[m][length]) return true;
  return false;
}

// The parts of the row's name, when the instruction, whose opcode has that length, has them all; else 0.
static int fit(const Instruction *row, const PtxInstruction *source, size_t length) {
  if (row->name[0] != source->opcode[0]) return 0;  // nearly always, and a call less
  if (strncmp(row->name, source->opcode, length) || (row->name[length] && row->name[length] != '.')) return 0;
  int parts = 1;
  for (const char *at = row->name + length; *at; at += length, parts++) {
    length = strcspn(++at, ".");
    if (!has(source, at, length)) return 0;
  }
  return parts;
}

const Instruction *instruction_find(const PtxInstruction *source) {
  const Instruction *found = NULL;
  uint32_t type = 1u << ptx_instruction_type(source);
  size_t length = strlen(source->opcode);
  int most = 0;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    int parts = table[i].types && !(table[i].types & type) ? 0 : fit(&table[i], source, length);
    if (parts == 0 || parts < most) continue;
    found = parts > most ? &table[i] : NULL;  // two rows fit alike: neither is its own
    most = parts;
  }
  return found;
}

void instruction_list(const char *opcode, char *text, size_t size) {
  size_t used = 0, length = strlen(opcode);
  text[0] = 0;
  for (size_t i = 0; i < sizeof table / sizeof *table && used < size; i++)
    if (!strncmp(table[i].name, opcode, length) && table[i].name[length] == '.')
      used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "; there is ", table[i].name);
}
