"""The programs of `unseen`, one row a formula: its arguments and sizes."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs.program import Program, sized
from survey_programs.unseen import attention as a
from survey_programs.unseen import geometry as q
from survey_programs.unseen import grids as g
from survey_programs.unseen import learning as l
from survey_programs.unseen import models as m
from survey_programs.unseen import outside as o
from survey_programs.unseen import transforms as t
from survey_programs.unseen.eighth import eighth
from survey_programs.unseen.fifth import fifth
from survey_programs.unseen.fourth import fourth
from survey_programs.unseen.seventh import seventh
from survey_programs.unseen.sixth import sixth
from survey_programs.unseen.third import third

PLANES = "N=16 H=1024 W=1024"
PAIRS = "I=384 K=384 C=128"


def programs() -> list[Program]:
    """All of them."""
    own = [*_grids(), *_models(), *_learning(), *_geometry(), *_outside(), *_transforms(), *_attention()]
    return [*own, *third(), *fourth(), *fifth(), *sixth(), *seventh(), *eighth()]


def _grids() -> Iterator[Program]:
    d = "unseen grids"
    yield from sized(d, g.gradient_rows, "x:f32[R,C]", "R=8192 C=4096")
    yield from sized(d, g.gradient_planes, "x:f32[N,H,W]", PLANES)
    yield from sized(d, g.edge_pad, "x:f32[N,H,W]", PLANES)
    yield from sized(d, g.box_blur_edge, "x:f32[N,H,W]", PLANES)
    yield from sized(d, g.zero_pad, "x:f32[N,H,W]", PLANES)
    yield from sized(d, g.periodic_laplace, "x:f32[R,C]", "R=4096 C=8192")
    yield from sized(d, g.differences, "x:f32[R,C]", "R=8192 C=4096")
    yield from sized(d, g.total_variation, "x:f32[N,H,W]", PLANES)
    yield from sized(d, g.haar, "x:f32[N,H,W]", PLANES)
    yield from sized(d, g.upsample_nearest, "x:bf16[N,H,W,C]", "N=16 H=64 W=64 C=256")
    yield from sized(d, g.max_pool, "x:bf16[N,H,W,C]", "N=64 H=112 W=112 C=64")
    yield from sized(d, g.avg_pool_overlap, "x:f32[N,H,W,C]", "N=64 H=57 W=57 C=128")
    yield from sized(d, g.sliding_norm, "x:f32[N,S,C]", "N=64 S=3025 C=96")
    yield from sized(d, g.moving_var, "x:f32[R,C]", "R=1024 C=16384")
    yield from sized(d, g.bilinear_upsample, "x:f32[N,H,W,C]", "N=8 H=64 W=64 C=128")
    yield from sized(d, g.hsv_value, "x:f32+[N,3]", "N=8388608")
    yield from sized(d, g.dilate, "x:f32[N,H,W]", "N=16 H=1024 W=1024")
    yield from sized(d, g.dct_blocks, "x:f32[N,P,8,Q,8] d:f32[8,8]", "N=16 P=128 Q=128")
    yield from sized(d, g.wave, "u:f32[N,N,N] v:f32[N,N,N]", "N=320")
    yield from sized(d, g.boltzmann, "f:f32+[9,H,W]", "H=2048 W=2048")
    yield from sized(d, g.life, "x:i8[H,W]", "H=8192 W=8192")
    yield from sized(d, g.mandelbrot, "cr:f32[N] ci:f32[N]", "N=16777216")
    yield from sized(d, g.ncc, "x:f32[N,H,W] y:f32[N,H,W]", "N=64 H=256 W=256")
    yield from sized(d, g.autocovariance, "x:f32[R,C]", "R=4096 C=4096")
    yield from sized(d, g.framed, "x:f32[N,T] win:f32[512]", "N=64 T=262144", small="T=1024")
    yield from sized(d, g.overlap_add, "f:f32[N,M,512]", "N=64 M=1023")
    yield from sized(d, g.upwind, "u:f32[R,C] a:f32[R,C]", "R=4096 C=4096")
    yield from sized(d, g.gray_scott, "u:f32[H,W] v:f32[H,W]", "H=4096 W=4096")
    yield from sized(d, g.jacobi, "x:f32[N,H,W] b:f32[N,H,W]", "N=16 H=1024 W=1024")
    yield from sized(d, g.unsharp, "x:f32[N,H,W]", "N=16 H=1024 W=1024")
    yield from sized(d, g.yuv_planes, "x:f32[N,S,3]", "N=64 S=262144")
    yield from sized(d, g.depth_to_space, "x:bf16[N,H,W,C]", "N=32 H=64 W=64 C=256")
    yield from sized(d, g.checker_mask, "x:f32[R,C] i:i32~[R] j:i32~[C]", "R=8192 C=4096")
    yield from sized(d, g.cumulative_four, "x:f32[R,C]", "R=4096 C=8192")


def _models() -> Iterator[Program]:
    d = "unseen models"
    yield from sized(d, m.shifted_tokens, "x:bf16[N,T,C] mix:f32[C]", "N=8 T=2048 C=4096")
    yield from sized(d, m.class_token, "x:bf16[N,T,C] c:bf16[1,1,C] pos:f32[T+1,C]", "N=128 T=196 C=1024")
    yield from sized(d, m.class_token_norm, "x:bf16[N,T,C] c:bf16[1,1,C] pos:f32[T+1,C] w:f32[C]", "N=128 T=196 C=1024")
    yield from sized(
        d, m.outer_mean, "a:bf16[S,I,C] b:bf16[S,I,C] m:f32[S,I,1]", "S=512 I=128 C=32", flops="2*S*I*I*C*C"
    )
    yield from sized(d, m.softmax_long, "x:bf16[R,C] t:f32[R,1]", "R=2048 C=50257", "R=1024 C=128256")
    yield from sized(d, m.group_query, "q:bf16[B,T,H,D] k:bf16[B,T,H//4,D]", "B=8 T=2048 H=32 D=128", small="H=8")
    yield from sized(d, m.hadamard_pairs, "x:bf16[R,C]", "R=16384 C=4096")
    yield from sized(d, m.alibi_softmax, "s:bf16[B,H,T,T] slope:f32[H] pos:f32[T]", "B=2 H=16 T=2048")
    yield from sized(d, m.rope_neox_partial, "x:bf16[B,H,T,D] cos:f32[T,D//8] sin:f32[T,D//8]", "B=8 H=32 T=2048 D=128")
    yield from sized(d, m.qkv_split_norm, "x:bf16[B,T,3,H,D] w:f32[D]", "B=8 T=2048 H=16 D=128")
    yield from sized(d, m.geglu_back, "x:bf16[M,2*N] dy:bf16[M,N]", "M=8192 N=5120")
    yield from sized(d, m.causal_mean, "x:bf16[N,T,C] mask:f32+[N,T]", "N=64 T=512 C=1024")
    yield from sized(d, m.layer_scale_pool, "x:bf16[N,H,W,C] g:f32[C]", "N=128 H=14 W=14 C=768")
    yield from sized(d, m.moe_combine, "y:bf16[T,K,C] w:f32[T,K]", "T=16384 K=8 C=2048")
    yield from sized(
        d, m.triangle_out, "z:bf16[I,K,C] gz:bf16[I,K,C] w:bf16[I,K,C] gw:bf16[I,K,C]", PAIRS, flops="2*I*I*K*C"
    )
    yield from sized(d, m.plain_triangle, "a:bf16[I,K,C] b:bf16[I,K,C]", PAIRS, flops="2*I*I*K*C")
    yield from sized(d, m.triangle_of_planes, "a:bf16[C,I,K] b:bf16[C,I,K]", PAIRS, flops="2*I*I*K*C")
    yield from sized(d, m.triangle_norm, "a:bf16[I,K,C] b:bf16[I,K,C] w:f32[C]", PAIRS, flops="2*I*I*K*C")
    yield from sized(d, m.norm_project, "x:bf16[M,K] g:f32[K] w:bf16[K,N]", "M=2048 K=4096 N=1024", flops="2*M*N*K")
    yield from sized(d, m.cosine_matrix, "x:bf16[M,K] y:bf16[N,K]", "M=4096 N=4096 K=512", flops="2*M*N*K")
    yield from sized(d, m.squeeze_excite, "x:bf16[N,H,W,C] w1:f32[C,R] w2:f32[R,C]", "N=64 H=28 W=28 C=512 R=32")
    yield from sized(d, m.int4_dequant, "p:i8[N,K] s:f32[N,K//64]", "N=4096 K=2048")
    yield from sized(d, m.weight_standard, "w:f32[3,3,I,O]", "I=512 O=512")
    yield from sized(d, m.clip_logits, "x:bf16[M,K] y:bf16[M,K] scale:f32[1,1]", "M=8192 K=512", flops="2*M*M*K")
    yield from sized(d, m.gqa_scores, "q:bf16[B,H,T,D] k:bf16[B,H//4,T,D]", "B=4 H=32 T=512 D=64", flops="2*B*H*T*T*D")
    yield from sized(
        d, m.gcn_layer, "a:f32+[N,N] x:bf16[N,F] w:bf16[F,G]", "N=4096 F=512 G=256", flops="2*N*F*G+2*N*N*G"
    )
    yield from sized(d, m.moe_gate, "x:bf16[T,C] w:bf16[C,E]", "T=16384 C=2048 E=64", flops="2*T*C*E")
    yield from sized(d, m.soft_capped, "q:bf16[B,T,D] k:bf16[B,T,D] pos:f32[T]", "B=32 T=1024 D=64", flops="2*B*T*T*D")
    yield from sized(d, m.fake_quant, "x:f32[R,C]", "R=8192 C=4096")
    yield from sized(d, m.quant_linear, "x:bf16[M,K] w:i8[K,N] sw:f32[N]", "M=2048 N=4096 K=4096", flops="2*M*N*K")
    yield from sized(d, m.interaction, "e:bf16[B,F,D]", "B=8192 F=27 D=128", flops="2*B*F*F*D")
    yield from sized(d, m.token_stats, "x:bf16[N,T,C] mask:bool[N,T]", "N=64 T=512 C=1024")
    yield from sized(
        d, m.score_matmul_mask, "q:bf16[B,T,D] k:bf16[B,T,D] m:bool[T,T]", "B=64 T=1024 D=64", flops="2*B*T*T*D"
    )
    yield from sized(
        d, m.attention, "q:bf16[B,T,D] k:bf16[B,T,D] v:bf16[B,T,D] mask:f32[T,T]", "B=64 T=512 D=64", flops="4*B*T*T*D"
    )
    yield from sized(
        d,
        m.lstm_cell,
        "x:bf16[B,I] h:bf16[B,N] c:f32[B,N] w:bf16[I,4*N] u:bf16[N,4*N] b:f32[4*N]",
        "B=512 I=1024 N=1024",
        flops="8*B*N*(I+N)",
    )
    yield from sized(
        d,
        m.mlp,
        "x:bf16[M,K] w1:bf16[K,H] b1:f32[H] w2:bf16[H,N] b2:f32[N]",
        "M=4096 K=1024 H=4096 N=1024",
        flops="2*M*H*(K+N)",
    )
    yield from sized(
        d, m.lora, "x:bf16[M,K] w:bf16[K,N] a:bf16[K,16] b:bf16[16,N]", "M=4096 K=4096 N=4096", flops="2*M*N*K"
    )
    yield from sized(
        d, m.linear_attention, "q:f32[B,T,D] k:f32[B,T,D] v:f32[B,T,D]", "B=64 T=1024 D=64", flops="4*B*T*D*D"
    )
    yield from sized(
        d, m.swiglu_mlp, "x:bf16[M,K] w1:bf16[K,H] w3:bf16[K,H] w2:bf16[H,K]", "M=2048 K=2048 H=5632", flops="6*M*H*K"
    )
    yield from sized(
        d,
        m.rwkv_mix,
        "x:bf16[N,T,C] last:bf16[N,C] mk:f32[C] mv:f32[C] mr:f32[C] wk:bf16[C,C] wv:bf16[C,C] wr:bf16[C,C]",
        "N=4 T=1024 C=2048",
        flops="6*N*T*C*C",
    )
    yield from sized(
        d,
        m.path_features,
        "a:bf16[B,I,D] b:bf16[B,I,D] w:bf16[D,D]",
        "B=32 I=512 D=256",
        flops="2*B*I*D*D+2*B*I*I*D",
    )
    yield from sized(
        d,
        m.bn_relu_backward,
        "x:f32[N,H,W,C] dy:f32[N,H,W,C] w:f32[C] b:f32[C] mean:f32[C] rstd:f32+[C]",
        "N=64 H=28 W=28 C=256",
    )


def _learning() -> Iterator[Program]:
    d = "unseen learning"
    yield from sized(
        d, l.ppo, "lp:f32[N] old:f32[N] adv:f32[N] v:f32[N] ret:f32[N] ent:f32[N]", "N=262144", "N=8388608"
    )
    yield from sized(d, l.stats_of_three, "x:f32[R,C] y:f32[R,C] z:f32[R,C]", "R=4096 C=4096")
    yield from sized(d, l.row_stats_of_two, "x:f32[R,C] y:f32[R,C]", "R=8192 C=4096", "R=512 C=1024")
    yield from sized(d, l.column_stats_of_two, "x:f32[R,C] y:f32[R,C]", "R=8192 C=4096", "R=512 C=1024")
    yield from sized(d, l.grad_norms, "a:f32[M,N] b:f32[M] c:f32[M,K]", "M=4096 N=1024 K=4096")
    yield from sized(d, l.kl_distill, "s:bf16[R,C] t:bf16[R,C]", "R=2048 C=50257", "R=2048 C=32000")
    yield from sized(d, l.sinkhorn_step, "k:f32+[M,N] u:f32+[M]", "M=4096 N=4096")
    yield from sized(d, l.cosine_sim, "a:bf16[R,C] b:bf16[R,C]", "R=65536 C=768")
    yield from sized(d, l.ema_update, "p:f32[N] e:f32[N] decay:f32[1]", "N=33554432")
    yield from sized(d, l.rmse_rows_cols, "x:bf16[R,C] y:bf16[R,C]", "R=8192 C=8192")
    yield from sized(d, l.focal, "x:f32[N,S] y:f32+[N,S]", "N=64 S=262144")
    yield from sized(d, l.dice, "x:f32[N,H,W] y:f32+[N,H,W]", "N=32 H=512 W=512")
    yield from sized(d, l.instance_whiten, "x:f32[N,C,S]", "N=64 C=32 S=4096", flops="2*N*C*C*S")
    yield from sized(d, l.tri_stats, "x:f32[R,C]", "R=32768 C=1024", "R=1024 C=32768")
    yield from sized(d, l.info_nce, "x:bf16[M,K] y:bf16[M,K]", "M=4096 K=512", flops="2*M*M*K")
    yield from sized(d, l.kmeans_min, "x:f32[M,K] c:f32[N,K]", "M=65536 N=256 K=64", flops="2*M*N*K")
    yield from sized(d, l.rbf, "x:f32[M,K] y:f32[N,K]", "M=4096 N=4096 K=64", flops="2*M*N*K")
    yield from sized(d, l.mixture, "x:f32[N,D] mu:f32[K,D] ls:f32[K,D]", "N=65536 K=32 D=16")
    yield from sized(d, l.log_mel, "re:f32[T,F] im:f32[T,F] mel:f32+[F,M]", "T=16384 F=513 M=80", flops="2*T*F*M")
    yield from sized(d, l.gemv, "a:bf16[M,K] x:bf16[K]", "M=14336 K=4096")
    yield from sized(d, l.bilinear, "x:bf16[M,K] a:bf16[K,N] y:bf16[M,N]", "M=8192 K=256 N=256", flops="2*M*N*K")
    yield from sized(d, l.batched_gemv, "a:bf16[B,M,K] x:bf16[B,K]", "B=256 M=512 K=512")
    yield from sized(d, l.power_step, "a:f32[N,N] v:f32[N]", "N=8192")
    yield from sized(d, l.black_scholes, "s:f32+[N] k:f32+[N] t:f32+[N] v:f32+[N]", "N=8388608")
    yield from sized(d, l.tf_idf, "c:f32+[D,W]", "D=8192 W=4096")
    yield from sized(d, l.pagerank, "m:bf16[N,N] r:f32[N]", "N=8192")
    yield from sized(d, l.smoothed_loss, "x:bf16[R,C] y:bool[R,C]", "R=4096 C=10000")
    yield from sized(d, l.normalised_adamw, "p:f32[M,N] g:f32[M,N] m:f32[M,N] v:f32+[M,N]", "M=4096 N=4096")
    yield from sized(d, l.muon_step, "x:bf16[M,N]", "M=1024 N=4096", flops="4*M*M*N+2*M*M*M")
    yield from sized(d, l.logistic_gradient, "x:f32[N,D] w:f32[D] y:f32[N]", "N=65536 D=512")
    yield from sized(d, l.mahalanobis, "x:f32[N,D] mu:f32[D] s:f32[D,D]", "N=65536 D=64", flops="2*N*D*D")
    yield from sized(d, l.correlation, "x:f32[N,D]", "N=16384 D=512", flops="2*N*D*D")
    yield from sized(d, l.responsibilities, "x:f32[N,D] mu:f32[K,D] w:f32[K]", "N=65536 D=64 K=64", flops="4*N*D*K")
    yield from sized(d, l.kde, "x:f32[N] g:f32[G]", "N=65536 G=512")
    yield from sized(d, l.soft_histogram, "x:f32[N,S] c:f32[B]", "N=64 S=16384 B=32")
    yield from sized(d, l.huber, "x:f32[R,C] y:f32[R,C]", "R=8192 C=2048")
    yield from sized(d, l.triplet, "a:bf16[R,C] p:bf16[R,C] n:bf16[R,C]", "R=32768 C=512")
    yield from sized(d, l.lamb, "p:f32[M,N] g:f32[M,N] m:f32[M,N] v:f32+[M,N]", "M=4096 N=4096", "M=1024 N=1024")
    yield from sized(d, l.shampoo, "g:bf16[M,N] l:bf16[M,M] r:bf16[N,N]", "M=2048 N=2048", flops="4*M*M*N")
    yield from sized(d, l.polynomial, "x:f32[N]", "N=33554432")


def _geometry() -> Iterator[Program]:
    d = "unseen geometry"
    yield from sized(d, q.complex_mul, "a:f32[R,C,2] b:f32[R,C,2]", "R=4096 C=2048")
    yield from sized(
        d,
        q.complex_matmul,
        "ar:bf16[M,K] ai:bf16[M,K] br:bf16[K,N] bi:bf16[K,N]",
        "M=2048 K=2048 N=2048",
        flops="8*M*N*K",
    )
    yield from sized(d, q.quaternion, "q:f32[N,4] v:f32[N,3]", "N=4194304")
    yield from sized(d, q.kalman, "f:f32[N,4,4] p:f32[N,4,4] q:f32[4,4]", "N=262144")
    yield from sized(d, q.rotate, "r:f32[N,3,3] v:f32[N,3]", "N=2097152")
    yield from sized(d, q.cross, "a:f32[N,3] b:f32[N,3]", "N=4194304")
    yield from sized(d, q.to_matrix, "q:f32[N,4]", "N=2097152")


def _outside() -> Iterator[Program]:
    d = "unseen outside"
    yield from sized(d, o.determinant, "a:f32[N,3,3]", "N=2097152")
    yield from sized(d, o.unit_cross, "a:f32[N,3] b:f32[N,3]", "N=4194304")
    yield from sized(d, o.surface_normals, "p:f32[H,W,3]", "H=4096 W=4096")
    triangles = "v0:f32[N,3] v1:f32[N,3] v2:f32[N,3] o:f32[N,3] d:f32[N,3]"
    yield from sized(d, o.ray_triangle, triangles, "N=4194304")
    yield from sized(d, o.heston, "z:f32[N,2,T]", "N=1048576 T=16", small="T=4")
    yield from sized(d, o.returns, "x:f32+[T,N]", "T=8192 N=2048")
    yield from sized(d, o.moving_average, "x:f32[T,N] s:f32[N]", "T=32 N=1048576", small="T=6")
    yield from sized(d, o.hadamard, "x:f32[N,K]", "N=1048576 K=16", small="K=8")
    yield from sized(d, o.wavelet_packet, "x:f32[N,K]", "N=4096 K=4096", small="K=16")
    yield from sized(d, o.gram, "x:f32[N,K]", "N=2097152 K=8", "N=1048576 K=16", "N=262144 K=64", flops="2*N*K*K")
    yield from sized(d, o.least_squares, "x:f32[N,K] y:f32[N,1]", "N=1048576 K=17", flops="2*N*K*K+2*N*K")
    yield from sized(d, o.mixture_step, "x:f32[N,C] r:f32+[N,K]", "N=1048576 C=8 K=8", flops="4*N*C*K")
    classes = "x:f32[N,C] y:i32<V[N] c:i32~[V] w:f32[C,V]"
    yield from sized(d, o.softmax_regression, classes, "N=262144 C=64 V=5", flops="4*N*C*V")
    yield from sized(d, o.confusion, "a:bool[N,C] b:bool[N,C] w:f32+[N,1]", "N=16384 C=4096")
    yield from sized(d, o.row_and_column_sums, "x:f32[N,C]", "N=4194304 C=19")
    yield from sized(d, o.symmetric_matvec, "a:f32[N,N] v:f32[N]", "N=8192")
    yield from sized(d, o.moments, "x:f32[N,C]", "N=262144 C=128", "N=16777216 C=4")
    yield from sized(d, o.class_sums, "x:bf16[N,C,H,W]", "N=16 C=19 H=512 W=512")
    yield from sized(d, o.aces_tone_map, "x:f16+[N,H,W,3]", "N=16 H=1080 W=1920")


def _transforms() -> Iterator[Program]:
    d = "unseen second"
    turned = "re:f32[N,R,C] im:f32[N,R,C] wr:f32[R,C] wi:f32[R,C]"
    yield from sized(d, t.butterflies, turned, "N=4096 R=16 C=256")
    yield from sized(d, t.haar_levels, "x:f16[N,H,W]", "N=32 H=2048 W=1024", small="H=12")
    volumes = "u:f32[D,H,W] before:f32[D,H,W] speed:f32[D,H,W] damping:f32[W]"
    yield from sized(d, t.wave_step, volumes, "D=256 H=256 W=256", small="D=9 H=11 W=13")
    yield from sized(d, t.sign_bits, "x:f32[R,C] shift:i32~[8]", "R=8192 C=8192")
    yield from sized(d, t.volume_gradient, "x:f16[N,D,H,W]", "N=8 D=256 H=256 W=256", small="W=14")
    yield from sized(d, t.cosine_blocks, "x:f32[N,H,W]", "N=16 H=1024 W=1024", small="H=16 W=24")
    yield from sized(d, t.autocorrelation, "x:f32[R,C]", "R=1024 C=16384", small="C=41")
    yield from sized(d, t.histogram_entropy, "x:f32[R,C] edge:f32~[17]", "R=256 C=65536")
    yield from sized(d, t.half_chroma, "x:i8[N,H,W,3]", "N=16 H=1080 W=1920")
    yield from sized(d, t.group_quantised, "x:bf16[R,C]", "R=8192 C=8192", small="C=384")
    yield from sized(d, t.float8_rows_and_columns, "x:bf16[R,C]", "R=8192 C=4096")
    yield from sized(d, t.chunk_moments, "x:f32[R,C]", "R=16384 C=4096", small="C=96")
    yield from sized(d, t.softmax_of_two_axes, "x:f16[N,H,W,C]", "N=16 H=64 W=64 C=512")
    yield from sized(d, t.cholesky_solve, "m:f64[N,4,4] b:f64[N,4]", "N=524288")
    yield from sized(d, t.window_scores, "x:f32[R,C]", "R=2048 C=16384", small="C=101")
    yield from sized(d, t.unshuffled_norm, "x:f16[N,C,H,W] slope:f32[C,1,1]", "N=16 C=64 H=256 W=256", small="H=6")


def _attention() -> Iterator[Program]:
    d = "unseen second"
    heads = "[B,H,T,D]"
    queries = f"q:f16{heads} k:f16{heads} v:f16{heads} lse:f32+[B,H,T] do:f16{heads}"
    yield from sized(d, a.attention_backward, queries, "B=2 H=8 T=2048 D=64", flops="10*B*H*T*T*D")
    adapter = "x:f16[M,K] w:f16[K,N] a:f16[K,R] b:f16[R,N] r:f16[M,N] g:f16[N]"
    yield from sized(d, a.low_rank_norm, adapter, "M=4096 K=2048 N=2048 R=16", flops="2*M*(K*N+K*R+R*N)")
    groups = "q:bf16[B,T,H,D] k:bf16[B,T,H//4,D] cos:f32[T,D//2] sin:f32[T,D//2] g:bf16[D]"
    yield from sized(d, a.rotated_heads, groups, "B=4 T=2048 H=32 D=128", small="H=8")
    yield from sized(
        d,
        a.outer_mean_projected,
        "m:bf16[B,S,N,C] w:bf16[C*C,E]",
        "B=1 S=128 N=256 C=32 E=128",
        small="C=4",
        flops="2*B*N*N*C*C*(S+E)",
    )
    steps = "x:f32[B,T,C] dt:f32[B,T,C] a:f32+[C,N] b:f32[B,T,N] c:f32[B,T,N] d:f32[C]"
    yield from sized(d, a.state_space_scan, steps, "B=8 T=16 C=4096 N=16", small="T=5")
    units = "x:bf16[M,K] gate:bf16[K,N] up:bf16[K,N] g:bf16[K]"
    yield from sized(d, a.gated_units, units, "M=4096 K=4096 N=2048", flops="4*M*N*K")
    packed = "w:i8[N,K] s:f16[N,K//128] x:f16[M,K]"
    yield from sized(d, a.packed_weights, packed, "N=4096 K=8192 M=64", small="K=256", flops="4*M*N*K")
    windows = "qkv:f16[N,H,W,3,A,D] bias:f32[A,49,49]"
    yield from sized(
        d, a.window_attention, windows, "N=16 H=56 W=56 A=4 D=32", small="N=1 H=7 W=14", flops="4*N*H*W*49*A*D"
    )
    yield from sized(
        d, a.two_experts, "x:bf16[T,C] w:bf16[C,E] i:i32~[E]", "T=32768 C=2048 E=64", small="E=9", flops="2*T*C*E"
    )
    yield from sized(d, a.orthonormal_rows, "x:f32[N,K,D]", "N=65536 K=4 D=64")
    values = "q:f16[B,T,H,D] k:f16[B,T,H,D] v:f16[B,T,H,D]"
    yield from sized(d, a.kernel_attention, values, "B=8 T=4096 H=16 D=64", flops="4*B*T*H*D*D")
    yield from sized(d, a.softmax_backward_bias, "s:bf16[B,H,T,T] dp:bf16[B,H,T,T]", "B=4 H=16 T=1024")
