// The barrier of a whole grid that numba calls. NVIDIA's device runtime has it, in machine code. Here it is PTX, and
// does what the header of cooperative groups does in CUDA C++: one thread of each block adds 1 to a word of the
// workspace, which %envreg1 and %envreg2 lead to, and waits until the word's sign changes. The first block adds what is
// missing from 2^31.
#include <string.h>

#include "driver.h"

static const char grid_barrier[] =
    ".version 8.0\n"
    ".target sm_90a\n"
    ".address_size 64\n"
    ".visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope) {\n"
    "  .reg .b32 %high, %low; .reg .b64 %workspace;\n"
    "  mov.u32 %high, %envreg1; mov.u32 %low, %envreg2; mov.b64 %workspace, {%low, %high};\n"
    "  st.param.b64 [handle], %workspace; ret;\n"
    "}\n"
    ".visible .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) {\n"
    "  .reg .b32 %x, %y, %z, %sum, %missing, %before, %now; .reg .b64 %workspace; .reg .pred %p;\n"
    "  ld.param.b64 %workspace, [handle]; setp.ne.u64 %p, %workspace, 0;\n"
    "  @%p bra COOPERATIVE; trap;\n"
    "COOPERATIVE: barrier.sync 0;\n"
    "  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z; or.b32 %sum, %x, %y; or.b32 %sum, %sum, %z;\n"
    "  setp.ne.u32 %p, %sum, 0; @%p bra DONE;\n"
    "  mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z;\n"
    "  mul.lo.u32 %missing, %x, %y; mul.lo.u32 %missing, %missing, %z; sub.u32 %missing, 0x80000001, %missing;\n"
    "  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z; or.b32 %sum, %x, %y; or.b32 %sum, %sum, %z;\n"
    "  setp.eq.u32 %p, %sum, 0; selp.u32 %missing, %missing, 1, %p;\n"
    "  atom.add.release.gpu.u32 %before, [%workspace+4], %missing;\n"
    "WAIT: ld.acquire.gpu.u32 %now, [%workspace+4]; xor.b32 %now, %now, %before;\n"
    "  setp.ge.s32 %p, %now, 0; @%p bra WAIT;\n"
    "DONE: barrier.sync 0; st.param.b32 [status], 0; ret;\n"
    "}\n";

// Whether a text calls it, and none defines it.
static bool lacks_grid_barrier(const Texts *texts) {
  bool calls = false;
  for (int i = 0; i < texts->count; i++) {
    const char *text = texts->items[i].ptx, *at = strstr(text, "cudaCGGetIntrinsicHandle");
    calls |= at != NULL;
    for (; at; at = strstr(at + 1, "cudaCGGetIntrinsicHandle")) {
      const char *end = at + strcspn(at, "{;");  // of a definition's head, or of a declaration or a call
      if (*end == '{') return false;
    }
  }
  return calls;
}

void add_grid_barrier(Texts *texts) {
  if (lacks_grid_barrier(texts)) texts_add(texts, strdup(grid_barrier));
}
