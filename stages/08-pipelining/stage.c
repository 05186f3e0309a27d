// Stage 08. Its launch stands in a header, because stage 08b shares it.
#include "launch.h"

const Stage stage = {
    .name = "08-pipelining",
    .title = "the softmax of one tile runs under the output of the last",
    .launch = launch,
};
