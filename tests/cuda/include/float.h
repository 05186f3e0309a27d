// For NVRTC, which has no C library: what the kernels use of <float.h>.
#pragma once
#define FLT_MAX 3.40282347e+38f
