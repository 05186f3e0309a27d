// Stage 10: its launch is in launch.h of stage 09.
#include "../09-persistent/launch.h"

const Stage stage = {
    .name = "10-late-max",
    .title = "weights against an old maximum, and a look at their sum instead of a search",
    .launch = launch,
    .counter = true,
};
