"""Recognising a call that is like the last one in all but its pointers, in less time than its key takes.

`arrays.signature` reads the attributes of one array after the other, and makes a key of them. Here those of all arrays
are compared with what they were, and nothing is made but the pointers. What is compared is what a key has, so nothing
is recognised whose key would differ; the other way round it may be: a call that is not recognised takes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, reduce
from operator import or_
from typing import Any

from mlirfuse.runtime import cuda
from mlirfuse.runtime.arrays import ALIGNMENT, framework_of

Arrays = tuple[Any, ...]
Recogniser = Callable[[Arrays], list[int] | None]
"""Takes the arrays of a call, outputs included; returns their pointers if it knows the call, and None if not."""

_LOW_BITS = ALIGNMENT - 1


def unknown(arrays: Arrays) -> list[int] | None:
    """Recognises no call."""
    return None


def recogniser(arrays: Arrays) -> Recogniser:
    """Recognises calls with arrays like these.

    It knows none where one is a number or of a framework that is read in another way, where a pointer is not aligned
    to `ALIGNMENT` bytes, or an array of CuPy is not C-contiguous.
    """
    frameworks = {framework_of(array) for array in arrays}
    if frameworks == {"cupy"}:
        return _of_cupy(arrays)
    if frameworks == {"torch"}:
        return _of_torch(arrays)
    return unknown


def _of_cupy(arrays: Arrays) -> Recogniser:
    """One expression over all arrays, made for their number: a loop over what is expected takes half as long again."""
    if _unaligned([array.data.ptr for array in arrays]) or not all(array._c_contiguous for array in arrays):
        return unknown
    known: dict[str, object] = {}
    tests = []
    for i, array in enumerate(arrays):
        known |= {f"class{i}": type(array), f"dtype{i}": array.dtype, f"shape{i}": array.shape}
        known[f"device{i}"] = array.data.device_id
        tests.append(
            f"type(a{i}) is class{i} and a{i}.dtype is dtype{i} and a{i}.shape == shape{i} "
            f"and a{i}._c_contiguous and a{i}.data.device_id == device{i}"
        )
    numbers = range(len(arrays))
    source = f"""
def recognise(arrays):
    if len(arrays) != {len(arrays)}:
        return None
    {", ".join(f"a{i}" for i in numbers)}, = arrays
    if not ({" and ".join(tests)}):
        return None
    {"; ".join(f"p{i} = a{i}.data.ptr" for i in numbers)}
    return None if ({" | ".join(f"p{i}" for i in numbers)}) & {_LOW_BITS} else [{", ".join(f"p{i}" for i in numbers)}]
"""
    exec(source, known)  # nothing in it comes from outside
    made: Recogniser = known["recognise"]  # type: ignore[assignment]
    return made


def _of_torch(arrays: Arrays) -> Recogniser:
    torch = cuda.torch()
    if torch is None or not guards_hold():
        return unknown
    data_ptr = torch.Tensor.data_ptr
    if _unaligned(list(map(data_ptr, arrays))):
        return unknown
    matches, count = _guard(torch, arrays), len(arrays)

    def recognise(arrays: Arrays) -> list[int] | None:
        if len(arrays) != count or not matches(*arrays):
            return None
        pointers = list(map(data_ptr, arrays))
        return None if _unaligned(pointers) else pointers

    return recognise


def _unaligned(pointers: Sequence[int]) -> bool:
    return reduce(or_, pointers) & _LOW_BITS != 0


def _guard(torch: Any, tensors: Sequence[Any]) -> Callable[..., bool]:
    """Whether as many tensors have these types, dtypes, devices, shapes, strides, and bits such as lazy negation.

    It is what `torch.compile` asks before it runs code again. For six tensors it takes 0.5 us on an H200's host, less
    than reading what a key has of one.
    """
    sizes, strides = [list(t.shape) for t in tensors], [list(t.stride()) for t in tensors]
    guards = torch._C._dynamo.guards.TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
    check: Callable[..., bool] = guards.check
    return check


@cache
def guards_hold() -> bool:
    """Whether PyTorch has these guards, and they tell apart what keys tell apart: they are no public function."""
    torch = cuda.torch()
    assert torch is not None  # the caller has tensors
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
        1.0,
    )
    try:
        matches = _guard(torch, (like, like))
        known = matches(like, empty(2, 4)) and matches(empty(2, 4), like)
        return known and not any(matches(like, other) or matches(other, like) for other in others)
    except (AttributeError, TypeError, RuntimeError):
        return False
