# ptxas 12.0, it alone, needs more registers and spills up to 84 bytes. The result is right.
ALLOW_12c-query-warpgroup := spills-12.0 stack-12.0
