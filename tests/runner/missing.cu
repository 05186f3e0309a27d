// Functions that the emulator lacks: each call must return "not supported". The program prints the name of each.
#include <cuda.h>

#include <cstring>

#include "check.h"

static void tell(const char *call, bool refused) {
  printf("%.*s: %s\n", (int)strcspn(call, "("), call, refused ? "not supported" : "something else");
}

#define DRIVER(call) tell(#call, (call) == CUDA_ERROR_NOT_SUPPORTED)
#define RUNTIME(call) tell(#call, (call) == cudaErrorNotSupported && cudaGetLastError() == cudaErrorNotSupported)

static void virtual_memory() {
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp property = {};
  CUmemAccessDesc access = {};
  CUmulticastObjectProp multicast = {};
  size_t granularity;
  DRIVER(cuMemGetAllocationGranularity(&granularity, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  DRIVER(cuMemAddressReserve(&address, 1 << 21, 0, 0, 0));
  DRIVER(cuMemCreate(&handle, 1 << 21, &property, 0));
  DRIVER(cuMemMap(address, 1 << 21, 0, handle, 0));
  DRIVER(cuMemSetAccess(address, 1 << 21, &access, 1));
  DRIVER(cuMemExportToShareableHandle(&handle, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  DRIVER(cuMemUnmap(address, 1 << 21));
  DRIVER(cuMulticastCreate(&handle, &multicast));
}

static void other_processes(void *memory) {
  CUipcMemHandle handle = {};
  cudaIpcMemHandle_t same = {};
  cudaIpcEventHandle_t of_event = {};
  cudaExternalMemory_t external;
  cudaExternalMemoryHandleDesc description = {};
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  DRIVER(cuIpcGetMemHandle(&handle, (CUdeviceptr)memory));
  RUNTIME(cudaIpcGetMemHandle(&same, memory));
  RUNTIME(cudaIpcOpenMemHandle(&memory, same, cudaIpcMemLazyEnablePeerAccess));
  RUNTIME(cudaIpcGetEventHandle(&of_event, event));
  RUNTIME(cudaImportExternalMemory(&external, &description));
}

static void linking() {
  CUlinkState state;
  char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
  CHECK((cudaError_t)cuLinkCreate(0, nullptr, nullptr, &state));
  CHECK((cudaError_t)cuLinkAddData(state, CU_JIT_INPUT_PTX, ptx, sizeof ptx, "first", 0, nullptr, nullptr));
  CUresult second = cuLinkAddData(state, CU_JIT_INPUT_CUBIN, ptx, sizeof ptx, "second", 0, nullptr, nullptr);
  tell("cuLinkAddData of a cubin or of NVVM's code", second == CUDA_ERROR_NOT_SUPPORTED);
}

static void arrays_and_textures() {
  cudaArray_t array;
  cudaMipmappedArray_t mipmapped;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaResourceDesc resource = {};
  cudaTextureDesc description = {};
  CUDA_ARRAY_DESCRIPTOR shape = {};
  CUarray other;
  DRIVER(cuArrayCreate(&other, &shape));
  RUNTIME(cudaMallocArray(&array, &format, 16, 16));
  RUNTIME(cudaMalloc3DArray(&array, &format, cudaExtent{16, 16, 16}));
  RUNTIME(cudaMallocMipmappedArray(&mipmapped, &format, cudaExtent{16, 16, 16}, 2));
  RUNTIME(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  RUNTIME(cudaCreateSurfaceObject(&surface, &resource));
}

// multimem works on the memory of several GPUs at once. The kernel is not launched; hopper-run says why.
__global__ void sum_of_all(float *memory) {
  asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], 1.0;" : : "l"(memory) : "memory");
}

static void several_gpus(void *memory) {
  sum_of_all<<<1, 1>>>((float *)memory);
  EXPECT(cudaGetLastError() != cudaSuccess);
}

// A function that a program looks up is there too, and says the same.
static void looked_up() {
  void *entry = nullptr;
  CUdriverProcAddressQueryResult found;
  EXPECT(cuGetProcAddress("cuMemRetainAllocationHandle", &entry, 12000, 0, &found) == CUDA_SUCCESS && entry);
  CUmemGenericAllocationHandle handle;
  auto cuMemRetainAllocationHandle = (CUresult(*)(CUmemGenericAllocationHandle *, void *))entry;
  DRIVER(cuMemRetainAllocationHandle(&handle, nullptr));
}

int main() {
  void *memory;
  CHECK(cudaMalloc(&memory, 1024));
  virtual_memory();
  other_processes(memory);
  linking();
  arrays_and_textures();
  several_gpus(memory);
  looked_up();
  CHECK(cudaMemset(memory, 0, 1024));  // and the program goes on
  printf("right\n");
  return 0;
}
