// Records the products and sums of contraction_forms.h on a GPU: all results. test_contraction.c then says what differs from
// the emulator.
#include "contraction_forms.h"
#include "record.h"

static void execute(const ContractionForm *form, const std::vector<uint64_t> &operands, uint64_t *results) {
  static ContractionText text;
  const size_t words = (size_t)CONTRACTION_LANES * CONTRACTION_WORDS;
  cudaLibrary_t library;
  contraction_kernel(&text, form, form->pattern->text);
  cudaKernel_t kernel = compile_kernel(text.text, "contraction", &library);
  uint64_t *in = upload(operands), *out = upload(std::vector<uint64_t>(words));
  void *arguments[] = {&in, &out};
  CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(CONTRACTION_LANES), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(results, out, words * sizeof *out, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaLibraryUnload(library));
}

void record_contraction(const char *golden) {
  static ContractionForm forms[CONTRACTION_MOST_FORMS];
  const int count = contraction_forms(forms);
  const size_t words = (size_t)CONTRACTION_LANES * CONTRACTION_WORDS;
  std::vector<uint64_t> operands(CONTRACTION_LANES * CONTRACTION_OPERANDS), results((size_t)count * words);
  for (int i = 0; i < count; i++) {
    contraction_operands(&forms[i], i, operands.data());
    execute(&forms[i], operands, &results[(size_t)i * words]);
  }
  ContractionRecord record = {};
  memcpy(record.magic, "HLCONT1", 8);
  record.forms = (uint32_t)count;
  record.lanes = CONTRACTION_LANES;
  record.input_hash = contraction_hash(forms, count);
  FILE *file = open_file(golden, "contraction.bin", "wb");
  write_bytes(file, &record, sizeof record);
  write_bytes(file, results.data(), results.size() * sizeof results[0]);
  close_file(file);
  printf("%d products and sums recorded\n", count);
}
