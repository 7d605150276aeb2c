"""Recognises a call that differs from the last one only in its pointers, faster than by its key.

`arrays.signature` reads the attributes of one array after the other, and makes a key of them. A recogniser compares the
attributes of all arrays with those of the last call, and builds only the list of pointers. It compares everything that
the key holds, so it accepts no call with another key. A call with the same key may be rejected, and is then looked up
by its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from mlirfuse.runtime.arrays.arrays import ALIGNMENT, framework_of
from mlirfuse.runtime.device import cuda

Arrays = tuple[Any, ...]
Recogniser = Callable[[Arrays, Any], list[int] | None]
"""Takes the arguments of a call and its `out`; returns all pointers, outputs last, if it recognises the call, else
None."""

_LOW_BITS = ALIGNMENT - 1
_PLAIN = (float, int, bool)


def unknown(args: Arrays, out: Any) -> list[int] | None:
    """Recognises no call."""
    return None


@dataclass(frozen=True)
class Pattern:
    """Straight-line code that recognises calls like one, which is faster than a loop over expected values.

    Attributes:
        known: constants of the code, by name.
        take: statements that give the arguments the names `a0`, `a1`, ..., and the arrays of `out` the next ones;
            `{missed}` stands for what is returned where their numbers differ.
        test: whether they are like those of the first call.
        pointers: the expression of each array's pointer, by the array's number.
        values: the expressions of pointers and numbers, in order; the pointer of array 1 has the name `p1`.
    """

    known: dict[str, object]
    take: str
    test: str
    pointers: dict[int, str]
    values: tuple[str, ...]

    def code(self, missed: str) -> str:
        """Statements of a function of `args` and `out` that name pointers, or return `missed` for other calls."""
        take = self.take.format(missed=missed)
        named = "; ".join(f"p{i} = {pointer}" for i, pointer in self.pointers.items())
        unaligned = " | ".join(f"p{i}" for i in self.pointers)
        return f"""
    try:
        {take}
    except ValueError:
        return {missed}
    if not ({self.test}):
        return {missed}
    {named}
    if ({unaligned}) & {_LOW_BITS}:
        return {missed}"""


def pattern(args: Arrays, out: Any = None, *, devices: int = 2) -> Pattern | None:
    """The pattern of calls like this one; None where such calls are known by their key alone.

    No pattern accepts an array of another framework than CuPy and PyTorch, a pointer that is not aligned to `ALIGNMENT`
    bytes, or constants of the compilation but None and strings.

    Args:
        args: the arguments.
        out: None, an array, or a tuple of them; one array alone and in a tuple are not alike.
        devices: how many there are: where there is one, it is no part of the pattern.
    """
    everything = _all(args, out)
    arrays = {i: a for i, a in enumerate(everything) if type(a) not in _PLAIN and not _is_constant(a)}
    frameworks = {framework_of(array) for array in arrays.values()}
    torch = cuda.torch()
    if frameworks == {"cupy"}:
        known, test, pointer = _of_cupy(arrays, devices)
    elif frameworks == {"torch"} and torch is not None and guards_hold():
        known, test, pointer = _of_torch(torch, arrays)
    else:
        return None
    tests = [test]
    for i, argument in enumerate(everything):
        if i in arrays:
            continue
        known[f"class{i}"], known[f"constant{i}"] = type(argument), argument
        tests.append(f"type(a{i}) is class{i}" + (f" and a{i} == constant{i}" if _is_constant(argument) else ""))
    names = [f"a{i}" for i in range(len(everything))]
    given, results = ", ".join(names[: len(args)]), ", ".join(names[len(args) :])
    if out is None:
        take_out = "if out is not None: return {missed}"
    elif type(out) is tuple:
        take_out = f"if type(out) is not tuple: return {{missed}}\n        [{results}] = out"
    else:
        take_out = f"{results} = out"
    values = [f"p{i}" if i in arrays else f"a{i}" for i, a in enumerate(everything) if not _is_constant(a)]
    pointers = {i: pointer.format(i) for i in arrays}
    made = Pattern(known, f"[{given}] = args\n        {take_out}", " and ".join(tests), pointers, tuple(values))
    return made if _recogniser(made)(args, out) is not None else None


def recogniser(args: Arrays, out: Any = None) -> Recogniser:
    """Recognises calls with arrays like these, as `pattern` describes them; `unknown` where there is no pattern."""
    made = pattern(args, out)
    return unknown if made is None else _recogniser(made)


def _recogniser(made: Pattern) -> Recogniser:
    source = f"def recognise(args, out):{made.code('None')}\n    return [{', '.join(made.values)}]\n"
    scope = dict(made.known)
    exec(source, scope)  # nothing in it comes from outside
    return scope["recognise"]  # type: ignore[return-value]


def _all(args: Arrays, out: Any) -> Arrays:
    return args + (() if out is None else out if type(out) is tuple else (out,))


def _is_constant(argument: object) -> bool:
    return argument is None or type(argument) is str


def _of_cupy(arrays: Mapping[int, Any], devices: int) -> tuple[dict[str, object], str, str]:
    known: dict[str, object] = {}
    tests = []
    for i, array in arrays.items():
        known |= {f"class{i}": type(array), f"dtype{i}": array.dtype, f"device{i}": array.data.device_id}
        device = f" and d{i}.device_id == device{i}" if devices > 1 else ""
        tests.append(
            f"type(a{i}) is class{i} and a{i}.dtype is dtype{i} and {_has_shape(f'a{i}', array.shape)} "
            f"and {_has_strides(f'a{i}', array)} and (d{i} := a{i}.data) is not None{device}"
        )
    return known, " and ".join(tests), "d{0}.ptr"


def _has_shape(array: str, shape: tuple[int, ...]) -> str:
    """The test of a CuPy array's shape; one or two extents are compared one by one, which is faster than as a tuple."""
    match shape:
        case (n,):
            return f"{array}.ndim == 1 and len({array}) == {n}"
        case (m, n) if m:
            return f"{array}.ndim == 2 and len({array}) == {m} and {array}.size == {m * n}"
    return f"{array}.shape == {shape}"


def _has_strides(name: str, array: Any) -> str:
    """The test of a CuPy array's strides."""
    return f"{name}._c_contiguous" if array._c_contiguous else f"{name}.strides == {array.strides}"


def _of_torch(torch: Any, arrays: Mapping[int, Any]) -> tuple[dict[str, object], str, str]:
    known = {"matches": _guard(torch, [*arrays.values()]), "data_ptr": torch.Tensor.data_ptr}
    test = f"matches({', '.join(f'a{i}' for i in arrays)})"
    if any(array.requires_grad for array in arrays.values()):  # guards do not check whether autograd is recording
        known["records"] = torch.is_grad_enabled
        test = f"not records() and {test}"
    return known, test, "data_ptr(a{0})"


def _guard(torch: Any, tensors: Sequence[Any]) -> Callable[..., bool]:
    """A guard on the types, dtypes, devices, shapes, strides and flags (such as lazy negation) of tensors.

    `torch.compile` checks it before it runs compiled code again. While autograd records, a tensor that requires grad
    never matches one that does not; otherwise that depends on PyTorch's version. Checking six tensors takes less time
    than reading the key of one.
    """
    sizes, strides = [list(t.shape) for t in tensors], [list(t.stride()) for t in tensors]
    guards = torch._C._dynamo.guards.TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
    check: Callable[..., bool] = guards.check
    return check


@cache
def guards_hold() -> bool:
    """Whether PyTorch has these guards, which are not public, and they distinguish all tensors that keys
    distinguish.
    """
    torch = cuda.torch()
    assert torch is not None  # imported already, as the caller has tensors
    try:
        with torch.inference_mode(False), torch.enable_grad():  # whatever the caller's modes are
            return _guards_tell_apart(torch)
    except (AttributeError, TypeError, RuntimeError):
        return False


def _guards_tell_apart(torch: Any) -> bool:
    """Whether guards accept tensors like the ones that they were made of, and reject all others."""
    empty = partial(torch.empty, device="cpu", dtype=torch.float32)  # whatever the defaults are
    like = empty(2, 4)
    others = (
        empty(4, 2),
        empty(2, 3),
        empty(2, 4, 1),
        empty(4, 2).t(),
        empty(2, 8)[:, ::2],
        empty(1, 4).expand(2, 4),
        empty(2, 4, dtype=torch.float64),
        empty(2, 4, dtype=torch.int32),
        empty(2, 4, device="meta"),
        empty(2, 4).to_sparse(),
        torch._neg_view(empty(2, 4)),
        torch.nn.Parameter(empty(2, 4)),
        empty(2, 4, requires_grad=True),
        1.0,
    )
    matches = _guard(torch, (like, like))
    if not (matches(like, empty(2, 4)) and matches(empty(2, 4), like)):
        return False
    return not any(matches(like, other) or matches(other, like) for other in others)
