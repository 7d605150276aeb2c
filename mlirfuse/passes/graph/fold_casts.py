"""`fuse-fold-casts`: folds pairs of casts, also across ops, and casts of integers into their products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith

from mlirfuse.analysis.arithmetic.casts import CASTS, SAME, joined
from mlirfuse.analysis.arithmetic.patterns import body_op
from mlirfuse.analysis.contractions.contraction import product_of
from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.segments.operations import operation_of, separated
from mlirfuse.passes.graph.rounding import peel_rounding
from mlirfuse.passes.views.producer_composition import compose_producer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, erase, erase_dead


@dataclass(frozen=True)
class FuseFoldCasts(Pass):
    """Replaces two successive casts by one, or by none, where the values stay the same.

    Requires functions of `linalg.generic`s; both casts may stand in one body, or the first may be an op of its own.
    Widening is exact, so a cast of a widened value reads the original value. A narrowing cast rounds and stays, unless
    it is to half precision and `through-rounding` is set. Then a chain of operations in half precision, with a rounding
    after each, is computed in single precision throughout. Where fusion is off (`fuse.operation`), only casts of one
    operation are folded.

    A sum of products whose two operands are integers of one type, widened by sign, reads the narrow integers and widens
    them in its body: tensor cores multiply these.

    ```mlir
    %0 = linalg.generic ins(%x : tensor<8xf16>) { ^bb0(%a: f16, %o: f32): %w = arith.extf %a; linalg.yield %w }
    %1 = linalg.generic ins(%0 : tensor<8xf32>) { ^bb0(%a: f32, %o: f16): %n = arith.truncf %a; ... %n }
    ```
    becomes
    ```mlir
    %1 = linalg.generic ins(%x : tensor<8xf16>) { ^bb0(%a: f16, %o: f16): ... %a }
    ```

    Attributes:
        through_rounding: whether to leave out narrowing casts to half precision whose results are widened again.
    """

    name: ClassVar[str] = "fuse-fold-casts"

    through_rounding: bool = False

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            ops = body(function)
            if not ops or is_tile_program(function):
                continue
            if self.through_rounding:
                for op in ops:
                    if operation_of(op) is None:  # a kernel an operation rounds each result
                        peel_rounding(op)
            folded = sum(self._fold(op) for op in body(function) if op.name == "linalg.generic")
            erase_dead([op for op in body(function) if op.name == "linalg.generic"])
            if folded:
                remarks.applied(self, f"{folded} cast(s) folded", function)
            else:
                remarks.declined(self, "no pair of casts can be folded", function)

    def _fold(self, generic: ir.Operation) -> int:
        """Folds the casts of a generic's body with those before them; returns how many are gone."""
        count = 0
        for number in range(len(generic.operands) - len(generic.results)):
            while self._fold_operand(generic, number):
                count += 1
        for op in [o.operation for o in generic.regions[0].blocks[0].operations]:
            first = defining_op(op.operands[0]) if op.name in CASTS else None
            if first is not None and first.name in CASTS and (name := self._joined(first, op)):
                _replace(op, name, first.operands[0])
                count += 1
        erase_dead([o.operation for o in generic.regions[0].blocks[0].operations if o.operation.results])
        return count + (2 if _narrow_product(generic) else 0)

    def _fold_operand(self, generic: ir.Operation, number: int) -> bool:
        """Makes a generic read the source of an operand's cast, where its body only casts the operand again."""
        argument = generic.regions[0].blocks[0].arguments[number]
        maker = body_op(generic.operands[number])
        users = list({use.owner.operation for use in argument.uses})
        if maker is None or maker[1].name not in CASTS or not users:
            return False
        first = maker[1]
        if separated([maker[0]], [generic]):
            return False
        if any(user.name not in CASTS or not self._joined(first, user) for user in users):
            return False
        if not compose_producer(generic, number, maker[0]):
            return False
        argument.set_type(first.operands[0].type)
        for user in users:
            _replace(user, self._joined(first, user) or SAME, argument)
        return True

    def _joined(self, first: ir.Operation, second: ir.Operation) -> str | None:
        return joined(first, second, through_rounding=self.through_rounding)


def _narrow_product(generic: ir.Operation) -> bool:
    """Makes a sum of products read integers of one type before both operands are widened; returns whether it does."""
    if product_of(generic) is None:
        return False
    makers = [body_op(generic.operands[number]) for number in (0, 1)]
    casts = [maker[1] for maker in makers if maker is not None and maker[1].name == "arith.extsi"]
    if len(casts) < 2 or casts[0].operands[0].type != casts[1].operands[0].type:
        return False
    if separated([maker[0] for maker in makers if maker is not None], [generic]):
        return False
    before, maps = list(generic.operands)[:2], generic.attributes["indexing_maps"]
    if not all(compose_producer(generic, n, maker[0]) for n, maker in enumerate(makers) if maker is not None):
        generic.operands[0], generic.operands[1] = before
        generic.attributes["indexing_maps"] = maps
        return False
    block = generic.regions[0].blocks[0]
    for argument, cast in zip(list(block.arguments)[:2], casts, strict=True):
        users = [use.owner.operation for use in argument.uses]
        wide = argument.type
        argument.set_type(cast.operands[0].type)
        with ir.InsertionPoint.at_block_begin(block), generic.location:
            widened = arith.extsi(wide, argument)
        for user in users:
            for number, value in enumerate(user.operands):
                if value == argument:
                    user.operands[number] = widened
    return True


def _replace(cast: ir.Operation, name: str, source: ir.Value) -> None:
    """Puts the cast `name` of `source` in place of a cast; one of the same name keeps its rounding mode."""
    value = source
    if name != SAME:
        kept = {key: cast.attributes[key] for key in cast.attributes} if name == cast.name else {}
        with ir.InsertionPoint(cast), cast.location:
            made = ir.Operation.create(name, results=[cast.results[0].type], operands=[source], attributes=kept)
        value = made.results[0]
    cast.results[0].replace_all_uses_with(value)
    erase(cast)
