#include "scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "program.h"

static char folder[] = "/tmp/hopper-ladder-test-XXXXXX";
char scratch_output[1 << 16];

void scratch_enter(void) { cr_assert(mkdtemp(folder)); }

void scratch_leave(void) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  cr_expect(system(command) == 0);
}

int scratch_run(const char *command) {
  char text[2000];
  char *root = realpath(root_path(), NULL);
  cr_assert(root);
  int length = snprintf(text, sizeof text, FORGET_MAKE "cd %s && ROOT='%s' && { %s; } 2>&1", folder, root, command);
  cr_assert(length < (int)sizeof text);
  free(root);
  FILE *pipe = popen(text, "r");
  cr_assert(pipe);
  scratch_output[fread(scratch_output, 1, sizeof scratch_output - 1, pipe)] = 0;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void scratch_write(const char *name, const char *text) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  cr_assert(file);
  fputs(text, file);
  fclose(file);
}

char *scratch_read(const char *name, size_t *size) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return read_whole(path, size);
}

void scratch_write_script(const char *name, const char *body) {
  char text[4000], path[200];
  int length = snprintf(text, sizeof text, "#!/bin/sh\n%s", body);
  cr_assert(length < (int)sizeof text);
  scratch_write(name, text);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  cr_assert(chmod(path, 0755) == 0);
}

bool scratch_has_line(const char *words) {
  char squeezed[sizeof scratch_output + 1] = "\n";  // runs of spaces are one, and none ends a line
  size_t length = 1;
  for (const char *c = scratch_output; *c; c++) {
    if (*c == '\n' && squeezed[length - 1] == ' ') length--;
    if (*c != ' ' || squeezed[length - 1] != ' ') squeezed[length++] = *c;
  }
  squeezed[length] = 0;
  char line[1000];
  snprintf(line, sizeof line, "\n%s\n", words);
  return strstr(squeezed, line) != NULL;
}
