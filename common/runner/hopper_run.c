// hopper-run: starts a program with stand-ins for NVIDIA's libraries, so that its kernels run on the emulator. When the
// program has ended, it prints what the emulator found.
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf.h"
#include "prepare.h"

enum { EXIT_FAULT = 1, EXIT_USAGE = 2 };

#define LINK ".libraries"  // in the folder of the reports, whose names have no dot

static const char help[] =
    "Usage: hopper-run [options] PROGRAM [ARGUMENTS]\n"
    "\n"
    "Runs a CUDA program on an emulator of a Hopper GPU. It needs no GPU and no driver. The program must be\n"
    "linked with the shared CUDA runtime and contain PTX:\n"
    "\n"
    "  nvcc -cudart shared -lineinfo -gencode arch=compute_90a,code=compute_90a my.cu -o my\n"
    "  hopper-run ./my\n"
    "\n"
    "  --hazards=on|off   report hazards: races, uninitialised reads, ... (default: on)\n"
    "  --schedule=N       seed of the order in which warps run (default: 0, the adversarial order)\n"
    "  --step-limit=N     stop a launch after N warp instructions (default: 0, no limit)\n"
    "  --strict           formal findings, where PTX does not promise what the hardware does, count as faults\n"
    "  --counters         print at the end what the kernels did, in total and for each source line\n"
    "  --help             print this text\n"
    "\n"
    "When the program has ended, hopper-run prints what it found on standard error.\n"
    "Exit code: the program's own; 1 if that is 0 and a fault was found; 2 if an option is wrong or the\n"
    "program cannot run here; 128 + N if signal N ended the program.\n";

static int fail_here(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int fail_here(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "hopper-run: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  return EXIT_USAGE;
}

// ---- options ----

static bool is_number(const char *text) {
  if (!*text || strlen(text) > 19) return false;
  for (; *text; text++)
    if (!isdigit((unsigned char)*text)) return false;
  return true;
}

// Passes an option to the stand-ins through the environment. Returns 0, or the exit code for a wrong option.
static int take_option(const char *option) {
  static const struct {
    const char *name, *variable, *values;  // values NULL: a number; empty: a flag
  } options[] = {{"--hazards", "HOPPER_RUN_HAZARDS", "on|off"},
                 {"--schedule", "HOPPER_RUN_SCHEDULE", NULL},
                 {"--step-limit", "HOPPER_RUN_STEP_LIMIT", NULL},
                 {"--strict", "HOPPER_RUN_STRICT", ""},
                 {"--counters", "HOPPER_RUN_COUNTERS", ""}};
  size_t length = strcspn(option, "=");
  const char *value = option[length] ? option + length + 1 : NULL;
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    const char *name = options[i].name, *values = options[i].values;
    if (strlen(name) != length || memcmp(name, option, length)) continue;
    if (values && !*values) return value ? fail_here("%s takes no value", name) : setenv(options[i].variable, "on", 1);
    if (!value) return fail_here("%s needs a value: write %s=%s", name, name, values ? values : "N");
    if (values ? strcmp(value, "on") && strcmp(value, "off") : !is_number(value))
      return fail_here(values ? "%.40s: on or off is needed" : "%.40s: a whole number is needed", option);
    return setenv(options[i].variable, value, 1);
  }
  return fail_here("unknown option %.40s; --help lists all options", option);
}

// ---- the program ----

// Finds the program as execvp does. False when there is none.
static bool find_program(const char *name, char path[PATH_MAX]) {
  if (strchr(name, '/')) {
    snprintf(path, PATH_MAX, "%s", name);
    return access(path, X_OK) == 0;
  }
  for (const char *at = getenv("PATH"); at && *at;) {
    size_t length = strcspn(at, ":");
    snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, name);
    if (access(path, X_OK) == 0) return true;
    at += length + (at[length] == ':');
  }
  return false;
}

// Prints in one line why a program cannot run here, and returns the exit code; 0 when it can run.
static int check_program(const char *name, const char *path, ElfFacts *facts) {
  if (!elf_read(path, facts)) return fail_here("%s: %s", name, strerror(errno));
  if (facts->has_kernels && !facts->imports_runtime && !elf_needs(facts, "libcudart.so"))
    return fail_here("%s is linked with the static CUDA runtime: build it with nvcc -cudart shared", name);
  if (elf_needs(facts, "libcudart.so.") && !elf_needs(facts, "libcudart.so.12") && !elf_needs(facts, "libcudart.so.13"))
    return fail_here("%s is linked with a CUDA runtime that is neither 12 nor 13", name);
  return 0;
}

// ---- the stand-ins ----

// Finds the folder of the stand-ins from this program's own folder: where make has built them, or has installed them.
static bool find_stand_ins(char folder[PATH_MAX]) {
  static const char *const places[] = {STAND_INS, "../lib/hopper-ladder"};
  char own[PATH_MAX], joined[2 * PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  if (length < 0) return false;
  own[length] = 0;
  *strrchr(own, '/') = 0;
  for (int i = 0; i < 2; i++) {
    snprintf(joined, sizeof joined, "%s/%s/libcuda.so.1", own, places[i]);
    if (!realpath(joined, folder)) continue;
    *strrchr(folder, '/') = 0;
    return true;
  }
  return false;
}

// The loader takes a blank or a colon in a list of libraries for the end of one: a folder with such a name gets a link
// to it, beside the reports.
static bool avoid_separators(char folder[PATH_MAX], const char *reports) {
  char link[PATH_MAX];
  if (!strpbrk(folder, " :;")) return true;
  snprintf(link, sizeof link, "%s/" LINK, reports);
  if (symlink(folder, link)) return false;
  strcpy(folder, link);
  return true;
}

// Preloads the stand-ins: the loader then never looks for NVIDIA's libraries of the same names, not even along an
// RPATH. A library that the program opens later is found by the path; but a program that is not linked with the runtime
// may be an interpreter, and PyTorch's libraries have RPATHs. So it gets all.
static void preload_libraries(const char *folder, const ElfFacts *facts) {
  static const char *const libraries[] = {"libcudart", "libcublas", "libcublasLt"};
  char preload[8 * PATH_MAX];
  int used = snprintf(preload, sizeof preload, "%s/libcuda.so.1", folder);
  bool either = elf_needs(facts, "libcudart.so.");
  for (int i = 0; i < 3; i++)
    for (int release = 12; release <= 13; release++) {
      char name[32], path[PATH_MAX + 32];
      snprintf(name, sizeof name, "%s.so.%d", libraries[i], release);
      snprintf(path, sizeof path, "%s/%s", folder, name);
      if (access(path, R_OK) == 0 && (elf_needs(facts, name) || !either))  // those of cuBLAS need its headers
        used += snprintf(preload + used, sizeof preload - (size_t)used, " %s", path);
    }
  if (!prepend("LD_PRELOAD", preload, " ") || !prepend("LD_LIBRARY_PATH", folder, ":"))
    exit(fail_here("out of memory"));
}

// ---- reports ----

// What the reports have in common.
typedef struct Reports {
  int code;         // the exit code if the program's own is 0: a fault's, or that of a process which could not run all
  bool any, empty;  // whether one was printed, and whether one is empty
} Reports;

// A report begins with an exit code, and with '-' if its process launched nothing and nothing was found. Such a report
// is printed if it is the only one: a program may have many helpers that only open the device.
static void copy_report(const char *path, Reports *reports, bool empty_too) {
  FILE *file = fopen(path, "r");
  if (!file) return;
  int own = fgetc(file) - '0';
  if (reports->code != EXIT_FAULT && (own == EXIT_FAULT || own == EXIT_USAGE)) reports->code = own;
  bool is_empty = fgetc(file) == '-';
  reports->empty |= is_empty;
  if (!is_empty || (empty_too && !reports->any)) {
    for (int c; (c = fgetc(file)) != EOF;) fputc(c, stderr);
    reports->any = true;
  }
  fclose(file);
}

// Visits the reports that the program's processes have left in the folder.
static void visit_reports(const char *folder, Reports *reports, bool last) {
  DIR *directory = opendir(folder);
  for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
    char path[PATH_MAX];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (!last || (reports->empty && !reports->any)) copy_report(path, reports, last);
    if (last) unlink(path);
  }
  if (directory) closedir(directory);
}

// Prints and removes the reports. Returns the exit code if the program's own is 0.
static int print_reports(const char *folder) {
  Reports reports = {0};
  visit_reports(folder, &reports, false);
  visit_reports(folder, &reports, true);
  remove_folder(folder);
  return reports.code;
}

static volatile pid_t child;

static void pass_on(int number) { kill(child, number); }

static int run_program(const char *path, char **arguments) {
  child = fork();
  if (child < 0) return fail_here("%s", strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv(path, arguments);
    _exit(fail_here("%s: %s", path, strerror(errno)));
  }
  // Ctrl-C also reaches the program. This process ignores it, to print the report in any case.
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  signal(SIGTERM, pass_on);
  signal(SIGHUP, pass_on);
  signal(SIGPIPE, SIG_IGN);  // `hopper-run ... | head`: what the run has left is removed all the same
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail_here("%s", strerror(errno));
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  fprintf(stderr, "hopper-run: the program was ended by signal %d (%s)%s\n", WTERMSIG(status),
          strsignal(WTERMSIG(status)),
          WTERMSIG(status) == SIGSEGV ? "; if it was an access to device memory: the host has none" : "");
  return 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  int at = 1, wrong;
  for (; at < argc && argv[at][0] == '-'; at++) {
    if (!strcmp(argv[at], "--help")) return fputs(help, stdout) < 0;
    if (!strcmp(argv[at], "--")) {
      at++;
      break;
    }
    if ((wrong = take_option(argv[at])) != 0) return wrong;
  }
  if (at == argc) return fail_here("no program is named; --help shows how to use hopper-run");
  char path[PATH_MAX], folder[PATH_MAX], reports[] = "/tmp/hopper-run-XXXXXX";
  ElfFacts facts;
  if (!find_program(argv[at], path)) return fail_here("%s: no program of this name can be executed", argv[at]);
  if ((wrong = check_program(argv[at], path, &facts)) != 0) return wrong;
  if (!find_stand_ins(folder)) return fail_here("the stand-ins are missing; make hopper-run builds them");
  if (!mkdtemp(reports) || !avoid_separators(folder, reports)) return fail_here("%s: %s", reports, strerror(errno));
  preload_libraries(folder, &facts);
  if (!prepare_compilers(folder, reports)) {
    wrong = fail_here("%s: %s", reports, strerror(errno));
    remove_folder(reports);
    return wrong;
  }
  setenv("HOPPER_RUN_REPORT", reports, 1);
  int code = run_program(path, argv + at);
  int found = print_reports(reports);
  return code ? code : found;
}
