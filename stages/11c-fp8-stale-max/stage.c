// Stage 11c. Its launch is stage 11b's.
#include "../11b-fp8-transpose/launch.h"

const Stage stage = {
    .name = "11c-fp8-stale-max",
    .title = "the stale maximum for weights of eight bits: a check of their bits, and the scores once more",
    .inputs = INPUTS_E4M3,
    .launch = launch,
    .counter = true,
};
