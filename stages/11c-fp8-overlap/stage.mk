# ptxas 12.5, it alone, injects a wait (C7517), and 12.3, it alone, spills 12 bytes at D = 128. The result is right.
ALLOW_11c-fp8-overlap := serialised-12.5 spills-12.3 stack-12.3
