// Stage 07: its launch is in launch.h.
#include "launch.h"

const Stage stage = {
    .name = "07-warp-specialization",
    .title = "one warp loads, warpgroups compute, each with as many registers as it needs",
    .launch = launch,
};
