// Records the scalar instructions of scalars.h, one result for each input; and the errors of the special functions over
// all 2^32 inputs.
#include "record.h"

#include <cstdlib>

#include "scalars.h"

// ---- the instructions ----

#define FLOAT(x) __uint_as_float(x)
#define HALF(x) (uint16_t)(x)
#define RESULT_F(...)                                                                                                  \
  {                                                                                                                    \
    float r;                                                                                                           \
    __VA_ARGS__ return __float_as_uint(r);                                                                             \
  }
#define RESULT_H(...)                                                                                                  \
  {                                                                                                                    \
    uint16_t r;                                                                                                        \
    __VA_ARGS__ return r;                                                                                              \
  }
#define RESULT_R(...)                                                                                                  \
  {                                                                                                                    \
    uint32_t r;                                                                                                        \
    __VA_ARGS__ return r;                                                                                              \
  }
#define RESULT_L(...)                                                                                                  \
  {                                                                                                                    \
    uint64_t r;                                                                                                        \
    __VA_ARGS__ return r;                                                                                              \
  }
#define RUN_FF(I) RESULT_F(asm volatile(I " %0, %1;" : "=f"(r) : "f"(FLOAT(a)));)
#define RUN_FFF(I) RESULT_F(asm volatile(I " %0, %1, %2;" : "=f"(r) : "f"(FLOAT(a)), "f"(FLOAT(b)));)
#define RUN_FFFF(I)                                                                                                    \
  RESULT_F(asm volatile(I " %0, %1, %2, %3;" : "=f"(r) : "f"(FLOAT(a)), "f"(FLOAT(b)), "f"(FLOAT(c)));)
#define RUN_FH(I) RESULT_F(asm volatile(I " %0, %1;" : "=f"(r) : "h"(HALF(a)));)
#define RUN_FR(I) RESULT_F(asm volatile(I " %0, %1;" : "=f"(r) : "r"(a));)
#define RUN_HH(I) RESULT_H(asm volatile(I " %0, %1;" : "=h"(r) : "h"(HALF(a)));)
#define RUN_HHH(I) RESULT_H(asm volatile(I " %0, %1, %2;" : "=h"(r) : "h"(HALF(a)), "h"(HALF(b)));)
#define RUN_HHHH(I) RESULT_H(asm volatile(I " %0, %1, %2, %3;" : "=h"(r) : "h"(HALF(a)), "h"(HALF(b)), "h"(HALF(c)));)
#define RUN_HF(I) RESULT_H(asm volatile(I " %0, %1;" : "=h"(r) : "f"(FLOAT(a)));)
#define RUN_HR(I) RESULT_H(asm volatile(I " %0, %1;" : "=h"(r) : "r"(a));)
#define RUN_RR(I) RESULT_R(asm volatile(I " %0, %1;" : "=r"(r) : "r"(a));)
#define RUN_RRR(I) RESULT_R(asm volatile(I " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));)
#define RUN_RRRR(I) RESULT_R(asm volatile(I " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));)
#define RUN_RF(I) RESULT_R(asm volatile(I " %0, %1;" : "=r"(r) : "f"(FLOAT(a)));)
#define RUN_RH(I) RESULT_R(asm volatile(I " %0, %1;" : "=r"(r) : "h"(HALF(a)));)
#define RUN_RFF(I) RESULT_R(asm volatile(I " %0, %1, %2;" : "=r"(r) : "f"(FLOAT(a)), "f"(FLOAT(b)));)
#define RUN_LF(I) RESULT_L(asm volatile(I " %0, %1;" : "=l"(r) : "f"(FLOAT(a)));)

struct Scalar {
  const char *signature, *name;
};
#define SCALAR_ENTRY(SIGNATURE, NAME) {#SIGNATURE, NAME},
static const Scalar scalars[] = {SCALARS(SCALAR_ENTRY)};
enum { SCALAR_COUNT = sizeof scalars / sizeof *scalars };

enum { COUNTER_BASE = __COUNTER__ + 1 };

// Instruction number `which` of SCALARS.
__device__ static uint64_t scalar_result(int which, uint32_t a, uint32_t b, uint32_t c) {
#define SCALAR_CASE(SIGNATURE, NAME)                                                                                   \
  case __COUNTER__ - COUNTER_BASE: RUN_##SIGNATURE(NAME)
  switch (which) { SCALARS(SCALAR_CASE) }
  return 0;
}

__global__ void scalar_kernel(int which, int count, const uint32_t *a, const uint32_t *b, const uint32_t *c,
                              uint64_t *d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) d[i] = scalar_result(which, a[i], b[i], c[i]);
}

// All instructions of SCALARS, on the inputs of scalars.h.
void record_scalars(const char *golden) {
  FILE *file = open_file(golden, "special.bin", "wb");
  for (int which = 0; which < SCALAR_COUNT; which++) {
    const Scalar &scalar = scalars[which];
    // Three files, split where the lists of scalars.h begin.
    const char *next = !strcmp(scalar.name, "cvt.rn.f16.f32") ? "convert.bin"
                       : !strcmp(scalar.name, "add.f32")      ? "arithmetic.bin"
                                                              : NULL;
    if (next) {
      close_file(file);
      file = open_file(golden, next, "wb");
    }
    ScalarRecord record = {};
    strcpy(record.magic, "HLSCAL1");
    snprintf(record.signature, sizeof record.signature, "%s", scalar.signature);
    snprintf(record.name, sizeof record.name, "%s", scalar.name);
    record.inputs = scalar_is_exhaustive(scalar.signature, scalar.name) ? 65536 : SCALAR_INPUTS;
    record.result_size = (uint32_t)scalar_result_size(scalar.signature);
    record.input_hash = FNV1A_START;
    int operands = (int)strlen(scalar.signature) - 1;
    std::vector<uint32_t> inputs[3];
    uint32_t *device[3];
    for (int j = 0; j < 3; j++) {
      for (uint32_t i = 0; i < record.inputs; i++)
        inputs[j].push_back(j < operands ? scalar_input(scalar.signature, scalar.name, (int)i, j) : 0);
      record.input_hash = fnv1a(record.input_hash, inputs[j].data(), inputs[j].size() * 4);
      device[j] = upload(inputs[j]);
    }
    std::vector<uint64_t> results(record.inputs);
    uint64_t *device_results;
    CHECK(cudaMalloc(&device_results, results.size() * 8));
    scalar_kernel<<<(record.inputs + 127) / 128, 128>>>(which, (int)record.inputs, device[0], device[1], device[2],
                                                        device_results);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(results.data(), device_results, results.size() * 8, cudaMemcpyDeviceToHost));
    write_bytes(file, &record, sizeof record);
    for (uint64_t result : results) write_bytes(file, &result, record.result_size);  // little-endian on both sides
    for (uint32_t *p : device) CHECK(cudaFree(p));
    CHECK(cudaFree(device_results));
  }
  close_file(file);
  printf("%d scalar instructions recorded\n", (int)SCALAR_COUNT);
}

// ---- errors of the special functions over all inputs ----

// Monotonic in the float: neighbours differ by one, -0 and 0 by none.
__device__ static int64_t ordered(uint32_t bits) {
  int64_t magnitude = bits & 0x7fffffff;
  return bits >> 31 ? -magnitude : magnitude;
}

__device__ static double exact(int which, double x) {
  switch (which) {
  case 0:
  case 1: return exp2(x);
  case 2:
  case 3: return log2(x);
  case 4:
  case 5:
  case 6:
  case 7: return 1 / x;
  case 8:
  case 9:
  case 10: return sqrt(x);
  case 11:
  case 12: return 1 / sqrt(x);
  case 13:
  case 14: return sin(x);
  case 15:
  case 16: return cos(x);
  default: return tanh(x);
  }
}

static const char *const ulp_names[] = {
    "ex2.approx.f32",     "ex2.approx.ftz.f32", "lg2.approx.f32",       "lg2.approx.ftz.f32", "rcp.approx.f32",
    "rcp.approx.ftz.f32", "rcp.rn.f32",         "rcp.rn.ftz.f32",       "sqrt.approx.f32",    "sqrt.approx.ftz.f32",
    "sqrt.rn.f32",        "rsqrt.approx.f32",   "rsqrt.approx.ftz.f32", "sin.approx.f32",     "sin.approx.ftz.f32",
    "cos.approx.f32",     "cos.approx.ftz.f32", "tanh.approx.f32"};
enum { ULP_COUNT = sizeof ulp_names / sizeof *ulp_names, BUCKETS = 512, BLOCKS_PER_BUCKET = 32 };

// The largest error in a bucket (the inputs of one sign and exponent), in ulps of the correctly rounded result, with
// the worst input below it: error << 32 | input. 0xffffffff: one is NaN and the other not.
__global__ void ulp_kernel(int which, bool flush, unsigned long long *worst, unsigned long long *worst_absolute) {
  uint32_t bucket = blockIdx.x, inputs_per_block = (1u << 23) / BLOCKS_PER_BUCKET;
  uint64_t thread_worst = 0;
  float thread_absolute = 0;
  for (uint32_t i = threadIdx.x; i < inputs_per_block; i += blockDim.x) {
    uint32_t input = bucket << 23 | (blockIdx.y * inputs_per_block + i);
    uint32_t got = (uint32_t)scalar_result(which, input, 0, 0);
    uint32_t seen = flush && bucket % 256 == 0 ? input & 0x80000000u : input;
    float reference = (float)exact(which, (double)__uint_as_float(seen));
    uint32_t want = __float_as_uint(reference);
    if (flush && (want & 0x7fffffff) < 0x00800000) want &= 0x80000000u;
    bool got_nan = (got & 0x7fffffff) > 0x7f800000, want_nan = (want & 0x7fffffff) > 0x7f800000;
    uint64_t error;
    if (got_nan || want_nan)
      error = got_nan == want_nan ? 0 : 0xffffffffu;
    else
      error = (uint64_t)llabs(ordered(got) - ordered(want));
    if (error > 0xffffffffu) error = 0xfffffffeu;
    uint64_t packed = error << 32 | input;
    if (error && packed > thread_worst) thread_worst = packed;
    float absolute = fabsf(__uint_as_float(got) - reference);
    if (absolute > thread_absolute && absolute < 1e30f) thread_absolute = absolute;
  }
  atomicMax(&worst[bucket], (unsigned long long)thread_worst);
  atomicMax(&worst_absolute[bucket], (unsigned long long)__float_as_uint(thread_absolute));
}

// Their errors over all 2^32 inputs, as text for people and numbers for programs.
void record_ulps(const char *explore) {
  FILE *text = open_file(explore, "ulp.txt", "w"), *binary = open_file(explore, "ulp.bin", "wb");
  unsigned long long *device;
  CHECK(cudaMalloc(&device, 2 * BUCKETS * sizeof *device));
  for (int which = 0; which < ULP_COUNT; which++) {
    if (strcmp(ulp_names[which], scalars[which].name))
      fprintf(stderr, "record: ulp_names and SCALARS differ at %d\n", which), exit(1);
    CHECK(cudaMemset(device, 0, 2 * BUCKETS * sizeof *device));
    ulp_kernel<<<dim3(BUCKETS, BLOCKS_PER_BUCKET), 256>>>(which, strstr(ulp_names[which], "ftz") != NULL, device,
                                                          device + BUCKETS);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    unsigned long long worst[2 * BUCKETS];
    CHECK(cudaMemcpy(worst, device, sizeof worst, cudaMemcpyDeviceToHost));
    write_bytes(binary, worst, sizeof worst);
    // Neighbouring exponents with the same worst error share a line.
    fprintf(text, "%s\n", ulp_names[which]);
    unsigned long long moderate = 0;
    for (int first = 0, last; first < BUCKETS; first = last + 1) {
      for (last = first; last + 1 < BUCKETS && (last + 1) % 256 && worst[last + 1] >> 32 == worst[first] >> 32;) last++;
      uint32_t bits = (uint32_t)worst[BUCKETS + first];
      float absolute;
      memcpy(&absolute, &bits, sizeof absolute);
      fprintf(text, "  %c 2^%d..%d: %llu ulp, worst input %08llx, absolute %g\n", first < 256 ? '+' : '-',
              first % 256 - 127, last % 256 - 127, worst[first] >> 32, worst[first] & 0xffffffff, absolute);
    }
    for (int bucket = 0; bucket < BUCKETS; bucket++)
      if (bucket % 256 && bucket % 256 < 255 && worst[bucket] > moderate) moderate = worst[bucket];
    printf("%-22s worst over normal inputs %llu ulp at %08llx\n", ulp_names[which], moderate >> 32,
           moderate & 0xffffffff);
  }
  close_file(text);
  close_file(binary);
  CHECK(cudaFree(device));
}
