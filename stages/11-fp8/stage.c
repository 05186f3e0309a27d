// Stage 11. Its launch is stage 10c's, with more rows in a slot of V^T.
#include "tiles.h"

#include "../10c-fp8-values/two_kernels.h"

const Stage stage = {
    .name = "11-fp8",
    .title = "the weights stay where they are: an order of keys that fits, and rows of ones that add them up",
    .inputs = INPUTS_E4M3,
    .launch = launch,
    .workspace = workspace,
    .counter = true,
};
