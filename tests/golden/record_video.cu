// Records the video instructions of video_forms.h on an H200: the values of all results. test_video_golden.c then says
// what differs from the emulator.
#include "record.h"
#include "video_forms.h"

static void take_form(void *context, int, const VideoForm *form) {
  ((std::vector<VideoForm> *)context)->push_back(*form);
}

// The results of forms `first` to `first + count`, from their operands.
static void execute(const VideoForm *forms, int count, const uint32_t *operands, uint32_t *results) {
  static VideoText text;
  cudaLibrary_t library;
  video_kernel(&text, forms, count);
  cudaKernel_t kernel = compile_kernel(text.text, "video", &library);
  size_t lanes = (size_t)count * VIDEO_LANES;
  uint32_t *in = upload(std::vector<uint32_t>(operands, operands + 3 * lanes));
  uint32_t *out = upload(std::vector<uint32_t>(lanes));
  void *arguments[] = {&in, &out};
  CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(VIDEO_LANES), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(results, out, lanes * sizeof *out, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaLibraryUnload(library));
}

void record_video(const char *golden) {
  std::vector<VideoForm> forms;
  VideoRecord record = {};
  memcpy(record.magic, "HLVIDE1", 8);
  record.forms = (uint32_t)video_forms(take_form, &forms);
  record.lanes = VIDEO_LANES;
  std::vector<uint32_t> operands(3 * forms.size() * VIDEO_LANES), results(forms.size() * VIDEO_LANES);
  video_operands((int)forms.size(), operands.data());
  record.input_hash = video_hash(forms.data(), operands.data(), (int)forms.size());
  for (size_t i = 0; i < forms.size(); i += VIDEO_KERNEL_FORMS) {
    size_t count = forms.size() - i < VIDEO_KERNEL_FORMS ? forms.size() - i : VIDEO_KERNEL_FORMS;
    execute(&forms[i], (int)count, &operands[3 * i * VIDEO_LANES], &results[i * VIDEO_LANES]);
  }
  FILE *file = open_file(golden, "video.bin", "wb");
  write_bytes(file, &record, sizeof record);
  write_bytes(file, results.data(), results.size() * sizeof results[0]);
  close_file(file);
  printf("%d forms of video instructions recorded\n", (int)forms.size());
}
