// The environment of a program that compiles kernels while it runs: see prepare.h.
#define _GNU_SOURCE  // asprintf
#include "prepare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Names that begin with a dot: those of the reports in the run's folder do not.
#define CACHES ".caches"
#define CUDA_FOLDER ".cuda"

static void set_path(const char *variable, const char *folder, const char *name) {
  char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  setenv(variable, path, 1);
}

bool prepend(const char *variable, const char *value, const char *separator) {
  const char *former = getenv(variable);
  char *whole = NULL;
  bool any = former && *former;
  if (asprintf(&whole, "%s%s%s", value, any ? separator : "", any ? former : "") < 0) return false;
  setenv(variable, whole, 1);
  free(whole);
  return true;
}

// ---- caches ----

static bool prepare_caches(const char *run) {
  static const struct {
    const char *variable, *name;
  } caches[] = {{"TRITON_CACHE_DIR", "triton"},     {"TORCHINDUCTOR_CACHE_DIR", "inductor"},
                {"NUMBA_CACHE_DIR", "numba"},       {"PYCUDA_CACHE_DIR", "pycuda"},
                {"TILELANG_CACHE_DIR", "tilelang"}, {"CUPY_CACHE_DIR", "cupy"},
                {"CACHEDB", "tinygrad.db"},         {"CUTE_DSL_DUMP_DIR", "cute"}};
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/" CACHES, run);
  if (mkdir(folder, 0700)) return false;
  for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
    set_path(caches[i].variable, folder, caches[i].name);
    // PyCUDA makes no folder that it is told of. tinygrad's is a file.
    if (strcmp(caches[i].variable, "CACHEDB") && mkdir(getenv(caches[i].variable), 0700)) return false;
  }
  // PyTorch cuts its tensors from large blocks. An access past a tensor would stay inside the block, and be missed.
  setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
  // CuTe DSL has PTX for the program, with lines.
  setenv("CUTE_DSL_ARCH", "sm_90a", 1);
  setenv("CUTE_DSL_KEEP_PTX", "1", 1);
  setenv("CUTE_DSL_LINEINFO", "1", 1);
  setenv("LRU", "0", 1);  // so that tinygrad returns freed memory to the driver
  return true;
}

// ---- Python ----

// A plugin for pytest, and its folder.
static bool prepare_python(const char *stand_ins) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/python", stand_ins);
  return prepend("PYTHONPATH", folder, ":") && prepend("PYTEST_PLUGINS", "hopper_run_pytest", ",");
}

// ---- nvcc ----

// Whether a toolkit is there. A path without links, because a folder of links will point into it.
static bool is_toolkit(const char *place, char folder[PATH_MAX]) {
  char nvcc[PATH_MAX + 16];
  if (!place || !realpath(place, folder)) return false;
  snprintf(nvcc, sizeof nvcc, "%s/bin/nvcc", folder);
  return access(nvcc, X_OK) == 0;
}

// The user's toolkit: where the variables say, where nvcc is on PATH, or the usual place.
static bool find_toolkit(char folder[PATH_MAX]) {
  char nvcc[PATH_MAX + 16], real[PATH_MAX];
  if (is_toolkit(getenv("CUDA_HOME"), folder) || is_toolkit(getenv("CUDA_PATH"), folder)) return true;
  for (const char *at = getenv("PATH"); at && *at;) {
    size_t length = strcspn(at, ":");
    snprintf(nvcc, sizeof nvcc, "%.*s/nvcc", (int)length, at);
    if (access(nvcc, X_OK) == 0 && realpath(nvcc, real)) {
      for (int up = 0; up < 2 && *real; up++) *strrchr(real, '/') = 0;
      if (is_toolkit(real, folder)) return true;
    }
    at += length + (at[length] == ':');
  }
  return is_toolkit("/usr/local/cuda", folder);
}

// Makes a folder with a link to each file of another one, but for one name.
static bool link_files(const char *from, const char *to, const char *except) {
  DIR *directory = opendir(from);
  if (!directory || mkdir(to, 0700)) {
    if (directory) closedir(directory);
    return false;
  }
  bool done = true;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    char target[PATH_MAX + 256], link[PATH_MAX + 256];
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !strcmp(entry->d_name, except)) continue;
    snprintf(target, sizeof target, "%s/%s", from, entry->d_name);
    snprintf(link, sizeof link, "%s/%s", to, entry->d_name);
    done &= symlink(target, link) == 0;
  }
  closedir(directory);
  return done;
}

// A folder that looks like the user's toolkit, with nvcc's stand-in in the place of nvcc.
static bool prepare_nvcc(const char *tools, const char *run) {
  char toolkit[PATH_MAX], own[PATH_MAX], bin[PATH_MAX + 8], own_bin[PATH_MAX + 8], nvcc[PATH_MAX + 16];
  if (!find_toolkit(toolkit)) return true;  // nothing to replace
  snprintf(own, sizeof own, "%s/" CUDA_FOLDER, run);
  snprintf(bin, sizeof bin, "%s/bin", toolkit);
  snprintf(own_bin, sizeof own_bin, "%s/bin", own);
  if (!link_files(toolkit, own, "bin")) return false;
  // Debian's package has its nvcc among all other programs.
  if (strcmp(toolkit, "/usr") ? !link_files(bin, own_bin, "nvcc") : mkdir(own_bin, 0700)) return false;
  set_path("HOPPER_RUN_NVCC", bin, "nvcc");
  snprintf(nvcc, sizeof nvcc, "%s/nvcc", own_bin);
  snprintf(bin, sizeof bin, "%s/nvcc", tools);
  if (symlink(bin, nvcc)) return false;
  setenv("CUDA_HOME", own, 1);
  setenv("CUDA_PATH", own, 1);
  return prepend("PATH", own_bin, ":");
}

bool prepare_compilers(const char *stand_ins, const char *run) {
  char tools[PATH_MAX];
  snprintf(tools, sizeof tools, "%s/tools", stand_ins);
  // Triton reads the second one, too, for a Hopper GPU.
  set_path("TRITON_PTXAS_PATH", tools, "ptxas");
  set_path("TRITON_PTXAS_BLACKWELL_PATH", tools, "ptxas");
  return prepare_caches(run) && prepare_nvcc(tools, run) && prepare_python(stand_ins);
}

// ---- the end ----

// The folder has links into the user's toolkit. unlinkat removes a link, and never what it leads to; only what it
// refuses is opened, and O_NOFOLLOW refuses links once more.
static void remove_entry(int parent, const char *name) {
  if (unlinkat(parent, name, 0) == 0) return;
  int file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *directory = file < 0 ? NULL : fdopendir(file);
  if (!directory) {
    if (file >= 0) close(file);
    return;
  }
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) remove_entry(file, entry->d_name);
  closedir(directory);
  unlinkat(parent, name, AT_REMOVEDIR);
}

void remove_folder(const char *folder) { remove_entry(AT_FDCWD, folder); }
