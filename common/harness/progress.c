// A line on the terminal that shows progress. A separate thread writes it, because the work may be a single long call.
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

static struct {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t ended_changed;
  bool running, ended;
  const char *what;
  uint64_t total;
  atomic_uint_fast64_t done;
  struct timespec start;
} progress = {.mutex = PTHREAD_MUTEX_INITIALIZER, .ended_changed = PTHREAD_COND_INITIALIZER};

static struct timespec now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

static void show(void) {
  long seconds = (long)(now().tv_sec - progress.start.tv_sec);
  if (progress.total) {
    int percent = (int)(100.0 * (double)atomic_load(&progress.done) / (double)progress.total);
    fprintf(stderr, "\r%s: %d %%, %ld s\033[K", progress.what, percent, seconds);
  } else {
    fprintf(stderr, "\r%s: %ld s\033[K", progress.what, seconds);
  }
  fflush(stderr);
}

// Waits two seconds, then updates the line twice a second until the work has ended, and erases it.
static void *tick(void *unused) {
  struct timespec next = progress.start;
  next.tv_sec += 2;
  bool shown = false;
  pthread_mutex_lock(&progress.mutex);
  while (!progress.ended) {
    if (pthread_cond_timedwait(&progress.ended_changed, &progress.mutex, &next) != ETIMEDOUT) continue;
    show();
    shown = true;
    next.tv_nsec += 500000000;
    next.tv_sec += next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
  }
  pthread_mutex_unlock(&progress.mutex);
  if (shown) fprintf(stderr, "\r\033[K");
  return unused;
}

void progress_begin(const char *what, uint64_t total) {
  if (!isatty(STDERR_FILENO)) return;
  progress.what = what;
  progress.total = total;
  progress.ended = false;
  progress.start = now();
  atomic_store(&progress.done, 0);
  progress.running = !pthread_create(&progress.thread, NULL, tick, NULL);
}

void progress_add(uint64_t done) { atomic_fetch_add(&progress.done, done); }

void progress_end(void) {
  if (!progress.running) return;
  pthread_mutex_lock(&progress.mutex);
  progress.ended = true;
  pthread_cond_signal(&progress.ended_changed);
  pthread_mutex_unlock(&progress.mutex);
  pthread_join(progress.thread, NULL);
  progress.running = false;
}
