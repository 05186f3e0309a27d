# Up to CUDA 12.6 ptxas needs more registers, and spills 4 to 84 bytes. The result is right.
ALLOW_12c-query-warpgroup := $(foreach minor,0 1 2 3 4 5 6,spills-12.$(minor) stack-12.$(minor))
