// The program around a file's functions: computes, records, checks and compares their results.
//
//   PROGRAM compute FILE [COUNT [PART PARTS]]   the results of the first COUNT inputs, function after function;
//                                               of PARTS processes, this one does every PARTS-th function
//   PROGRAM head FILE1 FILE2 COUNT              copies the results of the first COUNT inputs
//   PROGRAM hashes FILE                         of computed results: a line a function, for a recording
//   PROGRAM compare FILE1 FILE2 [COUNT]         of two machines: a line a function that differs, and examples
//   PROGRAM deltas FILE1 FILE2                  a byte a result, to find a model with: by how many ulp the second
//                                               machine's f32, or high word of an f64, is greater; -128: more, or no number
//
// "compute" needs a GPU, or hopper-run; the others need neither.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <string>

#include "function.cuh"

std::vector<Function> &functions() {
  static std::vector<Function> all;
  return all;
}

// How many inputs each hash of a line covers.
static const size_t hashed[] = {4096, 65536, INPUTS};

static void die(const char *what, const char *path) {
  fprintf(stderr, "mathematics: %s: ", what);
  perror(path);
  exit(2);
}

// Where a function's results begin in a file.
static std::vector<size_t> offsets(size_t count) {
  std::vector<size_t> at(1, 0);
  for (const Function &f : functions()) at.push_back(at.back() + f.size * count);
  return at;
}

static const u8 *map_file(const char *path, size_t size) {
  int file = open(path, O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status)) die("cannot read", path);
  if ((size_t)status.st_size != size) {
    fprintf(stderr, "mathematics: %s has %zu bytes, and not %zu\n", path, (size_t)status.st_size, size);
    exit(2);
  }
  void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) die("cannot map", path);
  return (const u8 *)bytes;
}

// ---- compute, hashes, check ----

static int compute(const char *path, size_t count, size_t part, size_t parts) {
  const std::vector<size_t> at = offsets(count);
  int file = open(path, O_WRONLY | O_CREAT, 0644);
  if (file < 0 || ftruncate(file, (off_t)at.back())) die("cannot write", path);
  std::vector<u8> results(count * 16);
  for (size_t i = part; i < functions().size(); i += parts) {
    const Function &f = functions()[i];
    f.run(count, results.data());
    for (size_t done = 0, size = f.size * count; done < size;) {
      ssize_t wrote = pwrite(file, results.data() + done, size - done, (off_t)(at[i] + done));
      if (wrote <= 0) die("cannot write", path);
      done += (size_t)wrote;
    }
  }
  return close(file) ? die("cannot write", path), 2 : 0;
}

// FNV-1a, folded to 32 bits.
static std::vector<u32> hashes_of(const Function &f, const u8 *results, size_t count) {
  std::vector<u32> hashes;
  u64 hash = 0xcbf29ce484222325ull;
  size_t i = 0;
  for (size_t end : hashed) {
    if (end > count) break;
    for (; i < end * f.size; i++) hash = (hash ^ results[i]) * 0x100000001b3ull;
    hashes.push_back((u32)(hash ^ hash >> 32));
  }
  return hashes;
}

static std::string line_of(const Function &f, const std::vector<u32> &hashes) {
  std::string line;
  char text[16];
  for (u32 hash : hashes) snprintf(text, sizeof text, "%08x ", hash), line += text;
  return line + f.text;
}

static int print_hashes(const char *path) {
  const std::vector<size_t> at = offsets(INPUTS);
  const u8 *results = map_file(path, at.back());
  for (size_t i = 0; i < functions().size(); i++) {
    const Function &f = functions()[i];
    puts(line_of(f, hashes_of(f, results + at[i], INPUTS)).c_str());
  }
  return 0;
}

static int copy_head(const char *from, const char *to, size_t count) {
  const std::vector<size_t> at = offsets(INPUTS);
  const u8 *results = map_file(from, at.back());
  FILE *file = fopen(to, "wb");
  if (!file) die("cannot write", to);
  for (size_t i = 0; i < functions().size(); i++) {
    size_t size = functions()[i].size * count;
    if (fwrite(results + at[i], 1, size, file) != size) die("cannot write", to);
  }
  return fclose(file) ? die("cannot write", to), 2 : 0;
}

// ---- comparing two results ----

static u64 part_of(const Function &f, const u8 *result, int part) {
  u64 bits = 0;
  size_t size = std::min<size_t>(f.size / (size_t)f.parts, 8);
  memcpy(&bits, result + (size_t)part * size, size);
  return bits;
}

struct Layout {
  int fraction, bits;
};
static Layout layout_of(Format format) {
  switch (format) {
  case FORMAT_F16: return {10, 16};
  case FORMAT_BF16: return {7, 16};
  case FORMAT_F32: return {23, 32};
  default: return {52, 64};
  }
}

static u64 magnitude_of(Layout layout, u64 bits) { return bits & ((1ull << (layout.bits - 1)) - 1); }
static u64 infinity_of(Layout layout) { return (1ull << (layout.bits - 1)) - (1ull << layout.fraction); }
// Neighbouring numbers differ by one, the zeros by none.
static s64 ordered(Layout layout, u64 bits) {
  s64 magnitude = (s64)magnitude_of(layout, bits);
  return bits >> (layout.bits - 1) ? -magnitude : magnitude;
}

enum Difference { SAME, PAYLOAD, ZERO_SIGN, NEAR, KIND };  // in the order of their weight
struct Verdict {
  Difference difference;
  u64 ulps;
};

static Verdict compare_part(Format format, u64 a, u64 b) {
  if (a == b) return {SAME, 0};
  if (format == FORMAT_BITS) return {KIND, 0};
  const Layout layout = layout_of(format);
  const bool a_nan = magnitude_of(layout, a) > infinity_of(layout),
             b_nan = magnitude_of(layout, b) > infinity_of(layout);
  if (a_nan && b_nan) return {PAYLOAD, 0};
  if (a_nan || b_nan) return {KIND, 0};
  s64 x = ordered(layout, a), y = ordered(layout, b);
  if (x == y) return {ZERO_SIGN, 0};
  return {NEAR, x > y ? (u64)x - (u64)y : (u64)y - (u64)x};
}

static Verdict compare_results(const Function &f, const u8 *a, const u8 *b) {
  if (!memcmp(a, b, f.size)) return {SAME, 0};
  if (f.format == FORMAT_BITS) return {KIND, 0};
  Verdict worst = {SAME, 0};
  for (int part = 0; part < f.parts; part++) {
    Verdict verdict = compare_part(f.format, part_of(f, a, part), part_of(f, b, part));
    if (verdict.difference > worst.difference) worst.difference = verdict.difference;
    worst.ulps = std::max(worst.ulps, verdict.ulps);
  }
  return worst;
}

static std::string hex(const void *bytes, size_t size) {
  std::string text;
  char digits[8];
  for (size_t i = size; i-- > 0;) snprintf(digits, sizeof digits, "%02x", ((const u8 *)bytes)[i]), text += digits;
  return text;
}

static void print_example(const Function &f, size_t i, const u8 *a, const u8 *b, u64 ulps) {
  printf("  %zu:", i);
  for (size_t j = 0; j < f.operands.size(); j++) {
    size_t size = f.operands[j].size;
    printf(" %s", hex((const u8 *)f.operands[j].inputs((int)j) + i * size, size).c_str());
  }
  printf(": %s %s", hex(a, f.size).c_str(), hex(b, f.size).c_str());
  puts(ulps ? (", " + std::to_string(ulps) + " ulp").c_str() : "");
}

enum { EXAMPLES = 6 };

// One line: how many results differ, of these in the payload of a NaN alone, in the sign of a zero alone, in kind (a
// NaN and none, or bits), the largest distance of the rest in ulp; then examples.
static void compare_function(const Function &f, const u8 *a, const u8 *b, size_t count) {
  size_t differ[KIND + 1] = {}, examples[KIND + 1] = {}, worst_at = 0;
  u64 worst = 0;
  for (size_t i = 0; i < count; i++) {
    Verdict verdict = compare_results(f, a + i * f.size, b + i * f.size);
    differ[verdict.difference]++;
    if (verdict.ulps > worst) worst = verdict.ulps, worst_at = i;
  }
  if (differ[SAME] == count) return;
  printf("%zu differ, %zu payload, %zu zero, %zu kind, %" PRIu64 " ulp | %s\n", count - differ[SAME], differ[PAYLOAD],
         differ[ZERO_SIGN], differ[KIND], (uint64_t)worst, f.text);
  for (size_t i = 0; i < count; i++) {
    Verdict verdict = compare_results(f, a + i * f.size, b + i * f.size);
    if (verdict.difference == SAME) continue;
    bool shown = examples[verdict.difference]++ < EXAMPLES || (worst && i == worst_at);
    if (shown) print_example(f, i, a + i * f.size, b + i * f.size, verdict.ulps);
  }
}

static int compare(const char *first, const char *second, size_t count) {
  const std::vector<size_t> at = offsets(count);
  const u8 *a = map_file(first, at.back()), *b = map_file(second, at.back());
  for (size_t i = 0; i < functions().size(); i++) compare_function(functions()[i], a + at[i], b + at[i], count);
  return 0;
}

static s64 delta(const Function &f, const u8 *a, const u8 *b) {
  u64 x = part_of(f, a, 0), y = part_of(f, b, 0);
  Verdict verdict = compare_part(f.format, x, y);
  if (verdict.difference != NEAR) return verdict.difference == KIND ? -128 : 0;
  const Layout layout = layout_of(f.format);
  s64 steps = ordered(layout, y) - ordered(layout, x);
  if (f.format == FORMAT_F64) steps = (s64)((u64)steps + (1ull << 31)) >> 32;
  return steps < -127 || steps > 127 ? -128 : steps;
}

static int print_deltas(const char *first, const char *second) {
  const std::vector<size_t> at = offsets(INPUTS);
  const u8 *a = map_file(first, at.back()), *b = map_file(second, at.back());
  for (size_t i = 0; i < functions().size(); i++)
    for (size_t j = 0; j < INPUTS; j++)
      putchar((int)delta(functions()[i], a + at[i] + j * functions()[i].size, b + at[i] + j * functions()[i].size));
  return 0;
}

static size_t count_of(const char *text) {
  size_t count = strtoull(text, NULL, 10);
  if (count && count <= INPUTS && count % THREADS == 0) return count;
  fprintf(stderr, "mathematics: a number of inputs is a multiple of %d up to %zu\n", THREADS, (size_t)INPUTS);
  exit(2);
}

int main(int argc, char **argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == "compute")
    return compute(argv[2], argc > 3 ? count_of(argv[3]) : INPUTS, argc > 5 ? strtoull(argv[4], NULL, 10) : 0,
                   argc > 5 ? strtoull(argv[5], NULL, 10) : 1);
  if (command == "head" && argc > 4) return copy_head(argv[2], argv[3], count_of(argv[4]));
  if (command == "hashes") return print_hashes(argv[2]);
  if (command == "deltas" && argc > 3) return print_deltas(argv[2], argv[3]);
  if (command == "compare" && argc > 3) return compare(argv[2], argv[3], argc > 4 ? count_of(argv[4]) : INPUTS);
  fprintf(stderr, "usage: see tests/mathematics/main.cu\n");
  return 2;
}
