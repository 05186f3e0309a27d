// Records the extended-precision instructions of carry_forms.h on an H100: all results. test_carry_golden.c then says what
// differs from the emulator.
#include "carry_forms.h"
#include "record.h"

// The results of forms `first` to `first + count`.
static void execute(int first, int count, const uint64_t *operands, uint64_t *results) {
  static CarryText text;
  cudaLibrary_t library;
  carry_kernel(&text, first, count);
  cudaKernel_t kernel = compile_kernel(text.text, "carry", &library);
  size_t lanes = (size_t)count * CARRY_LANES;
  uint64_t *in = upload(std::vector<uint64_t>(operands, operands + lanes * CARRY_OPERANDS));
  uint64_t *out = upload(std::vector<uint64_t>(lanes * CARRY_WORDS));
  void *arguments[] = {&in, &out};
  CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(CARRY_LANES), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(results, out, lanes * CARRY_WORDS * sizeof *out, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaLibraryUnload(library));
}

void record_carry(const char *golden) {
  const size_t lanes = (size_t)CARRY_FORMS * CARRY_LANES;
  std::vector<uint64_t> operands(lanes * CARRY_OPERANDS), results(lanes * CARRY_WORDS);
  carry_operands(operands.data());
  for (int i = 0; i < CARRY_FORMS; i += CARRY_KERNEL_FORMS)
    execute(i, CARRY_KERNEL_FORMS, &operands[(size_t)i * CARRY_LANES * CARRY_OPERANDS],
            &results[(size_t)i * CARRY_LANES * CARRY_WORDS]);
  CarryRecord record = {};
  memcpy(record.magic, "HLCARR1", 8);
  record.forms = CARRY_FORMS;
  record.lanes = CARRY_LANES;
  record.input_hash = carry_hash(operands.data());
  FILE *file = open_file(golden, "carry.bin", "wb");
  write_bytes(file, &record, sizeof record);
  write_bytes(file, results.data(), results.size() * sizeof results[0]);
  close_file(file);
  printf("%d sequences of extended-precision instructions recorded\n", (int)CARRY_FORMS);
}
