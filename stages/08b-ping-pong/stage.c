// Stage 08b. Its launch is stage 08's.
#include "../08-pipelining/launch.h"

const Stage stage = {
    .name = "08b-ping-pong",
    .title = "one consumer has its softmax while another has the tensor cores",
    .launch = launch,
};
