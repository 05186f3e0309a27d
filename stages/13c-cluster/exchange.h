// How the blocks of a cluster combine their parts of a head's keys. kernel.cu and stage.c both include this.
#pragma once

#include "../13-decode/tiles.h"

enum { CLUSTER_AT_MOST = 16 };
