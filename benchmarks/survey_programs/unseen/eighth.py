"""The programs of `codes` and `solvers`, of an eighth set by two authors who had not seen the others."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs.program import Program, sized
from survey_programs.unseen import codes as c
from survey_programs.unseen import solvers as s


def eighth() -> Iterator[Program]:
    """All of them."""
    d = "unseen eighth"
    yield from sized(d, c.flac_fixed_predictors, "pcm:i16<V[F,2,N]", "F=5000 N=4096 V=32767", small="F=2 N=512 V=32767")
    yield from sized(
        d,
        c.crc32c_by_bits,
        "words:i32<V[P,R,3] stored:i32<V[P,R]",
        "P=1001 R=4096 V=2147483647",
        small="P=3 R=22 V=2147483647",
    )
    yield from sized(
        d,
        c.bit_sliced_index_sum,
        "slices:i32<V[12,B,W] exists:i32<V[B,W] mask:i32<V[B,W]",
        "B=2441 W=1024 V=2147483647",
        small="B=3 W=16 V=2147483647",
    )
    yield from sized(
        d, c.polar_bp_sweep, "channel:f32[B,N] right:f32[S,B,N]", "B=1024 N=1024 S=10", small="B=3 N=16 S=4"
    )
    yield from sized(
        d,
        c.nf4_double_dequant,
        "packed:i8[R,32*G] codes:i8[R,G] scale:f32+[R] offset:f32+[1] table:f32[16]",
        "R=4096 G=172",
        small="R=3 G=2",
    )
    yield from sized(d, c.hpss_soft_masks, "mag:f32+[B,F,T]", "B=6 F=1025 T=1537", small="B=2 F=9 T=11")
    yield from sized(
        d,
        s.multigrid_transfer_trilinear,
        "r:f32[2*C+1,2*C+1,2*C+1] u:f32[2*C+1,2*C+1,2*C+1] coarse:f32[C+1,C+1,C+1]",
        "C=128",
        small="C=5",
    )
    yield from sized(
        d,
        s.tke_vertical_diffusion,
        "theta:f32[K,Y,X] qv:f32[K,Y,X] u:f32[K,Y,X] v:f32[K,Y,X] tke:f32+[K,Y,X] dz:f32+[K] flux:f32[Y,X]",
        "K=20 Y=333 X=768",
        small="K=5 Y=3 X=17",
    )
    yield from sized(
        d,
        s.frtb_sensitivities_capital,
        "s:f32[P,B,N] weight:f32+[B,N] correlation:f32[B,N,N] across:f32[B,B]",
        "P=20000 B=11 N=60",
        small="P=5 B=3 N=7",
        flops="6*P*B*N*N",
    )
    yield from sized(
        d,
        s.c51_projection_loss,
        "following:f32[B,A] current:f32[B,A] reward:f32[B] alive:bool[B] atoms:f32~[A]",
        "B=131072 A=51",
        small="B=3 A=11",
    )
    yield from sized(
        d, s.huber_then_tukey_location, "x:f32[G,N,C] scale:f32+[G,C]", "G=2000 N=333 C=48", small="G=3 N=33 C=8"
    )
    yield from sized(d, s.capped_simplex_bisection, "x:f32[B,N] cap:f32+[N]", "B=16384 N=1537", small="B=5 N=57")
