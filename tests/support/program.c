#include "program.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 32 };

const char *root_path(void) { return getenv("HL_ROOT") ? getenv("HL_ROOT") : "."; }

const char *program_of(const char *stage) {
  static char name[32];
  snprintf(name, sizeof name, "stage-%.*s", (int)strcspn(stage, "-"), stage);
  return name;
}

static void read_back(FILE *file, char *text) {
  rewind(file);
  text[fread(text, 1, MAX_OUTPUT - 1, file)] = 0;
  fclose(file);
}

Output *run_program(const char *name, const char *const *arguments) {
  char path[1000];
  const char *argv[MAX_ARGUMENTS + 2] = {path};
  snprintf(path, sizeof path, "%s/%s", root_path(), name);
  for (int i = 0; i < MAX_ARGUMENTS && arguments[i]; i++) argv[i + 1] = arguments[i];

  Output *output = calloc(1, sizeof *output);
  FILE *out = tmpfile(), *err = tmpfile();
  cr_assert(output && out && err);
  int status;
  pid_t child = fork();
  cr_assert(child >= 0);
  if (child == 0) {
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    execv(path, (char *const *)argv);
    _exit(127);
  }
  cr_assert(waitpid(child, &status, 0) == child);
  output->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  read_back(out, output->out);
  read_back(err, output->err);
  return output;
}

Output *run_line(const char *name, const char *line) {
  char copy[1000];
  const char *arguments[MAX_ARGUMENTS + 1] = {NULL};
  int count = 0;
  snprintf(copy, sizeof copy, "%s", line);
  for (char *rest = copy, *word; count < MAX_ARGUMENTS && (word = strtok_r(rest, " ", &rest));)
    arguments[count++] = word;
  return run_program(name, arguments);
}

char *read_whole(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long length = ftell(file);
  rewind(file);
  char *text = calloc(1, (size_t)length + 1);
  *size = text ? fread(text, 1, (size_t)length, file) : 0;
  fclose(file);
  return text;
}
