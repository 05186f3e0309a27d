// Runs the cases of rules.h on the GPU, and prints what they gave: the lines of h200.txt. build/rules/record
// [FAMILY...]
//
//   family | case | the words that a block wrote | how many blocks of all launches
//
// A case of which threads wait forever ends its process: each row of cases is run by children, one after the other.
#include <cstdio>
#include <cuda.h>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "kernels.cu"

enum {
  BLOCKS = 132,
  CLUSTERED_BLOCKS = 128,
  END_WAVES = 16,
  LAUNCHES = 1000,
  LIMIT_CLOCKS = 20000000,
  SECONDS_A_CASE = 2
};

typedef void RuleKernel(const RuleInput *in, uint32_t *out);

typedef struct Case {
  const char *family, *name;
  RuleKernel *kernel;
  uint32_t threads, watching, words, cluster, variant;
  const uint32_t *program;
  uint32_t program_words;
  uint32_t waves;  // of blocks that come one after the other; 0: one
} Case;

static std::vector<Case> list_cases() {
  std::vector<Case> cases;
  static const uint32_t copied[4] = {0x11111111, 0x22222222, 0x33333333, 0x44444444};
  static const uint32_t narrow_rounds[1] = {256}, idiom_rounds[1] = {64}, same_rounds[1] = {8}, guess_rounds[1] = {4};
  static char together_names[TOGETHER_CASES][120], release_names[RELEASE_CASES][100], fence_names[FENCE_CASES][100],
      equal_names[EQUAL_CASES][60], parity_names[PARITY_CASES][80];
  static RuleKernel *const registers_kernels[] = {registers_0, registers_1, registers_2, registers_3, registers_4};
  for (const BarrierCase &c : barrier_cases)
    cases.push_back({"barrier", c.name, barrier_rules, 32 * BARRIER_WARPS, 32, BARRIER_WARPS, 0, 0, &c.steps[0][0],
                     BARRIER_WARPS * BARRIER_STEPS});
  for (uint32_t i = 0; i < LANE_CASES; i++)
    cases.push_back({"lanes", lane_cases[i], lane_rules, 32, 0, 32, 0, i, NULL, 0});
  for (uint32_t i = 0; i < PLACE_CASES; i++)
    cases.push_back({"place", place_cases[i], place_rules, 32, 0, 32, 0, i, NULL, 0});
  for (uint32_t i = 0; i < REMOTE_CASES; i++)
    cases.push_back({"remote", remote_cases[i], remote_rules, 32, 0, 2, REMOTE_BLOCKS, i, NULL, 0});
  for (uint32_t i = 0; i < NARROW_CASES; i++)
    cases.push_back({"narrow", narrow_cases[i], narrow_rules, NARROW_THREADS, 0, 2, 2, i, narrow_rounds, 1});
  for (uint32_t i = 0; i < TOGETHER_CASES; i++) {
    uint32_t cluster = i / TOGETHER_INSTRUCTIONS < TOGETHER_OF_TWO_BLOCKS ? 0 : 2;
    together_name((int)i, together_names[i], sizeof together_names[i]);
    cases.push_back({"together", together_names[i], together_rules, 64, 0, 2, cluster, i, narrow_rounds, 1});
  }
  for (uint32_t i = 0; i < RELEASE_CASES; i++) {
    release_name((int)i, release_names[i], sizeof release_names[i]);
    cases.push_back({"release", release_names[i], release_rules, RELEASE_THREADS, 0, 2, 0, i, narrow_rounds, 1});
  }
  for (uint32_t i = 0; i < FENCE_CASES; i++) {
    fence_name((int)i, fence_names[i], sizeof fence_names[i]);
    cases.push_back({"fence", fence_names[i], fence_rules, FENCE_THREADS, 0, 2, 0, i, idiom_rounds, 1, 1});
  }
  for (uint32_t i = 0; i < LEAVE_CASES; i++)
    cases.push_back({"leave", leave_cases[i], leave_rules, LEAVE_WARPS * 32, 0, 2, 0, i, NULL, 0, 1});
  for (uint32_t i = 0; i < SAME_CASES; i++)
    cases.push_back({"same", same_cases[i], same_rules, 64, 0, 2, 0, i, same_rounds, 1, 1});
  for (uint32_t i = 0; i < COLUMNS_CASES; i++)
    cases.push_back({"columns", columns_cases[i], columns_rules, 128, 0, 2, 0, i, idiom_rounds, 1});
  for (uint32_t i = 0; i < CONVERGED_CASES; i++)
    cases.push_back(
        {"converged", converged_cases[i], converged_rules, CONVERGED_THREADS, 0, 2, 0, i, idiom_rounds, 1, 1});
  for (uint32_t i = 0; i < EQUAL_CASES; i++) {
    equal_name((int)i, equal_names[i], sizeof equal_names[i]);
    uint32_t cluster = i / EQUAL_KINDS == 2 ? 2 : 0;
    cases.push_back({"equal", equal_names[i], equal_rules, EQUAL_THREADS, 0, 2, cluster, i, idiom_rounds, 1, 1});
  }
  for (uint32_t i = 0; i < GUESS_CASES; i++)
    cases.push_back({"guess", guess_cases[i], guess_rules, GUESS_THREADS, 0, 2, 0, i, guess_rounds, 1});
  for (uint32_t i = 0; i < PARITY_CASES; i++) {
    parity_name((int)i, parity_names[i], sizeof parity_names[i]);
    cases.push_back({"parity", parity_names[i], parity_rules, 32, 0, PARITY_WORDS, 0, i, &parities[i], 1});
  }
  for (uint32_t i = 0; i < CHAIN_CASES; i++)
    cases.push_back({"chain", chain_cases[i], chain_rules, 64, 0, 2, 2, i, narrow_rounds, 1});
  for (uint32_t i = 0; i < END_CASES; i++)
    cases.push_back({"end", end_cases[i], end_rules, END_THREADS, 0, 1, 0, i, NULL, 0, END_WAVES});
  for (uint32_t i = 0; i < ROWS_CASES; i++)
    cases.push_back({"rows", rows_cases[i], rows_rules, 128, 0, 1, 0, i, NULL, 0});
  for (uint32_t i = 0; i < INIT_CASES; i++)
    cases.push_back({"init", init_cases[i], init_rules, 64, 0, 2, i == 4 ? 4u : 0u, i, copied, 4});
  for (uint32_t i = 0; i < REGISTER_CASES; i++)
    cases.push_back({"registers", register_cases[i], registers_kernels[i], i == 2 ? 128u : 256u, 32, 8, 0, i, NULL, 0});
  for (uint32_t i = 0; i < EXIT_CASES; i++)
    cases.push_back({"exit", exit_cases[i], exit_rules, 64, i < 2 ? 32u : 0u, 2, 0, i, NULL, 0});
  return cases;
}

static void must(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  printf("%s: %s\n", what, cudaGetErrorString(error));
  fflush(stdout);
  _exit(1);
}

static double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- the cases of RuleInput ----

typedef struct Memory {
  RuleInput *in, *in_device;
  uint32_t *out, *out_device;
} Memory;

// The output is memory of the host: it can be read after a launch that has failed.
static Memory allocate() {
  Memory memory;
  memory.in = (RuleInput *)aligned_alloc(64, sizeof *memory.in);
  must(cudaMalloc(&memory.in_device, sizeof *memory.in), "memory");
  must(cudaHostAlloc(&memory.out, BLOCKS * RULE_WORDS * sizeof(uint32_t), cudaHostAllocMapped), "memory");
  must(cudaHostGetDevicePointer(&memory.out_device, memory.out, 0), "memory");
  return memory;
}

static cudaError_t launch(const Case *c, const Memory *memory) {
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute = {};
  config.gridDim = dim3((c->cluster ? CLUSTERED_BLOCKS : BLOCKS) * (c->waves ? c->waves : 1));
  config.blockDim = dim3(c->threads + c->watching);
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = c->cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = c->cluster != 0;
  cudaError_t error = cudaMemcpy(memory->in_device, memory->in, sizeof *memory->in, cudaMemcpyHostToDevice);
  if (error != cudaSuccess) return error;
  error = cudaLaunchKernelEx(&config, c->kernel, (const RuleInput *)memory->in_device, memory->out_device);
  return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}

// Memory of zeros for the blocks' stores, with a tensor map of it.
static void give_memory(const Case *c, RuleInput *in) {
  uint64_t rows = (uint64_t)BLOCKS * c->waves * END_COPIES * END_WORDS / END_ROW_WORDS;
  cuuint64_t sizes[2] = {END_ROW_WORDS, rows}, strides[1] = {END_ROW_WORDS * 4};
  cuuint32_t box[2] = {END_ROW_WORDS, END_WORDS / END_ROW_WORDS}, steps[2] = {1, 1};
  void *memory, *encode;
  cudaDriverEntryPointQueryResult found;
  must(cudaMalloc(&memory, rows * END_ROW_WORDS * 4), "memory");
  must(cudaMemset(memory, 0, rows * END_ROW_WORDS * 4), "memory");
  must(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found), "driver");
  CUresult error = ((decltype(&cuTensorMapEncodeTiled))encode)(
      (CUtensorMap *)in->map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, memory, sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error) printf("# tensor map: error %d\n", (int)error);
  in->memory = (uint64_t)memory;
}

typedef std::map<std::vector<uint32_t>, long> Outcomes;

static void collect(const Case *c, const uint32_t *out, Outcomes *outcomes) {
  for (int block = 0; block < (c->cluster ? CLUSTERED_BLOCKS : BLOCKS); block++) {
    const uint32_t *words = out + block * RULE_WORDS;
    (*outcomes)[std::vector<uint32_t>(words, words + c->words)]++;
  }
}

static void print_outcomes(const Case *c, const char *how, const Outcomes *outcomes) {
  int printed = 0;
  for (const auto &outcome : *outcomes) {
    if (++printed > 6) break;
    printf("%s | %s |%s", c->family, c->name, how);
    for (uint32_t word : outcome.first) printf(" %x", word);
    printf(" | %ld\n", outcome.second);
  }
  if (printed > 6) printf("%s | %s | %zu outcomes in all |\n", c->family, c->name, outcomes->size());
  fflush(stdout);
}

// False when the GPU has to be opened anew.
static bool run_case(const Case *c, const Memory *memory) {
  Outcomes outcomes;
  double begin = seconds();
  memset(memory->in, 0, sizeof *memory->in);
  memory->in->threads = c->threads;
  memory->in->limit = LIMIT_CLOCKS;
  memory->in->variant = c->variant;
  if (c->program) memcpy(memory->in->program, c->program, c->program_words * sizeof(uint32_t));
  if (c->waves) give_memory(c, memory->in);
  for (uint32_t i = 0; i < LAUNCHES && seconds() - begin < SECONDS_A_CASE; i++) {
    memory->in->seed = i;
    memset(memory->out, 0, BLOCKS * RULE_WORDS * sizeof(uint32_t));
    cudaError_t error = launch(c, memory);
    if (error != cudaSuccess) {
      Outcomes last;
      print_outcomes(c, "", &outcomes);
      collect(c, memory->out, &last);
      printf("# launch %u: %s\n", i, cudaGetErrorName(error));
      print_outcomes(c, " stuck:", &last);
      return false;
    }
    collect(c, memory->out, &outcomes);
  }
  print_outcomes(c, "", &outcomes);
  return true;
}

// All of them if none is named.
static bool is_wanted(const char *family, char *const *families, int count) {
  for (int i = 0; i < count; i++)
    if (!strcmp(family, families[i])) return true;
  return count == 0;
}

// Runs a child for the cases from *next on; a case that kills it is passed over. False when a child has failed to
// begin.
static bool run_child(const std::vector<Case> &cases, volatile size_t *next) {
  size_t first = *next;
  pid_t child = fork();
  if (child == 0) {
    alarm(30);
    Memory memory = allocate();
    while (*next < cases.size()) {
      const Case *c = &cases[(*next)++];
      alarm(15);
      if (!run_case(c, &memory)) _exit(0);
    }
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("# a child was ended by signal %d after case %zu\n", WTERMSIG(status), *next);
  return *next > first;
}

static void run_cases(char *const *families, int count) {
  std::vector<Case> cases;
  for (const Case &c : list_cases())
    if (is_wanted(c.family, families, count)) cases.push_back(c);
  volatile size_t *next =
      (volatile size_t *)mmap(NULL, sizeof *next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  *next = 0;
  while (*next < cases.size()) {
    fflush(stdout);
    if (!run_child(cases, next)) return;
  }
}

// ---- what a descriptor reads ----

// The byte of the shared memory that holds (row, k), if addresses are counted on from the start and a swizzle moves
// address bits 7 up, plus `turn`, to bits 4 up.
static uint32_t model(const DescriptorCase *c, int row, int k, uint32_t turn) {
  uint32_t start = (uint32_t)(c->bits & 0x3fff) << 4, leading = (uint32_t)(c->bits >> 16 & 0x3fff) << 4,
           stride = (uint32_t)(c->bits >> 32 & 0x3fff) << 4, swizzle = (uint32_t)(c->bits >> 62),
           width = swizzle ? 256u >> swizzle : 0, x = (uint32_t)row, z = (uint32_t)k, address = start;
  if (c->mn_major && width)
    address += x * 2 / width * leading + z / 8 * stride + z % 8 * width + x * 2 % width;
  else if (c->mn_major)
    address += x / 8 * stride + z / 8 * leading + z % 8 * 16 + x % 8 * 2;
  else if (width)
    address += x / 8 * stride + x % 8 * width + z * 2;
  else
    address += x / 8 * stride + z / 8 * leading + x % 8 * 16 + z % 8 * 2;
  uint32_t mask = width ? width / 16 - 1 : 0;
  return address ^ (((address >> 7) + turn) & mask) << 4;
}

enum { READ = RULE_ROWS * RULE_DEPTH };

static std::vector<uint16_t> read_matrices(const std::vector<DescriptorCase> &cases) {
  DescriptorCase *in;
  uint16_t *out;
  size_t size = cases.size() * READ * sizeof *out;
  std::vector<uint16_t> result(cases.size() * READ);
  must(cudaMalloc(&in, cases.size() * sizeof *in), "memory");
  must(cudaMalloc(&out, size), "memory");
  must(cudaMemcpy(in, cases.data(), cases.size() * sizeof *in, cudaMemcpyHostToDevice), "copy");
  must(cudaFuncSetAttribute(descriptor_rules, cudaFuncAttributeMaxDynamicSharedMemorySize, RULE_SHARED), "attribute");
  descriptor_rules<<<(unsigned)cases.size(), 128, RULE_SHARED>>>(in, out);
  must(cudaDeviceSynchronize(), "descriptor_rules");
  must(cudaMemcpy(result.data(), out, size, cudaMemcpyDeviceToHost), "copy");
  cudaFree(in);
  cudaFree(out);
  return result;
}

static bool agrees(const DescriptorCase *c, const uint16_t *read, uint32_t turn) {
  for (int row = 0; row < RULE_ROWS; row++)
    for (int k = 0; k < RULE_DEPTH; k++)
      if (read[row * RULE_DEPTH + k] != model(c, row, k, turn) / 2) return false;
  return true;
}

static void print_read(const DescriptorCase *c, const uint16_t *read) {
  printf("#   0x%016llx:", (unsigned long long)c->bits);
  for (int i = 0; i < 16 * 2; i++) {
    int row = c->mn_major ? i % 8 * 8 : i / 2, k = c->mn_major ? i / 8 * 5 % 16 : i % 2 * 8;
    printf(" %x", read[row * RULE_DEPTH + k] * 2);
  }
  printf("\n");
}

static void run_sweep(int sweep) {
  static const char *const widths[] = {"none", "128B", "64B", "32B"};
  std::vector<DescriptorCase> cases;
  for (int i = 0; i < SWEEP_CASES; i++) cases.push_back(sweep_case(sweep, i));
  std::vector<uint16_t> read = read_matrices(cases);
  const DescriptorCase *first = &cases[0];
  uint32_t base = (uint32_t)(first->bits >> 49 & 7);
  int address = 0, plus = 0, minus = 0, none = 0;
  for (int i = 0; i < SWEEP_CASES; i++) {
    const uint16_t *matrix = &read[(size_t)i * READ];
    bool a = agrees(&cases[i], matrix, 0), p = agrees(&cases[i], matrix, base), m = agrees(&cases[i], matrix, 8 - base);
    address += a, plus += p, minus += m;
    if (a || p || m) continue;
    if (none++ < 3) print_read(&cases[i], matrix);
  }
  printf("descriptor | %s %s %s, base offset %u | %016llx | by address %d, plus base %d, minus base %d of %d\n",
         first->of_b ? "B" : "A", first->mn_major ? "MN-major" : "K-major", widths[first->bits >> 62], base,
         (unsigned long long)fnv1a(FNV1A_START, read.data(), 2 * read.size()), address, plus, minus, SWEEP_CASES);
}

// Unnamed bits, and strides of 0.
static void run_special() {
  std::vector<DescriptorCase> cases;
  for (uint32_t swizzle = 0; swizzle < 2; swizzle++) {
    uint64_t bits = descriptor_bits(1024, 4096, 1024, 0, swizzle);
    cases.push_back({bits, 0, 0});
    for (uint8_t bit : unnamed_bits) cases.push_back({bits | 1ull << bit, 0, 0});
  }
  for (uint32_t mn_major = 0; mn_major < 2; mn_major++)
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++)
      cases.push_back({descriptor_bits(1024, 0, 0, 0, swizzle), 0, mn_major});
  std::vector<uint16_t> read = read_matrices(cases);
  for (int i = 0; i < 2 * (1 + UNNAMED_BITS); i++) {
    const uint16_t *plain = &read[(size_t)(i / (1 + UNNAMED_BITS) * (1 + UNNAMED_BITS)) * READ];
    if (i % (1 + UNNAMED_BITS) == 0) continue;
    printf("descriptor | %s, bit %d set | %s |\n", i <= UNNAMED_BITS ? "none" : "128B",
           unnamed_bits[i % (1 + UNNAMED_BITS) - 1],
           memcmp(plain, &read[(size_t)i * READ], READ * 2) ? "differs" : "same");
  }
  for (size_t i = 2 * (1 + UNNAMED_BITS); i < cases.size(); i++)
    printf("descriptor | %s, swizzle %d, strides of 0 | %s |\n", cases[i].mn_major ? "MN-major" : "K-major",
           (int)(cases[i].bits >> 62), agrees(&cases[i], &read[i * READ], 0) ? "by address" : "otherwise");
}

int main(int argc, char **argv) {
  run_cases(argv + 1, argc - 1);
  if (!is_wanted("descriptor", argv + 1, argc - 1)) return 0;
  for (int sweep = 0; sweep < SWEEPS; sweep++) run_sweep(sweep);
  run_special();
  return 0;
}
