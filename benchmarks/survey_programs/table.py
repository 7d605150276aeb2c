"""The survey's programs, one row a formula: its domain, arguments and sizes. Written before any was tuned for."""

from __future__ import annotations

from collections.abc import Iterator

from survey_programs import cnn as c
from survey_programs import images as i
from survey_programs import losses as l
from survey_programs import optimisers as o
from survey_programs import quantisation as q
from survey_programs import recurrent as r
from survey_programs import slices as v
from survey_programs import statistic as s
from survey_programs import transformer as t
from survey_programs.planes import planes
from survey_programs.product_table import products
from survey_programs.program import Program, sized
from survey_programs.reductions import reductions
from survey_programs.unseen.table import programs as unseen

ROWS_OF = "x:bf16[R,C]"
SAVED = "mean:f32[R,1] rstd:f32+[R,1]"
ADAM = "p:f32[R,C] g:bf16[R,C] m:f32[R,C] v:f32+[R,C]"
LAST, FIRST = "x:bf16[N,S,C] w:f32[C] b:f32[C]", "x:bf16[N,C,S] w:f32[C] b:f32[C]"
RESNET = ("N=64 S=3136 C=64", "N=64 S=784 C=512", "N=128 S=49 C=2048")
STATE = "state:f32[N,H,D,E]"


def transformer() -> Iterator[Program]:
    """Rows of hidden states, heads and scores."""
    d = "transformer"
    llama, long = "R=8192 C=4096", "R=2048 C=16384"
    yield from sized(d, t.rms_norm, f"{ROWS_OF} w:f32[C]", llama, "R=16384 C=768", torch=t.torch_rms_norm)
    yield from sized(d, t.layer_norm, f"{ROWS_OF} w:f32[C] b:f32[C]", "R=8192 C=5120", torch=t.torch_layer_norm)
    yield from sized(d, t.residual_rms_norm, f"{ROWS_OF} r:bf16[R,C] w:bf16[C]", llama, "R=4096 C=8192", "R=16 C=8192")
    yield from sized(d, t.residual_layer_norm, f"{ROWS_OF} r:bf16[R,C] w:f32[C] b:f32[C]", "R=16384 C=1600", long)
    yield from sized(
        d, t.dropout_residual_layer_norm, f"{ROWS_OF} r:bf16[R,C] mask:bool[R,C] w:f32[C] b:f32[C]", "R=16384 C=1024"
    )
    yield from sized(d, t.bias_dropout_residual, f"{ROWS_OF} b:bf16[C] r:bf16[R,C] mask:bool[R,C]", "R=16384 C=1024")
    yield from sized(d, t.rms_norm_int8, f"{ROWS_OF} w:f32[C]", llama, "R=4096 C=8192")
    yield from sized(d, t.residual_rms_norm_float8, f"{ROWS_OF} r:bf16[R,C] w:f32[C]", llama)
    yield from sized(d, t.gated_rms_norm, f"{ROWS_OF} z:bf16[R,C] w:f32[C]", "R=8192 C=5120")
    yield from sized(
        d,
        t.adaptive_layer_norm,
        "x:bf16[N,T,C] shift:f32[N,C] scale:f32[N,C]",
        "N=64 T=256 C=1152",
        "N=4 T=4096 C=3072",
    )
    yield from sized(d, t.rms_norm_backward, f"dy:bf16[R,C] {ROWS_OF} w:f32[C] rstd:f32+[R,1]", llama, "R=65536 C=1024")
    yield from sized(
        d, t.residual_rms_norm_backward, f"dy:bf16[R,C] dr:bf16[R,C] {ROWS_OF} w:f32[C] rstd:f32+[R,1]", "R=4096 C=8192"
    )
    yield from sized(d, t.layer_norm_backward, f"dy:bf16[R,C] {ROWS_OF} w:f32[C] {SAVED}", "R=16384 C=768", long)
    yield from sized(
        d, t.dropout_layer_norm_backward, f"dy:bf16[R,C] {ROWS_OF} mask:bool[R,C] w:f32[C] {SAVED}", "R=16384 C=1024"
    )
    gates = "gate:bf16[R,C] up:bf16[R,C]"
    yield from sized(d, t.swiglu, gates, "R=4096 C=14336", "R=64 C=14336")
    yield from sized(d, t.swiglu_backward, f"dy:bf16[R,C] {gates}", "R=4096 C=14336")
    yield from sized(d, t.swiglu_float8, gates, "R=4096 C=14336")
    yield from sized(d, t.geglu_tanh, gates, "R=8192 C=9216")
    yield from sized(d, t.bias_gelu, f"{ROWS_OF} b:f32[C]", "R=8192 C=5120")
    yield from sized(d, t.bias_gelu_backward, f"dy:bf16[R,C] {ROWS_OF} b:f32[C]", "R=8192 C=5120")
    yield from sized(d, t.squared_relu, ROWS_OF, "R=8192 C=14336")
    scores = "x:bf16[N,Q,K]"
    yield from sized(d, t.softmax, ROWS_OF, "R=8192 C=128256", "R=32768 C=2048", torch=t.torch_softmax)
    yield from sized(d, t.softmax, ROWS_OF, "R=1048576 C=64", "R=16 C=1048576", torch=t.torch_softmax)
    yield from sized(d, t.masked_softmax, f"{scores} mask:bool[Q,K]", "N=32 Q=2048 K=2048", "N=192 Q=512 K=512")
    yield from sized(d, t.additive_mask_softmax, "x:bf16[B,H,Q,K] bias:f32[B,1,1,K]", "B=16 H=16 Q=512 K=512")
    yield from sized(d, t.soft_capped_softmax, scores, "N=16 Q=2048 K=4096")
    yield from sized(d, t.alibi_softmax, "x:bf16[B,H,Q,K] slope:f32+[H] position:f32~[K]", "B=2 H=32 Q=1024 K=1024")
    yield from sized(d, t.dropout_softmax, f"{scores} mask:bool[N,Q,K]", "N=64 Q=1024 K=1024")
    yield from sized(d, t.softmax_backward, "dy:bf16[N,Q,K] y:bf16[N,Q,K]", "N=32 Q=2048 K=2048", "N=8 Q=512 K=32000")
    half = "left:bf16[R,H,D] right:bf16[R,H,D] cos:f32[R,D] sin:f32[R,D]"
    yield from sized(d, t.rotary_halves, half, "R=8192 H=32 D=64")
    yield from sized(d, t.rotary_matrices, "x:bf16[R,H,2,D] turn:f32[R,2,2,D]", "R=8192 H=32 D=64")
    yield from sized(d, t.head_norm, "q:bf16[R,H,D] w:f32[D]", "R=8192 H=32 D=128")
    yield from sized(d, t.router, "logits:bf16[R,E]", "R=32768 E=128", "R=8192 E=8")
    yield from sized(d, t.combine_experts, "y:bf16[R,E,C] weight:f32[R,E]", "R=4096 E=8 C=4096")
    yield from sized(d, t.masked_mean_pool, "x:bf16[N,T,C] mask:bool[N,T]", "N=128 T=512 C=1024")


def losses() -> Iterator[Program]:
    """Rows of logits, and elementwise ones."""
    d = "losses"
    labelled = "logits:bf16[R,V] target:i32<V[R] ids:i32~[V]"
    yield from sized(
        d, l.cross_entropy, labelled, "R=8192 V=32000", "R=2048 V=128256", "R=65536 V=1000", torch=l.torch_cross_entropy
    )
    yield from sized(d, l.cross_entropy_backward, labelled, "R=8192 V=32000", "R=2048 V=128256")
    yield from sized(d, l.smoothed_z_loss, labelled, "R=4096 V=50304")
    yield from sized(d, l.soft_target_loss, "logits:bf16[R,V] soft:bf16+[R,V]", "R=8192 V=1000", "R=2048 V=32000")
    yield from sized(d, l.distillation, "student:bf16[R,V] teacher:bf16[R,V]", "R=2048 V=32000", "R=16384 V=1000")
    yield from sized(d, l.contrastive, "similarity:bf16[R,C] same:bool[R,C]", "R=8192 C=8192")
    pair = "y:bf16[R,C] target:bf16[R,C]"
    yield from sized(d, l.mean_squared, pair, "R=8192 C=4096", "R=512 C=1024")
    yield from sized(d, l.mean_squared_backward, f"{pair} scale:f32[1]", "R=8192 C=4096")
    yield from sized(d, l.huber, pair, "R=8192 C=4096")
    yield from sized(d, l.binary_cross_entropy, "logits:bf16[R,C] target:bf16+[R,C]", "R=16384 C=2048")
    yield from sized(d, l.focal, "logits:bf16[R,C] target:bool[R,C]", "R=1000000 C=80")
    yield from sized(d, l.dice, "logits:bf16[N,C,H,W] target:bool[N,C,H,W]", "N=16 C=21 H=384 W=384")
    three = "y:bf16[R,C] target:bf16[R,C] log_var:bf16[R,C]"
    yield from sized(d, l.gaussian_likelihood, three, "R=8192 C=2048")
    yield from sized(d, l.triplet, "anchor:bf16[R,C] near:bf16[R,C] far:bf16[R,C]", "R=32768 C=768")
    tokens = "new:f32[N,T] old:f32[N,T] advantage:f32[N,T] mask:bool[N,T]"
    yield from sized(d, l.clipped_policy, tokens, "N=1024 T=2048", "N=4096 T=4096")
    yield from sized(d, l.cosine_loss, "x:bf16[R,C] y:bf16[R,C]", "R=32768 C=1024")
    yield from sized(d, l.variational, "mean:bf16[R,C] log_var:bf16[R,C] noise:bf16[R,C]", "R=65536 C=512")


def optimisers() -> Iterator[Program]:
    """One parameter, a layer's weights or all of a model in one array."""
    d, layer, flat, small = "optimisers", "R=14336 C=4096", "R=1 C=50000000", "R=768 C=768"
    yield from sized(d, o.sgd, "p:f32[R,C] g:f32[R,C]", layer)
    yield from sized(d, o.sgd_momentum, "p:f32[R,C] g:f32[R,C] m:f32[R,C]", layer, small)
    yield from sized(d, o.nesterov, "p:f32[R,C] g:bf16[R,C] m:f32[R,C]", layer)
    yield from sized(d, o.adamw, ADAM, layer, small)
    yield from sized(d, o.adamw_master, ADAM, layer, flat)
    yield from sized(d, o.adamw_half_states, "p:bf16[R,C] g:bf16[R,C] m:bf16[R,C] v:bf16+[R,C]", layer)
    yield from sized(
        d, o.adamw_byte_states, "p:f32[R,C] g:bf16[R,C] m:i8[R,C] m_scale:f32+[R,1] v:f32+[R,C]", "R=131072 C=256"
    )
    yield from sized(d, o.lion, "p:f32[R,C] g:bf16[R,C] m:f32[R,C]", layer)
    yield from sized(d, o.rms_prop, "p:f32[R,C] g:f32[R,C] v:f32+[R,C]", layer)
    yield from sized(d, o.adagrad, "p:f32[R,C] g:f32[R,C] total:f32+[R,C]", layer)
    yield from sized(d, o.adafactor_statistics, "g:bf16[R,C] row:f32+[R] column:f32+[C]", layer, "R=4096 C=4096")
    yield from sized(d, o.adafactor_update, "p:f32[R,C] g:bf16[R,C] row:f32+[R] column:f32+[C]", layer, small)
    yield from sized(d, o.adafactor, "p:f32[R,C] g:bf16[R,C] row:f32+[R] column:f32+[C]", "R=4096 C=4096")
    yield from sized(d, o.lamb, "p:f32[R,C] g:f32[R,C] m:f32[R,C] v:f32+[R,C]", "R=4096 C=4096", "R=1024 C=1024")
    yield from sized(d, o.lamb_norms, "p:f32[R,C] g:f32[R,C] m:f32[R,C] v:f32+[R,C]", layer)
    yield from sized(d, o.clip_by_norm, "g:bf16[R,C]", layer, small)
    yield from sized(d, o.clip_rows, "g:f32[R,C]", "R=4096 C=4096")
    yield from sized(d, o.unscale, "g:f16[R,C] scale:f32[1]", layer)
    yield from sized(d, o.accumulate, "total:f32[R,C] g:bf16[R,C]", layer)
    yield from sized(d, o.moving_average, "average:f32[R,C] p:f32[R,C]", layer)
    yield from sized(d, o.weight_norm, "v:f32[R,C] gain:f32[R]", "R=4096 C=4608")
    yield from sized(d, o.newton_schulz_step, "x:bf16[R,C] gram:bf16[R,R]", "R=1024 C=4096", flops="2*R*R*R+2*R*R*C")


def cnn() -> Iterator[Program]:
    """Layers of ResNet, diffusion's U-Net, ConvNeXt and EfficientNet."""
    d, unet = "cnn", "N=16 G=32 D=10 S=4096"
    yield from sized(d, c.batch_norm_last, LAST, *RESNET)
    yield from sized(d, c.batch_norm_first, FIRST, *RESNET)
    yield from sized(d, c.batch_norm_relu_last, "x:bf16[N,S,C] r:bf16[N,S,C] w:f32[C] b:f32[C]", RESNET[1])
    known = "mean:f32[C] var:f32+[C] w:f32[C] b:f32[C]"
    yield from sized(d, c.batch_norm_inference_last, f"x:bf16[N,S,C] r:bf16[N,S,C] {known}", "N=64 S=3136 C=256")
    yield from sized(d, c.batch_norm_inference_first, f"x:bf16[N,C,S] {known}", "N=64 S=3136 C=256", RESNET[2])
    saved = "w:f32[C] mean:f32[C] rstd:f32+[C]"
    yield from sized(d, c.batch_norm_backward_last, f"dy:bf16[N,S,C] x:bf16[N,S,C] {saved}", *RESNET)
    yield from sized(d, c.batch_norm_backward_first, f"dy:bf16[N,C,S] x:bf16[N,C,S] {saved}", *RESNET[:2])
    yield from sized(
        d, c.batch_norm_relu_backward_last, f"dy:bf16[N,S,C] y:bf16[N,S,C] x:bf16[N,S,C] {saved}", RESNET[1]
    )
    yield from sized(d, c.group_norm_last, "x:bf16[N,S,G,D] w:f32[G,D] b:f32[G,D]", unet, "N=8 G=32 D=16 S=1024")
    first = "x:bf16[N,G,D,S] w:f32[G,D] b:f32[G,D]"
    yield from sized(d, c.group_norm_first, first, unet, "N=8 G=32 D=40 S=256")
    yield from sized(d, c.group_norm_silu_first, first, unet)
    yield from sized(
        d,
        c.group_norm_backward_first,
        "dy:bf16[N,G,D,S] x:bf16[N,G,D,S] w:f32[G,D] mean:f32[N,G,1,1] rstd:f32+[N,G,1,1]",
        unet,
    )
    yield from sized(
        d,
        c.group_norm_backward_last,
        "dy:bf16[N,S,G,D] x:bf16[N,S,G,D] w:f32[G,D] mean:f32[N,1,G,1] rstd:f32+[N,1,G,1]",
        unet,
    )
    yield from sized(d, c.instance_norm_first, "x:bf16[N,C,S]", "N=32 C=128 S=16384", "N=64 C=512 S=784")
    yield from sized(d, c.instance_norm_last, "x:bf16[N,S,C]", "N=32 S=16384 C=128")
    yield from sized(
        d, c.adaptive_instance_norm_first, "x:bf16[N,C,S] scale:f32[N,C] shift:f32[N,C]", "N=32 C=512 S=4096"
    )
    yield from sized(
        d,
        c.instance_norm_backward_first,
        "dy:bf16[N,C,S] x:bf16[N,C,S] mean:f32[N,C,1] rstd:f32+[N,C,1]",
        "N=32 C=128 S=16384",
    )
    yield from sized(d, c.layer_norm_first, FIRST, "N=64 S=3136 C=96", "N=64 S=196 C=768")
    yield from sized(d, c.layer_norm_last, LAST, "N=64 S=3136 C=96", "N=64 S=196 C=768")
    yield from sized(
        d,
        c.layer_norm_backward_first,
        "dy:bf16[N,C,S] x:bf16[N,C,S] w:f32[C] mean:f32[N,1,S] rstd:f32+[N,1,S]",
        "N=64 S=3136 C=96",
    )
    yield from sized(d, c.channel_statistics_last, "x:bf16[N,S,C]", RESNET[0], RESNET[2])
    yield from sized(d, c.channel_statistics_first, "x:bf16[N,C,S]", RESNET[0], RESNET[2])
    yield from sized(d, c.squeeze_last, "x:bf16[N,S,C]", "N=128 S=3136 C=96", "N=128 S=49 C=1280")
    yield from sized(d, c.excite_last, "x:bf16[N,S,C] gate:f32[N,C]", "N=128 S=784 C=240")
    bottleneck = "down:bf16[C,M] up:bf16[M,C]"
    yield from sized(d, c.squeeze_excite_last, f"x:bf16[N,S,C] {bottleneck}", "N=128 S=784 C=256 M=64")
    yield from sized(d, c.squeeze_excite_first, f"x:bf16[N,C,S] {bottleneck}", "N=128 C=512 M=32 S=784")
    yield from sized(d, c.excite_backward_last, "dy:bf16[N,S,C] x:bf16[N,S,C] gate:f32[N,C]", "N=128 S=784 C=240")
    yield from sized(d, c.average_pool_last, "x:bf16[N,H,2,W,2,C]", "N=32 H=56 W=56 C=256")
    yield from sized(d, c.max_pool_first, "x:bf16[N,C,H,2,W,2]", "N=32 C=64 H=112 W=112")
    yield from sized(d, c.global_max_pool_last, "x:bf16[N,S,C]", "N=256 S=196 C=1024")
    yield from sized(d, c.bias_relu_first, "x:bf16[N,C,S] b:bf16[C]", "N=64 C=256 S=3136")
    yield from sized(d, c.bias_relu_backward_first, "dy:bf16[N,C,S] y:bf16[N,C,S]", "N=64 C=256 S=3136")
    yield from sized(d, c.hard_swish, "x:bf16[N,S,C]", "N=128 S=3136 C=64")
    yield from sized(d, c.weight_standardisation, "w:f32[R,C] gain:f32[R]", "R=2048 C=4608")
    yield from sized(d, c.global_response_norm_last, LAST, "N=64 S=784 C=768")
    yield from sized(d, c.gram_matrix, "features:bf16[N,C,S]", "N=16 C=256 S=16384", flops="2*N*C*C*S")


def quantisation() -> Iterator[Program]:
    """Activations, weights and caches in bytes."""
    d, wide, tall = "quantisation", "R=4096 C=14336", "R=32768 C=1024"
    yield from sized(d, q.int8_by_tensor, ROWS_OF, wide, "R=1024 C=4096")
    yield from sized(d, q.int8_by_row, ROWS_OF, wide, tall)
    yield from sized(d, q.int8_by_column, ROWS_OF, wide, tall)
    yield from sized(d, q.int8_by_block, "x:bf16[R,B,D]", "R=4096 B=448 D=32", "R=4096 B=112 D=128")
    yield from sized(d, q.int8_asymmetric_by_row, ROWS_OF, wide)
    yield from sized(d, q.float8_by_tensor, ROWS_OF, wide)
    yield from sized(d, q.float8_by_row, ROWS_OF, wide)
    yield from sized(d, q.float8_by_column, ROWS_OF, wide)
    yield from sized(d, q.float8_by_block, "x:bf16[R,B,D]", "R=4096 B=448 D=32", "R=4096 B=112 D=128")
    yield from sized(d, q.float8_by_square, "x:bf16[A,128,B,128]", "A=112 B=32", small="A=2 B=1")
    yield from sized(d, q.float8_known_scale, f"{ROWS_OF} scale:f32[1]", wide)
    yield from sized(d, q.float8_both_ways, f"{ROWS_OF} scale:f32[1]", "R=8192 C=4096")
    yield from sized(d, q.power_of_two_blocks, "x:bf16[R,B,32]", "R=4096 B=448")
    yield from sized(d, q.dequantised, "q:i8[R,C] scale:f32+[R,1]", wide)
    yield from sized(d, q.dequantised, "q:i8[R,C] scale:f32+[C]", tall, label="dequantised columns")
    yield from sized(
        d, q.dequantised, "q:i8[R,B,D] scale:f32+[R,B,1]", "R=4096 B=112 D=128", label="dequantised blocks"
    )
    yield from sized(
        d, q.dequantised, "q:e4m3[R,B,D] scale:f32+[R,B,1]", "R=4096 B=448 D=32", label="dequantised float8"
    )
    yield from sized(d, q.dequantised_asymmetric, "q:i8[R,C] scale:f32+[R,1] zero:f32[R,1]", wide)
    yield from sized(d, q.gelu_int8, f"{ROWS_OF} b:f32[C]", "R=8192 C=5120")
    yield from sized(d, q.fake_quantised, ROWS_OF, wide)
    yield from sized(d, q.straight_through_backward, f"dy:bf16[R,C] {ROWS_OF} limit:f32+[C]", "R=8192 C=4096")
    yield from sized(d, q.cache_entry, "k:bf16[R,H,D] v:bf16[R,H,D]", "R=16384 H=8 D=128")
    flops = "2*M*N*K"
    weights = "x:bf16[M,K] w:i8[N,K] scale:f32+[N]"
    yield from sized(d, q.weight_only_int8, weights, "M=16 N=4096 K=4096", "M=2048 N=14336 K=4096", flops=flops)
    yield from sized(
        d,
        q.weight_only_blocks,
        "x:bf16[M,B*128] w:i8[N,B,128] scale:f32+[N,B,1]",
        "M=16 N=4096 B=32",
        "M=512 N=4096 B=32",
        flops="2*M*N*B*128",
        small="B=2",
    )
    scaled = "x_scale:f32+[M,1] w_scale:f32+[1,N]"
    yield from sized(
        d,
        q.int8_product,
        f"x:i8[M,K] w:i8[N,K] {scaled}",
        "M=2048 N=4096 K=4096",
        flops=flops,
        torch=q.torch_int8_product,
    )
    yield from sized(
        d,
        q.float8_product,
        f"x:e4m3[M,K] w:e4m3[N,K] {scaled}",
        "M=4096 N=4096 K=4096",
        "M=64 N=14336 K=4096",
        flops=flops,
        torch=q.torch_float8_product,
    )


def statistics() -> Iterator[Program]:
    """Of features, weights and histories."""
    d, tall, square = "statistics", "R=262144 C=128", "R=8192 C=4096"
    single = "x:f32[R,C]"
    yield from sized(d, s.covariance, ROWS_OF, "R=65536 C=512", flops="2*R*C*C")
    yield from sized(d, s.covariance_single, single, "R=16384 C=256", flops="2*R*C*C")
    yield from sized(d, s.batched_covariance, "x:bf16[N,R,C]", "N=256 R=512 C=64", flops="2*N*R*C*C")
    yield from sized(d, s.correlation, "x:f32[R,C] y:f32[R,C]", tall, square)
    yield from sized(d, s.standardise_columns, single, tall, square, "R=50000 C=512")
    yield from sized(d, s.standardise_rows, single, tall, square)
    yield from sized(d, s.standardise_all, single, square, "R=1024 C=1024")
    yield from sized(d, s.min_max_columns, single, square)
    yield from sized(d, s.centre_both, single, "R=8192 C=8192")
    yield from sized(d, s.moments, single, tall)
    yield from sized(d, s.weighted_mean, f"{ROWS_OF} w:f32+[R]", tall, square)
    yield from sized(d, s.weighted_moments, "x:f32[R,C] w:f32+[R]", tall)
    yield from sized(d, s.weighted_elements, f"{ROWS_OF} w:bf16+[R,C]", square)
    yield from sized(d, s.update_history, "x:f32[R,C] mean:f32[C] square:f32+[C]", "R=65536 C=256")
    yield from sized(d, s.discounted_history, "history:bf16[N,T,C] discount:f32+[T]", "N=256 T=1024 C=256")
    yield from sized(d, s.history_extremes, "history:bf16[N,T,C]", "N=1024 T=512 C=96")
    yield from sized(d, s.cumulative_histogram, "x:f32[R] edges:f32[C]", "R=4194304 C=64")
    yield from sized(d, s.squared_distances, "x:bf16[M,K] y:bf16[N,K]", "M=8192 N=8192 K=128", flops="2*M*N*K")
    yield from sized(d, s.gaussian_kernel, "x:bf16[M,K] y:bf16[N,K]", "M=8192 N=8192 K=64", flops="2*M*N*K")
    yield from sized(d, s.cosine_similarities, "x:bf16[M,K] y:bf16[N,K]", "M=4096 N=8192 K=768", flops="2*M*N*K")
    yield from sized(d, s.log_sum_exp_rows, single, square)
    yield from sized(d, s.log_sum_exp_columns, single, square, tall)
    yield from sized(d, s.entropy, "p:bf16+[R,C]", "R=8192 C=32000")
    yield from sized(d, s.softmax_axis_0, ROWS_OF, "R=8192 C=8192", "R=128 C=65536")
    yield from sized(d, s.softmax_axis_1, "x:bf16[N,T,C]", "N=64 T=1024 C=256")
    yield from sized(d, s.peak_scaled, "x:f32[A,B,C]", "A=64 B=1024 C=512")
    yield from sized(d, s.norm_scaled, "x:f32[R]", "R=67108864", "R=1048576")


def recurrent() -> Iterator[Program]:
    """Steps of a batch of sequences."""
    d, cell = "recurrent", "R=65536 C=512"
    gates = "i:bf16[R,C] f:bf16[R,C] g:bf16[R,C] o:bf16[R,C] c:f32[R,C]"
    layer = "x:bf16[M,K] h:bf16[M,N]"
    yield from sized(
        d, r.rnn_cell, f"{layer} w:bf16[N,K] u:bf16[N,N] b:bf16[N]", "M=1024 N=1024 K=1024", flops="2*M*N*K+2*M*N*N"
    )
    yield from sized(d, r.lstm_gates, gates, cell, "R=256 C=1024")
    yield from sized(d, r.lstm_gates_backward, f"dh:bf16[R,C] dc:f32[R,C] {gates} before:f32[R,C]", "R=32768 C=512")
    six = " ".join(f"{name}:bf16[R,C]" for name in ("xr", "xz", "xn", "hr", "hz", "hn", "h"))
    yield from sized(d, r.gru_gates, six, cell)
    yield from sized(d, r.minimal_gru, f"{layer} wz:bf16[N,K] wh:bf16[N,K]", "M=4096 N=1024 K=1024", flops="4*M*N*K")
    yield from sized(d, r.highway, "x:bf16[M,K] w:bf16[K,K] b:bf16[K] y:bf16[M,K]", "M=4096 K=1024", flops="2*M*K*K")
    yield from sized(
        d,
        r.state_space_step,
        "state:f32[R,C,16] x:bf16[R,C] dt:bf16[R,C] a:f32[C,16] b:f32[R,16] c:f32[R,16] d:f32[C]",
        "R=256 C=5120",
    )
    heads = "q:bf16[N,H,D] k:bf16[N,H,D] v:bf16[N,H,E]"
    yield from sized(
        d, r.state_space_heads, f"{STATE} x:bf16[N,H,D] decay:f32+[N,H] b:f32[N,E] c:f32[N,E]", "N=64 H=64 D=64 E=128"
    )
    yield from sized(d, r.linear_attention_step, f"{STATE} {heads}", "N=64 H=32 D=64 E=128")
    yield from sized(d, r.delta_rule_step, f"{STATE} {heads} beta:f32+[N,H]", "N=64 H=32 D=128 E=128")
    yield from sized(
        d,
        r.receptance_step,
        f"{STATE} r:bf16[N,H,D] k:bf16[N,H,D] v:bf16[N,H,E] w:bf16[N,H,D] u:f32[H,D]",
        "N=128 H=32 D=64 E=64",
    )
    yield from sized(d, r.gated_linear_unit_step, "h:f32[R,C] x:bf16[R,C] gate:bf16[R,C] decay:f32[C]", "R=8192 C=2560")
    yield from sized(d, r.causal_window, "window:bf16[R,C,4] w:f32[C,4] b:f32[C]", "R=2048 C=8192")
    yield from sized(
        d, r.retention_scores, "q:bf16[H,T,D] k:bf16[H,T,D] decay:f32+[H,T,T]", "H=16 T=2048 D=256", flops="2*H*T*T*D"
    )
    yield from sized(
        d, r.chunk_states, "k:bf16[N,T,D] v:bf16[N,T,E] decay:f32+[T]", "N=2048 T=64 D=128 E=128", flops="2*N*T*D*E"
    )


def images() -> Iterator[Program]:
    """Pictures, patches and transposes."""
    d, photo = "images", "N=64 H=512 W=512"
    colours = "mean:f32[3] scale:f32[3]"
    yield from sized(d, i.camera_to_network, f"x:i8[N,H,W,3] {colours}", photo)
    yield from sized(d, i.normalise_planes, f"x:i8[N,3,S] {colours}", "N=64 S=262144")
    yield from sized(d, i.network_to_camera, "y:bf16[N,3,H,W]", photo)
    yield from sized(d, i.grey, "x:i8[R,3] w:f32[3]", "R=16777216")
    yield from sized(d, i.grey_planes, "x:bf16[N,3,S] w:f32[3]", "N=64 S=262144")
    yield from sized(d, i.colour_matrix, "x:bf16[N,3,S] m:f32[3,3]", "N=64 S=262144")
    yield from sized(d, i.gamma, "x:f32+[N,3,S]", "N=32 S=262144")
    yield from sized(d, i.contrast, "x:bf16[N,3,S] factor:f32[N]", "N=64 S=262144", "N=256 S=50176")
    yield from sized(d, i.blend, "below:bf16[N,3,S] above:bf16[N,3,S] alpha:bf16[N,1,S]", "N=64 S=262144")
    yield from sized(d, i.vignette, "x:bf16[N,H,W] vertical:f32[H] horizontal:f32[W]", "N=96 H=1024 W=1024")
    yield from sized(d, i.tone_map, "x:f32+[N,H,W]", "N=16 H=1024 W=1024")
    yield from sized(d, i.block_similarity, "x:bf16[N,H,8,W,8] y:bf16[N,H,8,W,8]", "N=64 H=64 W=64")
    yield from sized(d, i.box_downsample, "x:i8[N,H,4,W,4,3]", "N=64 H=128 W=128")
    yield from sized(d, i.patches, "x:bf16[N,3,A,16,B,16]", "N=256 A=14 B=14")
    yield from sized(d, i.unpatched, "x:bf16[N,H,W,2,2,C]", "N=64 H=64 W=64 C=32")
    yield from sized(d, i.pixel_shuffle, "x:bf16[N,C,2,2,H,W]", "N=16 C=32 H=128 W=128")
    yield from sized(d, i.channels_last, "x:bf16[N,C,H,W]", "N=64 C=256 H=56 W=56", "N=64 C=3 H=512 W=512")
    yield from sized(d, i.channels_first, "x:bf16[N,H,W,C]", "N=64 H=56 W=56 C=256", "N=64 H=7 W=7 C=2048")
    yield from sized(d, i.split_heads, "x:bf16[N,T,H,D]", "N=64 T=1024 H=16 D=64", "N=4 T=4096 H=32 D=128")
    yield from sized(d, i.scaled_transpose, ROWS_OF, "R=8192 C=8192", "R=50000 C=513")
    yield from sized(d, i.scaled_transpose, "x:i8[R,C]", "R=16384 C=8192", label="scaled_transpose int8")
    yield from sized(d, i.symmetric, "x:bf16[R,R]", "R=8192")
    yield from sized(d, i.reversed_dimensions, "x:f32[A,B,C]", "A=256 B=512 C=256")
    yield from sized(d, i.narrowed_transpose, "x:f32[R,C]", "R=8192 C=4096")
    yield from sized(d, i.transposed_bias_relu, f"{ROWS_OF} b:bf16[R]", "R=4096 C=16384")
    yield from sized(d, i.add, f"{ROWS_OF} y:bf16[R,C]", "R=8192 C=8192")
    yield from sized(d, i.scale_and_shift, f"{ROWS_OF} row:bf16[C] column:bf16[R,1]", "R=8192 C=8192")
    yield from sized(d, i.mixed_types, f"{ROWS_OF} y:f32[R,C] z:i8[R,C]", "R=8192 C=4096")
    yield from sized(d, i.many_inputs, " ".join(f"{n}:bf16[R,C]" for n in "abcdef"), "R=8192 C=2048")


def slices() -> Iterator[Program]:
    """Slices of computed values, and reductions over pairs of rows."""
    d = "slices"
    yield from sized(
        d,
        v.packed_swiglu,
        "x:bf16[M,K] w:bf16[K,2*N]",
        "M=2048 K=4096 N=11008",
        "M=4096 K=1024 N=4096",
        "M=16 K=4096 N=14336",
        flops="4*M*N*K",
    )
    yield from sized(d, v.biased_glu, "x:bf16[R,2*C] b:f32[2*C]", "R=8192 C=4096")
    rotary = "cos:f32[T,D] sin:f32[T,D]"
    yield from sized(d, v.norm_rotary, f"x:bf16[B,H,T,2*D] w:f32[2*D] {rotary}", "B=8 H=32 T=2048 D=64")
    yield from sized(d, v.interleaved_rotary, f"x:bf16[B,H,T,2*D] {rotary}", "B=8 H=32 T=2048 D=64")
    whole = "cos:f32[T,2*D] sin:f32[T,2*D]"
    yield from sized(d, v.joined_rotary, f"x:bf16[B,H,T,2*D] {whole}", "B=8 H=32 T=2048 D=64")
    yield from sized(d, v.stacked_rotary, f"x:bf16[B,H,T,2*D] {rotary}", "B=8 H=32 T=2048 D=64")
    yield from sized(d, v.rotary_halves, f"x:bf16[B,H,T,2*D] w:f32[2*D] {rotary}", "B=8 H=32 T=2048 D=64")
    yield from sized(d, v.packed_swiglu_backward, "x:bf16[M,2*N] dy:bf16[M,N]", "M=8192 N=14336")
    images = "x:bf16[N,H,W,C] skip:bf16[N,H,W,S] w:f32[C+S] b:f32[C+S]"
    yield from sized(d, v.skip_connection, images, "N=8 H=64 W=64 C=640 S=320")
    yield from sized(d, v.appended_keys, "cache:bf16[B,H,T,D] keys:bf16[B,H,1,D]", "B=32 H=8 T=4096 D=128")
    yield from sized(d, v.token_shift, "x:bf16[N,T,C] mix:f32[C]", "N=8 T=2048 C=4096")
    yield from sized(d, v.laplace, "x:f32[R,C]", "R=8192 C=8192")
    yield from sized(d, v.sobel, "x:f32[N,H,W]", "N=16 H=1024 W=1024")
    yield from sized(d, v.heat, "u:f32[N,N,N]", "N=400")
    yield from sized(d, v.moving_average, "x:bf16[R,C]", "R=1024 C=65536")
    yield from sized(d, v.luminance, "x:f32[N,S,3]", "N=64 S=262144")
    yield from sized(d, v.taxicab, "x:f32[M,D] y:f32[N,D]", "M=1024 N=4096 D=256", "M=512 N=512 D=64")
    yield from sized(d, v.batched_distances, "x:f32[B,M,D] y:f32[B,N,D]", "B=64 M=128 N=128 D=512")
    yield from sized(d, v.max_plus, "x:f32[M,K] y:f32[K,N]", "M=1024 K=512 N=2048")
    yield from sized(d, v.divergences, "p:f32+[M,D] q:f32+[N,D]", "M=512 N=512 D=1000")
    yield from sized(d, v.additive_attention, "q:bf16[B,M,D] k:bf16[B,N,D] w:f32[D]", "B=32 M=64 N=256 D=512")
    yield from sized(d, v.forces, "x:f32[N,3] m:f32+[N]", "N=8192")
    yield from sized(d, v.overlaps, "a:f32+[M,4] b:f32+[N,4]", "M=4096 N=8192")
    yield from sized(d, v.decoded_boxes, "a:f32+[N,4] d:f32[N,4]", "N=4194304")
    yield from sized(d, v.colours, "x:f32[S,3] m:f32[3,3]", "S=8388608")


DOMAINS = (
    transformer,
    losses,
    optimisers,
    cnn,
    quantisation,
    statistics,
    recurrent,
    images,
    planes,
    slices,
    reductions,
    products,
)


def programs() -> list[Program]:
    """All of them, in the order of the table."""
    return [*(program for domain in DOMAINS for program in domain()), *unseen()]
