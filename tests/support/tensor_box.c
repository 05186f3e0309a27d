#include "tensor_box.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "run_kernel.h"

int element_bytes(EmulatorTensorType type) {
  switch (type) {
  case EMULATOR_TENSOR_U8: return 1;
  case EMULATOR_TENSOR_U16:
  case EMULATOR_TENSOR_F16:
  case EMULATOR_TENSOR_BF16: return 2;
  case EMULATOR_TENSOR_U64:
  case EMULATOR_TENSOR_S64:
  case EMULATOR_TENSOR_F64: return 8;
  default: return 4;
  }
}

int box_count(const EmulatorTensorSpec *spec, int d) {
  int stride = d && spec->element_stride[d] ? (int)spec->element_stride[d] : 1;
  return ((int)spec->box[d] + stride - 1) / stride;
}

uint32_t box_bytes(const EmulatorTensorSpec *spec) {
  uint32_t bytes = (uint32_t)element_bytes(spec->type);
  if (spec->pixels) return bytes * spec->box[0] * spec->pixels;
  for (int d = 0; d < spec->rank; d++) bytes *= (uint32_t)box_count(spec, d);
  return bytes;
}

int place_in_tile(const EmulatorTensorSpec *spec, int row, int byte) {
  int unit = byte / 16, in_unit = byte % 16, width = box_count(spec, 0) * element_bytes(spec->type);
  switch (spec->swizzle) {
  case EMULATOR_SWIZZLE_128B: return row * 128 + (unit ^ row % 8) * 16 + in_unit;
  case EMULATOR_SWIZZLE_64B: return row * 64 + (unit ^ row / 2 % 4) * 16 + in_unit;
  case EMULATOR_SWIZZLE_32B: return row * 32 + (unit ^ row / 4 % 2) * 16 + in_unit;
  default: return row * width + byte;
  }
}

#define END "ret;\n}\n"

static const char *const coordinate_lists[] = {
    "", "{%x0}", "{%x0, %x1}", "{%x0, %x1, %x2}", "{%x0, %x1, %x2, %x3}", "{%x0, %x1, %x2, %x3, %x4}"};

#define BOX_PROLOGUE                                                                                                   \
  PTX_HEADER ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 data, .param .u32 bytes, .param .align " \
             "4 .b8 x[20]) {\n"                                                                                        \
             ".reg .b64 %%m, %%d, %%s; .reg .b32 %%t, %%a, %%v, %%n, %%x0, %%x1, %%x2, %%x3, %%x4, %%i; .reg .pred "   \
             "%%p, %%q;\n"                                                                                             \
             ".shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;\n"                                       \
             "mov.b64 %%m, map; cvta.param.u64 %%m, %%m; ld.param.u64 %%d, [data]; ld.param.u32 %%n, [bytes];\n"       \
             "ld.param.u32 %%x0, [x]; ld.param.u32 %%x1, [x+4]; ld.param.u32 %%x2, [x+8]; ld.param.u32 %%x3, [x+12]; " \
             "ld.param.u32 %%x4, [x+16];\n"                                                                            \
             "mov.u32 %%t, %%tid.x; setp.eq.u32 %%p, %%t, 0; shl.b32 %%i, %%t, 2;\n"

#define LOAD_BEGIN                                                                                                     \
  BOX_PROLOGUE                                                                                                         \
  "mov.u32 %%v, 0;\nZERO: mov.u32 %%a, tile; add.u32 %%a, %%a, %%i; st.shared.u32 [%%a], %%v; add.u32 %%i, %%i, 512; " \
  "setp.lt.u32 %%q, %%i, 16384; @%%q bra ZERO;\n"                                                                      \
  "fence.proxy.async.shared::cta;\n"                                                                                   \
  "@%%p mbarrier.init.shared::cta.b64 [bar], 1; @%%p fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"              \
  "@%%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %%n;\n"                                                    \
  "@%%p cp.async.bulk.tensor.%dd.shared::cluster.global"
#define LOAD_END                                                                                                       \
  "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %%q, [bar], 0;\n@!%%q bra WAIT;\n"                                   \
  "shl.b32 %%i, %%t, 2;\nOUT: mov.u32 %%a, tile; add.u32 %%a, %%a, %%i; ld.shared.u32 %%v, [%%a];\n"                   \
  "cvt.u64.u32 %%s, %%i; add.u64 %%s, %%s, %%d; st.global.u32 [%%s], %%v; add.u32 %%i, %%i, 512; setp.lt.u32 %%q, "    \
  "%%i, 16384; @%%q bra OUT;\n" END
static const char load_format[] = LOAD_BEGIN ".tile.mbarrier::complete_tx::bytes [tile], [%%m, %s], [bar];\n" LOAD_END;
static const char im2col_format[] =
    LOAD_BEGIN ".im2col.mbarrier::complete_tx::bytes [tile], [%%m, %s], [bar], {%s};\n" LOAD_END;

static const char store_format[] =
    BOX_PROLOGUE "IN: mov.u32 %%a, tile; add.u32 %%a, %%a, %%i; cvt.u64.u32 %%s, %%i; add.u64 %%s, %%s, %%d; "
                 "ld.global.u32 %%v, [%%s];\n"
                 "st.shared.u32 [%%a], %%v; add.u32 %%i, %%i, 512; setp.lt.u32 %%q, %%i, 16384; @%%q bra IN;\n"
                 "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                 "@!%%p bra DONE;\n"
                 "cp%s.async.bulk.tensor.%dd.global.shared::cta%s%s.tile.bulk_group [%%m, %s], [tile];\n"
                 "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE: " END;

void write_load(char text[BOX_TEXT], int rank) { snprintf(text, BOX_TEXT, load_format, rank, coordinate_lists[rank]); }

void write_im2col_load(char text[BOX_TEXT], int rank, const char *offsets) {
  snprintf(text, BOX_TEXT, im2col_format, rank, coordinate_lists[rank], offsets);
}

void write_store(char text[BOX_TEXT], int rank) {
  snprintf(text, BOX_TEXT, store_format, "", rank, "", "", coordinate_lists[rank]);
}

void write_reduction(char text[BOX_TEXT], int rank, const char *operation) {
  snprintf(text, BOX_TEXT, store_format, ".reduce", rank, ".", operation, coordinate_lists[rank]);
}

void run_box(const Box *box, const char *text, uint64_t schedule, void *tensor, size_t size, void *tile) {
  Machine machine = machine_open(text, schedule);
  uint64_t global = machine_upload(&machine, tensor, size), data = machine_upload(&machine, tile, TILE_BYTES);
  EmulatorTensorSpec spec = box->spec;
  spec.address += global;
  Map map = make_map(&spec);
  uint32_t bytes = box_bytes(&spec);
  const void *arguments[] = {&map, &data, &bytes, box->start};
  cr_expect_eq(machine_launch(&machine, (Shape){1, THREADS, 0}, arguments, 4), EMULATOR_OK);
  expect_clean(&machine);
  machine_download(&machine, tile, data, TILE_BYTES);
  machine_download(&machine, tensor, global, size);
  machine_close(&machine);
}

void fill_random(void *bytes, size_t size, uint32_t seed) {
  uint8_t *to = bytes;
  for (size_t i = 0; i < size; i++) {
    seed = seed * 1664525u + 1013904223u;
    to[i] = (uint8_t)(seed >> 24);
  }
}
