# CUDA 12.0 serialises the products of all four kernels (C7512), 12.1 to 12.3 too (C7516), and 12.5 injects waits (C7517). 12.1
# to 12.3 spill 384 bytes at D = 64 with a causal mask, and the later ones, but 12.5, 12 or 16 bytes at D = 64. The result is
# right.
ALLOW_12e-lean-loop := $(foreach minor,0 1 2 3 5,serialised-12.$(minor)) \
  $(foreach minor,1 2 3 4 6 8 9,spills-12.$(minor) stack-12.$(minor))
