"""What a kernel to digest is, and how a set of them is sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlirfuse as mf
from tests.support.pairwise import Row, pairwise

TARGETS: Mapping[str, tuple[str, ...]] = {
    "ampere": ("sm_80", "sm_87"),
    "consumer": ("sm_86", "sm_89"),
    "hopper": ("sm_90",),
    "hopper_specific": ("sm_90a",),
    "blackwell": ("sm_100", "sm_100a", "sm_103", "sm_103a"),
    "thor": ("sm_110", "sm_110a"),
    "workstation": ("sm_120", "sm_120a", "sm_121", "sm_121a"),
}
"""By kind of architecture, the targets that take turns in a sample. Another target, or another value of any parameter,
changes the sample: compare digests that the same version of this package made."""

FLOAT8_KINDS = ("consumer", "hopper", "hopper_specific", "blackwell", "thor", "workstation")


@dataclass(frozen=True)
class Case:
    """A function to compile.

    Attributes:
        name: unique among all cases.
        target: what it is compiled for.
        fn: the function.
        specs: of its arguments.
        options: of `mf.fuse`, without the target.
    """

    name: str
    target: str
    fn: Callable[..., Any]
    specs: Sequence[Any]
    options: Mapping[str, Any] = field(default_factory=dict)


def sample(
    group: str,
    parameters: Mapping[str, Sequence[Any]],
    make: Callable[[Row], tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]],
    allowed: Callable[[Row], bool] = lambda _: True,
    float8: Callable[[Row], bool] = lambda _: False,
) -> Iterator[Case]:
    """Cases of a group, pairwise over its parameters and the kinds of architecture.

    Args:
        group: the first part of the cases' names.
        parameters: values by parameter; their texts are the other parts of the names.
        make: function, specs and options of a combination.
        allowed: whether values go together; it is given two parameters at a time, `architecture` among them.
        float8: whether a combination needs float8, which of the kind `consumer` only some targets have.
    """
    turns = dict.fromkeys(TARGETS, 0)
    for row in pairwise({**parameters, "architecture": list(TARGETS)}, allowed):
        targets = TARGETS[row["architecture"]]
        target = targets[turns[row["architecture"]] % len(targets)]
        turns[row["architecture"]] += 1
        target = "sm_89" if target == "sm_86" and float8(row) else target
        fn, specs, options = make(row)
        yield Case("-".join([group, *(_text(row[name]) for name in parameters), target]), target, fn, specs, options)


def _text(value: Any) -> str:
    if callable(value):
        return value.__name__
    if isinstance(value, tuple):
        return "x".join(_text(v) for v in value)
    return "dynamic" if value is None else str(value)


def tensors(dtype: Any, *shapes: Iterable[Any]) -> list[mf.TensorSpec]:
    """Specs of contiguous arrays of one dtype."""
    return [mf.TensorSpec(tuple(shape), dtype) for shape in shapes]
