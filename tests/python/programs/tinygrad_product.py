"""tinygrad: a sum and products, one by tensor cores. The mistake: a factor that was never written."""

# In the CUDA C that tinygrad writes, and in its PTX:
# <null>:35: the mistake shows there
# PTX line 97: the mistake shows there

import sys

import numpy
from tinygrad import Tensor


def main():
    """Compares with NumPy's results."""
    generator = numpy.random.default_rng(0)
    a, b = (generator.random((64, 64), dtype=numpy.float32) for _ in range(2))
    x = Tensor(a).realize()
    y = Tensor.empty(64, 64).realize() if "mistake" in sys.argv else Tensor(b).realize()
    product = (x @ y).numpy()
    if "mistake" not in sys.argv:
        assert numpy.array_equal((x + y).numpy(), a + b)
        assert numpy.allclose(product, a @ b, atol=1e-4)
        halves = x.half().matmul(y.half(), dtype="float32").numpy()
        assert numpy.allclose(halves, a @ b, atol=0.1)
    print("right")


main()
