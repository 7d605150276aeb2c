"""`fuse-interleave-copies`: interleaves the copies of a later step with the SIMT products of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import scf

from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, nested, ops_named

PRODUCT, COPY, COMMIT = "math.fma", "nvgpu.device_async_copy", "nvvm.cp.async.commit.group"
BARRIERS = ("gpu.barrier", "nvvm.cp.async.wait.group")
ADDRESSES = ("arith.", "affine.", "memref.subview", "memref.transpose", "memref.reinterpret_cast", "memref.dim")
"""Prefixes of ops that compute addresses and touch no memory."""

SHARE_OF_FEW, SHARE_OF_MANY = 0.5, 0.9
"""Shares of a step's products over which copies are distributed: a smaller one for few copies, so that they complete in
time, and a larger one for many. Tuned on an H200."""

LEAST_SPACING = 64
"""Least spacing, in multiply-adds, of few copies; copies that would be closer count as many."""


@dataclass(frozen=True)
class FuseInterleaveCopies(Pass):
    """Issues the copies of a later step along k one by one, between the SIMT products of this one.

    Requires the gpu stage. Takes each `scf.for` whose steps start their copies in one branch, and multiply by
    `math.fma` behind it. Issued all at once, behind a barrier, the copies of all warps compete for shared memory with
    the loads of the first products. Every copy gets a branch of its own, which ptxas turns into a predicate; address
    computations move out of the branch. Loops whose copies go through registers, or that have a barrier between the
    copies and the last products, stay as they are.

    Copies that transpose (`fuse-transpose-operands`) are four times as many, and gain most.

    ```mlir
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) {
      nvvm.cp.async.wait.group 0
      gpu.barrier
      scf.if %more {
        nvgpu.device_async_copy %x[%row, %later], %slot[%row, %c0], 4
        nvgpu.device_async_copy %w[%row, %later], %other[%row, %c0], 4
      }
      nvvm.cp.async.commit.group
      ... loads and products ...
    ```
    becomes
    ```mlir
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) {
      nvvm.cp.async.wait.group 0
      gpu.barrier
      scf.if %more { nvgpu.device_async_copy %x[%row, %later], %slot[%row, %c0], 4 }
      ... loads and products ...
      scf.if %more { nvgpu.device_async_copy %w[%row, %later], %other[%row, %c0], 4 }
      ... loads and products ...
      nvvm.cp.async.commit.group
      ... loads and products ...
    ```
    """

    name: ClassVar[str] = "fuse-interleave-copies"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        parents = dict.fromkeys(product.parent.operation for product in ops_named(module, PRODUCT))
        for loop in [op for op in parents if op.name == "scf.for" and any(o.name == COPY for o in nested(op))]:
            step = _step(loop)
            if isinstance(step, str):
                remarks.declined(self, step, loop)
                continue
            with loop.location:
                _interleave(step)
            remarks.applied(self, f"{len(step.copies)} copies between {len(step.products)} products", loop)


@dataclass(frozen=True)
class _Step:
    """A step along k: a `branch` with `copies` of a later one, their `commit`, then `products`."""

    branch: ir.Operation
    copies: Sequence[ir.Operation]
    commit: ir.Operation
    products: Sequence[ir.Operation]


def _step(loop: ir.Operation) -> _Step | str:
    """The parts of a loop's step, or why the pass does not apply."""
    ops = [op.operation for op in loop.regions[0].blocks[0].operations]
    copying = [op for op in ops if any(inner.name == COPY for inner in nested(op))]
    commits = [op for op in ops if op.name == COMMIT]
    if len(copying) != 1 or copying[0].name != "scf.if" or len(commits) != 1:
        return "its copies are not issued together, in one branch"
    (branch,), (commit,) = copying, commits
    products = [op for op in ops if op.name == PRODUCT]
    if not ops.index(branch) < ops.index(commit) < ops.index(products[0]):
        return "copies are not issued before the first product"
    behind = ops[ops.index(branch) : ops.index(products[-1])]
    if any(inner.name in BARRIERS for op in behind for inner in nested(op)):
        return "the block synchronises between the copies and the last product"
    inside = [op.operation for op in branch.regions[0].blocks[0].operations][:-1]
    copies = [op for op in inside if op.name in (COPY, "scf.if")]
    for op in (inner for part in inside for inner in nested(part)):
        if op.name not in (COPY, "scf.if", "scf.yield") and not op.name.startswith(ADDRESSES):
            return f"{op.name} stands between the copies"
    return _Step(branch, copies, commit, products)


def _interleave(step: _Step) -> None:
    """Moves each copy, in a branch of its own, to its place between the products, and the commit behind the last."""
    condition = step.branch.operands[0]
    for op in [op.operation for op in step.branch.regions[0].blocks[0].operations][:-1]:
        if op not in step.copies:
            op.move_before(step.branch)
    for number, copy in enumerate(step.copies):
        with ir.InsertionPoint(_place(step, number)):
            branch = scf.IfOp(condition)
            with ir.InsertionPoint(branch.then_block):
                end = scf.YieldOp([])
            copy.move_before(end.operation)
    step.commit.move_before(_place(step, len(step.copies)))
    erase(step.branch)


def _place(step: _Step, number: int) -> ir.Operation:
    """The product in front of which a copy is issued."""
    result = step.products[0].results[0].type
    width = ir.VectorType(result).shape[0] if isinstance(result, ir.VectorType) else 1
    spacing = SHARE_OF_FEW * len(step.products) / len(step.copies)
    if spacing * width < LEAST_SPACING:
        spacing *= SHARE_OF_MANY / SHARE_OF_FEW
    return step.products[int(number * spacing)]
