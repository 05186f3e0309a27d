// Stage 11d. Its launch is stage 11b's, with other tiles.
#include "tiles.h"

#include "../11b-fp8-transpose/launch.h"

const Stage stage = {
    .name = "11d-fp8-four-consumers",
    .title = "serial consumers, four at head dimension 64 and three at 128",
    .inputs = INPUTS_E4M3,
    .launch = launch,
    .strided = true,
    .counter = true,
};
