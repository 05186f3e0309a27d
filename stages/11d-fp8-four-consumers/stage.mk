# ptxas 12.0, it alone, has one register too few at D = 64, and spills 4 bytes. The result is right.
ALLOW_11d-fp8-four-consumers := spills-12.0 stack-12.0
