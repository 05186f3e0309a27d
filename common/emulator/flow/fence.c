// Fences: of the memory model, between the generic and the async proxy, of mbarriers and of tensor maps. PTX ISA
// 9.7.13.4.
#include <string.h>

#include "../async/tensor_map.h"
#include "../async/mbarrier_object.h"
#include "../check/order.h"
#include "../warp/decoder.h"
#include "families.h"

// A report on a thread that has exited asks when it last did so: report/conflict.c.
static void fence_proxies(Warp *warp, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) warp->fenced[__builtin_ctz(rest)] = warp->block->phases;
  race_proxy_fence(&warp->check, mask);
}

// Inst.flags: the scope, a Strength.
static void execute_fence(Warp *warp, const Inst *inst, Mask mask) {
  race_fence(&warp->check, mask, (Strength)inst->flags);
}

static void execute_fence_sc(Warp *warp, const Inst *inst, Mask mask) {
  race_fence_sc(&warp->check, mask, (Strength)inst->flags);
}

static void execute_proxy_fence(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  fence_proxies(warp, mask);
}

// What the other proxy's fence has released is known from here on, and may be used through the async proxy.
static void acquire_proxy(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  race_fence(&warp->check, mask, STRONG_GPU);
  fence_proxies(warp, mask);
}

// fence.proxy.tensormap::generic.acquire. Inst.extra: where the map is.
static void acquire_map(Warp *warp, const Inst *inst, Mask mask) {
  uint64_t addresses[LANES];
  form_addresses(warp, inst->extra, mask, addresses);
  map_fences_acquire(warp, inst, mask, addresses, (Strength)inst->flags);
}

// fence.mbarrier_init: the mbarriers that the lanes have initialised may be used by other blocks and by the async
// proxy.
static void announce(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  race_fence(&warp->check, mask, STRONG_GPU);
  mbarrier_announce(warp, mask);
}

// fence.proxy.tensormap::generic.release.gpu;  .acquire.gpu [map], 128;
static DecodeResult decode_tensor_map_fence(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  bool acquires = ptx_has(source, "acquire");
  if (!decoder_operands(decoder, source, 2 * acquires, 2 * acquires)) return DECODE_FAILED;
  if (acquires && (source->operands[1].kind != PTX_OPERAND_INTEGER || source->operands[1].value != 128))
    return decoder_error(decoder, source, "the size of a tensor map is 128");
  inst->flags = scope_of(source);
  inst->execute = acquires ? acquire_map : execute_fence;
  if (!acquires) return DECODED;
  AddressPlan *map = decoder_allocate(decoder, sizeof *map);
  inst->extra = map;
  return decode_address_plan(decoder, source, &source->operands[0], SPACE_GENERIC, map);
}

DecodeResult decode_proxy_fence(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "proxy", "alias", "async", "async::generic", "tensormap::generic", "global", "shared::cta",
      "shared::cluster", "sync_restrict::shared::cta", "sync_restrict::shared::cluster", "acquire", "release",
      "cta", "cluster", "gpu", "sys", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  if (ptx_has(source, "tensormap::generic")) return decode_tensor_map_fence(decoder, source, inst);
  if (!decoder_operands(decoder, source, 0, 0)) return DECODE_FAILED;
  inst->execute = ptx_has(source, "async")            ? execute_proxy_fence
                  : ptx_has(source, "async::generic") ? acquire_proxy
                                                      : execute_nothing;
  return DECODED;
}

DecodeResult decode_fence(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "gl", "sys", "mbarrier_init",
      "sync_restrict::shared::cta", "sync_restrict::shared::cluster", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 0, 0)) return DECODE_FAILED;
  inst->flags = scope_of(source);
  // "On sm_70 and higher membar is a synonym for fence.sc"; of a fence without .sem ".acq_rel is assumed by default".
  bool sc = ptx_has(source, "sc") || !strcmp(source->opcode, "membar");
  inst->execute = ptx_has(source, "mbarrier_init") ? announce : sc ? execute_fence_sc : execute_fence;
  return DECODED;
}
