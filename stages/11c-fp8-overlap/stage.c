// Stage 11c. Its launch is stage 11b's.
#include "../11b-fp8-transpose/launch.h"

const Stage stage = {
    .name = "11c-fp8-overlap",
    .title = "the softmax while PV of the previous tile runs, and its maximum found among integers",
    .inputs = INPUTS_E4M3,
    .launch = launch,
    .counter = true,
};
