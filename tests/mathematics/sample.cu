// Every sixteenth function of all files, which is what `make test` has time for.
#define STRIDE 16

#include "float.cu"
#include "double.cu"
#include "half.cu"
#include "bfloat16.cu"
#include "integer.cu"
#include "conversion.cu"
