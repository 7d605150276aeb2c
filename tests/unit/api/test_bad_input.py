"""What a user can get wrong through the Python API: one clear error, nothing half done."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.builder import Tensor, counterparts
from mlirfuse.errors import ArgumentError, DTypeError, PassError, PipelineError, ShapeError, TargetError, TraceError
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.target import target_of

X = np.ones((2, 3), np.float32)
Y = np.ones((2, 4), np.float32)
Z = np.zeros((2, 3), np.float32)


OTHERS = SimpleNamespace(__dlpack__=None)
"""Looks like an array of a framework that the interpreter does not know."""


def call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return mf.fuse(fn, target="interpret")(*args, **kwargs)


def call_into(fn: Callable[..., Any], x: np.ndarray, out: np.ndarray) -> Any:
    return mf.fuse(fn, target="interpret")(x, out=out)


def frozen() -> np.ndarray:
    array = X.copy()
    array.flags.writeable = False
    return array


def assign(x: Any) -> Any:
    x[0] = 1
    return x


def delete(x: Any) -> Any:
    del x[0]
    return x


def unknown_function(x: Any) -> Any:
    return mf.argmax(x)  # type: ignore[attr-defined]


def softmax(x: Any) -> Any:
    return mf.softmax(x)  # type: ignore[attr-defined]


OTHER_KEYWORDS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: mf.sum(x, dim=1),
    "mean": lambda x: x.mean(1, keepdim=True),
    "std": lambda x: mf.std(x, ddof=1),
}


def other_target(chip: str) -> mf.Target:
    return mf.Target(chip, ptx=81, sms=84, shared_per_block=101376, shared_per_sm=102400)


def layout() -> mf.BlockedLayout:
    return mf.BlockedLayout((1, 1), (1, 32), (1, 1), (1, 1), (1, 1))


CALLS: dict[str, tuple[type[mf.MlirFuseError], str, Callable[[], Any]]] = {
    "dtype": (DTypeError, "'complex64' is not supported", lambda: call(lambda x: x + 1, X.astype(np.complex64))),
    "dtype of an array": (DTypeError, "x: dtype 'uint8'", lambda: call(lambda x: x + 1, X.astype(np.uint8))),
    "no dtype": (DTypeError, "dtype 'None'", lambda: call(lambda x: x.astype(None), X)),
    "no array": (ArgumentError, "x: list is no array", lambda: call(lambda x: x + 1, [1, 2])),
    "no array to lower for": (ArgumentError, "x: list is no array", lambda: mf.fuse(lambda x: x + 1).lower([1, 2])),
    "an array of others": (ArgumentError, "x: target='interpret' takes NumPy arrays, got ", lambda: call(abs, OTHERS)),
    "a number too large": (
        ArgumentError,
        f"y: {1 << 63} does not fit i64",
        lambda: call(lambda x, y: x * y, X, 1 << 63),
    ),
    "a mask": (ArgumentError, "x: the array has a mask", lambda: call(lambda x: x + 1, np.ma.masked_array(X, X > 0))),
    "on the CPU": (ArgumentError, "x: ndarray is not on a CUDA device", lambda: mf.fuse(lambda x: x + 1)(X)),
    "too many": (ArgumentError, "(?s)too many positional.*parameters: x$", lambda: call(lambda x: x + 1, X, X)),
    "too few": (ArgumentError, "missing a required argument: 'y'", lambda: call(lambda x, y: x + y, X)),
    "unknown name": (ArgumentError, "unexpected keyword argument 'z'", lambda: call(lambda x: x + 1, X, z=X)),
    "largest of no columns": (
        ShapeError,
        r"max over no elements: shape \(n0, 0\)",
        lambda: call(lambda x: mf.max(x, axis=1), np.ones((3, 0))),
    ),
    "more than can be addressed": (
        ShapeError,
        "(?s)shape .1099511627776, 1048576. has more bytes than can be addressed",
        lambda: mf.fuse(lambda x: mf.broadcast_to(x, (1 << 40, 1 << 20)) + 1).lower(mf.TensorSpec((1 << 20,), "int8")),
    ),
    "extents that differ, of run time": (
        ShapeError,
        r"(?s)'i' has extent n0 in operand 0.*n0 is 3, n1 is 4 in this call",
        lambda: call(lambda x, y: mf.einsum("ij,ik->i", x, y), np.ones((3, 2)), np.ones((4, 5))),
    ),
    "broadcasting": (ShapeError, "(?s)add: shapes .*dimension -1: 3 and 4", lambda: call(lambda x, y: x + y, X, Y)),
    "axis": (ShapeError, "sum: axis -3 is out of range", lambda: call(lambda x: mf.sum(x, axis=-3), X)),
    "rank": (ShapeError, "axis 2 is out of range for 2", lambda: call(lambda x: mf.permute_dims(x, (0, 1, 2)), X)),
    "reshape": (ShapeError, "6 elements do not fit", lambda: call(lambda x: mf.reshape(x, (4, 2)), X)),
    "formatting": (TraceError, "its value as '.2f'", lambda: call(lambda x: f"{x:.2f}", X)),
    "control flow": (TraceError, "(?s)truth value.*mf.where", lambda: call(lambda x: x if x > 0 else -x, X)),
    "unsupported op": (TraceError, "np.norm cannot be traced", lambda: call(lambda x: np.linalg.norm(x), X)),
    "unknown function": (
        TraceError,
        "(?s)mlirfuse has no 'argmax'.*are not computed",
        lambda: call(unknown_function, X),
    ),
    "a formula": (TraceError, r"(?s)no 'softmax'.*e / mf\.sum\(e, axis=-1", lambda: call(softmax, X)),
    "a misspelt function": (TraceError, r"(?s)no 'exo'.*did you mean mf\.exp\?", lambda: mf.exo),  # type: ignore[attr-defined]
    "a function like no other": (TraceError, r"(?s)no 'fft'.*dir\(mlirfuse\)", lambda: mf.fft),  # type: ignore[attr-defined]
    "NumPy's sum": (TraceError, r"(?s)np\.sum cannot be traced.*use mf\.sum", lambda: call(lambda x: np.sum(x), X)),
    "NumPy's where": (TraceError, r"(?s)np\.where .*use mf\.where", lambda: call(lambda x: np.where(x > 0, x, 0), X)),
    "NumPy's cumsum": (TraceError, "(?s)np.cumsum .*triangular", lambda: call(lambda x: np.cumsum(x), X)),
    "PyTorch's keyword": (
        ArgumentError,
        "(?s)mf.sum got .*'dim'.*\\^.*use axis=",
        lambda: call(OTHER_KEYWORDS["sum"], X),
    ),
    "a method's keyword": (
        ArgumentError,
        "(?s)x.mean got .*use keepdims=",
        lambda: call(OTHER_KEYWORDS["mean"], X),
    ),
    "a word for a flag": (
        DTypeError,
        "keepdims 'yes' is no bool",
        lambda: call(lambda x: mf.sum(x, axis=0, keepdims="yes"), X),  # type: ignore[arg-type]
    ),
    "NumPy's keyword": (
        ArgumentError,
        "use correction=; it is mf.std\\(x,",
        lambda: call(OTHER_KEYWORDS["std"], X),
    ),
    "a missing argument": (ArgumentError, "mf.where missing 2 .*", lambda: call(lambda x: mf.where(x > 0), X)),
    "a bool axis": (DTypeError, "(?s)axis True is a bool.*by name", lambda: call(lambda x: x.max(True), X)),
    "a number in math": (
        TraceError,
        r"(?s)'s', a number that is passed at run time, .*as a float.*mf\.sqrt",
        lambda: call(lambda x, s: x * math.sqrt(s), X, 2.0),
    ),
    "a number in range": (
        TraceError,
        "(?s)'n', a number .*as an index.*functools.partial",
        lambda: call(lambda x, n: sum(x for _ in range(n)), X, 2),
    ),
    "a number as axis": (TraceError, "(?s)'ax', a number .*tuple", lambda: call(lambda x, ax: x.sum(ax), X, 1)),
    "a number's attribute": (
        TraceError,
        r"(?s)'s', a number that is passed at run time, has no 'shape'.*x \+ s.shape.*give an array",
        lambda: call(lambda x, s: x + s.shape[0], X, np.float32(2)),
    ),
    "a number's elements": (
        TraceError,
        "(?s)'s', a number .* has no dimensions to index.*give an array",
        lambda: call(lambda x, s: x + s[None], X, 2.0),
    ),
    "a flag": (
        TraceError,
        "(?s)'flag', a number .*truth value.*bind a flag",
        lambda: call(lambda x, flag: x + 1 if flag else x, X, True),
    ),
    "a call inside of another": (
        TraceError,
        r"(?s)test_bad_input\.py:\d+: a fused function is called inside of another.*__wrapped__",
        lambda: call(lambda x: mf.fuse(abs)(x), X),
    ),
    "indexing": (TraceError, r"index \[0\] is not supported", lambda: call(lambda x: x[[0]], X)),
    "assignment": (TraceError, "(?s)elements .*cannot be assigned.*mf.where", lambda: call(assign, X)),
    "deletion": (TraceError, "cannot be deleted", lambda: call(delete, X)),
    "an attribute": (TraceError, "a traced tensor has no 'dot'", lambda: call(lambda x: x.dot(x), X)),
    "correction": (
        TraceError,
        "var: correction 'a' is no number",
        lambda: call(lambda x: mf.var(x, correction="a"), X),
    ),
    "a large integer": (DTypeError, "so many digits does not fit float32", lambda: call(lambda x: x + 10**400, X)),
    "a maximum of nothing": (
        ShapeError,
        r"max over no elements: shape \(0, 3\), axis 0",
        lambda: call(lambda x: mf.max(x, axis=0), X[:0]),
    ),
    "result": (TraceError, "returned 1", lambda: call(lambda x: 1, X)),
    "out's shape": (ArgumentError, r"out: .*(?s:.*)float32\[2, 3\]", lambda: call(lambda x: x + 1, X, out=Y)),
    "out is a list": (ArgumentError, "out: a list is no array", lambda: call(lambda x: x + 1, X, out=[X.copy()])),
    "out is an argument": (ArgumentError, "out: overlaps an argument", lambda: call(lambda x: x + 1, X, out=X)),
    "out twice": (ArgumentError, "out: overlaps", lambda: call(lambda x: (x + 1, x), X, out=(Z, Z))),
    "out is read-only": (ArgumentError, "out: an array is read-only", lambda: call_into(lambda x: x + 1, X, frozen())),
    "out's dtype": (ArgumentError, "out: ", lambda: call(lambda x: x + 1, X, out=X.astype(np.float16))),
    "target": (TargetError, "unknown target 'sm_1'", lambda: mf.fuse(lambda x: x, target="sm_1")),
    "empty target": (TargetError, "unknown target ''", lambda: mf.fuse(lambda x: x, target="")),
    "no target": (TargetError, "unknown target \\['sm_80'\\]", lambda: mf.fuse(abs, target=["sm_80"])),  # type: ignore[call-overload]
    "an unknown chip": (TargetError, "unknown target 'sm_75'", lambda: mf.fuse(abs, target=other_target("sm_75"))),
    "another target": (
        TargetError,
        "not sm_80 as mlirfuse knows it",
        lambda: mf.fuse(abs, target=other_target("sm_80")),
    ),
    "number of SMs": (TargetError, "-1 SMs of sm_80", lambda: target_of("sm_80").with_sms(-1)),
    "no function": (ArgumentError, "fuse: 3 is no Python function", lambda: mf.fuse(3)),  # type: ignore[call-overload]
    "a parameter's name": (
        ArgumentError,
        "(?s)a parameter 'out'.*another name",
        lambda: mf.fuse(lambda x, out: x + out),
    ),
    "no option": (
        ArgumentError,
        r"(?s)no option 'mixorder'.*did you mean mix_order\? options: target, schedule",
        lambda: mf.fuse(abs).with_options(mixorder="auto"),  # type: ignore[call-arg]
    ),
    "an array as a flag": (
        ArgumentError,
        "fuse: fast_math is array",
        lambda: mf.fuse(abs, fast_math=np.zeros(2)),  # type: ignore[call-overload]
    ),
    "no flag of reductions": (
        ArgumentError,
        "fuse: dynamic_reductions is 'maybe'",
        lambda: mf.fuse(abs, dynamic_reductions="maybe"),  # type: ignore[call-overload]
    ),
    "no flag": (ArgumentError, "fuse: fast_math is 'no'", lambda: mf.fuse(abs, fast_math="no")),  # type: ignore[call-overload]
    "no fusion": (
        ArgumentError,
        "(?s)fuse: fusion is 'never'.*one of auto, off",
        lambda: mf.fuse(abs, fusion="never"),  # type: ignore[call-overload]
    ),
    "no schedule": (ArgumentError, "fuse: schedule is 3", lambda: mf.fuse(abs, schedule=3)),  # type: ignore[call-overload]
    "a schedule's name": (
        ArgumentError,
        "fuse: schedule is {3: ",
        lambda: mf.fuse(abs, schedule={3: mf.Schedule((1, 4), layout())}),
    ),  # type: ignore[dict-item]
    "no shape": (ArgumentError, "TensorSpec: shape None", lambda: mf.TensorSpec(None, "float16")),  # type: ignore[arg-type]
    "a large shape": (ArgumentError, "more bytes than", lambda: mf.TensorSpec((2**40, 2**40), "float16")),
    "MLIR's name": (DTypeError, "(?s)'f16'.*did you mean float16", lambda: mf.TensorSpec((4,), "f16")),
    "MLIR's name in a cast": (DTypeError, "(?s)'f16'.*float16", lambda: call(lambda x: x.astype("f16"), X)),
    "spec": (DTypeError, "'float17'", lambda: mf.TensorSpec((4,), "float17")),
    "extent": (ArgumentError, "extent -4", lambda: mf.TensorSpec((-4,), "float16")),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls(case: str) -> None:
    error, message, wrong = CALLS[case]
    with pytest.raises(error, match=message):
        wrong()


def test_outputs_may_be_slices_of_one_array() -> None:
    both = np.zeros((2, 6), np.float32)
    call(lambda x: (x + 1, x - 1), X, out=(both[:, :3], both[:, 3:]))
    np.testing.assert_array_equal(both, np.hstack([X + 1, X - 1]))


@pytest.mark.parametrize(
    ("attribute", "hint"),
    [
        ("exp", "use mf.exp(x)"),
        ("float", "use x.astype(mf.float32)"),
        ("to", "use x.astype(dtype)"),
        ("view", "use x.reshape(...)"),
        ("unsqueeze", "use x[:, None]"),
        ("size", "use x.shape"),
        ("pow", "use x ** y"),
        ("clamp_", "use mf.clip(x)"),
        ("softmax", "e / mf.sum(e, axis=-1, keepdims=True)"),
        ("nothing_like_it", "such as mf.sum"),
    ],
)
def test_attributes_of_other_frameworks(attribute: str, hint: str) -> None:
    with pytest.raises(TraceError, match=f"a traced tensor has no '{attribute}'") as raised:
        call(lambda x: getattr(x, attribute), X)
    assert hint in str(raised.value)


def test_hints_name_what_there_is() -> None:
    own = {name for name in mf.__all__ if callable(getattr(mf, name))}
    hints = [*counterparts.FUNCTIONS.values(), *counterparts.METHODS.values()]
    assert set(re.findall(r"mf\.(\w+)", " ".join(hints))) <= own
    assert set(counterparts.RENAMED.values()) <= own
    assert not own.intersection(counterparts.FUNCTIONS, counterparts.RENAMED)
    tensors = {name for name in dir(Tensor) if not name.startswith("_")}
    assert not tensors.intersection(counterparts.METHODS)


@pytest.mark.parametrize(
    "name",
    [
        "softmax",
        "log_softmax",
        "logsumexp",
        "silu",
        "gelu",
        "softplus",
        "norm",
        "diff",
        "heaviside",
        "cbrt",
        "matrix_norm",
    ],
)
def test_formulas_can_be_traced(name: str) -> None:
    text = counterparts.FUNCTIONS[name].partition(", or by")[0]
    if text.startswith("with "):
        local, _, text = text.removeprefix("with ").partition(": ")
        variable, _, value = local.partition(" = ")
        text = f"(lambda {variable}: {text})({value})"
    assert np.isfinite(call(eval(f"lambda x: {text}", {"mf": mf}), X)).all()


def test_dir_lists_what_there_is() -> None:
    assert dir(mf) == sorted(mf.__all__)
    assert dir(mf.linalg) == sorted(mf.linalg.__all__)


@pytest.mark.parametrize(("name", "hint"), [("norm", "mf.sqrt"), ("inv", "outside of the function"), ("foo", "it has")])
def test_functions_that_linalg_has_not(name: str, hint: str) -> None:
    with pytest.raises(TraceError, match=f"mlirfuse.linalg has no '{name}'") as raised:
        call(lambda x: getattr(mf.linalg, name)(x), X)
    assert hint in str(raised.value)


def test_constants() -> None:
    found = call(lambda x: (mf.where(x[:, mf.newaxis] > mf.inf, mf.nan, x[:, mf.newaxis] * mf.pi) - mf.e)[:, 0], X)
    np.testing.assert_allclose(found, X * np.pi - np.e, rtol=1e-6)


def test_what_a_tensor_or_mlirfuse_has_not_is_absent() -> None:
    assert (call(lambda x: x * (3 if hasattr(x, "dot") else 2), X) == 2).all()
    assert not hasattr(mf, "argmax")


def test_trace_errors_show_the_users_line() -> None:
    with pytest.raises(ShapeError, match=r"test_bad_input\.py:\d+: (?s:.*)x \+ y  # the line"):
        call(lambda x, y: x + y  # the line
             , X, Y)  # fmt: skip


def test_a_stage_and_schedules_that_do_not_exist() -> None:
    spec = mf.TensorSpec((None, 4), "float16")

    def shift(x):
        return x + 1

    with pytest.raises(ArgumentError, match="unknown stage 'foo'"):
        mf.fuse(shift).lower(spec).compile().as_text("foo")
    for name, schedule, message in (
        ("nope", mf.Schedule((1, 4), layout()), "nope, which is no kernel"),
        ("shift_0", mf.Schedule((4,), layout()), "tile .* has 1 dimensions"),
        ("shift_0", mf.Schedule((1, 64), layout()), "layout covers 32 of the tile's 64"),
    ):
        with pytest.raises(PassError, match=message):
            mf.fuse(shift, schedule={name: schedule}).lower(spec).compile()
        assert "linalg.generic" in mf.fuse(shift, schedule={name: schedule}).lower(spec).as_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builtin.module(cse,", "column 20: expected a pass"),
        ("builtin.module(nopass)", "'nopass'"),
        ("builtin.module(fuse-assign-schedule{foo=1})", "has no option 'foo'"),
    ],
)
def test_pipelines(text: str, message: str) -> None:
    module = mf.fuse(lambda x: x + 1).lower(mf.TensorSpec((4,), "float32")).module
    with module.context, pytest.raises(PipelineError, match=message):
        run_pipeline(module, text)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "takes 1 inputs, got 0"),
        ([X, X], "takes 1 inputs, got 2"),
        ([X.astype(np.float64)], "x: expected dtype float32, got float64"),
        ([Y], r"x: expected shape \(\?, 3\), got \(2, 4\)"),
        ([X[0]], r"x: expected shape \(\?, 3\), got \(3,\)"),
    ],
)
def test_inputs_of_interpreted_ir(inputs: list[np.ndarray], message: str) -> None:
    def shift(x):
        return x + 1

    module = mf.fuse(shift).lower(mf.TensorSpec((None, 3), "float32")).module
    with pytest.raises(ArgumentError, match=message):
        interpreter.run(module, "shift", inputs)
