// Records the tensor copies of tensor_copies.txt on an H200: it reads the cases and writes the file again, with what the
// copies did. test_tensor_golden.c then says what differs from the emulator.
//
// A copy that the hardware calls an illegal instruction ends a process's use of the GPU. So a child runs the cases, and
// after each of its ends another one goes on with the next case.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "record.h"
#include "tensor_cases.h"

enum State { UNTRIED, REFUSED, STOPPED, HUNG, DONE };

struct Outcome {
  State state;
  int error;  // of the encoder or of the launch
  uint32_t bytes;
  uint64_t hash, barrier;
};

struct Machine {
  uint8_t *memory;
  TensorInput *in;
  TensorOutput *out;
  uint64_t barrier_start, barrier_unit;  // bits of an mbarrier that expects 16 bytes, and what each byte adds
  PFN_cuTensorMapEncodeTiled_v12000 encode_tiled;
  PFN_cuTensorMapEncodeIm2col_v12000 encode_im2col;
};

static TensorInput input;
static TensorOutput output;
static uint8_t memory[TENSOR_MEMORY];

// ---- one copy ----

static cudaKernel_t compile(const TensorCase *c, cudaLibrary_t *library) {
  static char text[8192], log[8192];
  tensor_kernel(c, true, text, sizeof text);
  cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  cudaError_t error = cudaLibraryLoadData(library, text, options, values, 2, nullptr, nullptr, 0);
  if (error != cudaSuccess) fprintf(stderr, "%s\n%s\n", log, text);
  CHECK(error);
  cudaKernel_t kernel;
  CHECK(cudaLibraryGetKernel(&kernel, *library, "copy"));
  CHECK(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TENSOR_TILE));
  return kernel;
}

static CUresult encode(const Machine *m, const TensorCase *c, CUtensorMap *map) {
  const CUtensorMapDataType type = (CUtensorMapDataType)c->type;
  const CUtensorMapInterleave interleave = (CUtensorMapInterleave)c->interleave;
  const CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)c->swizzle;
  const CUtensorMapFloatOOBfill fill = (CUtensorMapFloatOOBfill)c->fill_nan;
  cuuint64_t size[TENSOR_DIMENSIONS], stride[TENSOR_DIMENSIONS];
  for (int d = 0; d < TENSOR_DIMENSIONS; d++) {
    size[d] = c->size[d];
    stride[d] = d + 1 < TENSOR_DIMENSIONS ? c->stride[d + 1] : 0;
  }
  if (c->im2col)
    return m->encode_im2col(map, type, c->rank, m->memory + TENSOR_BASE, size, stride, c->lower, c->upper, c->channels,
                            c->pixels, c->step, interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
  return m->encode_tiled(map, type, c->rank, m->memory + TENSOR_BASE, size, stride, c->box, c->step, interleave,
                         swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
}

// Runs the kernel with `input`, and leaves `output` and `memory`.
static cudaError_t execute(const Machine *m, cudaKernel_t kernel, CUtensorMap *map) {
  CHECK(cudaMemcpy(m->memory, memory, sizeof memory, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(m->in, &input, sizeof input, cudaMemcpyHostToDevice));
  void *arguments[] = {map, (void *)&m->in, (void *)&m->out};
  CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), arguments, TENSOR_TILE, nullptr));
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return error;
  CHECK(cudaMemcpy(&output, m->out, sizeof output, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(memory, m->memory, sizeof memory, cudaMemcpyDeviceToHost));
  return error;
}

// How many bytes a load has brought that did not complete the phase: what the mbarrier still misses tells.
static uint32_t bytes_moved(const Machine *m) {
  int64_t range = 1 << 21, missing = (int64_t)((output.barrier - m->barrier_start) / m->barrier_unit) % range + 16;
  if (missing >= range / 2) missing -= range;
  return (uint32_t)(input.bytes - missing);
}

static void try_case(const Machine *m, const TensorCase *c, Outcome *outcome) {
  static const int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  alignas(64) CUtensorMap map;
  cudaLibrary_t library;
  outcome->error = encode(m, c, &map);
  outcome->state = outcome->error ? REFUSED : STOPPED;
  if (outcome->error) return;
  cudaKernel_t kernel = compile(c, &library);
  uint32_t bytes = c->im2col ? c->channels * c->pixels : 1;
  for (int d = 0; !c->im2col && d < c->rank; d++) bytes *= c->box[d];
  bytes *= (uint32_t)sizes[c->type];
  for (int i = 0; i < 2; i++) {
    tensor_prepare(c, memory, &input);
    input.bytes = c->store ? 0 : bytes;
    outcome->error = execute(m, kernel, &map);
    if (outcome->error) return;
    outcome->bytes = bytes;
    outcome->barrier = output.barrier;
    outcome->state = output.completed ? DONE : HUNG;
    if (output.completed) break;
    bytes = bytes_moved(m);
  }
  outcome->hash = c->store ? golden_fnv(golden_fnv_start, memory, sizeof memory)
                           : golden_fnv(golden_fnv_start, output.tile, sizeof output.tile);
  CHECK(cudaLibraryUnload(library));
}

// ---- a child ----

// What an mbarrier shows of the bytes that it expects.
static void calibrate(Machine *m) {
  TensorCase c = {};
  CUtensorMap map = {};
  cudaLibrary_t library;
  c.rank = 1;
  cudaKernel_t kernel = compile(&c, &library);
  uint64_t bits[2];
  for (uint32_t i = 0; i < 2; i++) {
    tensor_prepare(&c, memory, &input);
    input.issues = 0;
    input.bytes = 16 << i;
    CHECK(execute(m, kernel, &map));
    bits[i] = output.barrier;
  }
  m->barrier_start = bits[0];
  m->barrier_unit = (bits[1] - bits[0]) / 16;
  if (!m->barrier_unit) m->barrier_unit = 1;
}

static Machine start() {
  Machine m = {};
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaMalloc(&m.memory, TENSOR_MEMORY));
  CHECK(cudaMalloc(&m.in, sizeof *m.in));
  CHECK(cudaMalloc(&m.out, sizeof *m.out));
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&m.encode_tiled, 12000, cudaEnableDefault,
                                         &found));
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", (void **)&m.encode_im2col, 12000, cudaEnableDefault,
                                         &found));
  calibrate(&m);
  return m;
}

// Runs cases from the first untried one on, until one of them ends the process's use of the GPU. The results go to
// `outcomes`, and all bytes to `explore`.
static void run_child(const std::vector<TensorCase> &cases, Outcome *outcomes, FILE *explore) {
  Machine m = start();
  for (size_t i = 0; i < cases.size(); i++) {
    if (outcomes[i].state != UNTRIED) continue;
    alarm(30);
    outcomes[i].state = STOPPED;
    try_case(&m, &cases[i], &outcomes[i]);
    if (outcomes[i].state == STOPPED) return;
    if (outcomes[i].state == REFUSED) continue;
    uint64_t head[] = {i, outcomes[i].barrier, cases[i].store ? sizeof memory : sizeof output.tile};
    write_bytes(explore, head, sizeof head);
    write_bytes(explore, cases[i].store ? memory : output.tile, head[2]);
  }
}

// ---- the file ----

static std::string result_of(const TensorCase *c, const Outcome *outcome) {
  char text[100];
  switch (outcome->state) {
  case REFUSED: snprintf(text, sizeof text, "refused %d", outcome->error); break;
  case DONE:
    if (c->store)
      snprintf(text, sizeof text, "%016llx", (unsigned long long)outcome->hash);
    else
      snprintf(text, sizeof text, "%u %016llx", outcome->bytes, (unsigned long long)outcome->hash);
    break;
  case HUNG: snprintf(text, sizeof text, "hung"); break;
  default: snprintf(text, sizeof text, "stopped %d", outcome->error);
  }
  return text;
}

static std::vector<std::string> read_lines(const char *directory) {
  FILE *file = open_file(directory, "tensor_copies.txt", "r");
  std::vector<std::string> lines;
  char line[600];
  while (fgets(line, sizeof line, file)) lines.push_back(std::string(line, strcspn(line, "\n")));
  fclose(file);
  return lines;
}

// Runs before all others: its children must not inherit a GPU that is in use.
void record_tensors(const char *golden, const char *explore_directory) {
  std::vector<std::string> lines = read_lines(golden);
  std::vector<TensorCase> cases;
  for (const std::string &line : lines) {
    TensorCase c;
    if (line[0] == '#' || line.empty()) continue;
    if (!tensor_case(line.c_str(), &c)) {
      fprintf(stderr, "record: tensor_copies.txt: no case: %s\n", line.c_str());
      exit(2);
    }
    cases.push_back(c);
  }
  Outcome *outcomes = (Outcome *)mmap(nullptr, cases.size() * sizeof(Outcome), PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  close_file(open_file(explore_directory, "tensor_copies.full", "wb"));
  for (size_t done = 0; done < cases.size();) {
    pid_t child = fork();
    if (!child) {
      FILE *explore = open_file(explore_directory, "tensor_copies.full", "ab");
      run_child(cases, outcomes, explore);
      close_file(explore);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    size_t before = done;
    while (done < cases.size() && outcomes[done].state != UNTRIED) done++;
    if (done == before) {
      fprintf(stderr, "record: a child ran no tensor copy\n");
      exit(1);
    }
  }
  FILE *file = open_file(golden, "tensor_copies.txt", "w");
  size_t i = 0;
  for (const std::string &line : lines) {
    bool is_case = line[0] != '#' && !line.empty();
    fprintf(file, "%s", line.substr(0, line.find(" ->")).c_str());
    if (is_case) fprintf(file, " -> %s", result_of(&cases[i], &outcomes[i]).c_str());
    if (is_case) i++;
    fprintf(file, "\n");
  }
  close_file(file);
  printf("%zu tensor copies recorded\n", cases.size());
}
