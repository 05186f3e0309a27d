// Every kernel of the stage is launched, and each bit of its result compared with the model.
#include <stdlib.h>

#include "emulator/emulator.h"
#include "model.h"
#include "parts.h"

enum { TILE = LINES * LINES, ROUNDS = 3, BLOCKS = 2 };

const SwizzleMode swizzle_modes[SWIZZLES] = {{0, "none"}, {3, "32B"}, {2, "64B"}, {1, "128B"}};

const Form forms[FORMS] = {{64, false, 4}, {128, false, 4}, {256, false, 2},
                           {64, true, 4},  {128, true, 4},  {256, true, 2}};

DeviceKernel *form_kernel(const Session *session, const Form *form, const char *what) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s_%d", what, form->a_in_registers ? "registers" : "shared", form->n);
  return device_kernel(session->device, session->module, name);
}

size_t tiles_size(int n) { return (size_t)(LINES + n) * LINE_BYTES; }

// Compares one number; a NaN of other bits than the model's is as wrong as any.
static bool compare(float got, float expected, const char *place, int index, int n, Comparison *result) {
  if (!memcmp(&got, &expected, sizeof got)) return true;
  if (result->shown_count < SHOWN) {
    Mismatch *mismatch = &result->shown[result->shown_count++];
    snprintf(mismatch->place, sizeof mismatch->place, "%s: D[%d][%d]", place, index / n, index % n);
    mismatch->got = got;
    mismatch->expected = expected;
  }
  return false;
}

// ---- one wgmma ----

typedef struct Product {
  bool a_in_registers, b_mn_major, accumulate;
  const SwizzleMode *swizzle;
} Product;

// One launch, a block for each slice. d holds C and receives D.
static bool launch_product(const Session *session, const Inputs *inputs, const Product *product, DeviceAddress d,
                           DeviceAddress descriptors) {
  char name[64];
  snprintf(name, sizeof name, "product_%s_%c", product->a_in_registers ? "registers" : "shared",
           product->b_mn_major ? 'n' : 'k');
  DeviceAddress b = product->b_mn_major ? inputs->b_across_device : inputs->b_device;
  int accumulate = product->accumulate;
  DeviceLaunch launch = {
      .kernel = device_kernel(session->device, session->module, name),
      .grid = {SLICES},
      .block = {WARPGROUP},
      .dynamic_shared = tiles_size(LINES),
      .arguments = ARGUMENTS(&inputs->a_device, &b, &d, &descriptors, &product->swizzle->code, &accumulate),
  };
  return device_launch(session->device, &launch);
}

// Compares D of all slices: with the model bit for bit, with fp64 to see how large the error is.
static void compare_product(const Inputs *inputs, const Product *product, const float *d, Comparison *result) {
  float expected[TILE];
  char place[100];
  uint64_t wrong = 0;
  for (int slice = 0; slice < SLICES; slice++) {
    const float *c = inputs->c + slice * TILE;
    memcpy(expected, c, sizeof expected);
    model_multiply(inputs->a, inputs->b, LINES, slice, expected, product->accumulate);
    snprintf(place, sizeof place, "A from %s, B %s-major, swizzle %s, slice %d, D %s A B",
             product->a_in_registers ? "registers" : "shared memory", product->b_mn_major ? "N" : "K",
             product->swizzle->name, slice, product->accumulate ? "+=" : "=");
    for (int i = 0; i < TILE; i++) {
      float got = d[slice * TILE + i];
      wrong += !compare(got, expected[i], place, i, LINES, result);
      double exact = model_exact(inputs->a, inputs->b, slice, i / LINES, i % LINES) + (product->accumulate ? c[i] : 0);
      double error = fabs(got - exact);
      result->max_error = larger(result->max_error, error);
      result->sum_error += error;
    }
    result->compared += TILE;
    result->products++;
  }
  result->wrong += wrong;
  result->wrong_of[product->a_in_registers][product->b_mn_major][product->swizzle - swizzle_modes] += wrong;
}

// D is full of NaN before D = A B, which must not read it.
static bool run_product(const Session *session, const Inputs *inputs, const Product *product, DeviceAddress d,
                        DeviceAddress descriptors, Comparison *result) {
  float got[SLICES * TILE];
  Device *device = session->device;
  bool prepared =
      product->accumulate ? device_upload(device, d, inputs->c, sizeof got) : device_fill(device, d, 0xff, sizeof got);
  if (!prepared || !launch_product(session, inputs, product, d, descriptors) ||
      !device_download(device, got, d, sizeof got))
    return false;
  compare_product(inputs, product, got, result);
  return true;
}

// Bank conflicts of all stores to shared memory until now; 0 on a GPU, which does not tell.
static uint64_t store_conflicts(const Device *device) {
  EmulatorCounters counters;
  return device_counters(device, &counters) ? counters.value[COUNTER_SHARED_STORE_BANK_CONFLICTS] : 0;
}

bool check_products(const Session *session, const Inputs *inputs, Descriptors descriptors, Comparison *result) {
  Device *device = session->device;
  DeviceAddress d = device_alloc(device, sizeof(float) * SLICES * TILE);
  DeviceAddress made = device_alloc(device, sizeof descriptors[0][0]);
  bool done = d && made;
  for (int i = 0; i < 2 * 2 * 2 * SWIZZLES && done; i++) {
    int swizzle = i % SWIZZLES;
    Product product = {i / SWIZZLES & 1, i / SWIZZLES & 2, i / SWIZZLES & 4, &swizzle_modes[swizzle]};
    uint64_t before = store_conflicts(device);
    done = run_product(session, inputs, &product, d, made, result) &&
           device_download(device, descriptors[product.b_mn_major][swizzle], made, sizeof descriptors[0][0]);
    result->conflicts[swizzle] += store_conflicts(device) - before;
  }
  device_free(device, d);
  device_free(device, made);
  return done;
}

// ---- many wgmmas ----

// A kernel of `count` wgmmas, one slice after another from 0 to `slices` - 1 and again, whose results every one of
// `warpgroups` warpgroups has left in d.
static bool compare_chain(const Session *session, const Inputs *inputs, const Form *form, DeviceAddress d,
                          int warpgroups, int count, int slices, Comparison *result) {
  int size = LINES * form->n;
  float *expected = calloc((size_t)size, sizeof *expected), *got = malloc(sizeof *got * (size_t)size);
  bool done = expected && got;
  char place[100];
  for (int i = 0; i < count && done; i++) model_multiply(inputs->a, inputs->b, form->n, i % slices, expected, true);
  for (int w = 0; w < warpgroups && done; w++) {
    done = device_download(session->device, got, d + sizeof *got * (size_t)(w * size), sizeof *got * (size_t)size);
    snprintf(place, sizeof place, "%d times m64n%dk16, A from %s, warpgroup %d", count, form->n,
             form->a_in_registers ? "registers" : "shared memory", w);
    for (int i = 0; i < size && done; i++)
      result->chain_wrong += !compare(got[i], expected[i], place, i, form->n, result);
    result->chained += (uint64_t)size;
  }
  free(expected);
  free(got);
  return done;
}

static bool check_latency(const Session *session, const Inputs *inputs, const Form *form, DeviceAddress d,
                          DeviceAddress clocks, Comparison *result) {
  DeviceLaunch launch = {
      .kernel = form_kernel(session, form, "latency"),
      .block = {WARPGROUP},
      .dynamic_shared = tiles_size(form->n),
      .arguments = ARGUMENTS(&inputs->a_device, &inputs->b_device, &d, &clocks),
  };
  return device_launch(session->device, &launch) && compare_chain(session, inputs, form, d, 1, TRIES, 1, result);
}

static bool check_throughput(const Session *session, const Inputs *inputs, const Form *form, DeviceAddress d,
                             DeviceAddress spans, Comparison *result) {
  int rounds = ROUNDS;
  DeviceLaunch launch = {
      .kernel = form_kernel(session, form, "throughput"),
      .grid = {BLOCKS},
      .block = {form->warpgroups * WARPGROUP},
      .dynamic_shared = tiles_size(form->n),
      .arguments = ARGUMENTS(&inputs->a_device, &inputs->b_device, &d, &spans, &rounds),
  };
  return device_launch(session->device, &launch) &&
         compare_chain(session, inputs, form, d, BLOCKS * form->warpgroups, SLICES * ROUNDS, SLICES, result);
}

bool check_chains(const Session *session, const Inputs *inputs, Comparison *result) {
  Device *device = session->device;
  size_t size = sizeof(float) * BLOCKS * 4 * LINES * MAX_N;
  DeviceAddress d = device_alloc(device, size), clocks = device_alloc(device, 4096);
  bool done = d && clocks;
  for (int f = 0; f < FORMS && done; f++)
    done = device_fill(device, d, 0xff, size) && check_latency(session, inputs, &forms[f], d, clocks, result) &&
           device_fill(device, d, 0xff, size) && check_throughput(session, inputs, &forms[f], d, clocks, result);
  device_free(device, d);
  device_free(device, clocks);
  return done;
}
