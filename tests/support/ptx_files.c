#include "ptx_files.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

Text read_text(const char *path) {
  Text text = {0};
  FILE *file = fopen(path, "rb");
  cr_assert(file, "cannot open %s", path);
  fseek(file, 0, SEEK_END);
  text.length = (size_t)ftell(file);
  rewind(file);
  text.bytes = calloc(1, text.length + 1);
  cr_assert_eq(fread(text.bytes, 1, text.length, file), text.length);
  fclose(file);
  return text;
}

int for_each_file(const char *folder, const char *suffix, void (*visit)(const char *path)) {
  DIR *directory = opendir(folder);
  cr_assert(directory, "cannot open %s", folder);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    size_t length = strlen(entry->d_name);
    if (length < strlen(suffix) || strcmp(entry->d_name + length - strlen(suffix), suffix) != 0) continue;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    visit(path);
    count++;
  }
  closedir(directory);
  return count;
}

int for_each_in_corpus(const char *folder, const char *suffix, void (*visit)(const char *path)) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/ptx/%s", root_path(), folder);
  return for_each_file(path, suffix, visit);
}

EmulatorModule *load_checked(Emulator *emulator, const char *text, size_t length, EmulatorError *error) {
  EmulatorModule *module = emulator_load(emulator, text, length, error);
  if (!module || emulator_check(module, NULL, error)) return module;
  emulator_unload(module);
  return NULL;
}
