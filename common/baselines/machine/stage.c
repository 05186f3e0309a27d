// ./baseline-machine: what an SM and its memories do, each measured by a kernel of a few lines. Every kernel is checked
// first, here or on the emulator; the times are a GPU's.
#include <stdlib.h>

#include "parts.h"

enum { CHECKED_ROUNDS = 1 };

static void report_wrong(FILE *out, const char *kernel, uint32_t thread, uint32_t got, uint32_t expected) {
  fprintf(out, "result    WRONG: %s, thread %u: got 0x%x, expected 0x%x\n", kernel, thread, got, expected);
}

// Compares the results of all threads. False when one is wrong, or when a call of the device has failed.
static bool check_quantity(Bench *bench, const Quantity *quantity) {
  uint32_t results[RATE_THREADS], steps = (uint32_t)(ALL_RUNS * CHECKED_ROUNDS * quantity->steps);
  size_t size = sizeof *results * (size_t)quantity->threads;
  if (!device_fill(bench->device, bench->results, 0xff, size) || !bench_launch(bench, quantity, CHECKED_ROUNDS, 0) ||
      !device_download(bench->device, results, bench->results, size))
    return false;
  for (uint32_t t = 0; t < (uint32_t)quantity->threads; t++) {
    uint32_t expected = bench_expected(bench, quantity, t, steps);
    if (quantity_agrees(quantity, results[t], expected)) continue;
    report_wrong(bench->session->out, quantity->kernel, t, results[t], expected);
    return false;
  }
  return true;
}

// All threads of read_all together must have found the sum of the words as often as they have read them.
static bool check_sum(Bench *bench, const char *kernel, DeviceAddress memory) {
  int rounds = 3, count = device_info(bench->device)->sm_count * READERS;
  Whole whole = {memory, 0, bench->size, rounds};
  uint32_t *results = malloc(sizeof *results * (size_t)count), sum = 0, expected = 0;
  bool done = results && bench_launch_whole(bench, &whole) &&
              device_download(bench->device, results, bench->results, sizeof *results * (size_t)count);
  for (int i = 0; i < count && done; i++) sum += results[i];
  for (uint32_t i = 0; i < bench->size / 4; i++) expected += i * (uint32_t)rounds;
  free(results);
  if (done && sum != expected) report_wrong(bench->session->out, kernel, 0, sum, expected);
  return done && sum == expected;
}

// The copy is read back by the kernel that has just been shown to be right.
static bool check_whole(Bench *bench) {
  Whole copy = {bench->memory, bench->destination, bench->size, 1};
  return device_fill(bench->device, bench->destination, 0xff, bench->size) &&
         check_sum(bench, "read_all", bench->memory) && bench_launch_whole(bench, &copy) &&
         check_sum(bench, "copy_all", bench->destination) && bench_launch_one(bench, "sm_clock", 1) &&
         bench_launch_one(bench, "empty", 1);
}

// By what lies in memory, and words last, which check_whole wants. All are checked, also after one that is wrong.
static bool check_all(Bench *bench) {
  bool right = true;
  for (Content content = CONTENTS; content-- > 0;)
    for (int i = 0; i < quantity_count; i++)
      if (quantities[i].content == content) right &= check_quantity(bench, &quantities[i]);
  return check_whole(bench) && right && device_synchronise(bench->device);
}

static int check_and_measure(Bench *bench) {
  const Session *session = bench->session;
  FILE *out = session->out;
  bool right = check_all(bench);
  DeviceErrorCode error = device_error(bench->device)->code;
  if (error != DEVICE_OK && error != DEVICE_FAULT) return session_fail_device(session);
  if (error == DEVICE_FAULT) fprintf(out, "result    WRONG: a kernel was stopped\n");
  if (right) fprintf(out, "result    right: all %d measurements compute what they should\n", quantity_count + 2);
  int hazards = report_hazards(out, &session->options, bench->device);
  if (error == DEVICE_FAULT) return session_fail_device(session);
  report_counters(out, bench->device);
  if (session->options.counters) report_line_counters(out, bench->device);
  if (!right || hazards) return EXIT_WRONG;
  if (session->options.counters_csv) return session_record_counters(session, NULL);
  if (device_info(bench->device)->kind == DEVICE_EMULATOR) fprintf(out, "times     none: the emulator has no clock\n");
  return session->options.repeat ? measure_all(bench) : EXIT_RIGHT;
}

static int run_machine(Session *session) {
  Bench bench;
  report_head(session->out, session->stage, device_info(session->device));
  int code = bench_open(&bench, session) ? check_and_measure(&bench) : session_fail_device(session);
  bench_close(&bench);
  return code;
}

const Stage stage = {
    .name = "machine",
    .title = "latencies and rates of an SM and its memories",
    .run = run_machine,
};
