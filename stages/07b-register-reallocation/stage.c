// Stage 07b. Its launch stands in a header, because stages 08 and 08b share it.
#include "launch.h"

const Stage stage = {
    .name = "07b-register-reallocation",
    .title = "the producer's registers go to the consumers, which use larger tiles",
    .launch = launch,
};
