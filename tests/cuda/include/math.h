// For NVRTC, which has no C library: what the kernels use of <math.h>, which nvcc includes unasked, and NVRTC has not
// built in.
#pragma once
#define INFINITY __int_as_float(0x7f800000)
