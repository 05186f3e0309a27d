// Stage 09b. Its launch stands in a header, because stage 10 shares it.
#include "launch.h"

const Stage stage = {
    .name = "09b-diagonal",
    .title = "causal: half tiles on the diagonal, and the tile that is not full is the shortest",
    .launch = launch,
    .strided = true,
    .counter = true,
};
