"""The programs of `practice`, of a fifth set by two authors who had not seen the others."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs.program import Program, sized
from survey_programs.unseen import practice as p


def fifth() -> Iterator[Program]:
    """All of them."""
    t = "unseen fifth"
    yield from sized(
        t,
        p.grn_backward,
        "x:f32[B,H,W,C] gamma:f32[C] beta:f32[C] dy:f32[B,H,W,C]",
        "B=32 H=28 W=28 C=384",
        small="B=2 H=3 W=4 C=6",
    )
    yield from sized(
        t,
        p.sinkhorn_hyper_connections,
        "s:bf16[T,4,C] branch:bf16[T,C] pre:f32[T,4] post:f32[T,4] res:f32[T,4,4]",
        "T=8192 C=1280",
        small="T=5 C=12",
        flops="2*T*4*4*C",
    )
    yield from sized(
        t,
        p.eva_axial_rope,
        "q:bf16[B,N,T,64] k:bf16[B,N,T,64] ys:i32~[GH] xs:i32~[GW] fi:i32~[16]",
        "B=32 N=16 T=1025 GH=32 GW=32",
        small="B=1 N=2 T=7 GH=2 GW=3",
    )
    yield from sized(
        t,
        p.cutmix_normalise,
        "img:i8[B,H,W,3] perm:i8[B,H,W,3] box:i32<V[B,4] lam:f32[B] fl:bool[B] ys:i32~[H] xs:i32~[W] "
        "mean:f32[3] istd:f32+[3]",
        "B=256 H=224 W=224 V=150",
        small="B=3 H=5 W=6 V=4",
    )
    yield from sized(
        t,
        p.fdtd_e_update,
        "ex:f32[X,Y,Z] ey:f32[X,Y,Z] ez:f32[X,Y,Z] hx:f32[X,Y,Z] hy:f32[X,Y,Z] hz:f32[X,Y,Z] eps:f32+[X,Y,Z]",
        "X=191 Y=193 Z=160",
        small="X=4 Y=5 Z=6",
    )
    yield from sized(t, p.ohlc_bars, "price:f32+[S,D*390] shares:i32[S,D*390]", "S=503 D=63", small="S=2 D=2")
    yield from sized(t, p.pwm_scan, "seq:i8[B,L] pwm:f32[8,4]", "B=20000 L=1507", small="B=3 L=20")
    yield from sized(t, p.cholesky4_soa, "g:f32[4,4,N] rhs:f32[4,N]", "N=1250001", small="N=7")
    yield from sized(
        t, p.gram_power_iter, "x:f32[B,M,8]", "B=60000 M=48", "B=64 M=48", small="B=3 M=12", flops="2*B*M*64"
    )
