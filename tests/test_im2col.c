// Tensor copies in im2col mode on the emulator: what a convolution as a matrix product wants of its input.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/run_kernel.h"
#include "support/tensor_box.h"

TestSuite(im2col, .timeout = 120);

// A filter of `taps` taps along each dimension, the same along all: of its input, in channels-last order.
typedef struct Filter {
  int taps, pad, stride, dilation;
} Filter;

typedef struct Image {
  EmulatorTensorSpec spec;  // .f16
  const uint8_t *bytes;
  Filter filter;
} Image;

// How many places the filter has along dimension d.
static int places(const Image *image, int d) {
  const Filter *f = &image->filter;
  return ((int)image->spec.size[d] + 2 * f->pad - f->dilation * (f->taps - 1) - 1) / f->stride + 1;
}

// Splits the number of one of the filter's places, of all images, into where tap 0 is: W, H, D, N.
static void place_of(const Image *image, int number, int at[EMULATOR_TENSOR_RANK]) {
  int images = image->spec.rank - 1;
  for (int d = 1; d < images; d++) {
    at[d] = number % places(image, d) * image->filter.stride - image->filter.pad;
    number /= places(image, d);
  }
  at[images] = number;
}

// The bits of channel c of what the tap sees there, 0 outside.
static uint16_t seen(const Image *image, int number, int c, const int tap[3]) {
  int at[EMULATOR_TENSOR_RANK], images = image->spec.rank - 1;
  uint16_t bits;
  place_of(image, number, at);
  uint64_t offset = 2 * (uint64_t)c;
  for (int d = 1; d <= images; d++) {
    int index = at[d] + (d < images ? tap[d - 1] * image->filter.dilation : 0);
    if (index < 0 || index >= (int)image->spec.size[d]) return 0;
    offset += (uint64_t)index * image->spec.stride[d];
  }
  memcpy(&bits, image->bytes + offset, sizeof bits);
  return c < (int)image->spec.size[0] ? bits : 0;
}

// Loads the pixels from place `number` on that one tap sees, channels from c on, and compares.
static void check_tap(const Image *image, int number, int c, const int tap[3]) {
  static uint8_t tensor[1 << 15], tile[TILE_BYTES];
  const EmulatorTensorSpec *spec = &image->spec;
  char text[BOX_TEXT], offsets[40] = "";
  Box box = {.spec = *spec};
  place_of(image, number, box.start);
  box.start[0] = c;
  for (int d = 0; d < spec->rank - 2; d++)
    sprintf(offsets + strlen(offsets), "%s%d", d ? ", " : "", tap[d] * image->filter.dilation);
  write_im2col_load(text, spec->rank, offsets);
  memcpy(tensor, image->bytes, sizeof tensor);
  memset(tile, 0xff, sizeof tile);
  run_box(&box, text, (uint64_t)number, tensor, sizeof tensor, tile);
  for (int p = 0; p < (int)spec->pixels; p++)
    for (int i = 0; i < (int)spec->box[0]; i++) {
      uint16_t bits, expected = seen(image, number + p, c + i, tap);
      memcpy(&bits, tile + place_in_tile(spec, p, 2 * i), sizeof bits);
      cr_assert_eq(bits, expected, "%d dimensions, place %d + %d, channel %d + %d, offsets %s: %04x instead of %04x",
                   spec->rank, number, p, c, i, offsets, bits, expected);
    }
}

// A tensor of `channels` channels and images of these sizes, in a box that fits the filter.
static Image make_image(int rank, const int sizes[4], uint32_t channels, Filter filter, EmulatorTensorSwizzle swizzle) {
  static uint8_t bytes[1 << 15];
  Image image = {.bytes = bytes, .filter = filter};
  EmulatorTensorSpec *spec = &image.spec;
  fill_random(bytes, sizeof bytes, 3);
  *spec = (EmulatorTensorSpec){
      .type = EMULATOR_TENSOR_F16, .rank = rank, .size = {channels}, .box = {16}, .pixels = 37, .swizzle = swizzle};
  for (int d = 1; d < rank; d++) {
    spec->size[d] = (uint64_t)sizes[d - 1];
    spec->stride[d] = d == 1 ? 64 : spec->stride[d - 1] * spec->size[d - 1];
    spec->element_stride[d] = d < rank - 1 ? (uint32_t)filter.stride : 1;
    if (d == rank - 1) break;
    spec->lower[d - 1] = -filter.pad;
    spec->upper[d - 1] = filter.pad - filter.dilation * (filter.taps - 1);
  }
  return image;
}

static const struct {
  int rank, sizes[4];
  Filter filter;
} images[] = {
    {3, {31, 5}, {3, 1, 1, 1}},      {3, {29, 5}, {5, 2, 3, 1}},      {4, {9, 7, 3}, {3, 1, 1, 1}},
    {4, {9, 7, 3}, {3, 0, 2, 1}},    {4, {8, 9, 3}, {3, 2, 1, 2}},    {4, {7, 5, 4}, {1, 0, 1, 1}},
    {5, {6, 5, 4, 2}, {3, 1, 1, 1}}, {5, {6, 5, 4, 2}, {2, 1, 2, 1}},
};

Test(im2col, sees_what_a_convolution_does) {
  for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
    Image image = make_image(images[i].rank, images[i].sizes, 27, images[i].filter, EMULATOR_SWIZZLE_32B);
    int last = images[i].filter.taps - 1;
    const int taps[][3] = {{0, 0, 0}, {last, 0, last}, {0, last, 0}, {last, last, last}};
    for (int t = 0; t < 4; t++)
      for (int number = 0; number < 40; number += 13) check_tap(&image, number, number % 2 * 16, taps[t]);
  }
}

// In the first image of 4 x 4 pixels the box ends one pixel before the right and the lower edge, and begins one before
// the others: rows of four from -1 to 2. The second image follows.
Test(im2col, goes_on_in_the_next_image) {
  Image image = make_image(4, (const int[4]){4, 4, 2}, 16, (Filter){3, 1, 1, 1}, EMULATOR_SWIZZLE_NONE);
  int at[EMULATOR_TENSOR_RANK];
  cr_assert(places(&image, 1) == 4 && image.spec.upper[0] == -1 && image.spec.lower[0] == -1);
  place_of(&image, 17, at);
  cr_expect(at[1] == 0 && at[2] == -1 && at[3] == 1);
  check_tap(&image, 10, 0, (const int[]){0, 0, 0});
}

static EmulatorStatus run_mistake(const Image *image, const int start[4], uint32_t more_bytes, HazardKind *kind) {
  static const uint8_t tile[TILE_BYTES];
  char text[BOX_TEXT];
  write_im2col_load(text, 4, "0, 0");
  Machine machine = machine_open(text, 0);
  EmulatorTensorSpec spec = image->spec;
  spec.address = machine_upload(&machine, image->bytes, 1 << 15);
  uint64_t data = machine_upload(&machine, tile, sizeof tile);
  Map map = make_map(&spec);
  uint32_t bytes = box_bytes(&spec) + more_bytes;
  int count;
  EmulatorStatus status =
      machine_launch(&machine, (Shape){1, THREADS, 0}, (const void *[]){&map, &data, &bytes, start}, 4);
  const Hazard *hazards = emulator_hazards(machine.emulator, &count);
  *kind = count ? hazards[0].kind : HAZARD_KIND_COUNT;
  machine_close(&machine);
  return status;
}

Test(im2col, mistakes_are_reported) {
  HazardKind kind;
  Image image = make_image(4, (const int[4]){9, 7, 3}, 27, (Filter){3, 1, 1, 1}, EMULATOR_SWIZZLE_NONE);
  const int start[2][5] = {{0, 0, 0, 0}, {4, 0, 0, 0}};
  cr_expect(run_mistake(&image, start[0], 0, &kind) == EMULATOR_OK && kind == HAZARD_KIND_COUNT);
  cr_expect(run_mistake(&image, start[1], 0, &kind) == EMULATOR_FAULT && kind == HAZARD_MISALIGNED);
  cr_expect(run_mistake(&image, start[0], 16, &kind) == EMULATOR_FAULT && kind == HAZARD_EXPECT_TX);
  // Places in the box are -1 to 7 along W, and -1 to 5 along H.
  const struct {
    int start[5];
    bool is_inside;
  } places[] = {{{0, 7, 5}, true},   {{0, -1, -1, -1}, true}, {{0, 0, 0, 3}, true}, {{0, 8, 0}, false},
                {{0, -2, 0}, false}, {{0, 0, 6}, false},      {{0, 0, -2}, false}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    EmulatorStatus status = run_mistake(&image, places[i].start, 0, &kind);
    cr_expect(status == (places[i].is_inside ? EMULATOR_OK : EMULATOR_FAULT), "place %zu", i);
    cr_expect_eq(kind, places[i].is_inside ? HAZARD_KIND_COUNT : HAZARD_OUT_OF_BOUNDS, "place %zu", i);
  }
  image.spec.pixels = 0;  // a map of tile mode
  for (int d = 1; d < 4; d++) image.spec.box[d] = 1;
  cr_expect(run_mistake(&image, start[0], 0, &kind) == EMULATOR_FAULT && kind == HAZARD_TENSOR_MAP);
}
