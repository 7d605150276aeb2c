"""The programs of `analytics` and `simulation`, of a seventh set by two authors who had not seen the others."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs.program import Program, sized
from survey_programs.unseen import analytics as a
from survey_programs.unseen import simulation as s


def seventh() -> Iterator[Program]:
    """All of them."""
    t = "unseen seventh"
    yield from sized(
        t,
        a.gspo_sequence_loss,
        "new:f32[P,G,T] old:f32[P,G,T] ref:f32[P,G,T] mask:bool[P,G,T] reward:f32[P,G]",
        "P=64 G=16 T=8192",
        small="P=3 G=5 T=70",
    )
    yield from sized(
        t,
        a.kan_bspline_layer,
        "x:f32[N,I] coefficients:f32[I*8,O] base:f32[I,O]",
        "N=32768 I=256 O=128",
        small="N=11 I=12 O=9",
        flops="18*N*I*O",
    )
    yield from sized(
        t,
        a.wanda_2_of_4,
        "w:bf16[O,I] x:bf16[T,I] lane:i32~[16]",
        "O=14336 I=4096 T=2048",
        small="O=13 I=48 T=21",
    )
    yield from sized(
        t,
        a.product_quantised_search,
        "codes:i8<K[N,M] levels:i8~[K] table:bf16[Q,M,K]",
        "N=524288 M=32 K=16 Q=64",
        small="N=90 M=4 K=16 Q=6",
        flops="2*N*M*K*Q",
    )
    yield from sized(
        t,
        a.color_jitter_flip,
        "image:i8[B,3,H,W] brightness:f32+[B] contrast:f32+[B] saturation:f32+[B] flipped:bool[B] mean:f32+[3] "
        "std:f32+[3]",
        "B=256 H=224 W=224",
        small="B=4 H=9 W=10",
    )
    yield from sized(
        t,
        a.pricing_summary,
        "quantity:f64+[N] price:f64+[N] discount:f64+[N] tax:f64+[N] flag:i8<F[N] status:i8<S[N] shipped:i32<Y[N]",
        "N=8000000 F=3 S=2 Y=2557",
        small="N=500 F=3 S=2 Y=2557",
    )
    yield from sized(t, a.sliding_range_van_herk, "close:f32[S,T]", "S=2048 T=16384", small="S=3 T=128")
    yield from sized(
        t, s.oklab_difference, "a:f16+[B,3,H,W] b:f16+[B,3,H,W]", "B=12 H=1080 W=1920", small="B=2 H=5 W=12"
    )
    yield from sized(
        t,
        s.raid6_pq_scrub,
        "disks:i32<V[K,S,N] p:i32<V[S,N] q:i32<V[S,N]",
        "K=10 S=4096 N=1024 V=2147483647",
        small="K=10 S=3 N=16 V=2147483647",
    )
    yield from sized(
        t,
        s.icp_point_to_plane,
        "src:f32[B,3,N] dst:f32[B,3,N] normal:f32[B,3,N] valid:bool[B,N]",
        "B=64 N=65536",
        small="B=3 N=24",
        flops="72*B*N",
    )
    yield from sized(
        t, s.dormand_prince_lorenz96, "y:f64[B,K] h:f64+[B] forcing:f64+[B]", "B=131072 K=40", small="B=5 K=12"
    )
    yield from sized(t, s.multigrid_two_level, "u:f32[N,M] f:f32[N,M]", "N=4096 M=4096", small="N=8 M=12")
    yield from sized(
        t,
        s.rtm_acoustic_step,
        "p:f32[Z+8,Y+8,X+8] prev:f32[Z,Y,X] vel:f32+[Z,Y,X] damp:f32+[Z] source:f32[Z,Y,X] image:f32[Z,Y,X]",
        "Z=160 Y=256 X=320",
        small="Z=4 Y=5 X=7",
    )
