// Stage 10c. Its launch stands in a header, because stage 11 shares it.
#include "two_kernels.h"

const Stage stage = {
    .name = "10c-fp8-values",
    .title = "values and weights in eight bits, and their products added up in fp32",
    .inputs = INPUTS_E4M3,
    .launch = launch,
    .workspace = workspace,
    .counter = true,
};
