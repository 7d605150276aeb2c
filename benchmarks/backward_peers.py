"""What else computes a norm's backward pass: torch.compile with mix-order reductions on and off, quack, liger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backward_fusions import TORCH
from timing import Contestant

MIX_ON, MIX_OFF, QUACK, LIGER = "torch.compile", "torch.compile mix-order off", "quack", "liger"
PEERS = (MIX_ON, MIX_OFF, QUACK, LIGER)

Arguments = tuple[Any, ...]
"""dy, x, w and what the forward pass saved, as the functions of backward_fusions.py take them."""


def peer(name: str, kernel: str, sets: Sequence[Arguments]) -> Contestant:
    """The contestant of that name, over sets of inputs.

    It is made in its first call, so that a peer that cannot be imported or refuses the size is a failure of its own.
    """
    makers = {
        MIX_ON: lambda: _compiled(kernel, sets, mix_order=True),
        MIX_OFF: lambda: _compiled(kernel, sets, mix_order=False),
        QUACK: lambda: _quack(kernel, sets),
        LIGER: lambda: _liger(kernel, sets),
    }
    made: list[Callable[[int], object]] = []

    def call(i: int) -> object:
        if not made:
            made.append(makers[name]())
        return made[0](i)

    return Contestant(name, call)


def _compiled(kernel: str, sets: Sequence[Arguments], mix_order: bool) -> Callable[[int], object]:
    import torch

    torch._dynamo.reset()  # it compiles at most 8 signatures of one function, and then falls back to eager
    options = {"triton.mix_order_reduction": mix_order}
    compiled = torch.compile(TORCH[kernel], dynamic=False, options=options)
    return lambda i: compiled(*sets[i])


def _quack(kernel: str, sets: Sequence[Arguments]) -> Callable[[int], object]:
    from quack.rmsnorm import layernorm_bwd, rmsnorm_bwd

    flat = [(dy, x, w, *(value.flatten() for value in saved)) for dy, x, w, *saved in sets]
    if kernel == "rms_norm":

        def rms_norm(i: int) -> object:
            dy, x, w, rstd = flat[i]
            return rmsnorm_bwd(x, w, dy, rstd)

        return rms_norm

    def layer_norm(i: int) -> object:
        dy, x, w, mean, rstd = flat[i]
        return layernorm_bwd(x, w, dy, rstd, mean)

    return layer_norm


def _liger(kernel: str, sets: Sequence[Arguments]) -> Callable[[int], object]:
    from liger_kernel.ops.layer_norm import layer_norm_backward
    from liger_kernel.ops.rms_norm import _CASTING_MODE_LLAMA, rms_norm_backward
    from liger_kernel.ops.utils import calculate_settings

    if kernel == "layer_norm":

        def layer_norm(i: int) -> object:
            dy, x, w, mean, rstd = sets[i]
            return layer_norm_backward(dy, x, w, w, mean, rstd)

        return layer_norm

    block, warps = calculate_settings(sets[0][1].shape[1])
    # It writes dx over dy, which is its default; the other contestants need theirs.
    own = [(dy.clone(), *rest) for dy, *rest in sets]

    def rms_norm(i: int) -> object:
        dy, x, w, rstd = own[i]
        return rms_norm_backward(dy, x, w, rstd, 0.0, _CASTING_MODE_LLAMA.value, block, warps, True, None)

    return rms_norm
