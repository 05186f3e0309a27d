"""FlashInfer as a contender of peers.py: its Python package, which compiles a kernel when it is first asked for one.
Its decode is in decode_contenders.py.

    python3 plots/peers.py --stages=10 --peers=cuDNN,FlashInfer --sustained=none

The package compiles with nvcc and ninja, and needs no GPU for it. So its kernels may come from another machine: each
NAME.so that ninja leaves in ~/.cache/flashinfer is taken as it is from flashinfer/data/aot/NAME/NAME.so."""
from contenders import Contender, Refused, refusals

FLASHINFER = "FlashInfer"
WORKSPACE_BYTES = 128 << 20  # as FlashInfer's documentation recommends


def load_flashinfer():
    """The package; Refused, with what is missing, where it cannot be imported."""
    try:
        import flashinfer
        return flashinfer
    except Exception as error:  # pylint: disable=broad-except  # whatever another project's modules raise
        raise Refused(f"it cannot be imported: {' '.join(str(error).split())[:160]}") from error


def flashinfer_refuses(error):
    return Refused(f"FlashInfer: {' '.join(str(error).split())[:160]}")


def flashinfer_workspace():
    import torch

    return torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")


def token_rows(tensor):
    """[batch][heads][seqlen][head_dim] as FlashInfer wants it: the tokens of all batches, [tokens][heads][head_dim]."""
    batch, heads, seqlen, head_dim = tensor.shape
    return tensor.transpose(1, 2).reshape(batch * seqlen, heads, head_dim).contiguous()


def flashinfer_prefill(package):
    """The tensors are copied to FlashInfer's layout beforehand. Neither that nor its plan is in the time."""
    def prepare(problem):
        import torch

        batch, heads, seqlen, head_dim = problem.q.shape
        q, k, v = (token_rows(tensor) for tensor in (problem.q, problem.k, problem.v))
        ends = torch.arange(0, (batch + 1) * seqlen, seqlen, dtype=torch.int32, device="cuda")
        try:
            wrapper = package.BatchPrefillWithRaggedKVCacheWrapper(flashinfer_workspace(), "NHD")
            wrapper.plan(ends, ends, heads, heads, head_dim, causal=problem.causal, sm_scale=head_dim**-0.5,
                         q_data_type=q.dtype)
        except Exception as error:  # pylint: disable=broad-except
            raise flashinfer_refuses(error) from error

        def call():
            with refusals():
                return wrapper.run(q, k, v).view(batch, seqlen, heads, head_dim).transpose(1, 2)

        return call

    return Contender(FLASHINFER, prepare, lambda: f"FlashInfer {package.__version__}")
