"""A torch.autograd.Function made of two fused functions: python examples/torch_autograd.py; needs PyTorch."""

from __future__ import annotations

import torch
from layer_norm_backward import layer_norm, layer_norm_backward

import mlirfuse as mf

ON_GPU = torch.cuda.is_available()
forward, backward = (mf.fuse(fn, target=None if ON_GPU else "interpret") for fn in (layer_norm, layer_norm_backward))


def call(fused, *arguments):
    """Calls a fused function on tensors; the interpreter takes and gives NumPy arrays."""
    if ON_GPU:
        return fused(*arguments)
    arrays = [a.detach().contiguous().numpy() if isinstance(a, torch.Tensor) else a for a in arguments]
    return tuple(map(torch.from_numpy, fused(*arrays)))


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, eps):
        y, mean, rstd = call(forward, x, w, b, eps)
        ctx.save_for_backward(x, w, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, mean, rstd = ctx.saved_tensors
        return *call(backward, dy.contiguous(), x, w, mean, rstd), None


def gradients(norm, x, w, b, dy):
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (x, w, b)]
    return torch.autograd.grad(norm(*leaves), leaves, dy)


def main() -> None:
    torch.manual_seed(0)
    device = "cuda" if ON_GPU else "cpu"
    x, dy = (torch.randn(37, 384, device=device) for _ in range(2))
    w, b = (torch.randn(384, device=device) for _ in range(2))
    ours = gradients(lambda *leaves: LayerNorm.apply(*leaves, 1e-5), x, w, b, dy)
    theirs = gradients(lambda x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b, 1e-5), x, w, b, dy)
    for name, result, expected in zip(("dx", "dw", "db"), ours, theirs, strict=True):
        error = (result - expected).abs().max().item()
        print(f"LayerNorm's {name} {tuple(result.shape)}: largest error {error:.1e} against torch.autograd")
        assert error < 1e-4


if __name__ == "__main__":
    main()
