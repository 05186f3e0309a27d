# CUDA 12.0 serialises the products of the kernels with a causal mask (C7512), 12.1 to 12.3 those of all four (C7516), and 12.5
# injects waits (C7517). The other releases spill 20 or 24 bytes. The result is right.
ALLOW_12d-late-dk := $(foreach minor,0 1 2 3 5,serialised-12.$(minor)) \
  $(foreach minor,4 6 8 9,spills-12.$(minor) stack-12.$(minor))
