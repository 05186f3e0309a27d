// All stages as one program, for WebAssembly: its name says which one it is, stage-06. The kernels come from a file of
// that name, stage-06.ptx, where a stage's own program has them embedded. 6/stage-05b is stage 05b with the host code
// of its mistake 6: variants.py. By the name "layout" it answers where things lie: layout.h.
#include <stdlib.h>

#include "layout.h"

#include "../harness/harness.h"
#include "variants.h"

#define DECLARE(number) extern const Stage stage_##number;
#define DECLARE_VARIANT(number, key) extern const Stage stage_##number##_##key;
STAGES(DECLARE)
VARIANTS(DECLARE_VARIANT)

typedef struct NamedStage {
  const char *program;
  const Stage *stage;
} NamedStage;

#define NAMED(number) {"stage-" #number, &stage_##number},
#define NAMED_VARIANT(number, key) {#key "/stage-" #number, &stage_##number##_##key},
static const NamedStage stages[] = {STAGES(NAMED) VARIANTS(NAMED_VARIANT)};

static const Stage *stage_of_program(const char *name) {
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
    if (!strcmp(name, stages[i].program)) return stages[i].stage;
  return NULL;
}

static char *read_kernels(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) return NULL;
  *size = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*size + 1);
  if (text) text[fread(text, 1, *size, file)] = 0;
  fclose(file);
  return text;
}

int main(int argc, char **argv) {
  const char *slash = strrchr(argv[0], '/'), *program = slash ? slash + 1 : argv[0];
  const Stage *stage = stage_of_program(argv[0]);
  if (!strcmp(program, "layout")) return layout_run(argc, argv);
  char path[64];
  snprintf(path, sizeof path, "/%.40s.ptx", program);
  if (!stage) return fprintf(stderr, "%s: there is no such stage\n", program), EXIT_USAGE;
  // ptxas accepted these kernels when the stage was built. That there is a cubin says so; nothing reads it.
  DeviceImage image = {.cubin = "", .cubin_size = 1};
  image.ptx = read_kernels(path, &image.ptx_size);  // NULL: then --ptx names a file
  return harness_run(stage, &image, argc, argv);
}
