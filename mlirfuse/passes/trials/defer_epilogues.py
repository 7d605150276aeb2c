"""`fuse-defer-epilogues`: what is computed of a product's result goes where rows of the result are read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, host_functions, kernels
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.dialect.attributes import DEFERRED, OPERATION
from mlirfuse.passes.slices.sliced_ops import behind, is_elementwise
from mlirfuse.passes.trials.trial import Trial, needing, surrounded
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import element_bytes

CLEAR_GAIN = 1.06
"""Ratio of predicted times from which on ops are deferred. Trials end at further products: one that would compute what
is deferred in its own prologue (`fuse-prologues`) is not among their kernels, and may take longer without.
"""


@dataclass(frozen=True)
class FuseDeferEpilogues(Pass):
    """Marks ops with `fuse.deferred` that are faster in the kernel that needs them than behind a product.

    Requires functions of tensor ops. A kernel with a product computes on tiles of its result before they leave the
    chip, but no tile has a whole row of it: blocks hand over partial results of a reduction, and a second kernel reads
    the result and the reduction. Where that kernel has whole rows, as one that normalises them, it may as well reduce
    them itself; and where it needs what is computed of the result element by element too, it may compute that from the
    narrowest value on the way, such as a product in half precision, so that fewer bytes are stored. Where many tiles
    share a result, as of a reduction over all rows, a kernel of its own reads faster what is stored anyway. Candidates
    are the first reductions of what is computed of a product's result element by element; and these with all that is
    computed of the narrowest value. The forms are scheduled on trial.

    ```mlir
    %s = linalg.generic ... ins(%q, %k : ...) -> tensor<512x512xf32>                              // products
    %max = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%s) ... -> tensor<512xf32>
    %e = linalg.generic ... ins(%s, %max) ... { ... arith.subf ... math.exp ... }
    ```
    becomes
    ```mlir
    %s = linalg.generic ... ins(%q, %k : ...) -> tensor<512x512xf32>
    %max = linalg.generic {iterator_types = ["parallel", "reduction"]} ins(%s) ... attrs = {fuse.deferred} ...
    %e = linalg.generic ... ins(%s, %max) ... { ... arith.subf ... math.exp ... }
    ```

    Attributes:
        always: whether such reductions are deferred whatever is predicted.
    """

    name: ClassVar[str] = "fuse-defer-epilogues"
    always: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Marks ops of the `builtin.module` in place."""
        for function in host_functions(module):
            found = [(op, own) for op in body(function) if _is_product(op) and (own := _reductions_behind(op))]
            if not found:
                remarks.declined(self, "nothing reduces what is computed of a product's result", function)
            for product, reductions in found:
                times = f"{len(reductions)} reduction(s) of a product's result"
                chosen: Sequence[ir.Operation] | None = reductions
                if not self.always:
                    before, after, chosen = _fastest(module, function, product, reductions)
                    times += f" are predicted to take {after:.1f} us behind it, {before:.1f} us in its kernel"
                if chosen is None:
                    remarks.declined(self, times, product)
                else:
                    remarks.applied(self, times, product)
                    _mark(chosen)


def _fastest(
    module: ir.Operation, function: ir.Operation, product: ir.Operation, reductions: Sequence[ir.Operation]
) -> tuple[float, float, Sequence[ir.Operation] | None]:
    """Predicted microseconds as ops are and with some deferred, and these ops if they are then clearly faster."""
    narrowest = _narrowest(product)
    computed = behind([narrowest], is_elementwise)
    ops = {product, *surrounded([*computed, *reductions])}
    trial = Trial(module, function, ops)
    before = trial.fused_microseconds()
    with_product = [k for k in kernels(trial.module.operation) if any(map(_is_product, body(k)))]
    forms = list[Sequence[ir.Operation]]()
    if not with_product or any(sum(map(_reduces, body(k))) > 1 for k in with_product):
        # Else they are in another kernel anyway. With them the product itself may have become rows of sums.
        forms.append(reductions)
    value = narrowest.results[0]
    if computed and any(_moved(kernel, value) > element_bytes(value.type) for kernel in with_product):
        forms.append([*computed, *reductions])
    times = [Trial(module, function, ops).microseconds(partial(_mark_copies, form)) for form in forms]
    after, chosen = min(zip(times, forms, strict=True), key=lambda each: each[0], default=(before, None))
    return before, after, chosen if after * CLEAR_GAIN < before else None


def _moved(kernel: ir.Operation, like: ir.Value) -> int:
    """Bytes that a kernel reads and writes of arrays of a value's shape, for each of its elements."""
    shape = ir.RankedTensorType(like.type).shape
    values = [*kernel.regions[0].blocks[0].arguments, *body(kernel)[-1].operands]
    types = [ir.RankedTensorType(v.type) for v in values if isinstance(v.type, ir.RankedTensorType)]
    return sum(element_bytes(type_) for type_ in types if type_.shape == shape)


def _structure(op: ir.Operation) -> OpStructure | None:
    return structure_of(op) if op.name == "linalg.generic" else None


def _is_product(op: ir.Operation) -> bool:
    """Whether an op is a product that others may share a kernel with."""
    return OPERATION not in op.attributes and product_of(op) is not None


def _reductions_behind(product: ir.Operation) -> list[ir.Operation]:
    """The first reductions of what is computed of a product's result element by element."""
    along = [product, *behind([product], is_elementwise)]
    found = [op for op in needing([product]) if _reduces(op) and _reads_any(op, along)]
    late = set(needing(found))
    return [op for op in found if op not in late]


def _narrowest(product: ir.Operation) -> ir.Operation:
    """The op with the narrowest result that all that is computed of a product's result needs: the last of several."""
    chain = [product]
    while len(users := {use.owner.operation for use in chain[-1].results[0].uses}) == 1:
        (user,) = users
        if not is_elementwise(user):
            break
        chain.append(user)
    return min(reversed(chain), key=lambda op: element_bytes(op.results[0].type))


def _reduces(op: ir.Operation) -> bool:
    structure = _structure(op)
    return structure is not None and bool(structure.reduction_loops)


def _reads_any(op: ir.Operation, makers: Iterable[ir.Operation]) -> bool:
    made = {result for maker in makers for result in maker.results}
    return any(operand in made for operand in op.operands)


def _mark(ops: Iterable[ir.Operation]) -> None:
    for op in ops:
        op.attributes[DEFERRED] = ir.UnitAttr.get(op.context)


def _mark_copies(ops: Iterable[ir.Operation], copies: dict[ir.Operation, ir.Operation]) -> None:
    _mark(copies[op] for op in ops)
