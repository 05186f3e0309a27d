// The program around a file's functions: computes, records, checks and compares their results.
//
//   PROGRAM compute FILE [COUNT [PART PARTS]]   the results of the first COUNT inputs, function after function;
//                                               of PARTS processes, this one does every PARTS-th function
//   PROGRAM head FILE1 FILE2 COUNT              copies the results of the first COUNT inputs
//   PROGRAM hashes FILE                         of computed results: a line a function, for a recording
//   PROGRAM compare FILE1 FILE2 [COUNT]         of two machines: a line a function that differs, and examples
//   PROGRAM approximate FILE1 FILE2 SAMPLES     a line a function that differs: for approximate.txt; appends the first
//                                               machine's results of the first THREADS inputs to SAMPLES
//   PROGRAM check DIRECTORY [COUNT [WORD]]      computes, and compares with DIRECTORY/h100.txt, or with approximate.txt
//                                               and samples.bin; a WORD selects the functions that have it in their
//                                               text
//   PROGRAM deltas FILE1 FILE2                  a byte a result, to find a model with: by how many ulp the second
//                                               machine's f32, or high word of an f64, is greater; -128: more, or no
//                                               number
//
// "compute" and "check" need a GPU, or hopper-run; the others need neither.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <fstream>
#include <map>
#include <string>

#include "../../common/emulator/host/fnv.h"
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

// Folded to 32 bits.
static std::vector<u32> hashes_of(const Function &f, const u8 *results, size_t count) {
  std::vector<u32> hashes;
  uint64_t hash = FNV1A_START;
  size_t done = 0;
  for (size_t end : hashed) {
    if (end > count) break;
    hash = fnv1a(hash, results + done, end * f.size - done);
    done = end * f.size;
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
static double value_of(Layout layout, u64 bits) {
  const int exponent_bits = layout.bits - 1 - layout.fraction, bias = (1 << (exponent_bits - 1)) - 1;
  const u64 magnitude = magnitude_of(layout, bits), fraction = magnitude & ((1ull << layout.fraction) - 1);
  const int exponent = (int)(magnitude >> layout.fraction);
  const double significand = (double)(fraction | (exponent ? 1ull << layout.fraction : 0));
  const double value = ldexp(significand, (exponent ? exponent : 1) - bias - layout.fraction);
  return bits >> (layout.bits - 1) ? -value : value;
}
// Neighbouring numbers differ by one, the zeros by none.
static s64 ordered(Layout layout, u64 bits) {
  s64 magnitude = (s64)magnitude_of(layout, bits);
  return bits >> (layout.bits - 1) ? -magnitude : magnitude;
}

enum Difference { SAME, PAYLOAD, ZERO_SIGN, NEAR, KIND };  // in the order of their weight
struct Verdict {
  Difference difference;
  u64 ulps;
  double absolute;  // of the numbers that are near
};

static Verdict compare_part(Format format, u64 a, u64 b) {
  if (a == b) return {SAME, 0, 0};
  if (format == FORMAT_BITS) return {KIND, 0, 0};
  const Layout layout = layout_of(format);
  const bool a_nan = magnitude_of(layout, a) > infinity_of(layout),
             b_nan = magnitude_of(layout, b) > infinity_of(layout);
  if (a_nan && b_nan) return {PAYLOAD, 0, 0};
  if (a_nan || b_nan) return {KIND, 0, 0};
  s64 x = ordered(layout, a), y = ordered(layout, b);
  if (x == y) return {ZERO_SIGN, 0, 0};
  const u64 ulps = x > y ? (u64)x - (u64)y : (u64)y - (u64)x;
  return {NEAR, ulps, fabs(value_of(layout, a) - value_of(layout, b))};
}

static Verdict compare_results(const Function &f, const u8 *a, const u8 *b) {
  if (!memcmp(a, b, f.size)) return {SAME, 0, 0};
  if (f.format == FORMAT_BITS) return {KIND, 0, 0};
  Verdict worst = {SAME, 0, 0};
  for (int part = 0; part < f.parts; part++) {
    Verdict verdict = compare_part(f.format, part_of(f, a, part), part_of(f, b, part));
    if (verdict.difference > worst.difference) worst.difference = verdict.difference;
    worst.ulps = std::max(worst.ulps, verdict.ulps);
    worst.absolute = std::max(worst.absolute, verdict.absolute);
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
// NaN and none, or bits); the largest differences of the rest in ulp and as a number. Then examples.
static void compare_function(const Function &f, const u8 *a, const u8 *b, size_t count) {
  size_t differ[KIND + 1] = {}, examples[KIND + 1] = {}, worst_at = 0;
  u64 worst = 0;
  double absolute = 0;
  for (size_t i = 0; i < count; i++) {
    Verdict verdict = compare_results(f, a + i * f.size, b + i * f.size);
    differ[verdict.difference]++;
    if (verdict.ulps > worst) worst = verdict.ulps, worst_at = i;
    absolute = std::max(absolute, verdict.absolute);
  }
  if (differ[SAME] == count) return;
  printf("%zu differ, %zu payload, %zu zero, %zu kind, %" PRIu64 " ulp, %.3g absolute | %s\n", count - differ[SAME],
         differ[PAYLOAD], differ[ZERO_SIGN], differ[KIND], (uint64_t)worst, absolute, f.text);
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

// ---- recordings ----

static Verdict worst_of(const Function &f, const u8 *a, const u8 *b, size_t count) {
  Verdict worst = {SAME, 0, 0};
  for (size_t i = 0; i < count; i++) {
    Verdict verdict = compare_results(f, a + i * f.size, b + i * f.size);
    worst.difference = std::max(worst.difference, verdict.difference);
    worst.ulps = std::max(worst.ulps, verdict.ulps);
    worst.absolute = std::max(worst.absolute, verdict.absolute);
  }
  return worst;
}

static int print_approximate(const char *first, const char *second, const char *samples) {
  const std::vector<size_t> at = offsets(INPUTS);
  const u8 *a = map_file(first, at.back()), *b = map_file(second, at.back());
  FILE *file = fopen(samples, "ab");
  if (!file) die("cannot write", samples);
  for (size_t i = 0; i < functions().size(); i++) {
    const Function &f = functions()[i];
    const Verdict worst = worst_of(f, a + at[i], b + at[i], INPUTS);
    if (worst.difference == SAME) continue;
    printf("%zu %" PRIu64 " %.3g %s\n", f.size, (uint64_t)worst.ulps, worst.absolute, f.text);
    if (fwrite(a + at[i], f.size, THREADS, file) != THREADS) die("cannot write", samples);
  }
  return fclose(file) ? die("cannot write", samples), 2 : 0;
}

// What is recorded of a function: hashes of all results, and if the emulator's differ, by how much, and some results.
struct Recorded {
  std::vector<u32> hashes;
  bool approximate;
  u64 ulps;
  double absolute;
  std::vector<u8> samples;
};
typedef std::map<std::string, Recorded> Recording;  // by "SECTION: TEXT"

static std::string key_of(const Function &f) { return std::string(f.section) + ": " + f.text; }

// Calls take(KEY, what stands before the text) for each line; `fields` numbers stand before the text.
template <class Take> static void read_lines(const std::string &path, int fields, Take take) {
  std::ifstream file(path);
  if (!file) die("cannot read", path.c_str());
  std::string line, section;
  while (std::getline(file, line)) {
    if (line.compare(0, 3, "== ") == 0) {
      section = line.substr(3);
      continue;
    }
    size_t end = 0;
    for (int i = 0; i < fields; i++) end = line.find(' ', end) + 1;
    take(section + ": " + line.substr(end), line.substr(0, end));
  }
}

static Recording read_recording(const std::string &directory) {
  Recording recording;
  read_lines(directory + "/h100.txt", 3, [&](const std::string &key, const std::string &numbers) {
    std::vector<u32> hashes(3);
    if (sscanf(numbers.c_str(), "%x %x %x", &hashes[0], &hashes[1], &hashes[2]) == 3)
      recording[key] = {hashes, false, 0, 0, {}};
  });
  std::ifstream samples(directory + "/samples.bin", std::ios::binary);
  read_lines(directory + "/approximate.txt", 3, [&](const std::string &key, const std::string &numbers) {
    size_t size;
    Recorded &recorded = recording[key];
    recorded.approximate = sscanf(numbers.c_str(), "%zu %llu %lg", &size, &recorded.ulps, &recorded.absolute) == 3;
    recorded.samples.resize(size * THREADS);
    samples.read((char *)recorded.samples.data(), (std::streamsize)recorded.samples.size());
  });
  if (!samples) die("ends too early", "samples.bin");
  return recording;
}

// A difference in kind is one of NaN and number: that is approximate nowhere.
static bool within(const Recorded &recorded, const Function &f, const u8 *a, const u8 *b) {
  for (size_t i = 0; i < THREADS; i++) {
    Verdict verdict = compare_results(f, a + i * f.size, b + i * f.size);
    if (verdict.difference == KIND && f.format != FORMAT_BITS) return false;
    if (verdict.ulps > recorded.ulps && verdict.absolute > recorded.absolute) return false;
  }
  return true;
}

static int check(const char *directory, size_t count, const char *word) {
  const Recording recording = read_recording(directory);
  const size_t which = (size_t)(std::find(std::begin(hashed), std::end(hashed), count) - hashed);
  if (which == std::size(hashed)) return fprintf(stderr, "mathematics: no hash of %zu inputs is recorded\n", count), 2;
  std::vector<u8> results(count * 16);
  int equal = 0, near = 0, wrong = 0;
  for (const Function &f : functions()) {
    if (!strstr(f.text, word)) continue;
    const auto found = recording.find(key_of(f));
    if (found == recording.end()) {
      printf("not recorded: %s\n", key_of(f).c_str()), wrong++;
      continue;
    }
    const Recorded &recorded = found->second;
    f.run(recorded.approximate ? (size_t)THREADS : count, results.data());
    const bool right = recorded.approximate ? within(recorded, f, recorded.samples.data(), results.data())
                                            : hashes_of(f, results.data(), count)[which] == recorded.hashes[which];
    if (!right) printf("not as the H100: %s\n", key_of(f).c_str());
    (right ? recorded.approximate ? near : equal : wrong)++;
  }
  printf("%d functions bit by bit as the H100, %d as near as recorded, %d wrong\n", equal, near, wrong);
  return wrong > 0 || !equal;
}

// ---- the commands ----

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
  if (command == "approximate" && argc > 4) return print_approximate(argv[2], argv[3], argv[4]);
  if (command == "check") return check(argv[2], argc > 3 ? count_of(argv[3]) : INPUTS, argc > 4 ? argv[4] : "");
  if (command == "deltas" && argc > 3) return print_deltas(argv[2], argv[3]);
  if (command == "compare" && argc > 3) return compare(argv[2], argv[3], argc > 4 ? count_of(argv[4]) : INPUTS);
  fprintf(stderr, "usage: see tests/mathematics/main.cu\n");
  return 2;
}
