// Functions that the system provides to kernels: printf, assert, malloc and free.
#pragma once

#include "../warp/decoder.h"

// Decodes a call of a function without a body; an error when there is none of that name.
DecodeResult system_call_decode(Decoder *decoder, const PtxInstruction *source, const char *name,
                                const PtxOperand *results, const PtxOperand *arguments, Inst *inst);
