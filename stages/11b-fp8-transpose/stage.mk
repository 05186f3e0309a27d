# ptxas 12.5, it alone, does not see that the scores are there after wgmma_wait, and injects a wait of its own (C7517).
# The result is right; what that wait costs has not been measured.
ALLOW_11b-fp8-transpose := serialised-12.5
