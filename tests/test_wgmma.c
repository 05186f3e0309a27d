// wgmma.mma_async on the emulator: registers that two of them share, factors of two formats, and matrices beside the
// memory.
#include <criterion/criterion.h>
#include <string.h>

#include "support/run_kernel.h"

TestSuite(wgmma, .timeout = 60);

enum { THREADS = 128 };

// All of t is 0x3c00, which is 1 in fp16 and 2^-7 in bf16. %d: its descriptor.
#define BEGIN                                                                                                          \
  PTX_HEADER                                                                                                           \
  ".visible .entry test(.param .u64 out) {\n"                                                                          \
  ".reg .u64 %o, %d, %x; .reg .u32 %t, %a, %b, %v, %c<4>; .reg .f32 %f<4>, %g<4>;\n"                                   \
  ".shared .align 128 .b8 t[2048];\n"                                                                                  \
  "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %x, %t, 8; add.u64 %o, %o, %x; mov.u32 %b, t;\n"           \
  "mad.lo.u32 %a, %t, 16, %b; mov.u32 %v, 0x3c003c00; st.shared.v4.u32 [%a], {%v, %v, %v, %v};\n"                      \
  "fence.proxy.async; bar.sync 0;\n"                                                                                   \
  "shr.u32 %b, %b, 4; cvt.u64.u32 %d, %b; mov.u64 %x, 0x1000080000; or.b64 %d, %d, %x;\n"                              \
  "mov.u32 %c0, %v; mov.u32 %c1, %v; mov.u32 %c2, %v; mov.u32 %c3, %v;\nwgmma.fence.sync.aligned;\n"
#define SHAPE "wgmma.mma_async.sync.aligned.m64n8k16."
#define FROM_REGISTERS SHAPE "f32.f16.f16 {%f0, %f1, %f2, %f3}, {%c0, %c1, %c2, %c3}, %d, 0, 1, 1, 0;\n"
#define INTO_A SHAPE "f16.f16.f16 {%c0, %c1}, %d, %d, 0, 1, 1, 0, 0;\n"
#define WAIT "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
#define END "ret;\n}\n"

static void launch(Machine *machine, float (*results)[2]) {
  uint64_t out = machine_upload(machine, NULL, THREADS * sizeof *results);
  machine_launch(machine, (Shape){1, THREADS, 0}, (const void *[]){&out}, 1);
  if (results) machine_download(machine, results, out, THREADS * sizeof *results);
}

static void expect_report(const char *text, HazardKind kind, const char *detail) {
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    launch(&machine, NULL);
    int count, found = 0;
    const Hazard *hazards = emulator_hazards(machine.emulator, &count);
    for (int i = 0; i < count; i++) found += hazards[i].kind == kind && strstr(hazards[i].detail, detail);
    cr_expect(found, "schedule %d: none of %d reports says \"%s\" of\n%s", (int)schedule, count, detail, text);
    machine_close(&machine);
  }
}

static void expect_silence(const char *text) {
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    launch(&machine, NULL);
    expect_clean(&machine);
    machine_close(&machine);
  }
}

Test(wgmma, a_register_of_a_that_another_writes) {
  expect_report(BEGIN INTO_A FROM_REGISTERS WAIT END, HAZARD_REGISTER_IN_FLIGHT,
                "its A register is an accumulator of a wgmma in flight");
  expect_silence(BEGIN INTO_A WAIT "wgmma.fence.sync.aligned;\n" FROM_REGISTERS WAIT END);
}

Test(wgmma, an_accumulator_that_another_reads_as_a) {
  expect_report(BEGIN FROM_REGISTERS INTO_A WAIT END, HAZARD_REGISTER_IN_FLIGHT,
                "its accumulator is an A register of a wgmma in flight");
  expect_silence(BEGIN FROM_REGISTERS WAIT "wgmma.fence.sync.aligned;\n" INTO_A WAIT END);
}

// The same bytes in two formats: what is kept of B for the four warps of one product is not that of the next.
Test(wgmma, the_same_b_in_two_formats) {
  static const char text[] = BEGIN SHAPE "f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 0, 1, 1, 0, 0;\n" SHAPE
                                         "f32.bf16.bf16 {%g0, %g1, %g2, %g3}, %d, %d, 0, 1, 1, 0, 0;\n" WAIT
                                         "st.global.v2.f32 [%o], {%f1, %g1};\n" END;
  float results[THREADS][2];
  Machine machine = machine_open(text, 0);
  launch(&machine, results);
  expect_clean(&machine);
  for (int i = 0; i < THREADS; i++) {
    cr_expect_eq(results[i][0], 16);
    cr_expect_eq(results[i][1], 16 * 0x1p-14f, "thread %d: %g", i, results[i][1]);
  }
  machine_close(&machine);
}

// The block's shared memory begins with t.
Test(wgmma, a_matrix_that_begins_before_shared_memory) {
  expect_report(BEGIN "sub.u64 %x, %d, 1;\n" SHAPE
                      "f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %x, 0, 1, 1, 0, 0;\n" WAIT END,
                HAZARD_OUT_OF_BOUNDS, "the descriptor of B");
}

// A constant may be written after the fence, where nothing has used the register since the fence before.
#define FENCE "wgmma.fence.sync.aligned;\n"
Test(wgmma, a_constant_between_two) {
  static const char late[] = "read or written after the last wgmma.fence";
  expect_report(BEGIN FROM_REGISTERS WAIT "mov.f32 %f0, 0f00000000;\n" FROM_REGISTERS WAIT END, HAZARD_WGMMA_FENCE,
                late);
  expect_report(BEGIN FROM_REGISTERS WAIT "mov.u32 %c0, 7;\n" FROM_REGISTERS WAIT END, HAZARD_WGMMA_FENCE, late);
  expect_silence(BEGIN FROM_REGISTERS WAIT FENCE "mov.f32 %f0, 0f00000000; mov.u32 %c0, 7;\n" FROM_REGISTERS WAIT END);
}

// wgmma adds to the old value of the accumulator where the predicate, here negated, is true.
Test(wgmma, a_negated_predicate_of_the_accumulator) {
#define ADD_F(predicate) SHAPE "f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, " predicate ", 1, 1, 0, 0;\n"
#define ADD_G(predicate) SHAPE "f32.f16.f16 {%g0, %g1, %g2, %g3}, %d, %d, " predicate ", 1, 1, 0, 0;\n"
  static const char text[] = BEGIN ".reg .pred %p; setp.eq.u32 %p, %t, %t;\n" ADD_F("!%p") ADD_G("!%p") ADD_F("!%p")
      ADD_G("%p") WAIT "st.global.v2.f32 [%o], {%f1, %g1};\n" END;
  float results[THREADS][2];
  Machine machine = machine_open(text, 0);
  launch(&machine, results);
  expect_clean(&machine);
  for (int i = 0; i < THREADS; i++) cr_expect(results[i][0] == 16 && results[i][1] == 32, "thread %d", i);
  machine_close(&machine);
}
