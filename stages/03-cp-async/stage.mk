# ptxas 12.0, it alone, has one register too few at D = 128, and spills 8 bytes. The result is right.
ALLOW_03-cp-async := spills-12.0 stack-12.0
