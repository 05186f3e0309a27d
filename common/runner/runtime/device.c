// The device, and looking up the driver's functions.
#include <string.h>

#include "runtime.h"

static cudaError_t check_ordinal(int device) { return runtime_error(core_device(device)); }

API(cudaGetDeviceCount, (int *count)) { return DO(cuDeviceGetCount(count)); }

API(cudaGetDevice, (int *device)) {
  *device = 0;
  return cudaSuccess;
}

API(cudaSetDevice, (int device)) {
  if (check_ordinal(device) != cudaSuccess) return runtime_result(cudaErrorInvalidDevice);
  return DO(CUDA_SUCCESS);
}

API(cudaInitDevice, (int device, unsigned device_flags, unsigned flags)) {
  (void)device_flags, (void)flags;
  return cudaSetDevice(device);
}

API(cudaSetValidDevices, (int *devices, int count)) {
  cudaError_t status = cudaSuccess;
  for (int i = 0; i < count && status == cudaSuccess; i++) status = check_ordinal(devices[i]);
  return runtime_result(status);
}

API(cudaChooseDevice, (int *device, const void *properties)) {
  (void)properties;
  *device = 0;
  return cudaSuccess;
}

API(cudaSetDeviceFlags, (unsigned flags)) {
  (void)flags;
  return cudaSuccess;
}

API(cudaGetDeviceFlags, (unsigned *flags)) {
  *flags = cudaDeviceMapHost;
  return cudaSuccess;
}

API(cudaDriverGetVersion, (int *version)) { return runtime_error(cuDriverGetVersion(version)); }

API(cudaRuntimeGetVersion, (int *version)) {
  *version = RUNTIME == 12 ? 12090 : 13000;
  return cudaSuccess;
}

API(cudaDeviceSynchronize, (void)) { return DO(cuCtxSynchronize()); }
API(cudaThreadSynchronize, (void)) { return cudaDeviceSynchronize(); }

// A launch that was stopped is forgotten with everything else.
API(cudaDeviceReset, (void)) {
  CUresult status = cuInit(0);
  return runtime_result(runtime_error(status ? status : cuDevicePrimaryCtxReset_v2(0)));
}

API(cudaThreadExit, (void)) { return cudaDeviceReset(); }

// The numbers of the attributes are the driver's.
API(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device)) {
  return DO(cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

API(cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit)) { return DO(cuCtxGetLimit(value, (CUlimit)limit)); }
API(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value)) { return DO(cuCtxSetLimit((CUlimit)limit, value)); }

API(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config)) {
  *config = cudaFuncCachePreferNone;
  return DO(CUDA_SUCCESS);
}

API(cudaDeviceSetCacheConfig, (enum cudaFuncCache config)) {
  (void)config;
  return DO(CUDA_SUCCESS);
}

API(cudaDeviceGetSharedMemConfig, (enum cudaSharedMemConfig * config)) {
  *config = cudaSharedMemBankSizeFourByte;
  return DO(CUDA_SUCCESS);
}

API(cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig config)) {
  (void)config;
  return DO(CUDA_SUCCESS);
}

API(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest)) {
  return DO(cuCtxGetStreamPriorityRange(least, greatest));
}

API(cudaDeviceGetPCIBusId, (char *id, int size, int device)) { return DO(cuDeviceGetPCIBusId(id, size, device)); }
API(cudaDeviceGetByPCIBusId, (int *device, const char *id)) { return DO(cuDeviceGetByPCIBusId(device, id)); }

API(cudaDeviceCanAccessPeer, (int *can, int device, int peer)) { return DO(cuDeviceCanAccessPeer(can, device, peer)); }

API(cudaDeviceGetP2PAttribute, (int *value, enum cudaDeviceP2PAttr attribute, int device, int peer)) {
  return DO(cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attribute, device, peer));
}

// A device is not its own peer.
API(cudaDeviceEnablePeerAccess, (int peer, unsigned flags)) {
  core_device(peer);
  return runtime_result(flags ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
}

API(cudaDeviceDisablePeerAccess, (int peer)) {
  cudaError_t status = check_ordinal(peer);
  return runtime_result(status == cudaSuccess ? cudaErrorPeerAccessNotEnabled : status);
}

API(cudaProfilerStart, (void)) { return cudaSuccess; }
API(cudaProfilerStop, (void)) { return cudaSuccess; }

// ---- functions of the driver ----

static cudaError_t entry(const char *name, void **function, int version, enum cudaDriverEntryPointQueryResult *result) {
  CUdriverProcAddressQueryResult found;
  cudaError_t ready = runtime_ready();
  if (ready != cudaSuccess) return ready;
  CUresult status = cuGetProcAddress_v2(name, function, version, 0, &found);
  if (result) *result = (enum cudaDriverEntryPointQueryResult)found;
  if (found != CU_GET_PROC_ADDRESS_SUCCESS) core_say_once("%s: the emulator does not have this function", name);
  return status != CUDA_SUCCESS                            ? runtime_error(status)
         : found != CU_GET_PROC_ADDRESS_SUCCESS && !result ? cudaErrorSymbolNotFound
                                                           : cudaSuccess;
}

API(cudaGetDriverEntryPoint,
    (const char *name, void **function, unsigned long long flags, enum cudaDriverEntryPointQueryResult *result)) {
  (void)flags;
  return runtime_result(entry(name, function, RUNTIME == 12 ? 12000 : 13000, result));
}

API(cudaGetDriverEntryPointByVersion, (const char *name, void **function, unsigned version, unsigned long long flags,
                                       enum cudaDriverEntryPointQueryResult *result)) {
  (void)flags;
  return runtime_result(entry(name, function, (int)version, result));
}

#undef cuGetExportTable
API(cudaGetExportTable, (const void **table, const void *id)) {
  (void)id;
  *table = NULL;
  return runtime_result(runtime_error(core_missing("cudaGetExportTable")));
}
