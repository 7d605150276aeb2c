"""The survey's matrix products, one row a formula: arguments and sizes. Written before any was tuned for."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs import products as p
from survey_programs.products import layers
from survey_programs.program import Program, sized


def products() -> Iterator[Program]:
    """Forms, batches, groups and epilogues; and the layers of public models."""
    d, flops = "products", "2*M*N*K"
    plain = {"flops": flops, "compiled": False}
    old = ("M=4096 N=4096 K=4096", "M=2048 N=2048 K=2056", "M=16 N=4096 K=14336", "M=1 N=14336 K=4096")
    texts = {
        p.forward: "x:{0}[M,K] w:{0}[N,K]",
        p.data_gradient: "dy:{0}[M,K] w:{0}[K,N]",
        p.weight_gradient: "dy:{0}[K,M] x:{0}[K,N]",
        p.both_transposed: "x:{0}[K,M] w:{0}[N,K]",
    }
    for fn, text in texts.items():
        yield from sized(d, fn, text.format("bf16"), *old, **plain)
        yield from sized(d, fn, text.format("f32"), "M=1024 N=1024 K=1024", label=f"{fn.__name__} float32", **plain)
    batched = {"flops": "2*B*M*N*K", "compiled": False}
    yield from sized(
        d,
        p.forward,
        "x:bf16[B,M,K] w:bf16[B,N,K]",
        "B=32 M=2048 N=128 K=2048",
        "B=64 M=512 N=512 K=512",
        "B=16 M=4096 N=4096 K=64",
        "B=256 M=64 N=64 K=1024",
        **batched,
    )
    yield from sized(
        d,
        p.weight_gradient,
        "dy:bf16[B,K,M] x:bf16[B,K,N]",
        "B=8 M=1024 N=4096 K=2048",
        "B=512 M=64 N=64 K=512",
        **batched,
    )
    yield from sized(d, p.data_gradient, "dy:bf16[B,M,K] w:bf16[B,K,N]", "B=64 M=1024 N=128 K=1024", **batched)
    yield from sized(
        d,
        p.grouped_gelu,
        "x:bf16[B,M,K] w:bf16[B,K,N] b:f32[B,N]",
        "B=8 M=1024 N=14336 K=4096",
        "B=64 M=64 N=2048 K=2048",
        flops=batched["flops"],
    )
    yield from sized(
        d, p.attention_scores, "q:bf16[B,M,K] k:bf16[B,N,K]", "B=64 M=1024 N=1024 K=128", flops=batched["flops"]
    )
    two, big, few = "x:bf16[M,K] w:bf16[N,K]", "M=4096 N=4096 K=4096", "M=64 N=14336 K=4096"
    yield from sized(d, p.bias, f"{two} b:bf16[N]", big, few, flops=flops)
    yield from sized(d, p.bias_gelu, f"{two} b:bf16[N]", "M=8192 N=5120 K=1280", few, flops=flops)
    yield from sized(d, p.bias_gelu_tanh, f"{two} b:bf16[N]", "M=8192 N=3072 K=768", flops=flops)
    yield from sized(d, p.squared_relu, two, big, flops=flops)
    yield from sized(d, p.residual, f"{two} r:bf16[M,N]", "M=4096 N=4096 K=14336", "M=200 N=4096 K=4096", flops=flops)
    yield from sized(
        d, p.bias_dropout_residual, f"{two} b:bf16[N] mask:bool[M,N] r:bf16[M,N]", "M=8192 N=1024 K=4096", flops=flops
    )
    gates = "x:bf16[M,K] gate:bf16[N,K] up:bf16[N,K]"
    yield from sized(d, p.gate_and_up, gates, "M=4096 N=14336 K=4096", "M=16 N=14336 K=4096", flops="4*M*N*K")
    yield from sized(d, p.silu_gated, f"{two} gate:bf16[M,N]", "M=4096 N=14336 K=4096", flops=flops)
    yield from sized(d, p.soft_capped, two, "M=2048 N=32000 K=3584", flops=flops)
    yield from sized(d, p.normalised_input, two, "M=4096 N=6144 K=4096", "M=16 N=6144 K=4096", flops=flops)
    yield from sized(d, p.gated_input, "gate:bf16[M,K] up:bf16[M,K] w:bf16[N,K]", "M=2048 N=4096 K=14336", flops=flops)
    yield from sized(d, p.normalised_result, two, "M=4096 N=4096 K=4096", flops=flops, small="N=128")
    yield from sized(d, p.largest_of_rows, two, "M=2048 N=32000 K=4096", flops=flops)
    yield from sized(
        d, p.gelu_data_gradient, "dy:bf16[M,N] w:bf16[N,K] h:bf16[M,K]", "M=4096 N=1280 K=5120", flops=flops
    )
    yield from sized(d, p.weight_and_bias_gradient, "dy:bf16[M,N] x:bf16[M,K]", "M=8192 N=4096 K=1024", flops=flops)
    yield from sized(d, p.two_layers, "x:bf16[M,K] w1:bf16[N,K] w2:bf16[K,N]", "M=8192 N=3072 K=768", flops="4*M*N*K")
    yield from sized(
        d, p.low_rank, f"{two} a:bf16[16,K] b:bf16[N,16]", "M=2048 N=4096 K=4096", flops="2*M*N*K+32*M*K+32*M*N"
    )
    yield from layers()
