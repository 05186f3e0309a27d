"""Opens the library that it is told, and asks whether its cuBLAS works."""
import ctypes
import sys

print("cuBLAS works" if ctypes.CDLL(sys.argv[1]).cublas_works() else "cuBLAS does not work")
