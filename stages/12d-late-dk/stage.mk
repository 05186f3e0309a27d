# ptxas 12.0, it alone, needs more registers for the kernels with a causal mask, and serialises their products; ptxas 12.9 spills
# 20 bytes in one of them. The result is right.
ALLOW_12d-late-dk := serialised-12.0 spills-12.9 stack-12.9
