// Stage 10. Its launch is stage 09b's.
#include "../09b-diagonal/launch.h"

const Stage stage = {
    .name = "10-stale-max",
    .title =
        "a softmax that does not search for the maximum: a check of the weights' sum shows whether the stale one fits",
    .launch = launch,
    .strided = true,
    .counter = true,
    .lse = true,
};
