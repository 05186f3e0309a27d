# ptxas 12.0, it alone, needs more registers for the kernels with a causal mask, and serialises their products. The result is
# right.
ALLOW_12d-late-dk := serialised-12.0
