"""Passes by name. There is no list: the class and the module of a pass follow from its name.

The pass `fuse-fold-casts` is the class `FuseFoldCasts` of a module `fold_casts` anywhere below `mlirfuse.passes`
(`lower-*`: below `mlirfuse.lowering`), and is tested by `fold-casts.mlir` in the same folder of `test/lit`;
`tests/unit/passmanager/test_registry.py` checks this for every pass. A module is imported when its pass is first asked
for.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from pathlib import Path

from mlirfuse.errors import PipelineError
from mlirfuse.passmanager.base import Pass
from mlirfuse.support.renamed_names import renamed

PACKAGES = {"fuse": "passes", "lower": "lowering"}
"""The package of `mlirfuse` for each prefix of pass names."""

ADDED: dict[str, type[Pass]] = {}
"""Passes from outside the package, by name, such as those of tests."""


def names() -> tuple[str, ...]:
    """The names of all passes, sorted. Imports every module that may have one."""
    return tuple(sorted({*ADDED, *(name for name in _modules() if find(name))}))


def find(name: str) -> type[Pass] | None:
    """The class of that pass, or None where mlirfuse has none of that name."""
    if name in ADDED:
        return ADDED[name]
    module = _modules().get(name)
    return None if module is None else getattr(import_module(module), class_name(name), None)


def lookup(name: str) -> type[Pass]:
    """The class of that pass; raises `PipelineError` where there is none."""
    found = find(name)
    if found is None:
        raise PipelineError(f"unknown pass {name!r}", hint=suggest(name))
    return found


def class_name(name: str) -> str:
    """The name of a pass's class: `FuseFoldCasts` for `fuse-fold-casts`."""
    return "".join(word.capitalize() for word in name.split("-"))


def suggest(name: str) -> str:
    """The hint of an error for an unknown pass name."""
    if (hint := renamed("pass", name)) is not None:
        return hint
    close = difflib.get_close_matches(name, names(), n=1)
    return f"did you mean {close[0]!r}?" if close else "mlirfuse-opt --list-passes lists mlirfuse's passes"


def summary(cls: type[Pass]) -> str:
    """The first line of a pass's docstring."""
    return (cls.__doc__ or "").strip().partition("\n")[0]


@cache
def _modules() -> dict[str, str]:
    """Modules that may have a pass, by the name that it would have. A helper's module has no class of that name."""
    found = {}
    root = Path(__file__).parents[1]
    for prefix, package in PACKAGES.items():
        for path in sorted((root / package).rglob("*.py")):
            name = f"{prefix}-{path.stem.replace('_', '-')}"
            found[name] = ".".join(path.relative_to(root.parent).with_suffix("").parts)
    return found
