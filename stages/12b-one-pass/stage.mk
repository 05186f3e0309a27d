# ptxas 12.5, it alone, does not see that the sums are there after wgmma_wait, and injects a wait of its own (C7517, C7518).
# The result is right; what that wait costs has not been measured.
ALLOW_12b-one-pass := serialised-12.5
