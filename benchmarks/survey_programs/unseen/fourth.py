"""The programs of `science`, of a fourth set by somebody who had not seen the others."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs.program import Program, sized
from survey_programs.unseen import science as s


def fourth() -> Iterator[Program]:
    """All of them."""
    t = "unseen fourth"
    yield from sized(t, s.gray_scott_3d, "u:f32[X,Y,Z] v:f32[X,Y,Z]", "X=191 Y=193 Z=197", small="X=5 Y=6 Z=7")
    yield from sized(t, s.daubechies_2d, "x:f32[N,H,W]", "N=16 H=1022 W=998", small="N=2 H=10 W=14")
    steps = "s:f32+[B,S] a:f32+[S,S] e:f32+[5,B,S]"
    yield from sized(t, s.hmm_forward, steps, "B=20011 S=61", small="B=5 S=7", flops="10*B*S*S")
    samples, products = "x:f32[N,D] y:f32[M,D] s:f32+[D]", "2*D*(N*N+M*M+N*M)"
    yield from sized(t, s.mmd_kernels, samples, "N=2003 M=1501 D=37", small="N=7 M=5 D=3", flops=products)
    rows = "x:f32[N,D] y:f32[N,3] w:f32+[N] i:i32~[D]"
    yield from sized(t, s.ridge_gradient_steps, rows, "N=500009 D=29", small="N=41 D=7", flops="2*N*D*(D+6)")
    yield from sized(t, s.mu_law, "x:f32[B,T*441] c:i8[B,T*441]", "B=64 T=501", small="B=3 T=2")
