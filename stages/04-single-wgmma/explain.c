// --explain: what a descriptor says, field by field, and where things lie: in shared memory, and D in registers.
#include "emulator/tensor/descriptor.h"

#include <inttypes.h>

#include "parts.h"

enum { CHUNK = 16, CHUNKS_PER_ROW = 8, ROW = CHUNK * CHUNKS_PER_ROW, MAP_ROWS = 8, DEPTH = 16, MAX_ROWS = 256 };

// Shared memory, as a block sees it: the first KiB is the system's, then 227 KiB.
enum { SHARED_BEGIN = 1024, SHARED_END = 228 * 1024 };

// ---- the 64 bits ----

// A run of bits. Those without a name are reserved; `wrong` says where it comes from when one of them is set.
typedef struct Field {
  int high, low;
  const char *name, *wrong;
} Field;

static const Field fields[] = {
    {63, 62, "swizzle", NULL},
    {61, 52, NULL, "fields of tcgen05's descriptor, for another architecture, or a stride that is too large"},
    {51, 49, "base offset", NULL},
    {48, 46, NULL,
     "tcgen05's descriptor, for another architecture, has bit 46 set; or the stride was not divided by 16"},
    {45, 32, "stride", NULL},
    {31, 30, NULL, "the leading byte offset was not divided by 16"},
    {29, 16, "leading", NULL},
    {15, 14, NULL, "the start address was not divided by 16"},
    {13, 0, "start", NULL},
};
enum { FIELDS = sizeof fields / sizeof *fields, START = FIELDS - 1 };

static unsigned field_value(uint64_t bits, const Field *field) {
  return (unsigned)(bits >> field->low & ((1ull << (field->high - field->low + 1)) - 1));
}

static void print_binary(char *text, unsigned value, int digits) {
  for (int i = 0; i < digits; i++) text[i] = value >> (digits - 1 - i) & 1 ? '1' : '0';
  text[digits] = 0;
}

// The bits in groups, and above each group which bits they are.
static void print_bits(FILE *out, uint64_t bits) {
  char binary[16], range[16];
  for (int line = 0; line < 2; line++) {
    fprintf(out, "   ");
    for (int i = 0; i < FIELDS; i++) {
      int digits = fields[i].high - fields[i].low + 1;
      print_binary(binary, field_value(bits, &fields[i]), digits);
      snprintf(range, sizeof range, "%d-%d", fields[i].high, fields[i].low);
      fprintf(out, " %*s", digits > 5 ? digits : 5, line ? binary : range);
    }
    fprintf(out, "\n");
  }
}

// What a field's value means, in whichever of the two readings.
static void print_meaning(FILE *out, const Field *field, unsigned value) {
  static const int widths[] = {0, 128, 64, 32};
  if (!field->name)
    fprintf(out, value ? "WRONG: reserved, and must be 0\n%16s%s" : "reserved, 0 as it must be", "", field->wrong);
  else if (!strcmp(field->name, "swizzle") && value)
    fprintf(out, "%d bytes: within each row of 128 bytes, chunks of 16 change places", widths[value]);
  else if (!strcmp(field->name, "swizzle"))
    fprintf(out, "none: core matrices lie in one piece, 8 rows of 16 bytes");
  else if (!strcmp(field->name, "base offset"))
    fprintf(out, "%s",
            value ? "the swizzle's pattern begins at another row than the first"
                  : "the swizzle's pattern begins where the addresses say");
  else if (!strcmp(field->name, "start"))
    fprintf(out, "x 16 = byte 0x%04x of shared memory: where the matrix begins", value * 16);
  else
    fprintf(out, "x 16 = %u bytes, the %s byte offset", value * 16, field->name);
}

static void print_fields(FILE *out, uint64_t bits) {
  print_bits(out, bits);
  fprintf(out, "\n");
  for (int i = FIELDS - 1; i >= 0; i--) {
    unsigned value = field_value(bits, &fields[i]);
    fprintf(out, "    bits %2d-%-2d  %-11s %5u  ", fields[i].low, fields[i].high, fields[i].name ? fields[i].name : "",
            value);
    print_meaning(out, &fields[i], value);
    fprintf(out, "\n");
  }
}

// ---- the two distances, in one reading ----

static void print_distances(FILE *out, const MatrixDescriptor *d) {
  char width[40];
  snprintf(width, sizeof width, "to the next panel, %u wide", d->swizzle / 2);
  const char *leading = d->swizzle ? (d->mn_major ? width : "not looked at") : "to the next 8 along K";
  const char *stride = d->mn_major && d->swizzle ? "to the next 8 along K"
                       : d->mn_major             ? "to the next 8 along M or N"
                                                 : "to the next 8 rows";
  fprintf(out, "    leading %5u bytes: %s\n    stride  %5u bytes: %s\n", d->leading, leading, d->stride, stride);
}

// ---- where things lie ----

// The chunks of a matrix, by address. In a K-major matrix a chunk is 8 numbers along K of one row or column, in an
// MN-major one 8 numbers along M or N of one depth.
typedef struct Map {
  int mn[SHARED_END / CHUNK], k[SHARED_END / CHUNK];  // of the chunk's first number; -1: none
  uint32_t first, last;                               // addresses of chunks
} Map;

static void place_chunk(Map *map, const MatrixDescriptor *d, int mn, int k) {
  uint32_t address = descriptor_address(d, mn, k);
  if (address < map->first) map->first = address;
  if (address > map->last) map->last = address;
  if (address >= SHARED_END) return;
  map->mn[address / CHUNK] = mn;
  map->k[address / CHUNK] = k;
}

static void make_map(Map *map, const MatrixDescriptor *d, int rows) {
  *map = (Map){.first = UINT32_MAX};
  memset(map->mn, -1, sizeof map->mn);
  for (int mn = 0; mn < rows; mn += d->mn_major ? 8 : 1)
    for (int k = 0; k < DEPTH; k += d->mn_major ? 1 : 8) place_chunk(map, d, mn, k);
}

// True when a row of 128 bytes holds nothing of the matrix.
static bool is_empty(const Map *map, uint32_t address) {
  for (uint32_t i = address / CHUNK; i < address / CHUNK + CHUNKS_PER_ROW; i++)
    if (map->mn[i] >= 0) return false;
  return true;
}

// One row of 128 bytes, all 32 banks, in eight places of a chunk.
static void print_map_row(FILE *out, const Map *map, uint32_t address, char letter, bool mn_major) {
  fprintf(out, "    0x%04x", address);
  for (uint32_t i = address / CHUNK; i < address / CHUNK + CHUNKS_PER_ROW; i++) {
    char cell[32] = ".";
    if (map->mn[i] >= 0 && mn_major)
      snprintf(cell, sizeof cell, "k%d %c%d", map->k[i], letter, map->mn[i]);
    else if (map->mn[i] >= 0)
      snprintf(cell, sizeof cell, "%c%d k%d", letter, map->mn[i], map->k[i]);
    fprintf(out, i % CHUNKS_PER_ROW == CHUNKS_PER_ROW - 1 ? "  %s\n" : "  %-7s", cell);
  }
}

// The first rows of a matrix, without those that hold nothing of it.
static void print_map(FILE *out, const MatrixDescriptor *d, int rows, char letter) {
  static Map map;
  make_map(&map, d, rows);
  fprintf(out, "    byte    +0       +16      +32      +48      +64      +80      +96      +112\n");
  int printed = 0;
  for (uint32_t address = map.first / ROW * ROW; address <= map.last; address += ROW) {
    if (is_empty(&map, address)) {
      if (!is_empty(&map, address - ROW)) fprintf(out, "       :\n");
    } else if (printed++ < MAP_ROWS) {
      print_map_row(out, &map, address, letter, d->mn_major);
    } else {
      fprintf(out, "    and so on; the last chunk is at byte 0x%04x\n", map.last);
      return;
    }
  }
}

// Where each core matrix begins: 8 chunks, one of each of eight rows (or of eight depths, MN-major).
static void print_core_matrices(FILE *out, const MatrixDescriptor *d, int rows, char letter) {
  fprintf(out, "    core matrices");
  for (int mn = 0; mn < rows; mn += 8) {
    char range[16];
    snprintf(range, sizeof range, "%c%d-%d", letter, mn, mn + 7);
    fprintf(out, mn + 8 < rows ? "  %-7s" : "  %s", range);
  }
  for (int k = 0; k < DEPTH; k += 8) {
    fprintf(out, "\n        k%d-%-2d    ", k, k + 7);
    for (int mn = 0; mn < rows; mn += 8)
      fprintf(out, mn + 8 < rows ? "  0x%04x " : "  0x%04x", descriptor_address(d, mn, k));
  }
  fprintf(out, "\n");
}

// ---- any descriptor ----

// What is wrong with a matrix of that many rows; NULL when nothing is.
static const char *fault(const MatrixDescriptor *d, int rows) {
  const char *misfit = descriptor_misfit(d, rows, 2 * DEPTH);
  static Map map;
  make_map(&map, d, rows);
  if (misfit) return misfit;
  if (map.first < SHARED_BEGIN) return "it begins in the first 1024 bytes of shared memory, which are the system's";
  if (map.last >= SHARED_END) return "it reaches past the end of shared memory, byte 0x38fff";
  return NULL;
}

// The largest N for which B is all right; 0 when there is none.
static int largest_n(const MatrixDescriptor *d) {
  int n = MAX_ROWS;
  while (n && fault(d, n)) n -= 8;
  return n;
}

// What else is wrong with a descriptor whose reserved bits are not 0.
static void print_rest(FILE *out, uint64_t bits, bool mn_major) {
  MatrixDescriptor d;
  uint64_t reserved = 0;
  for (int i = 0; i < FIELDS; i++)
    if (!fields[i].name) reserved |= (uint64_t)field_value(bits, &fields[i]) << fields[i].low;
  if (!reserved) return;
  descriptor_decode(bits, mn_major, &d);
  const char *wrong = descriptor_check(bits & ~reserved, &d).text;
  if (!wrong) wrong = fault(&d, LINES);
  if (wrong) fprintf(out, "    and besides: %s\n", wrong);
}

// One of the two readings: false when the descriptor cannot be right as such.
static bool print_reading(FILE *out, uint64_t bits, bool mn_major) {
  MatrixDescriptor d;
  fprintf(out, mn_major
                   ? "\n  Read as MN-major: neighbours in memory are neighbours along M (of A) or N (of B); trans-a, "
                     "trans-b = 1\n\n"
                   : "\n  Read as K-major: neighbours in memory are neighbours along K; trans-a, trans-b = 0\n\n");
  descriptor_decode(bits, mn_major, &d);
  DescriptorFinding finding = descriptor_check(bits, &d);
  bool wrong = finding.text && finding.grade == HAZARD_FAULT;
  print_distances(out, &d);
  if (finding.text) fprintf(out, "    %s, for A and B: %s\n", wrong ? "WRONG" : "not what PTX asks for", finding.text);
  if (wrong) {
    print_rest(out, bits, mn_major);
    return false;
  }
  int n = largest_n(&d);
  const char *a = fault(&d, LINES);
  if (a)
    fprintf(out, "    for A, 64 rows: WRONG: %s\n", a);
  else
    fprintf(out, "    for A, 64 rows: right\n");
  if (n)
    fprintf(out, "    for B, N columns: right up to N = %d%s%s\n", n, n < MAX_ROWS ? "; for more: " : "",
            n < MAX_ROWS ? fault(&d, n + 8) : "");
  else
    fprintf(out, "    for B, N columns: WRONG for every N\n");
  if (a) return n > 0;
  fprintf(out, "\n");
  print_core_matrices(out, &d, LINES, 'm');
  fprintf(out, "\n");
  print_map(out, &d, LINES, 'm');
  return true;
}

bool explain_bits(FILE *out, uint64_t bits) {
  fprintf(out, "The descriptor 0x%016" PRIx64 "\n\n", bits);
  print_fields(out, bits);
  bool k_major = print_reading(out, bits, false), mn_major = print_reading(out, bits, true);
  return k_major || mn_major;
}

// ---- the descriptors of this stage ----

static void print_introduction(FILE *out) {
  fprintf(
      out,
      "\n"
      "1. WHAT A DESCRIPTOR IS FOR\n\n"
      "  wgmma computes D (64 x 64, fp32) = A (64 x 16, fp16) times B (16 x 64, fp16). 128 threads execute it as one. "
      "D\n"
      "  is in their registers. A and B are in shared memory, and two numbers of 64 bits, the descriptors, say "
      "where.\n\n"
      "  Here A has 64 lines of 64 numbers, 128 bytes: its rows, m0 to m63. wgmma takes 16 numbers of each, one of "
      "four\n"
      "  slices. B has 64 lines too: its columns n0 to n63 (B is K-major), or its rows k0 to k63 (B is N-major).\n\n"
      "  chunk        16 bytes: eight neighbours of a line\n"
      "  core matrix  eight chunks, one of each of eight lines: 8 x 16 bytes. A has 8 x 2 of them, and so has B.\n"
      "  swizzle      where the chunks of a line go. Without one, a core matrix is one piece of 128 bytes. With one,\n"
      "               lines stay together, 32, 64 or 128 bytes of them, and chunks change places: bits 4 to 6 of an\n"
      "               address (of 128B; two for 64B, one for 32B) are XORed with bits 7 to 9.\n");
}

static const char *reading_name(int b, bool mn_major) {
  return !b ? "A, K-major" : mn_major ? "B, N-major" : "B, K-major";
}

// All descriptors of A (b = 0) or B: a column for each swizzle, a line for each field.
static void print_table(FILE *out, Descriptors descriptors, int b, bool mn_major) {
  fprintf(out, "\n  %-13s", reading_name(b, mn_major));
  for (int s = 0; s < SWIZZLES; s++) fprintf(out, "  %18s", swizzle_modes[s].name);
  fprintf(out, "\n    bits       ");
  for (int s = 0; s < SWIZZLES; s++) fprintf(out, "  0x%016" PRIx64, descriptors[mn_major][s][0][b]);
  for (int i = FIELDS - 1; i >= 0; i--) {
    if (!fields[i].name) continue;
    bool bytes = fields[i].high < 46;
    fprintf(out, "\n    %-11s", fields[i].name);
    for (int s = 0; s < SWIZZLES; s++) {
      unsigned value = field_value(descriptors[mn_major][s][0][b], &fields[i]);
      char text[32];
      snprintf(text, sizeof text, i == START ? "0x%04x" : "%u", bytes ? value * 16 : value);
      fprintf(out, "  %18s", text);
    }
  }
  for (int slice = 1; slice < SLICES; slice++) {
    fprintf(out, "\n    slice %d    ", slice);
    for (int s = 0; s < SWIZZLES; s++)
      fprintf(out, "        start 0x%04x", field_value(descriptors[mn_major][s][slice][b], &fields[START]) * 16);
  }
  fprintf(out, "\n");
}

static void print_places(FILE *out, Descriptors descriptors, int b, bool mn_major) {
  for (int s = 0; s < SWIZZLES; s++) {
    MatrixDescriptor d;
    descriptor_decode(descriptors[mn_major][s][0][b], mn_major, &d);
    fprintf(out, "\n  %s, swizzle %s, slice 0\n\n", reading_name(b, mn_major), swizzle_modes[s].name);
    print_distances(out, &d);
    print_core_matrices(out, &d, LINES, b ? 'n' : 'm');
    print_map(out, &d, LINES, b ? 'n' : 'm');
  }
}

// PTX ISA 9.7.16.5.1.1: d[i] of thread t, row 16 (t / 32) + t % 32 / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (t % 4) +
// i % 2. Warp 0's rows, the first 16 columns.
static void print_accumulators(FILE *out) {
  fprintf(out, "\n5. WHO HOLDS D\n\n"
               "  Thread t (t0 to t127) has 32 of the 64 x 64 numbers, d[0] to d[31]:\n\n"
               "    row 16 (t / 32) + t %% 32 / 4 + 8 (i / 2 %% 2), column 8 (i / 4) + 2 (t %% 4) + i %% 2\n\n"
               "    column   0 and 1         2 and 3         4 and 5         6 and 7         8 and 9   ...\n");
  for (int row = 0; row < 16; row++) {
    fprintf(out, "    row %-2d  ", row);
    for (int column = 0; column < 10; column += 2) {
      int thread = row % 8 * 4 + column % 8 / 2, i = column / 8 * 4 + row / 8 * 2;
      char cell[32];
      snprintf(cell, sizeof cell, "t%d d[%d] d[%d]", thread, i, i + 1);
      fprintf(out, column < 8 ? " %-15s" : " %s\n", cell);
    }
  }
  fprintf(
      out,
      "    Eight columns further, the same threads, i + 4. Sixteen rows further, the next warp: t + 32.\n\n"
      "  A from registers lies alike: a[j] is two numbers, those of d[2 j] and d[2 j + 1] of the same thread. So what\n"
      "  one wgmma leaves in D, rounded to fp16, is A of the next: that is how attention feeds P into P V.\n");
}

void explain_descriptors(FILE *out, Descriptors descriptors) {
  uint64_t example = descriptors[0][SWIZZLES - 1][0][0];
  print_introduction(out);
  fprintf(out, "\n2. ONE DESCRIPTOR, BIT BY BIT: A, 128B swizzle, slice 0: 0x%016" PRIx64 "\n\n", example);
  print_fields(out, example);
  fprintf(out, "\n3. ALL DESCRIPTORS OF THIS STAGE, in bytes\n");
  print_table(out, descriptors, 0, false);
  print_table(out, descriptors, 1, false);
  print_table(out, descriptors, 1, true);
  fprintf(
      out,
      "\n4. WHERE THINGS LIE\n\n"
      "  A row of a map is 128 bytes, all 32 banks of shared memory. \"m3 k8\" is the chunk with row 3 of A, k = 8 to\n"
      "  15; \"k3 n8\" the one with row 3 of B, columns 8 to 15; \".\" belongs to another slice. A core matrix is "
      "named\n"
      "  by its first chunk. B, K-major, lies as A does, with n for m.\n");
  print_places(out, descriptors, 0, false);
  print_places(out, descriptors, 1, true);
  print_accumulators(out);
}
