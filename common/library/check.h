// What is wrong with a call, and what the stages' launches need of one that is right.
#pragma once

#include "../harness/stage.h"
#include "hopper_ladder.h"

// The message of this thread's last call that failed. Returns the status.
HlStatus call_fail(HlStatus status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Checks all but the stage's number, and with HL_CHECK all but the pointers. *to is the call in the stages' own types:
// its strides are written out, and workspace, counter and module are missing.
HlStatus call_check(const Stage *stage, const HlCall *call, bool backward, Attention *to);

// The same for a call of decode. The stage is one of the library's.
HlStatus decode_call_check(const Stage *stage, const HlDecode *call, Decode *to);
