// Stage 08. Its launch is stage 07b's.
#include "../07b-register-reallocation/launch.h"

const Stage stage = {
    .name = "08-pipelining",
    .title = "the softmax of one tile runs under the output of the last",
    .launch = launch,
};
