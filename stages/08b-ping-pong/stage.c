// Stage 08: its launch is in launch.h of stage 07.
#include "../07-warp-specialization/launch.h"

const Stage stage = {
    .name = "08-ping-pong",
    .title = "the softmax of one block of keys under the products of another",
    .launch = launch,
};
