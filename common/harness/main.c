// A stage's program: the stage that its stage.c defines, with the PTX and the cubin that embed.S put into it.
#include "harness.h"

extern const Stage stage;
extern const char stage_ptx[], stage_ptx_end[], stage_cubin[], stage_cubin_end[];

int main(int argc, char **argv) {
  DeviceImage image = {
      .ptx = stage_ptx,
      .ptx_size = (size_t)(stage_ptx_end - stage_ptx),
      .cubin = stage_cubin,
      .cubin_size = (size_t)(stage_cubin_end - stage_cubin),
  };
  return harness_run(&stage, &image, argc, argv);
}
