// Stage 09: its launch is in launch.h.
#include "launch.h"

const Stage stage = {
    .name = "09-persistent",
    .title = "blocks stay on their SM: the next tile begins while the last one ends",
    .launch = launch,
    .counter = true,
};
