"""Which pairs of kernels `fuse-mix-order-reduction` builds and prices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import mlirfuse as mf
from mlirfuse.passes.fusion import mix_order_reduction


def statistics(x: mf.Tensor) -> Any:
    """Sums that share no iteration space with one another: five kernels and more."""
    return tuple(mf.sum(x, axis=axes) for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)))


def test_a_merge_prices_only_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    priced: Counter[Any] = Counter()
    misfit = mix_order_reduction._Pair._misfit

    def counted(pair: Any, *arguments: Any, **named: Any) -> str | None:
        priced[pair.key] += 1
        return misfit(pair, *arguments, **named)

    monkeypatch.setattr(mix_order_reduction._Pair, "_misfit", counted)
    lowered = mf.fuse(statistics, target="sm_90a").lower(mf.TensorSpec((64, 256, 512), "float32"))
    remarks = lowered.compile(choose_again=False).remarks.entries
    merged = [r for r in remarks if r.pass_name == "fuse-mix-order-reduction" and r.kind == "applied"]
    assert merged, "no pair is merged, after which pairs would be priced again"
    assert set(priced.values()) == {1}
