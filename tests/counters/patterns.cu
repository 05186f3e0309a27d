// Kernels whose counters are known: each executes one instruction, at addresses that its launch chooses (cases.h), or
// repeats one instruction as often as its launch says. They run under Nsight Compute on an H200 (record.sh) and on the
// emulator (test_counters.c), which must count the same.
//
// Here are the instructions that a warp executes itself; wgmma and the copies that run by themselves are in async.cuh.
#include "kernel.cuh"

// ---- loads and stores ----

// A word that keep() cannot rule out, though no pattern leaves 0xed or 0x5eed in memory.
__device__ unsigned word(unsigned char x) { return 0x5eed5e00u + x; }
__device__ unsigned word(unsigned short x) { return 0x5eed0000u + x; }
__device__ unsigned word(unsigned x) { return x; }
__device__ unsigned word(uint2 x) { return x.x + x.y; }
__device__ unsigned word(uint4 x) { return x.x + x.y + x.z + x.w; }

__device__ void set(unsigned char *x, unsigned value) { *x = (unsigned char)value; }
__device__ void set(unsigned short *x, unsigned value) { *x = (unsigned short)value; }
__device__ void set(unsigned *x, unsigned value) { *x = value; }
__device__ void set(uint2 *x, unsigned value) { *x = make_uint2(value, value); }
__device__ void set(uint4 *x, unsigned value) { *x = make_uint4(value, value, value, value); }

#define LOAD(name, type, expression)                                                                                   \
  KERNEL(name) {                                                                                                       \
    unsigned offset = my_offset(offsets);                                                                              \
    if (offset == INACTIVE) return;                                                                                    \
    const type *from = (const type *)(FROM + offset);                                                                  \
    keep(word(expression), memory);                                                                                    \
  }
#define STORE(name, type)                                                                                              \
  KERNEL(name) {                                                                                                       \
    unsigned offset = my_offset(offsets);                                                                              \
    if (offset == INACTIVE) return;                                                                                    \
    set((type *)(FROM + offset), threadIdx.x);                                                                         \
  }

#define FROM tile
LOAD(ld_shared_b8, unsigned char, *from)
LOAD(ld_shared_b16, unsigned short, *from)
LOAD(ld_shared_b32, unsigned, *from)
LOAD(ld_shared_b64, uint2, *from)
LOAD(ld_shared_b128, uint4, *from)
STORE(st_shared_b8, unsigned char)
STORE(st_shared_b16, unsigned short)
STORE(st_shared_b32, unsigned)
STORE(st_shared_b64, uint2)
STORE(st_shared_b128, uint4)
#undef FROM

#define FROM memory
LOAD(ld_global_b8, unsigned char, *from)
LOAD(ld_global_b16, unsigned short, *from)
LOAD(ld_global_b32, unsigned, *from)
LOAD(ld_global_b64, uint2, *from)
LOAD(ld_global_b128, uint4, *from)
LOAD(ld_global_nc_b32, unsigned, __ldg(from))
LOAD(ld_global_nc_b128, uint4, __ldg(from))
LOAD(ld_global_cg_b32, unsigned, __ldcg(from))
LOAD(ld_global_cg_b128, uint4, __ldcg(from))
LOAD(ld_volatile_b32, unsigned, *(const volatile unsigned *)from)
STORE(st_global_b8, unsigned char)
STORE(st_global_b16, unsigned short)
STORE(st_global_b32, unsigned)
STORE(st_global_b64, uint2)
STORE(st_global_b128, uint4)
#undef FROM

// ---- local memory: an array in each thread ----

// One store and one load, at the same place, which the compiler cannot know.
#define LOCAL(name, type)                                                                                              \
  KERNEL(name) {                                                                                                       \
    type own[LOCAL_BYTES / sizeof(type)];                                                                              \
    unsigned offset = my_offset(offsets), zero = (unsigned)(size_t)memory & 15;                                        \
    if (offset == INACTIVE) return;                                                                                    \
    set((type *)((char *)own + offset), threadIdx.x);                                                                  \
    keep(word(*(type *)((char *)own + (offset ^ zero))), memory);                                                      \
  }
LOCAL(local_b8, unsigned char)
LOCAL(local_b16, unsigned short)
LOCAL(local_b32, unsigned)
LOCAL(local_b64, uint2)
LOCAL(local_b128, uint4)

// ---- ldmatrix and stmatrix: an offset is a row's ----

#define LDMATRIX_1 "{%0}, [%1];" : "=r"(r[0]) : "r"(address)
#define LDMATRIX_2 "{%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(address)
#define LDMATRIX_4 "{%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address)
#define LDMATRIX(name, instruction, operands)                                                                          \
  KERNEL(name) {                                                                                                       \
    unsigned r[4] = {0}, address = shared_address(tile + my_offset(offsets));                                          \
    asm volatile(instruction operands : "memory");                                                                     \
    keep(r[0] + r[1] + r[2] + r[3], memory);                                                                           \
  }
LDMATRIX(ldmatrix_x1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 ", LDMATRIX_1)
LDMATRIX(ldmatrix_x2, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 ", LDMATRIX_2)
LDMATRIX(ldmatrix_x4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 ", LDMATRIX_4)
LDMATRIX(ldmatrix_x4_trans, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 ", LDMATRIX_4)

#define STMATRIX(name, instruction, operands)                                                                          \
  KERNEL(name) {                                                                                                       \
    unsigned value = threadIdx.x, address = shared_address(tile + my_offset(offsets));                                 \
    asm volatile(instruction operands ::"r"(address), "r"(value) : "memory");                                          \
  }
STMATRIX(stmatrix_x1, "stmatrix.sync.aligned.m8n8.x1.shared.b16 ", "[%0], {%1};")
STMATRIX(stmatrix_x2, "stmatrix.sync.aligned.m8n8.x2.shared.b16 ", "[%0], {%1, %1};")
STMATRIX(stmatrix_x4, "stmatrix.sync.aligned.m8n8.x4.shared.b16 ", "[%0], {%1, %1, %1, %1};")
STMATRIX(stmatrix_x4_trans, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 ", "[%0], {%1, %1, %1, %1};")

// ---- atomics ----

#define ATOM(name, text, constraint, address)                                                                          \
  KERNEL(name) {                                                                                                       \
    unsigned offset = my_offset(offsets), value = threadIdx.x + 1, old;                                                \
    if (offset == INACTIVE) return;                                                                                    \
    asm volatile(text : "=r"(old) : constraint(address), "r"(value) : "memory");                                       \
    keep(old, memory);                                                                                                 \
  }
#define RED(name, text, constraint, address)                                                                           \
  KERNEL(name) {                                                                                                       \
    unsigned offset = my_offset(offsets), value = threadIdx.x + 1;                                                     \
    if (offset == INACTIVE) return;                                                                                    \
    asm volatile(text ::constraint(address), "r"(value) : "memory");                                                   \
  }
ATOM(atom_shared_add, "atom.shared.add.u32 %0, [%1], %2;", "r", shared_address(tile + offset))
ATOM(atom_shared_cas, "atom.shared.cas.b32 %0, [%1], %2, 7;", "r", shared_address(tile + offset))
RED(red_shared_add, "red.shared.add.u32 [%0], %1;", "r", shared_address(tile + offset))
ATOM(atom_global_add, "atom.global.add.u32 %0, [%1], %2;", "l", memory + offset)
ATOM(atom_global_cas, "atom.global.cas.b32 %0, [%1], %2, 7;", "l", memory + offset)
RED(red_global_add, "red.global.add.u32 [%0], %1;", "l", memory + offset)

// 64 bits, and floating-point numbers.
#define ATOM_TYPED(name, type, constraint, text, to, address)                                                          \
  KERNEL(name) {                                                                                                       \
    unsigned offset = my_offset(offsets);                                                                              \
    type value = (type)(threadIdx.x + 1), old;                                                                         \
    if (offset == INACTIVE) return;                                                                                    \
    asm volatile(text : "=" constraint(old) : to(address), constraint(value) : "memory");                              \
    keep(old, memory);                                                                                                 \
  }
#define RED_TYPED(name, type, constraint, text)                                                                        \
  KERNEL(name) {                                                                                                       \
    unsigned offset = my_offset(offsets);                                                                              \
    type value = (type)(threadIdx.x + 1);                                                                              \
    if (offset == INACTIVE) return;                                                                                    \
    asm volatile(text ::"l"(memory + offset), constraint(value) : "memory");                                           \
  }
ATOM_TYPED(atom_shared_exch_b64, unsigned long long, "l", "atom.shared.exch.b64 %0, [%1], %2;", "r",
           shared_address(tile + offset))
ATOM_TYPED(atom_global_add_u64, unsigned long long, "l", "atom.global.add.u64 %0, [%1], %2;", "l", memory + offset)
RED_TYPED(red_global_add_u64, unsigned long long, "l", "red.global.add.u64 [%0], %1;")
RED_TYPED(red_global_add_f32, float, "f", "red.global.add.f32 [%0], %1;")

ATOM_TYPED(atom_shared_add_f32, float, "f", "atom.shared.add.f32 %0, [%1], %2;", "r", shared_address(tile + offset))

// The first half of the warp loads from shared memory, the other from global, with one instruction.
KERNEL(ld_generic_mixed) {
  unsigned offset = my_offset(offsets), x;
  const char *from = threadIdx.x < 16 ? (const char *)tile : memory;
  asm volatile("ld.b32 %0, [%1];" : "=r"(x) : "l"(from + offset) : "memory");
  keep(x, memory);
}

// ---- wmma: the offset is a row's elements ----

#define EIGHT_REGISTERS "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define WMMA_LOAD(name, text, to, address)                                                                             \
  KERNEL(name) {                                                                                                       \
    unsigned r[8], stride = offsets.of[blockIdx.x][0];                                                                 \
    asm volatile("wmma.load." text " " EIGHT_REGISTERS ", [%8], %9;"                                                   \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])      \
                 : to(address), "r"(stride)                                                                            \
                 : "memory");                                                                                          \
    keep(r[0] + r[1] + r[2] + r[3] + r[4] + r[5] + r[6] + r[7], memory);                                               \
  }
#define WMMA_STORE(name, text, to, address)                                                                            \
  KERNEL(name) {                                                                                                       \
    unsigned stride = offsets.of[blockIdx.x][0];                                                                       \
    float x = (float)threadIdx.x;                                                                                      \
    asm volatile("wmma.store." text " [%0], {%2, %2, %2, %2, %2, %2, %2, %2}, %1;" ::to(address), "r"(stride), "f"(x)  \
                 : "memory");                                                                                          \
  }
WMMA_LOAD(wmma_load_a_shared, "a.sync.aligned.row.m16n16k16.shared.f16", "r", shared_address(tile))
WMMA_LOAD(wmma_load_b_shared, "b.sync.aligned.col.m16n16k16.shared.f16", "r", shared_address(tile))
WMMA_LOAD(wmma_load_b_row_shared, "b.sync.aligned.row.m16n16k16.shared.f16", "r", shared_address(tile))
WMMA_LOAD(wmma_load_a_global, "a.sync.aligned.row.m16n16k16.global.f16", "l", memory)
WMMA_STORE(wmma_store_shared, "d.sync.aligned.row.m16n16k16.shared.f32", "r", shared_address(tile))
WMMA_STORE(wmma_store_global, "d.sync.aligned.row.m16n16k16.global.f32", "l", memory)

// ---- cp.async: gather reads at the offsets and writes side by side, scatter the other way round ----

#define CP_ASYNC(name, text, size, to, from)                                                                           \
  KERNEL(name) {                                                                                                       \
    unsigned offset = my_offset(offsets), packed = threadIdx.x * size;                                                 \
    if (offset == INACTIVE) return;                                                                                    \
    asm volatile(text ::"r"(shared_address(tile + (to))), "l"(memory + (from)) : "memory");                            \
    asm volatile("cp.async.wait_all;" ::: "memory");                                                                   \
    (void)packed;                                                                                                      \
  }
CP_ASYNC(cp_async_ca_4_gather, "cp.async.ca.shared.global [%0], [%1], 4;", 4, packed, offset)
CP_ASYNC(cp_async_ca_8_gather, "cp.async.ca.shared.global [%0], [%1], 8;", 8, packed, offset)
CP_ASYNC(cp_async_ca_16_gather, "cp.async.ca.shared.global [%0], [%1], 16;", 16, packed, offset)
CP_ASYNC(cp_async_cg_16_gather, "cp.async.cg.shared.global [%0], [%1], 16;", 16, packed, offset)
CP_ASYNC(cp_async_ca_4_scatter, "cp.async.ca.shared.global [%0], [%1], 4;", 4, offset, packed)
CP_ASYNC(cp_async_cg_16_scatter, "cp.async.cg.shared.global [%0], [%1], 16;", 16, offset, packed)
// Every other lane reads nothing: it writes zeros.
KERNEL(cp_async_cg_16_zeros) {
  unsigned offset = my_offset(offsets), to = shared_address(tile + threadIdx.x * 16), bytes = threadIdx.x % 2 * 16;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\ncp.async.wait_all;" ::"r"(to), "l"(memory + offset),
               "r"(bytes)
               : "memory");
}

// ---- one instruction, repeated ----
//
// The body stands eight times in a loop. Between two launches, one with twice the trips of the other, everything but
// the body and the loop's own add, setp and bra cancels.

// %0 is the register that the instruction changes, %1 one that it reads.
#define REPEAT(name, type, constraint, text)                                                                           \
  KERNEL(name) {                                                                                                       \
    type x = (type)threadIdx.x, y = (type)(threadIdx.x + 3);                                                           \
    REPEAT_LOOP asm volatile(EIGHT(text "\n") : "+" constraint(x) : constraint(y) : "memory");                         \
    keep(x, memory);                                                                                                   \
  }
REPEAT(repeat_fma_f32, float, "f", "fma.rn.f32 %0, %0, %1, %1;")
REPEAT(repeat_mul_f32, float, "f", "mul.rn.f32 %0, %0, %1;")
REPEAT(repeat_add_f32, float, "f", "add.rn.f32 %0, %0, %1;")
REPEAT(repeat_max_f32, float, "f", "max.f32 %0, %0, %1;")
REPEAT(repeat_fma_f64, double, "d", "fma.rn.f64 %0, %0, %1, %1;")
REPEAT(repeat_fma_f16x2, unsigned, "r", "fma.rn.f16x2 %0, %0, %1, %1;")
REPEAT(repeat_mad_s32, unsigned, "r", "mad.lo.s32 %0, %0, %1, %1;")
REPEAT(repeat_mul_wide, unsigned long long, "l", "{ .reg .b32 a, b; mov.b64 {a, b}, %0; mul.wide.u32 %0, a, b; }")
REPEAT(repeat_lop3, unsigned, "r", "lop3.b32 %0, %0, %1, 0x12345, 0x6a;")
REPEAT(repeat_shift, unsigned, "r", "shf.l.wrap.b32 %0, %0, %1, 7;")
REPEAT(repeat_popc, unsigned, "r", "popc.b32 %0, %0;")
REPEAT(repeat_ex2_ftz, float, "f", "ex2.approx.ftz.f32 %0, %0;")
REPEAT(repeat_ex2, float, "f", "mul.rn.f32 %0, %0, %1; ex2.approx.f32 %0, %0;")
REPEAT(repeat_rcp_ftz, float, "f", "mul.rn.f32 %0, %0, %1; rcp.approx.ftz.f32 %0, %0;")
REPEAT(repeat_div, float, "f", "div.rn.f32 %0, %0, %1;")
REPEAT(repeat_add_u64, unsigned long long, "l", "add.u64 %0, %0, %1;")
REPEAT(repeat_mul_u64, unsigned long long, "l", "mul.lo.u64 %0, %0, %1;")
REPEAT(repeat_div_u32, unsigned, "r", "div.u32 %0, %1, %0;")
REPEAT(repeat_cvt_f16x2, unsigned, "r", "{ .reg .f32 f; mov.b32 f, %0; cvt.rn.f16x2.f32 %0, f, f; }")
REPEAT(repeat_lg2_ftz, float, "f", "lg2.approx.ftz.f32 %0, %0;")
REPEAT(repeat_lg2, float, "f", "lg2.approx.f32 %0, %0;")
REPEAT(repeat_rsqrt_ftz, float, "f", "rsqrt.approx.ftz.f32 %0, %0;")
REPEAT(repeat_sqrt_ftz, float, "f", "sqrt.approx.ftz.f32 %0, %0;")
REPEAT(repeat_sqrt_rn, float, "f", "sqrt.rn.f32 %0, %0;")
REPEAT(repeat_rcp_rn, float, "f", "mul.rn.f32 %0, %0, %1; rcp.rn.f32 %0, %0;")
REPEAT(repeat_sin, float, "f", "sin.approx.ftz.f32 %0, %0;")
REPEAT(repeat_cos, float, "f", "cos.approx.ftz.f32 %0, %0;")
REPEAT(repeat_tanh, float, "f", "tanh.approx.f32 %0, %0;")
REPEAT(repeat_tanh_f16x2, unsigned, "r", "tanh.approx.f16x2 %0, %0;")
REPEAT(repeat_ex2_f16x2, unsigned, "r", "ex2.approx.f16x2 %0, %0;")
REPEAT(repeat_ex2_bf16x2, unsigned, "r", "ex2.approx.ftz.bf16x2 %0, %0;")
REPEAT(repeat_div_full, float, "f", "div.full.ftz.f32 %0, %1, %0;")
REPEAT(repeat_div_f64, double, "d", "div.rn.f64 %0, %1, %0;")
REPEAT(repeat_rcp_f64, double, "d", "fma.rn.f64 %0, %0, %1, %1; rcp.rn.f64 %0, %0;")
REPEAT(repeat_rem_s32, unsigned, "r", "rem.s32 %0, %1, %0;")
REPEAT(repeat_div_u64, unsigned long long, "l", "div.u64 %0, %1, %0;")
REPEAT(repeat_cvt_s32_f32, unsigned, "r", "{ .reg .f32 f; mov.b32 f, %0; cvt.rni.s32.f32 %0, f; }")
REPEAT(repeat_cvt_f32_s32, float, "f", "{ .reg .b32 i; mov.b32 i, %0; cvt.rn.f32.s32 %0, i; }")
REPEAT(repeat_cvt_f32_f16, float, "f", "{ .reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h; }")
REPEAT(repeat_clz, unsigned, "r", "clz.b32 %0, %0;")
REPEAT(repeat_shfl, unsigned, "r", "shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;")
REPEAT(repeat_ballot, unsigned, "r", "{ .reg .pred p; setp.gt.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, 0xffffffff; }")
REPEAT(repeat_bar_sync, unsigned, "r", "bar.sync 0;")
REPEAT(repeat_setp_selp, unsigned, "r", "{ .reg .pred p; setp.gt.u32 p, %0, %1; selp.b32 %0, %1, 5, p; }")

// The first `lanes` lanes execute the guarded instruction. The guard is computed in every trip: the compiler does not
// know that `zero` is none other.
#define REPEAT_GUARDED(name, lanes)                                                                                    \
  KERNEL(name) {                                                                                                       \
    unsigned x = threadIdx.x, y = threadIdx.x, zero = (unsigned)(size_t)memory & 15;                                   \
    REPEAT_LOOP asm volatile("{ .reg .pred p;\n"                                                                       \
                             "xor.b32 %1, %1, %2;\n"                                                                   \
                             "setp.lt.u32 p, %1, " #lanes ";\n" EIGHT("@p mad.lo.s32 %0, %0, 7, %2;\n") "}"            \
                             : "+r"(x), "+r"(y)                                                                        \
                             : "r"(zero));                                                                             \
    keep(x, memory);                                                                                                   \
  }
REPEAT_GUARDED(repeat_guard_32, 32)
REPEAT_GUARDED(repeat_guard_16, 16)
REPEAT_GUARDED(repeat_guard_0, 0)

// Lanes leave the loop one after the other.
KERNEL(repeat_trips_per_lane) {
  unsigned x = threadIdx.x, y = threadIdx.x + 3, trips = my_offset(offsets);
  LOOP(trips) asm volatile(EIGHT("mad.lo.s32 %0, %0, %1, %1;\n") : "+r"(x) : "r"(y) : "memory");
  keep(x, memory);
}

// A branch that half of the warp takes, with as much work on either side.
KERNEL(repeat_branch) {
  unsigned x = threadIdx.x, y = threadIdx.x + 3;
  REPEAT_LOOP {
    if (threadIdx.x & 1) {
      asm volatile(EIGHT("mad.lo.s32 %0, %0, %1, %1;\n") : "+r"(x) : "r"(y) : "memory");
    } else {
      asm volatile(EIGHT("shf.l.wrap.b32 %0, %0, %1, 7;\n") : "+r"(x) : "r"(y) : "memory");
    }
  }
  keep(x, memory);
}

KERNEL(repeat_ld_shared) {
  unsigned x = 0, address = shared_address(tile + 4 * threadIdx.x);
  REPEAT_LOOP asm volatile(EIGHT("{ .reg .b32 t; ld.volatile.shared.b32 t, [%1]; add.u32 %0, %0, t; }\n")
                           : "+r"(x)
                           : "r"(address)
                           : "memory");
  keep(x, memory);
}

// ---- tensor cores ----

#define MMA(name, instruction)                                                                                         \
  KERNEL(name) {                                                                                                       \
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;                                                                              \
    unsigned a = threadIdx.x;                                                                                          \
    REPEAT_LOOP asm volatile(EIGHT(instruction "\n") : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a));               \
    keep(d0 + d1 + d2 + d3, memory);                                                                                   \
  }
MMA(repeat_mma_m16n8k16,
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
    "{%0, %1, %2, %3};")
MMA(repeat_mma_m16n8k8, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, "
                        "{%0, %1, %2, %3};")
MMA(repeat_mma_bf16,
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
    "{%0, %1, %2, %3};")

// A and B are the same core matrices, without swizzle, 128 bytes apart along K and 256 along M or N: what they hold
// does not matter here.
KERNEL(repeat_wgmma) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  unsigned long long descriptor = (shared_address(tile) & 0x3ffff) >> 4 | 8ull << 16 | 16ull << 32;
  REPEAT_LOOP {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(EIGHT("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;\n")
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "l"(descriptor));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  keep(d0 + d1 + d2 + d3, memory);
}

#include "async.cuh"
