// Stage 09b. Its launch stands in a header, because stage 10 shares it.
#include "launch.h"

const Stage stage = {
    .name = "09b-causal-order",
    .title = "causal: the longest tiles first, heads that share the L2 cache, half tiles on the diagonal",
    .launch = launch,
    .counter = true,
};
