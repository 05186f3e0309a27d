// A loop over all CPU cores.
#include <pthread.h>
#include <unistd.h>

#include "harness.h"

enum { MAX_THREADS = 64 };

typedef struct Loop {
  size_t count;
  void (*body)(void *context, size_t index);
  void *context;
  atomic_size_t next;
} Loop;

// Takes the next index until none is left, so that a faster thread takes more of them.
static void *run_indices(void *argument) {
  Loop *loop = argument;
  for (size_t index; (index = atomic_fetch_add(&loop->next, 1)) < loop->count;) loop->body(loop->context, index);
  return NULL;
}

void parallel_for(size_t count, void (*body)(void *context, size_t index), void *context) {
  Loop loop = {.count = count, .body = body, .context = context};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  size_t helpers = cores > 1 ? (size_t)cores - 1 : 0;
  if (helpers > MAX_THREADS) helpers = MAX_THREADS;
  if (count == 0 || helpers > count - 1) helpers = count ? count - 1 : 0;

  // If a thread cannot be created, the others do its share.
  pthread_t threads[MAX_THREADS];
  size_t started = 0;
  while (started < helpers && !pthread_create(&threads[started], NULL, run_indices, &loop)) started++;
  run_indices(&loop);
  for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}
