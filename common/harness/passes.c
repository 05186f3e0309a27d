// Runs attention a few heads at a time, for kernels that need much device memory for each head: all heads together
// might not fit.
#include "stage.h"

// Enough for the scores of batch 4, heads 32, seqlen 4096; an eighth of it where a size has 32 bits.
static const size_t PASS_LIMIT = (size_t)(SIZE_MAX > UINT32_MAX ? (uint64_t)8 << 30 : (uint64_t)1 << 30);
enum { MAX_HEADS = 65535 };  // of one pass: the limit of gridDim.y and gridDim.z

// At least one head, whatever its size.
static int heads_per_pass(const Shape *shape, size_t head_size) {
  size_t heads = (size_t)shape->batch * shape->heads, fit = PASS_LIMIT / head_size;
  if (fit < 1) fit = 1;
  if (fit > MAX_HEADS) fit = MAX_HEADS;
  return (int)(heads < fit ? heads : fit);
}

size_t passes_workspace(const Shape *shape, size_t head_size) { return heads_per_pass(shape, head_size) * head_size; }

bool passes_launch(Device *device, const Attention *attention, size_t head_size, AttentionLaunch *launch) {
  const Shape *shape = &attention->shape;
  int heads = shape->batch * shape->heads, step = heads_per_pass(shape, head_size);
  for (int first = 0; first < heads; first += step) {
    size_t offset = sizeof(uint16_t) * first * shape->seqlen * shape->head_dim;
    Attention pass = *attention;
    pass.shape.batch = 1;
    pass.shape.heads = heads - first < step ? heads - first : step;
    pass.q.address += offset;
    pass.k.address += offset;
    pass.v.address += offset;
    pass.o.address += offset;
    if (!launch(device, &pass)) return false;
  }
  return true;
}
