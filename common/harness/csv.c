// Rows of CSV: what was measured on the GPU (--csv), or counted by the emulator (--counters-csv). Each row names its
// stage and problem, so that files can be concatenated.
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../emulator/emulator.h"
#include "harness.h"

enum { MAX_LINE = 4096 };

static const char IDENTITY_COLUMNS[] = "stage,device,sm_clock_mhz,driver,cuda,date";

// Writes the columns that identify a row: the stage, the device and the date.
static void identify(char text[MAX_LINE], const Stage *stage, const DeviceInfo *device) {
  char date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  snprintf(text, MAX_LINE, "%s,%s,%d,%s,%s,%s,", stage->name, device->name, device->sm_clock_mhz, device->driver,
           device->cuda, date);
}

// ---- files ----

// Opens the file for appending; NULL and error on failure. option: "--csv", for the error.
static FILE *open_csv(const char *option, const char *path, char error[ERROR_SIZE]) {
  FILE *file = !strcmp(path, "-") ? stdout : fopen(path, "a+");
  if (!file) snprintf(error, ERROR_SIZE, "%s=%.200s: %s", option, path, strerror(errno));
  return file;
}

bool csv_writable(const char *option, const char *path, char error[ERROR_SIZE]) {
  struct stat there;
  bool is_new = lstat(path, &there) != 0;  // a dangling link exists, too
  FILE *file = open_csv(option, path, error);
  if (file && file != stdout) {
    fclose(file);
    if (is_new) unlink(path);
  }
  return file != NULL;
}

// Writes the header to an empty file. False when the file already has a different one.
static bool put_header(FILE *file, const char *header) {
  char found[MAX_LINE];
  bool empty = file == stdout || fseek(file, 0, SEEK_END) || ftell(file) == 0;
  if (empty) return fprintf(file, "%s\n", header) >= 0;
  rewind(file);
  if (!fgets(found, sizeof found, file) || fseek(file, 0, SEEK_END)) return false;
  found[strcspn(found, "\n")] = 0;
  return !strcmp(found, header);
}

// Appends rows that all begin with the same text.
static bool append_rows(const char *option, const char *path, const char *header, const char *begin,
                        const char *const *rows, int count, char error[ERROR_SIZE]) {
  FILE *file = open_csv(option, path, error);
  if (!file) return false;
  bool fits = put_header(file, header);
  for (int i = 0; i < count && fits; i++) fprintf(file, "%s%s\n", begin, rows[i]);
  bool written = fflush(file) == 0 && !ferror(file);
  if (file != stdout) written &= fclose(file) == 0;
  if (!written) snprintf(error, ERROR_SIZE, "%s=%.200s: %s", option, path, strerror(errno));
  if (!fits) snprintf(error, ERROR_SIZE, "%s=%.200s: this file has other columns; write to another file", option, path);
  return fits && written;
}

// ---- what is measured ----

bool csv_append_rows(const char *path, const Stage *stage, const DeviceInfo *device, const char *columns,
                     const char *const *rows, int count, char error[ERROR_SIZE]) {
  char header[MAX_LINE], begin[MAX_LINE];
  snprintf(header, sizeof header, "%s,%s", IDENTITY_COLUMNS, columns);
  identify(begin, stage, device);
  return append_rows("--csv", path, header, begin, rows, count, error);
}

bool csv_append(const char *path, const Stage *stage, const DeviceInfo *device, const Shape *shape,
                const Timing *timing, double flops, char error[ERROR_SIZE]) {
  char row[200];
  snprintf(row, sizeof row, "%d,%d,%d,%d,%d,%.6f,%.6f,%.6f,%d,%.3f", shape->batch, shape->heads, shape->seqlen,
           shape->head_dim, shape->causal, timing->median, timing->min, timing->max, timing->repeats,
           flops / timing->median * 1e-9);
  return csv_append_rows(path, stage, device,
                         "batch,heads,seqlen,head_dim,causal,median_ms,min_ms,max_ms,repeats,tflops",
                         (const char *const[]){row}, 1, error);
}

// ---- what is counted ----

bool csv_append_counters(const char *path, const Stage *stage, const Shape *shape, const EmulatorCounters *counters,
                         char error[ERROR_SIZE]) {
  char header[MAX_LINE], row[MAX_LINE];
  int head = snprintf(header, sizeof header, "stage,batch,heads,seqlen,head_dim,causal");
  int length = shape ? snprintf(row, sizeof row, "%s,%d,%d,%d,%d,%d", stage->name, shape->batch, shape->heads,
                                shape->seqlen, shape->head_dim, shape->causal)
                     : snprintf(row, sizeof row, "%s,,,,,", stage->name);
  for (int kind = 0; kind < COUNTER_KIND_COUNT; kind++) {
    head += snprintf(header + head, sizeof header - (size_t)head, ",%s", counter_name(kind));
    length += snprintf(row + length, sizeof row - (size_t)length, ",%" PRIu64, counters->value[kind]);
  }
  return append_rows("--counters-csv", path, header, "", (const char *const[]){row}, 1, error);
}
