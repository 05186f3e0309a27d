// One row per measurement. Each row tells everything about itself, so that files may be concatenated.
#include <errno.h>
#include <time.h>

#include "harness.h"

static const char IDENTITY_COLUMNS[] = "stage,device,sm_clock_mhz,driver,cuda,date";

// What was measured, on what, and when.
static void print_identity(FILE *file, const Stage *stage, const DeviceInfo *device) {
  char date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  fprintf(file, "%s,%s,%d,%s,%s,%s", stage->name, device->name, device->sm_clock_mhz, device->driver, device->cuda,
          date);
}

// Opens the file at its end; NULL and error when that cannot be done.
static FILE *open_csv(const char *path, char error[ERROR_SIZE]) {
  FILE *file = !strcmp(path, "-") ? stdout : fopen(path, "a+");
  if (!file) snprintf(error, ERROR_SIZE, "--csv=%.200s: %s", path, strerror(errno));
  return file;
}

bool csv_writable(const char *path, char error[ERROR_SIZE]) {
  FILE *file = open_csv(path, error);
  if (file && file != stdout) fclose(file);
  return file != NULL;
}

// Writes the header to an empty file. False when the file has another one.
static bool put_header(FILE *file, const char *columns) {
  char header[400], found[400];
  snprintf(header, sizeof header, "%s,%s\n", IDENTITY_COLUMNS, columns);
  bool empty = file == stdout || fseek(file, 0, SEEK_END) || ftell(file) == 0;
  if (empty) return fputs(header, file) >= 0;
  rewind(file);
  return fgets(found, sizeof found, file) && !strcmp(found, header) && !fseek(file, 0, SEEK_END);
}

bool csv_append_rows(const char *path, const Stage *stage, const DeviceInfo *device, const char *columns,
                     const char *const *rows, int count, char error[ERROR_SIZE]) {
  FILE *file = open_csv(path, error);
  if (!file) return false;
  bool fits = put_header(file, columns);
  for (int i = 0; i < count && fits; i++) {
    print_identity(file, stage, device);
    fprintf(file, ",%s\n", rows[i]);
  }
  bool written = fflush(file) == 0;
  if (!written) snprintf(error, ERROR_SIZE, "--csv=%.200s: %s", path, strerror(errno));
  if (!fits) snprintf(error, ERROR_SIZE, "--csv=%.200s: it has other columns; give this stage a file of its own", path);
  if (file != stdout) fclose(file);
  return fits && written;
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
