# ptxas 12.0 to 12.3 have one register too few at D = 64, and spill 4 bytes. 12.5 injects a wait at D = 128 (C7517). The result is
# right.
ALLOW_11d-fp8-four-consumers := serialised-12.5 $(foreach minor,0 1 2 3,spills-12.$(minor) stack-12.$(minor))
