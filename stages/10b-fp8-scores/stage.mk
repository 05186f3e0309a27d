# It goes on from the exact maximum, not from stage 10's stale one.
BELOW_10b-fp8-scores := 09b-diagonal
# ptxas 12.0, it alone, has one register too few at D = 128, and spills 8 bytes. The result is right.
ALLOW_10b-fp8-scores := spills-12.0 stack-12.0
