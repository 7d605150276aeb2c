"""The programs of `schemes`, of a sixth set by two authors who had not seen the others."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs.program import Program, sized
from survey_programs.unseen import schemes as s


def sixth() -> Iterator[Program]:
    """All of them."""
    t = "unseen sixth"
    yield from sized(
        t,
        s.decode_attention_int4_cache,
        "q:bf16[B,HK,G,D] kp:i8[B,HK,S,D2] ks:f16+[B,HK,S] vp:i8[B,HK,S,D2] vs:f16+[B,HK,S] pos:i32~[S] lens:i32<S[B]",
        "B=32 HK=8 G=5 D=128 D2=64 S=6144",
        small="B=2 HK=2 G=3 D=8 D2=4 S=13",
        flops="4*B*HK*G*S*D",
    )
    yield from sized(
        t,
        s.gae_unrolled,
        "rewards:f32[T,N] values:f32[T1,N] done:bool[T,N]",
        "T=16 N=8192 T1=17",
        small="T=6 N=11 T1=7",
    )
    yield from sized(
        t,
        s.swin_shift_partition,
        "x:f16[B,H,W,C] w:f32[C] b:f32[C]",
        "B=64 H=56 W=56 C=192",
        small="B=1 H=7 W=14 C=12",
    )
    yield from sized(
        t,
        s.mae_patch_loss,
        "img:f32[B,3,H,W] pred:bf16[B,N,P] masked:bool[B,N]",
        "B=256 H=224 W=224 N=196 P=768",
        small="B=1 H=16 W=32 N=2 P=768",
    )
    yield from sized(
        t,
        s.adam8bit_blockwise,
        "p:bf16[N,256] g:bf16[N,256] qm:i8[N,256] sm:f32+[N] qv:i8[N,256] sv:f32+[N]",
        "N=262144",
        small="N=5",
    )
    yield from sized(
        t,
        s.euler_rusanov_2d,
        "rho:f32+[H,W] u:f32[H,W] v:f32[H,W] p:f32+[H,W]",
        "H=3001 W=4002",
        small="H=9 W=13",
    )
    yield from sized(
        t,
        s.su2_plaquettes,
        "links:f32[3,L,M,N,4]",
        "L=96 M=128 N=160",
        small="L=3 M=4 N=5",
    )
    yield from sized(
        t,
        s.poisson_bootstrap,
        "w:i8[B,N] x:f32[N,K]",
        "B=512 N=500000 K=8",
        small="B=6 N=50 K=3",
        flops="2*B*N*K",
    )
    yield from sized(
        t,
        s.lifting53_2d,
        "img:i16[B,H,W]",
        "B=12 H=2160 W=3840",
        small="B=2 H=10 W=14",
    )
    yield from sized(
        t,
        s.ssim_blocks,
        "a:f16[B,H,W,3] b:f16[B,H,W,3]",
        "B=16 H=1080 W=1920",
        small="B=1 H=16 W=24",
    )
    yield from sized(
        t,
        s.for_bitpack,
        "v:i32<V[N,C]",
        "V=32 N=100000 C=1002",
        small="V=32 N=7 C=18",
    )
