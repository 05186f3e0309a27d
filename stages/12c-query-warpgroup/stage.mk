# CUDA 12 has too few registers, and spills 4 to 512 bytes; 12.1 to 12.3 serialise the products too (C7516). The result is right.
ALLOW_12c-query-warpgroup := $(foreach minor,1 2 3,serialised-12.$(minor)) \
  $(foreach minor,0 1 2 3 4 5 6 8 9,spills-12.$(minor) stack-12.$(minor))
