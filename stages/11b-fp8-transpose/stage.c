// Stage 11b. Its launch stands in a header, because stage 11c shares it.
#include "launch.h"

const Stage stage = {
    .name = "11b-fp8-transpose",
    .title = "V is transposed in shared memory, by warps of the producer's warpgroup",
    .inputs = INPUTS_E4M3,
    .launch = launch,
    .counter = true,
};
