"""The programs of `detection` and `series`, a third set by somebody who had not seen the others."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs.program import Program, sized
from survey_programs.unseen import detection as d
from survey_programs.unseen import series as s


def third() -> Iterator[Program]:
    """All of them."""
    t = "unseen third"
    x = "x:bf16[N,C,H,W] l:i32<C[N,H,W] i:i32~[C] w:f32+[C]"
    yield from sized(
        t, d.sigmoid_focal, "x:bf16[N,A,C] l:i32<C[N,A] i:i32~[C] n:f32+[N]", "N=8 A=49104 C=90", small="N=2 A=9 C=10"
    )
    yield from sized(
        t, d.nms_suppression, "b:f32[N,A,4] s:f32[N,A] c:i32<K[N,A]", "N=80 A=1000 K=80", small="N=2 A=21 K=2"
    )
    yield from sized(t, d.yolo_decode, "h:f16[N,255,H,H] a:f32[3,2] c:i32~[H] r:i32~[H]", "N=32 H=80", small="N=2 H=5")
    yield from sized(t, d.dice_cross_entropy, x, "N=8 C=19 H=512 W=1024", small="N=2 C=19 H=6 W=8")
    rays = "p:f32[R,S,3] s:f32[R,S] c:f32[R,S,3] d:f32+[R,S] b:f32+[S,S]"
    yield from sized(t, d.nerf_encode_composite, rays, "R=4096 S=192", small="R=5 S=12")
    mixed = "i:i16<V[N,H,H,3] m:f32[3] r:f32+[3] f:bool[N] l:f32[N] y:i32<H[N] x:i32<H[N] p:i32~[H] q:i32~[H]"
    yield from sized(t, d.cutmix_batch, mixed, "N=128 H=224 V=256", small="N=3 H=112 V=256")
    yield from sized(t, s.goertzel_bins, "x:f32[N,365] angles:f32~[8,365]", "N=100000", small="N=5")
    yield from sized(t, s.polyphase_decimate, "x:f32[C,T] taps:f32[13]", "C=64 T=999999", small="C=3 T=51")
    yield from sized(t, s.american_put_lattice, "s:f64+[N] k:f64+[N] vol:f64+[N]", "N=3000000", small="N=53")
    yield from sized(t, s.kalman_local_trend, "y:f64[7,N] seen:bool[7,N]", "N=2000000", small="N=37")
    paths = "start:f32[B,S] a:f32[S,S] e:f32[5,B,S] index:i32~[S]"
    yield from sized(t, s.viterbi_steps, paths, "B=500000 S=13", small="B=5")
    yield from sized(t, s.kmeans_step, "x:f32[N,5] centres:f32[K,5] index:i32~[K]", "N=3000000 K=13", small="N=37")
    yield from sized(t, s.weno5_advection, "u:f32[B,X]", "B=2000 X=4999", small="B=3 X=37")
