// The emulator behind the stand-ins: see core.h.
#define _GNU_SOURCE  // RTLD_DEFAULT, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#include "core.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/driver.h"

Core core = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

Core *core_lock(void) {
  pthread_mutex_lock(&core.lock);
  return &core;
}

void core_unlock(Core **locked) { pthread_mutex_unlock(&(*locked)->lock); }

// ---- what is said ----

static void say(const char *text) {
  fflush(stdout);
  fprintf(stderr, "hopper-run: %s\n", text);
}

void core_say(const char *format, ...) {
  char text[700];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say(text);
}

void core_say_once(const char *format, ...) {
  enum { MOST = 200 };
  static char *said[MOST];
  static int count;
  char text[700];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  LOCK();
  (void)locked;
  for (int i = 0; i < count; i++)
    if (!strcmp(said[i], text)) return;
  if (count < MOST) said[count++] = strdup(text);
  say(text);
}

CUresult core_missing(const char *function) {
  // PyTorch asks for the driver's log, and does without.
  if (!strcmp(function, "cuLogsRegisterCallback")) return CUDA_ERROR_NOT_SUPPORTED;
  core_say_once("%s: the emulator does not have this function; it returns \"not supported\"", function);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult core_device(int device) {
  if (device == 0) return CUDA_SUCCESS;
  if (device > 0)
    core_say_once("hopper-run emulates one GPU, device 0: the program's calls for others return \"invalid device\"");
  return CUDA_ERROR_INVALID_DEVICE;
}

// Removes the tags that numba hangs on its names: __main__::add[abi:v2](float).
static void cut_tags(char *text) {
  for (char *tag; (tag = strstr(text, "[abi:")) != NULL && strchr(tag, ']');) {
    const char *rest = strchr(tag, ']') + 1;
    memmove(tag, rest, strlen(rest) + 1);
  }
}

// Python is not linked with libstdc++.
static void *demangler(void) {
  void *function = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  void *library = function ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY);
  return library ? dlsym(library, "__cxa_demangle") : function;
}

const char *core_readable(const char *name) {
  typedef char *Demangle(const char *, char *, size_t *, int *);
  static char *last;
  Demangle *demangle = (Demangle *)demangler();
  int status = -1;
  char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
  if (!text || status) return name;
  cut_tags(text);
  free(last);
  return last = text;
}

// ---- options ----

static uint64_t number_option(const char *name) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : 0;
}

static bool flag_option(const char *name) {
  const char *text = getenv(name);
  return text && !strcmp(text, "on");
}

CUresult core_init(void) {
  if (core.initialised) return CUDA_SUCCESS;
  const char *hazards = getenv("HOPPER_RUN_HAZARDS");
  core.strict = flag_option("HOPPER_RUN_STRICT");
  core.counters = flag_option("HOPPER_RUN_COUNTERS");
  core.emulator = emulator_open(&(EmulatorOptions){.hazards = !hazards || strcmp(hazards, "off"),
                                                   .schedule = number_option("HOPPER_RUN_SCHEDULE"),
                                                   .step_limit = number_option("HOPPER_RUN_STEP_LIMIT"),
                                                   .tunes_malloc = true});
  core.process = getpid();
  core.initialised = true;
  return CUDA_SUCCESS;
}

CUresult core_enter(void) {
  if (!core.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (core.process != getpid()) {
    core_say_once("a process uses CUDA that was forked after its parent had used it; no GPU can do that, and its calls "
                  "return \"initialization error\"");
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (!context_current()) return CUDA_ERROR_INVALID_CONTEXT;
  return core.sticky;
}

void core_reset(void) {
  memory_free_all();
  core.sticky = CUDA_SUCCESS;
}

// Runs last: after the program's own handlers and destructors, which may still launch kernels. A process that was
// forked has nothing of its own to report.
__attribute__((destructor)) static void end(void) {
  if (core.initialised && core.process == getpid()) report_finish();
}
