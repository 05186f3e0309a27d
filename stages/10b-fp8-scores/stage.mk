# It goes on from the exact maximum, not from stage 10's stale one.
BELOW_10b-fp8-scores := 09b-diagonal
