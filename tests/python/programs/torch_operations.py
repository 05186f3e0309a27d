"""PyTorch's own operations on the emulated GPU against the same on the CPU. The mistake: a kernel reads what only
torch.empty has made, behind elements that an operation in place has written."""

import io
import sys

import torch
import triton
import triton.language as tl


def views(device):
    """Operations in place on views, which share memory and have gaps."""
    x = torch.zeros(4, 6, device=device)
    x[1, 2:4] = 5
    x.t()[0].add_(1)
    x[::2, ::2].mul_(2)
    x[2:].copy_(x[:2].clone())
    torch.add(x[0], 1, out=x[3])
    return x


def training(device):
    """Layers, autograd and an optimiser."""
    weights = torch.linspace(-1, 1, 64, device=device).reshape(8, 8).requires_grad_()
    optimiser = torch.optim.Adam([weights])
    x = torch.linspace(0, 1, 32, device=device).reshape(4, 8)
    for _ in range(2):
        optimiser.zero_grad()
        torch.nn.functional.gelu(torch.nn.functional.layer_norm(x @ weights, (8,))).square().sum().backward()
        optimiser.step()
    return torch.cat([weights.detach(), weights.grad])


def attention(device):
    """PyTorch's own attention, whose kernels for a GPU are not composed of others."""
    x = torch.linspace(-1, 1, 256, device=device).reshape(1, 2, 16, 8)
    return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


def shapes(device):
    """Indices, masks, sorting, splitting, types, an empty tensor, an out= that grows."""
    x = torch.arange(12, device=device)
    grown = torch.add(x.float(), 1, out=torch.empty(0, device=device))
    parts = [x[x > 6], x[torch.tensor([3, 1], device=device)], torch.sort(-x).values, x.split(5)[2], grown]
    parts += [x.to(torch.float8_e4m3fn), x[:0].sum()[None], x.reshape(3, 4).t().flatten(), x.expand(2, 12)[1]]
    parts += [(x[:2] * 1j).conj().imag, torch.where(x > 3, x, 0), x.view(torch.int32)[::2]]
    return torch.cat([part.double() for part in parts])


def printed(device):
    """What print shows, without the name of the device."""
    file = io.StringIO()
    print(torch.arange(6.0, device=device).reshape(2, 3), torch.ones(2, device=device, requires_grad=True), file=file)
    return torch.tensor(list(file.getvalue().replace(", device='cuda:0'", "").encode()))


def own_operation(device):
    """An operation that the program registers, with operations of PyTorch's inside."""
    return torch.ops.own.twice(torch.arange(3.0, device=device))


@torch.library.custom_op("own::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    """Twice x."""
    return x + x


def check_random_numbers():
    """Seeds repeat, two calls differ, and the CPU's numbers are not touched."""
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first, second = torch.rand(3, device="cuda"), torch.rand(3, device="cuda")
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3, device="cuda"), first) and not torch.equal(first, second)
    generator = torch.Generator("cuda").manual_seed(3)
    first, second = (torch.randn(3, device="cuda", generator=generator) for _ in range(2))
    generator.manual_seed(3)
    again = torch.randn(3, device="cuda", generator=generator)
    assert torch.equal(again, first) and not torch.equal(first, second)


def check_half_gradients():
    """The gradients of many rows in fp16 are sums in fp32, as on a GPU."""
    x = torch.randn(1000, 64, device="cuda", dtype=torch.float16)
    weight, bias = (torch.ones(64, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(2))
    torch.nn.functional.layer_norm(x, (64,), weight, bias).backward(0.1 * x)
    torch.testing.assert_close(bias.grad, (0.1 * x).double().sum(0).half(), atol=2e-3, rtol=1e-3)
    assert bias.grad.dtype == weight.grad.dtype == torch.float16


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    """One block."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)  # the mistake shows here


def main():
    """Compares all on both devices."""
    for function in views, training, attention, shapes, printed, own_operation:
        torch.testing.assert_close(function("cuda").cpu(), function("cpu"), msg=lambda text, f=function: f"{f}: {text}")
    check_random_numbers()
    check_half_gradients()
    x = torch.empty(250, device="cuda")
    x[:200].fill_(1)
    count = 250 if "mistake" in sys.argv else 200
    out = torch.empty_like(x)
    copy[(1,)](x, out, count, BLOCK=256)
    assert out[:200].sum().item() == 200
    print("right")


main()
