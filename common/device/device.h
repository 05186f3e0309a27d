// One interface, two devices: a Hopper GPU through the CUDA driver, and an emulator of one on the CPU.
//
//   gpu.c       cubin -> libcuda.so.1, loaded when it is there
//   emulator.c  PTX   -> common/emulator
//   open.c      which of the two; device.c what both share
//
// Code that uses this interface cannot tell which device it has, and need not.
//
// Errors: a call that fails returns false (or 0, or NULL), and the device keeps the first failure's code and text.
// Every later call then does nothing and fails too, so that a chain of calls is checked once, at its end
// (device_error). Work is queued in order, as on one CUDA stream: a fault inside a kernel may show only at
// device_synchronise or at the next download.
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Device Device;
typedef struct DeviceModule DeviceModule;
typedef struct DeviceKernel DeviceKernel;
typedef uint64_t DeviceAddress;  // has a meaning only on the device; 0 is no address

// ---- errors ----

typedef enum DeviceErrorCode {
  DEVICE_OK,
  DEVICE_ABSENT,         // the requested device is not on this machine
  DEVICE_UNSUPPORTED,    // this device cannot do that: the emulator has no clock, and runs no cubin
  DEVICE_INVALID,        // the caller's mistake: a bad size, an unknown kernel, an invalid module
  DEVICE_OUT_OF_MEMORY,  // not enough device memory
  DEVICE_FAULT,          // a kernel was stopped by its own mistake
  DEVICE_FAILED,         // the driver failed for a reason of its own
} DeviceErrorCode;

typedef struct DeviceError {
  DeviceErrorCode code;
  char text[480];  // one line
} DeviceError;

// The first failure since the device opened or the last clear; code DEVICE_OK when there is none.
const DeviceError *device_error(const Device *device);
void device_clear_error(Device *device);
// Keeps an error of the caller, such as a library that works on the device, if it is the first. Always false, so that a
// caller can return it.
bool device_fail(Device *device, DeviceErrorCode code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// ---- the device ----

typedef enum DeviceKind { DEVICE_AUTO, DEVICE_GPU, DEVICE_EMULATOR } DeviceKind;

typedef struct DeviceOptions {
  DeviceKind kind;      // DEVICE_AUTO: the first GPU of compute capability 9.0, the emulator when there is none
  bool hazards;         // emulator: report hazards
  uint64_t schedule;    // emulator: seed of the warp schedule; 0 is the adversarial default
  uint64_t step_limit;  // emulator: warp instructions a launch may execute, 0: any number
  int threads;          // emulator: CPU threads, 0: one for each core
  bool fair;            // emulator: one instruction of each warp in turn
  int steps;            // emulator: the most steps that are recorded, 0: none
  int values_of;        // emulator: the thread of each block whose results are steps too, from 1; 0: none
} DeviceOptions;

typedef struct DeviceInfo {
  DeviceKind kind;   // DEVICE_GPU or DEVICE_EMULATOR
  char name[96];     // "NVIDIA H200"
  char driver[32];   // "580.159.03", "-" on the emulator
  char cuda[16];     // "13.0", the driver's CUDA version, "-" on the emulator
  int sm_count;      // 4 on the emulator, for kernels that launch as many blocks as there are SMs
  int sm_clock_mhz;  // the highest clock; 0 on the emulator, as the rest
  size_t memory;     // bytes of device memory
  size_t l2_size;    // bytes
  char note[160];    // DEVICE_AUTO: why it is the emulator; empty otherwise
} DeviceInfo;

// Opens a device; NULL and *error when that cannot be done.
Device *device_open(const DeviceOptions *options, DeviceError *error);
// Frees the device with all its memory, modules and kernels.
void device_close(Device *device);
const DeviceInfo *device_info(const Device *device);

// ---- a GPU that another program has opened: for code that is called inside a CUDA program ----

// The GPU of the CUDA context that is current on this thread. Its functions want that context current. Closing it frees
// what was made through it, modules and kernels; memory is the caller's to free. NULL and *error when there is no
// context, or one of a GPU that is no compute-capability 9.0 one.
Device *device_attach(DeviceError *error);
// Whether the device is that of the context that is current on this thread.
bool device_is_current(const Device *device);
// The CUDA stream (a CUstream; NULL is the default stream) that launches and fills go to from now on.
void device_use_stream(Device *device, void *stream);
// Sets *capturing to whether the stream records what is queued on it, for a CUDA graph. It cannot allocate then.
bool device_is_capturing(Device *device, bool *capturing);
// Sets *id to a number that no other stream ever has.
bool device_stream_id(Device *device, uint64_t *id);

// ---- memory ----

// size bytes, aligned to 256, contents undefined; 0 on failure.
DeviceAddress device_alloc(Device *device, size_t size);
bool device_free(Device *device, DeviceAddress address);
bool device_upload(Device *device, DeviceAddress destination, const void *source, size_t size);
bool device_download(Device *device, void *destination, DeviceAddress source, size_t size);
bool device_fill(Device *device, DeviceAddress address, uint8_t byte, size_t size);

// ---- kernels ----

// What nvcc made of a kernel.cu. The GPU takes the cubin, the emulator the PTX.
typedef struct DeviceImage {
  const char *ptx;  // stays until the device closes if there is a cubin, too
  size_t ptx_size;
  const void *cubin;
  size_t cubin_size;
} DeviceImage;

DeviceModule *device_load(Device *device, const DeviceImage *image);
// The kernel of that name, an extern "C" __global__ function. Asking again for one that is known costs next to nothing.
DeviceKernel *device_kernel(Device *device, DeviceModule *module, const char *name);

typedef struct DeviceLaunch {
  DeviceKernel *kernel;
  unsigned grid[3], block[3];    // a 0 counts as 1
  unsigned cluster[3];           // all 0: no cluster
  size_t dynamic_shared;         // bytes; more than 48 KiB is opted into
  bool early;                    // may begin before the launch before it has ended: programmatic dependent launch
  const void *const *arguments;  // ARGUMENTS(&first, &second, ...): a pointer to each of the kernel's parameters
} DeviceLaunch;

#define ARGUMENTS(...) ((const void *const[]){__VA_ARGS__, NULL})

bool device_launch(Device *device, const DeviceLaunch *launch);
// Waits for all queued work.
bool device_synchronise(Device *device);

// ---- tensor maps: what a TMA copy knows of a tensor in global memory. PTX ISA 5.5, "Tensors" ----

enum { TENSOR_MAX_RANK = 5 };

typedef enum TensorType {
  TENSOR_MAP_U8,
  TENSOR_MAP_U16,
  TENSOR_MAP_U32,
  TENSOR_MAP_F16,
  TENSOR_MAP_BF16,
  TENSOR_MAP_F32
} TensorType;
typedef enum TensorSwizzle {
  TENSOR_SWIZZLE_NONE,
  TENSOR_SWIZZLE_32B,
  TENSOR_SWIZZLE_64B,
  TENSOR_SWIZZLE_128B
} TensorSwizzle;
typedef enum TensorL2Promotion { TENSOR_L2_NONE, TENSOR_L2_64B, TENSOR_L2_128B, TENSOR_L2_256B } TensorL2Promotion;

typedef struct TensorMapSpec {
  TensorType type;
  int rank;                          // 1 to 5
  DeviceAddress address;             // aligned to 16 bytes
  uint64_t size[TENSOR_MAX_RANK];    // elements, innermost dimension first
  uint64_t stride[TENSOR_MAX_RANK];  // bytes, multiples of 16; stride[0] is the element's size and not looked at
  uint32_t box[TENSOR_MAX_RANK];     // elements that one copy moves, at most 256 each
  uint32_t element_stride[TENSOR_MAX_RANK];  // 0 counts as 1
  TensorSwizzle swizzle;
  TensorL2Promotion l2_promotion;
  bool fill_nan;  // elements outside the tensor read as NaN, not as zero
} TensorMapSpec;

// Opaque, and each device's own. Pass it to a kernel by value: const __grid_constant__ CUtensorMap. Aligned as that of
// CUDA 13 (CUDA 12's is to 64), so that a structure with more in it is as long as the kernel's.
typedef struct TensorMap {
  alignas(128) uint8_t bytes[128];
} TensorMap;

// Fills *map. The GPU's comes from cuTensorMapEncodeTiled.
bool device_tensor_map(Device *device, const TensorMapSpec *spec, TensorMap *map);

// ---- time: only a GPU has any ----

// Queues work, by calling it with its context; false on failure.
typedef bool DeviceWork(Device *device, void *context);

// The milliseconds that work takes on the device, from an event before it to an event after it. The emulator refuses
// with DEVICE_UNSUPPORTED and does not call work: it is no timing model, and there is no other way to ask it.
bool device_time(Device *device, DeviceWork *work, void *context, double *milliseconds);

// ---- what the emulator saw; a GPU does not tell. The types are in emulator/emulator.h ----

typedef struct Hazard Hazard;
typedef struct LineCounters LineCounters;
typedef struct EmulatorCounters EmulatorCounters;
typedef struct EmulatorStep EmulatorStep;

// Hazards since the device opened; *count is 0 on a GPU.
const Hazard *device_hazards(const Device *device, int *count);
// Totals of all launches since the device opened or the last clear; false on a GPU, which leaves *counters alone.
bool device_counters(const Device *device, EmulatorCounters *counters);
// The same per source line, valid until the next launch; *count is 0 on a GPU.
const LineCounters *device_line_counters(const Device *device, int *count);
// The steps since the device opened, and whether there was room for all; *count is 0 on a GPU.
const EmulatorStep *device_steps(const Device *device, int *count, bool *complete);
// The file of that number in them; NULL past the last.
const char *device_step_file(const Device *device, int number);
// A checksum of all bytes that were downloaded since the device opened, in order; 0 on a GPU. It differs if a bit does.
uint64_t device_downloads(const Device *device);
// Counting begins anew.
void device_clear_counters(Device *device);
