"""A fused attention in Triton (triton_attention.py) as a contender of peers.py. Triton comes with PyTorch. For each
problem the fastest of a few tile sizes takes part."""
import math

from contenders import Contender, Refused, fastest_of, new_output

TRITON = "Triton"
# Rows and keys of a tile, warps, and key tiles in flight.
TILES = (128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3)
LARGEST_ROWS = max(rows for rows, *_ in TILES)


def launch_of(problem, output, tile):
    """A call with one choice of tiles."""
    import triton_attention
    from triton.tools.tensor_descriptor import TensorDescriptor

    rows, keys, warps, stages = tile
    batch, heads, seqlen, head_dim = problem.q.shape

    def tiles(tensor, height):
        return TensorDescriptor.from_tensor(tensor.view(-1, head_dim), [height, head_dim])

    operands = [tiles(problem.q, rows), tiles(problem.k, keys), tiles(problem.v, keys), tiles(output, rows)]
    kernel = triton_attention.forward[(seqlen // rows, batch * heads)]

    def call():
        kernel(*operands, seqlen, head_dim**-0.5 / math.log(2), CAUSAL=problem.causal, HEAD_DIM=head_dim, ROWS=rows,
               KEYS=keys, num_warps=warps, num_stages=stages)
        return output

    return call


def triton_peer():
    def prepare(problem):
        if problem.q.shape[2] % LARGEST_ROWS:
            raise Refused(f"this kernel takes multiples of {LARGEST_ROWS} rows")
        try:
            import triton  # noqa: F401
        except ImportError as error:
            raise Refused("PyTorch's Triton is not there") from error
        output = new_output(problem)
        calls = [launch_of(problem, output, tile) for tile in TILES]
        return fastest_of(calls, "Triton compiles none of its tile sizes")

    return Contender(TRITON, prepare, triton_version)


def triton_version():
    import triton

    return f"Triton {triton.__version__}"
