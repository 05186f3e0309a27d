// For NVRTC, which has no C library. <cuda.h> includes this for size_t, which NVRTC has built in.
#pragma once
