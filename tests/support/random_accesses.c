#include "random_accesses.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct Writer {
  RandomKernel *kernel;
  size_t length;
  uint64_t random;
} Writer;

static unsigned draw(Writer *writer, unsigned below) {
  writer->random = writer->random * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)((writer->random >> 33) % below);
}

static void add(Writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(Writer *writer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  writer->length += (size_t)vsnprintf(writer->kernel->ptx + writer->length, sizeof writer->kernel->ptx - writer->length,
                                      format, arguments);
  va_end(arguments);
}

// %a: the index of the element that a thread accesses.
static void add_index(Writer *writer) {
  static const unsigned strides[] = {2, 3, 4, 8, 17, 64};
  unsigned k = draw(writer, 40);
  switch (draw(writer, 10)) {
  case 0:
  case 1: add(writer, "mov.u32 %%a, %%t;\n"); break;
  case 2: add(writer, "add.u32 %%a, %%t, %u;\n", k); break;
  case 3: add(writer, "xor.b32 %%a, %%t, %u;\n", 1u << draw(writer, 7)); break;
  case 4: add(writer, "shr.u32 %%a, %%t, %u;\n", 1 + draw(writer, 6)); break;
  case 5: add(writer, "mul.lo.u32 %%a, %%t, %u;\n", strides[draw(writer, 6)]); break;
  case 6:
    add(writer, "and.b32 %%a, %%t, 15;\nshr.u32 %%b, %%t, 4;\nmad.lo.u32 %%a, %%b, %u, %%a;\n", draw(writer, 3) * 16);
    break;
  case 7: add(writer, "not.b32 %%a, %%t;\n"); break;
  case 8: add(writer, "mov.u32 %%a, %u;\n", k); break;
  default: add(writer, "mad.lo.u32 %%a, %%t, 37, %u;\nand.b32 %%a, %%a, 63;\n", k);
  }
  if (draw(writer, 4) == 0) add(writer, "mad.lo.u32 %%a, %%c, 64, %%a;\n");
}

// %p: which threads take part.
static void add_guard(Writer *writer) {
  switch (draw(writer, 5)) {
  case 0: add(writer, "setp.lt.u32 %%p, %%t, %u;\n", draw(writer, 100)); break;
  case 1: add(writer, "and.b32 %%b, %%t, %u;\nsetp.ne.u32 %%p, %%b, 0;\n", 1u << draw(writer, 7)); break;
  case 2: add(writer, "setp.eq.u32 %%p, %%t, %u;\n", draw(writer, 64)); break;
  default: add(writer, "setp.eq.u32 %%p, %%t, %%t;\n");
  }
}

static const char *strength(Writer *writer, bool is_load) {
  switch (draw(writer, 12)) {
  case 0: return ".volatile";
  case 1: return draw(writer, 2) ? ".relaxed.gpu" : ".relaxed.cta";
  case 2: return is_load ? ".acquire.gpu" : ".release.gpu";
  default: return "";
  }
}

static void add_access(Writer *writer) {
  static const char *const types[] = {"u8", "u16", "u32", "u32", "u32", "u64", "v4.u32", "v2.u32"};
  static const char *const registers[] = {"%v", "%h", "%v", "%v", "%v", "%l", "{%v, %v1, %v2, %v3}", "{%v, %v1}"};
  static const unsigned sizes[] = {1, 2, 4, 4, 4, 8, 16, 8};
  static const char *const places[] = {"%in", "%out", "%s"};
  static const char *const spaces[] = {".global", ".global", ".shared"};
  bool is_load = draw(writer, 2);
  unsigned type = draw(writer, 8), place = draw(writer, 3), far = draw(writer, 60) == 0, askew = draw(writer, 150) == 0;
  add_index(writer);
  add_guard(writer);
  // Far: some of the threads are out of bounds, or all.
  if (far)
    add(writer, "add.u32 %%a, %%a, %u;\n", 4096 / sizes[type] - 40);
  else
    add(writer, "and.b32 %%a, %%a, %u;\n", 4096 / sizes[type] - 1);
  add(writer, "mad.wide.u32 %%x, %%a, %u, %s;\n", sizes[type], places[place]);
  if (askew) add(writer, "shr.u32 %%b, %%t, 4;\ncvt.u64.u32 %%l, %%b;\nadd.u64 %%x, %%x, %%l;\n");
  if (!is_load && draw(writer, 2)) add(writer, "mov.u32 %%v, %u;\n", draw(writer, 3));
  add(writer, "@%%p %s%s%s.%s ", is_load ? "ld" : "st", strength(writer, is_load), spaces[place], types[type]);
  if (is_load)
    add(writer, "%s, [%%x];\n", registers[type]);
  else
    add(writer, "[%%x], %s;\n", registers[type]);
}

static void add_order(Writer *writer) {
  switch (draw(writer, 10)) {
  case 0:
  case 8: add(writer, "bar.warp.sync 0xffffffff;\n"); break;
  case 1: add(writer, "fence.acq_rel.gpu;\n"); break;
  case 2: add(writer, "setp.eq.u32 %%p, %%t, %u;\n@%%p fence.acq_rel.cta;\n", draw(writer, 64)); break;
  case 3: add(writer, "setp.lt.u32 %%p, %%t, %u;\n@%%p red.global.add.u32 [%%out], 1;\n", draw(writer, 40)); break;
  case 4:
  case 9:  // One thread of each warp hands on what it knows to those that come later, or learns what the others did.
    add(writer, "and.b32 %%b, %%t, 31;\nsetp.eq.u32 %%p, %%b, %u;\n", draw(writer, 2) * draw(writer, 32));
    add(writer, draw(writer, 2) ? "@%%p ld.acquire.gpu.global.u32 %%b, [%%in+4096];\n"
                                : "@%%p atom.acq_rel.gpu.global.add.u32 %%b, [%%in+4096], 1;\n");
    break;
  default: add(writer, "bar.sync 0;\n");
  }
}

void random_kernel(RandomKernel *kernel, uint64_t seed) {
  Writer writer = {.kernel = kernel, .random = seed};
  for (int i = 0; i < 4; i++) draw(&writer, 2);
  unsigned blocks = 1 + draw(&writer, 2) * draw(&writer, 4), cluster = blocks % 2 ? 0 : draw(&writer, 2) * 2;
  kernel->shape = (Shape){blocks, 32 + 16 * draw(&writer, 7), cluster};
  add(&writer,
      PTX_HEADER
      ".visible .entry test(.param .u64 in, .param .u64 out) {\n.reg .pred %%p, %%q;\n.reg .b16 %%h;\n"
      ".reg .b32 %%t, %%c, %%a, %%b, %%v, %%v1, %%v2, %%v3, %%i;\n.reg .b64 %%in, %%out, %%s, %%x, %%l;\n"
      ".shared .align 16 .b8 shared[%u];\nmov.u32 %%t, %%tid.x;\nmov.u32 %%c, %%ctaid.x;\n"
      "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\nmov.u64 %%s, shared;\nmov.u32 %%v, %%t;\n"
      "mov.u32 %%v1, 1;\nmov.u32 %%v2, 2;\nmov.u32 %%v3, %%t;\nmov.u64 %%l, 5;\nmov.b16 %%h, 6;\nmov.u32 %%i, 0;\n",
      RANDOM_BYTES);
  // Mostly the shared memory is written first: else uninitialised reads are all that there is.
  if (draw(&writer, 5))
    add(&writer, "setp.eq.u32 %%p, %%t, %%t;\nmad.wide.u32 %%x, %%t, 16, %%s;\nst.shared.v4.u32 [%%x], {%%v, %%v, %%v, "
                 "%%v};\nbar.sync 0;\n");
  add(&writer, "again:\n");
  int steps = 2 + (int)draw(&writer, 14);
  for (int i = 0; i < steps; i++) {
    if (draw(&writer, 3))
      add_access(&writer);
    else
      add_order(&writer);
  }
  add(&writer, "add.u32 %%i, %%i, 1;\nsetp.lt.u32 %%q, %%i, %u;\n@%%q bra again;\nret;\n}\n", 1 + draw(&writer, 3));
}
