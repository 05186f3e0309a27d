// Records the tensor copies of tensor_copies.txt on an H200: it reads the cases and writes the file again, with what the
// copies did. test_tensor_golden.c then says what differs from the emulator.
//
// A copy that the hardware calls an illegal instruction ends a process's use of the GPU. So children run the cases, some
// at a time, and another one takes a child's place when it ends. If only some cases have a result, from a run that ended
// early, the others alone are recorded.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "record.h"
#include "tensor_results.h"

enum {
  CHILDREN = 6,
  SECONDS = 90,            // no case begins later
  SECONDS_OF_A_CASE = 15,  // a child that takes longer ends
  MANY_BYTES = 1 << 16,    // more than a copy moves
};

struct Machine {
  uint8_t *memory;
  TensorInput *in;
  TensorOutput *out;
  cudaKernel_t kernels[TENSOR_KERNELS];
  PFN_cuTensorMapEncodeTiled_v12000 encode_tiled;
  PFN_cuTensorMapEncodeIm2col_v12000 encode_im2col;
};

// What the processes share.
struct Shared {
  int next;  // the case that nobody has taken
  TensorResult results[];
};

static TensorInput input;
static TensorOutput output;
static uint8_t memory[TENSOR_MEMORY];

// ---- one copy ----

static cudaKernel_t compile(const TensorCase *c) {
  static char text[8192];
  cudaLibrary_t library;
  tensor_kernel(c, text, sizeof text);
  cudaKernel_t kernel = compile_kernel(text, "copy", &library);
  CHECK(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TENSOR_TILE));
  return kernel;
}

static cudaKernel_t kernel_of(Machine *m, const TensorCase *c) {
  cudaKernel_t *kernel = &m->kernels[tensor_kernel_number(c)];
  if (!*kernel) *kernel = compile(c);
  return *kernel;
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
    return m->encode_im2col(map, type, c->rank, m->memory + c->base, size, stride, c->lower, c->upper, c->channels,
                            c->pixels, c->step, interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
  return m->encode_tiled(map, type, c->rank, m->memory + c->base, size, stride, c->box, c->step, interleave, swizzle,
                         CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
}

// Runs the kernel, whose mbarrier expects so many bytes of a load, and leaves `output` and `memory`.
static cudaError_t execute(const Machine *m, const TensorCase *c, cudaKernel_t kernel, CUtensorMap *map,
                           uint32_t bytes) {
  tensor_prepare(c, memory, &input);
  input.bytes = bytes;
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

// Runs a load once more, with an mbarrier that expects the bytes that came before: the phase must complete by these alone,
// and the tile be the same.
static bool is_confirmed(const Machine *m, const TensorCase *c, cudaKernel_t kernel, CUtensorMap *map,
                         TensorResult *result) {
  result->error = execute(m, c, kernel, map, result->bytes);
  return !result->error && output.completed && !output.missing && !memcmp(result->after, output.tile, TENSOR_TILE);
}

// The mbarrier of a load, and of a prefetch, expects more bytes than will come. So the kernel polls for long, and an error of
// the copy is an error of this launch. A load that is not the same a second time has no result.
static void try_case(Machine *m, const TensorCase *c, TensorResult *result) {
  alignas(64) CUtensorMap map;
  result->error = encode(m, c, &map);
  result->state = result->error ? TENSOR_REFUSED : TENSOR_UNTRIED;
  if (result->error) return;
  cudaKernel_t kernel = kernel_of(m, c);
  result->state = TENSOR_HUNG;  // unless the kernel ends
  result->error = execute(m, c, kernel, &map, c->store && !c->prefetch ? 0 : MANY_BYTES);
  if (!result->error && output.completed) result->state = TENSOR_DONE;
  if (result->state == TENSOR_DONE) memcpy(result->after, c->store ? memory : output.tile, tensor_received(c));
  if (result->state == TENSOR_DONE && !c->store) {
    result->bytes = MANY_BYTES - output.missing;
    if (!is_confirmed(m, c, kernel, &map, result)) result->state = TENSOR_UNTRIED;
  }
  if (result->error) result->state = TENSOR_STOPPED;
}

// ---- a child ----

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
  return m;
}

// Runs cases that nobody has taken, until one of them ends the process's use of the GPU.
static void run_child(const std::vector<TensorCase> &cases, Shared *shared) {
  alarm(SECONDS_OF_A_CASE);
  Machine m = start();
  for (size_t i; (i = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED)) < cases.size();) {
    alarm(SECONDS_OF_A_CASE);
    try_case(&m, &cases[i], &shared->results[i]);
    if (shared->results[i].state == TENSOR_STOPPED) return;
  }
}

static pid_t start_child(const std::vector<TensorCase> &cases, Shared *shared) {
  fflush(stdout);
  pid_t child = fork();
  if (child) return child;
  run_child(cases, shared);
  _exit(0);
}

// Runs all cases in children. A child that ends before it has taken a case has no GPU: after CHILDREN of these in a row
// no other is started.
static void run_cases(const std::vector<TensorCase> &cases, Shared *shared) {
  time_t end = time(nullptr) + SECONDS;
  int children = 0, in_vain = 0, before = -1;
  for (;;) {
    bool more = shared->next < (int)cases.size() && time(nullptr) < end && in_vain < CHILDREN;
    if (more && children < CHILDREN) {
      if (start_child(cases, shared) > 0) children++;
      continue;
    }
    if (!more) __atomic_store_n(&shared->next, (int)cases.size(), __ATOMIC_RELAXED);
    if (!children) return;
    int status;
    if (wait(&status) > 0) children--;
    in_vain = shared->next == before ? in_vain + 1 : 0;
    before = shared->next;
  }
}

// ---- the file ----

static std::vector<std::string> read_lines(const char *directory) {
  FILE *file = open_file(directory, "tensor_copies.txt", "r");
  std::vector<std::string> lines;
  static char line[TENSOR_LINE];
  while (fgets(line, sizeof line, file)) lines.push_back(std::string(line, strcspn(line, "\n")));
  fclose(file);
  return lines;
}

static bool is_case(const std::string &line) { return !line.empty() && line[0] != '#'; }

static TensorCase read_case(const std::string &line) {
  TensorCase c;
  if (tensor_case(line.c_str(), &c)) return c;
  fprintf(stderr, "record: tensor_copies.txt: no case: %s\n", line.c_str());
  exit(2);
}

static bool has_result(const std::string &line) { return line.find(" ->") != std::string::npos; }

// The cases to record, and their lines.
static std::vector<TensorCase> read_cases(const std::vector<std::string> &lines, std::vector<size_t> *places) {
  std::vector<TensorCase> cases;
  bool all = true;
  for (const std::string &line : lines) all &= !is_case(line) || has_result(line);
  for (size_t i = 0; i < lines.size(); i++) {
    if (!is_case(lines[i]) || (has_result(lines[i]) && !all)) continue;
    cases.push_back(read_case(lines[i]));
    places->push_back(i);
  }
  return cases;
}

static void write_lines(const std::vector<std::string> &lines, const char *directory) {
  FILE *file = open_file(directory, "tensor_copies.txt", "w");
  for (const std::string &line : lines) fprintf(file, "%s\n", line.c_str());
  close_file(file);
}

// Ends the program when nothing was recorded.
static void print_counts(const Shared *shared, size_t cases) {
  static const char *const states[] = {"not tried", "refused", "stopped", "hung", "done"};
  int counts[5] = {};
  for (size_t i = 0; i < cases; i++) counts[shared->results[i].state]++;
  printf("%zu tensor copies", cases);
  for (int s = 0; s < 5; s++) printf(", %d %s", counts[s], states[s]);
  printf("\n");
  if (counts[TENSOR_UNTRIED] == (int)cases) exit(3);
}

// Runs before all others: its children must not inherit a GPU that is in use.
void record_tensors(const char *golden) {
  static char text[TENSOR_LINE];
  std::vector<std::string> lines = read_lines(golden);
  std::vector<size_t> places;
  std::vector<TensorCase> cases = read_cases(lines, &places);
  Shared *shared = (Shared *)mmap(nullptr, sizeof(Shared) + cases.size() * sizeof(TensorResult), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  run_cases(cases, shared);
  print_counts(shared, cases.size());
  for (size_t i = 0; i < cases.size(); i++) {
    if (shared->results[i].state == TENSOR_UNTRIED) continue;
    std::string &line = lines[places[i]];
    tensor_write_result(&cases[i], &shared->results[i], text);
    line = line.substr(0, line.find(" ->")) + " ->" + text;
  }
  write_lines(lines, golden);
}
