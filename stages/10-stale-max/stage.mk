# ptxas 12.5, it alone, does not see that the scores are there after wgmma_wait<1>, and injects a wait of its own (C7517).
# The result is right; what that wait costs has not been measured.
ALLOW_10-stale-max := serialised-12.5

# With time stamps ptxas finds no registers for the products of attention_128_causal alone (C7511): read no times off a
# timeline of it.
ALLOW_TRACE_10-stale-max := serialised
