// Instructions by which lanes of a warp work together, loads of every width, and atomic operations.
#include "lanes.h"
#include "letters.cuh"

// A result of each lane: out[case][result][lane].
#define PUT(expression)                                                                                                \
  do {                                                                                                                 \
    out[result * 32 + lane] = (expression);                                                                            \
    result++;                                                                                                          \
  } while (0)

#define SHUFFLE(mode, b, c)                                                                                            \
  do {                                                                                                                 \
    uint32_t d, valid;                                                                                                 \
    asm volatile("{.reg .pred p; shfl.sync." mode ".b32 %0|p, %2, %3, %4, 0xffffffff; selp.b32 %1, 1, 0, p;}"          \
                 : "=r"(d), "=r"(valid)                                                                                \
                 : "r"(value), "r"(b), "r"(c));                                                                        \
    PUT(d);                                                                                                            \
    PUT(valid);                                                                                                        \
  } while (0)

#define VOTE(mode, member)                                                                                             \
  do {                                                                                                                 \
    uint32_t d;                                                                                                        \
    asm volatile("{.reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync." mode ".pred q, p, %2; selp.b32 %0, 1, 0, q;}"    \
                 : "=r"(d)                                                                                             \
                 : "r"(other & 1), "r"(member));                                                                       \
    PUT(d);                                                                                                            \
    asm volatile("{.reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync." mode ".pred q, !p, %2; selp.b32 %0, 1, 0, q;}"   \
                 : "=r"(d)                                                                                             \
                 : "r"(other & 1), "r"(member));                                                                       \
    PUT(d);                                                                                                            \
  } while (0)

#define REDUX(operation, member)                                                                                       \
  do {                                                                                                                 \
    uint32_t d;                                                                                                        \
    asm volatile("redux.sync." operation " %0, %1, %2;" : "=r"(d) : "r"(value), "r"(member));                          \
    PUT(d);                                                                                                            \
  } while (0)

#define WITH_MEMBERS(member)                                                                                           \
  do {                                                                                                                 \
    uint32_t d, valid;                                                                                                 \
    VOTE("all", member);                                                                                               \
    VOTE("any", member);                                                                                               \
    VOTE("uni", member);                                                                                               \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2;}"                               \
                 : "=r"(d)                                                                                             \
                 : "r"(other & 1), "r"(member));                                                                       \
    PUT(d);                                                                                                            \
    asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(d) : "r"(value & 3), "r"(member));                            \
    PUT(d);                                                                                                            \
    asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(d) : "l"((uint64_t)(value & 1) << 40), "r"(member));          \
    PUT(d);                                                                                                            \
    asm volatile("{.reg .pred p; match.all.sync.b32 %0|p, %2, %3; selp.b32 %1, 1, 0, p;}"                              \
                 : "=r"(d), "=r"(valid)                                                                                \
                 : "r"(other >> 31), "r"(member));                                                                     \
    PUT(d);                                                                                                            \
    PUT(valid);                                                                                                        \
    REDUX("add.u32", member);                                                                                          \
    REDUX("add.s32", member);                                                                                          \
    REDUX("min.u32", member);                                                                                          \
    REDUX("min.s32", member);                                                                                          \
    REDUX("max.u32", member);                                                                                          \
    REDUX("max.s32", member);                                                                                          \
    REDUX("and.b32", member);                                                                                          \
    REDUX("or.b32", member);                                                                                           \
    REDUX("xor.b32", member);                                                                                          \
    asm volatile("{.reg .pred p; elect.sync _|p, %1; selp.b32 %0, 1, 0, p;}" : "=r"(d) : "r"(member));                 \
    PUT(d);                                                                                                            \
  } while (0)

#define LOAD(type)                                                                                                     \
  do {                                                                                                                 \
    uint32_t d;                                                                                                        \
    asm volatile("ld.global." type " %0, [%1];" : "=r"(d) : "l"(&in->value[lane]));                                    \
    PUT(d);                                                                                                            \
  } while (0)

extern "C" __global__ void lanes(const LaneCase *cases, uint32_t *all) {
  const LaneCase *in = &cases[blockIdx.x];
  uint32_t *out = all + blockIdx.x * LANE_RESULTS * 32;
  int lane = threadIdx.x, result = 0;
  uint32_t value = in->value[lane], other = in->other[lane];
  SHUFFLE("idx", other, in->clamp);
  SHUFFLE("up", other & 31, in->clamp & 0x1f00);
  SHUFFLE("down", other & 31, in->clamp);
  SHUFFLE("bfly", other & 31, in->clamp);
  SHUFFLE("idx", other, 0x1f);
  SHUFFLE("up", 3, 0);
  SHUFFLE("down", 5, 0x1f);
  SHUFFLE("bfly", 16, 0x1f);
  WITH_MEMBERS(0xffffffff);
  LOAD("u8");
  LOAD("s8");
  LOAD("u16");
  LOAD("s16");
  result = LANE_RESULTS / 2;
  if (in->mask >> lane & 1) WITH_MEMBERS(in->mask);
}

// ---- atomics ----

#define ENTRY(letter, statement)                                                                                       \
  case __COUNTER__ - FIRST: {                                                                                          \
    TYPE_##letter old;                                                                                                 \
    statement;                                                                                                         \
    result.old = widen(old);                                                                                           \
    break;                                                                                                             \
  }
#define A(letter, text)                                                                                                \
  ENTRY(letter, asm volatile(text " %0, [%1], %2;"                                                                     \
                             : "=" KIND_##letter(old)                                                                  \
                             : PLACE, KIND_##letter(GET(letter, 1))                                                    \
                             : "memory"))
#define C(letter, text)                                                                                                \
  ENTRY(letter, asm volatile(text " %0, [%1], %2, %3;"                                                                 \
                             : "=" KIND_##letter(old)                                                                  \
                             : PLACE, KIND_##letter(GET(letter, 1)), KIND_##letter(GET(letter, 2))                     \
                             : "memory"))

// The place starts as operand 0, whose letter the host has put into `now`.
#define PLACE "l"(&out[place].now)
extern "C" __global__ void atomics_global(const InstructionInput *in, AtomicResult *out) {
  enum { FIRST = __COUNTER__ + 1 };
  int i = blockIdx.x % ATOMIC_BLOCKS * ATOMIC_THREADS + threadIdx.x, place = blockIdx.x * ATOMIC_THREADS + threadIdx.x;
  AtomicResult result = {0, 0};
  switch (blockIdx.x / ATOMIC_BLOCKS) { GLOBAL_ATOMICS(A, C) }
  out[place].old = result.old;
}

#undef PLACE
#define PLACE "r"(address)
extern "C" __global__ void atomics_shared(const InstructionInput *in, AtomicResult *out) {
  enum { FIRST = __COUNTER__ + 1 };
  __shared__ uint64_t places[ATOMIC_THREADS];
  int i = blockIdx.x % ATOMIC_BLOCKS * ATOMIC_THREADS + threadIdx.x, place = blockIdx.x * ATOMIC_THREADS + threadIdx.x;
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&places[threadIdx.x]);
  AtomicResult result = {0, 0};
  places[threadIdx.x] = out[place].now;
  switch (blockIdx.x / ATOMIC_BLOCKS) { SHARED_ATOMICS(A, C) }
  out[place].old = result.old;
  out[place].now = *(volatile uint64_t *)&places[threadIdx.x];
}

// Many threads on few places: sums, which do not depend on the order.
extern "C" __global__ void atomics_contended(const uint32_t *in, uint32_t *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&out[in[i] % 7], in[i]);
  atomicMax(&out[8 + in[i] % 5], in[i]);
  atomicXor(&out[16], in[i]);
  asm volatile("red.global.add.u32 [%0], %1;" ::"l"(&out[17]), "r"(in[i] >> 3) : "memory");
  asm volatile("red.global.inc.u32 [%0], %1;" ::"l"(&out[18]), "r"(100) : "memory");
}
