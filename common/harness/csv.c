// One row per run. Each row tells everything about itself, so that files may be concatenated.
#include <errno.h>
#include <time.h>

#include "harness.h"

static void print_header(FILE *file) {
  fprintf(file, "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,"
                "median_ms,min_ms,max_ms,repeats,tflops\n");
}

static void print_row(FILE *file, const Stage *stage, const DeviceInfo *device, const Shape *shape,
                      const Timing *timing, double flops) {
  char date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  fprintf(file, "%s,%s,%d,%s,%s,%s,", stage->name, device->name, device->sm_clock_mhz, device->driver, device->cuda,
          date);
  fprintf(file, "%d,%d,%d,%d,%d,", shape->batch, shape->heads, shape->seqlen, shape->head_dim, shape->causal);
  fprintf(file, "%.6f,%.6f,%.6f,%d,%.3f\n", timing->median, timing->min, timing->max, timing->repeats,
          flops / timing->median * 1e-9);
}

// Opens the file at its end; NULL and error when that cannot be done.
static FILE *open_csv(const char *path, char error[ERROR_SIZE]) {
  FILE *file = !strcmp(path, "-") ? stdout : fopen(path, "a");
  if (!file) snprintf(error, ERROR_SIZE, "--csv=%.200s: %s", path, strerror(errno));
  return file;
}

bool csv_writable(const char *path, char error[ERROR_SIZE]) {
  FILE *file = open_csv(path, error);
  if (file && file != stdout) fclose(file);
  return file != NULL;
}

bool csv_append(const char *path, const Stage *stage, const DeviceInfo *device, const Shape *shape,
                const Timing *timing, double flops, char error[ERROR_SIZE]) {
  FILE *file = open_csv(path, error);
  if (!file) return false;
  bool to_stdout = file == stdout;
  if (to_stdout || (!fseek(file, 0, SEEK_END) && ftell(file) == 0)) print_header(file);
  print_row(file, stage, device, shape, timing, flops);
  bool failed = fflush(file) != 0;
  if (failed) snprintf(error, ERROR_SIZE, "--csv=%.200s: %s", path, strerror(errno));
  if (!to_stdout) fclose(file);
  return !failed;
}
