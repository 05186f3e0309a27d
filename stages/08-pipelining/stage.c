// Stage 08. Its launch stands in a header, because stage 08b shares it.
#include "launch.h"

const Stage stage = {
    .name = "08-pipelining",
    .title = "the softmax of a tile runs while the output of the previous tile is computed",
    .launch = launch,
};
