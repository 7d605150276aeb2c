"""From a traced function to kernels: the stages as objects that can be printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from mlir import ir

from mlirfuse.analysis.kernels import functions, host_function, kernels, symbol
from mlirfuse.compiler import pipeline
from mlirfuse.compiler.feedback import Attempts, Chosen, Refused, kernel_of, without_spills
from mlirfuse.compiler.host_program import HostProgram
from mlirfuse.compiler.kernel_info import KernelInfo, kernel_infos
from mlirfuse.compiler.predicted import Call, Predicted, Shapes, predicted
from mlirfuse.compiler.read_host import host_program
from mlirfuse.dialect.attributes import LAUNCH
from mlirfuse.dialect.module_target import set_target
from mlirfuse.errors import ArgumentError, MlirFuseError
from mlirfuse.lowering.ptx import spills
from mlirfuse.lowering.ptx.assembler import AssembledKernel, assemble_kernels, chosen_assembler
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.lowering.ptx.to_ptx import KernelBinary, ptx, to_nvvm
from mlirfuse.machine import machine_of
from mlirfuse.passes.kernels.assign_schedule import FuseAssignSchedule
from mlirfuse.passes.kernels.schedule_attempts import SPILLED, attach_attempts
from mlirfuse.passmanager.base import Remark, Remarks
from mlirfuse.passmanager.manager import Instrumentation, run_pipeline
from mlirfuse.schedule.schedule import Schedule, schedule_of
from mlirfuse.target import Target

if TYPE_CHECKING:
    from mlirfuse.compiler.problems import KernelProblems

STAGES = ("linalg", "tile", "gpu", "nvvm", "ptx")
"""The stages that have a text, in order."""

# Verification after every pass is slow; tests and mlirfuse-opt switch it on.
_FAST = Instrumentation(verify_each=False)


@dataclass(frozen=True)
class Lowered:
    """A traced function, before any pass.

    Attributes:
        module: the `linalg` stage; never changed.
        target: the architecture to compile for.
        notes: lines about the trace for `explain`.
        fast_math: whether roundings between operations may be left out, and subnormal numbers flushed.
        tuned: whether schedules that `mlirfuse tune` left on disk come before the cost model's.
        device: the name that CUDA reports for the device; None where only the target is known.
    """

    module: ir.Module
    target: Target
    notes: tuple[str, ...] = ()
    fast_math: bool = False
    tuned: bool = False
    device: str | None = None
    _at_kernels: list[tuple[ir.Module, Remarks]] = field(default_factory=list, repr=False, compare=False)

    def as_text(self, stage: str = "linalg") -> str:
        """The text of a stage, as `Compiled.as_text`; compiles the function for stages after `linalg`."""
        return str(self.module_with({})) if stage == "linalg" else self.compile().as_text(stage)

    def pipeline(self, name: str) -> str:
        """The text of a named pipeline, as this function is compiled."""
        return pipeline.named(name, fast_math=self.fast_math, tuned=self.tuned)

    def module_with(self, attempts: Attempts) -> ir.Module:
        """A copy of the module with the target and the attempts (schedules that were compiled before) as attributes."""
        module = _copy(self.module)
        set_target(module.operation, self.target, self.device)
        if attempts:
            with module.context, ir.Location.unknown():
                attach_attempts(host_function(module.operation), attempts)
        return module

    def with_kernels(self) -> tuple[ir.Module, Remarks]:
        """A copy of the module with kernels that have no schedules, which is made the first time; and the remarks."""
        if not self._at_kernels:
            self._at_kernels.append(_to_kernels(self, _FAST))
        module, remarks = self._at_kernels[0]
        return _copy(module), remarks

    def compile(self, *, choose_again: bool = True) -> Compiled:
        """Runs every pass and LLVM's backend; kernels that spill are compiled again with other schedules.

        Args:
            choose_again: whether to assemble the kernels, where there is an assembler, and to choose another schedule
                for those that spill, or to split them. Kernels for a GPU are assembled in any case, and cached.

        Raises:
            PassError: a requested schedule is illegal.
            CompileError: the backend, or the assembler, refuses a kernel.
        """
        if not choose_again:
            return without_spills(_Compilation(self), lambda _: [])
        from mlirfuse.compiler.split_kernels import with_split_kernels  # which needs this module

        found = without_spills(_Compilation(self))
        return with_split_kernels(self, found, lambda lowered: without_spills(_Compilation(lowered)))

    def compile_to_interpret(self) -> Compiled:
        """As `compile`, without an assembler; verified after every pass, with the module that the interpreter runs.

        Raises:
            PassError: a requested schedule is illegal.
            CompileError: the backend refuses a kernel.
        """
        return without_spills(_Compilation(self, interpreted=True), lambda _: [])

    def _compile(self, attempts: Attempts) -> tuple[Compiled, Chosen]:
        """Compiles the function once, given the attempts before, and returns it with the schedule of each kernel."""
        return _Compilation(self)(attempts)


def _to_kernels(lowered: Lowered, watch: Instrumentation) -> tuple[ir.Module, Remarks]:
    """A module with kernels that have no schedules, and the remarks of the passes."""
    text = pipeline.stage(pipeline.TO_KERNELS, fast_math=lowered.fast_math, tuned=lowered.tuned)
    with (module := lowered.module_with({})).context:
        return module, run_pipeline(module, text, instrumentation=watch)


class _Compilation:
    """Compiles a function several times, each time with other schedules for kernels that spilled the time before.

    Kernels without schedules are made once, and kernels whose schedules stay the same are not compiled again.
    """

    def __init__(self, lowered: Lowered, *, interpreted: bool = False):
        self._lowered, self._interpreted = lowered, interpreted
        self._watch = Instrumentation() if interpreted else _FAST
        self._kernels: ir.Module | None = None
        self._remarks = Remarks()
        self._before: tuple[Compiled, ir.Module] | None = None

    def __call__(self, attempts: Attempts) -> tuple[Compiled, Chosen]:
        """The compiled function, given the attempts before, with the schedule of each kernel.

        Raises:
            Refused: the compiler fails with these schedules.
        """
        lowered, module, at_gpu = self._lowered, self._without_schedules(), None
        with module.context:
            if attempts:
                attach_attempts(host_function(module.operation), attempts)
            remarks = self._run(module, pipeline.ASSIGN)
            chosen = {symbol(kernel): schedule_of(kernel) for kernel in kernels(module.operation)}
            kept = self._keep(module, chosen)
            try:
                later = self._run(module, f"{pipeline.TILE},{pipeline.GPU}")
                at_gpu = _copy(module) if self._interpreted else None
                last = run_pipeline(module, lowered.pipeline("fuse-thread-pipeline"), instrumentation=_FAST)
                infos = kept.infos | kernel_infos(module.operation)
                program = host_program(module.operation)
                to_nvvm(module.operation)
                binaries = kept.binaries | ptx(module.operation, lowered.target)
            except MlirFuseError as error:
                raise Refused(error, chosen) from error
        entries = [*self._remarks.entries, *remarks.entries, *kept.remarks, *later.entries, *last.entries]
        compiled = Compiled(lowered, program, infos, binaries, Remarks(entries), attempts, at_gpu, chosen)
        self._before = compiled, module
        return compiled, chosen

    def _without_schedules(self) -> ir.Module:
        """A module with kernels, made once, and verified after every pass where the interpreter runs them."""
        if not self._interpreted:
            module, self._remarks = self._lowered.with_kernels()
            return module
        if self._kernels is None:
            self._kernels, self._remarks = _to_kernels(self._lowered, self._watch)
        return _copy(self._kernels)

    def _run(self, module: ir.Module, passes: str) -> Remarks:
        text = pipeline.stage(passes, fast_math=self._lowered.fast_math, tuned=self._lowered.tuned)
        return run_pipeline(module, text, instrumentation=self._watch)

    def _keep(self, module: ir.Module, chosen: Chosen) -> _Kept:
        """Replaces kernels whose schedules are those of the time before by their declarations.

        Kernels are compiled again of which passes rewrite the calls: those with a second one, and with other arguments.
        """
        if self._before is None:
            return _Kept({}, {}, [])
        compiled, before = self._before
        declarations = {symbol(f): f for f in functions(before.operation) if LAUNCH in f.attributes}
        same = {
            name
            for name, kernel in {symbol(each): each for each in kernels(module.operation)}.items()
            if compiled.schedules.get(name) == chosen[name] and not _has_second_kernel(chosen[name])
            if declarations[name].attributes["function_type"] == kernel.attributes["function_type"]
        }
        for kernel in list(kernels(module.operation)):
            if symbol(kernel) in same:
                declarations[symbol(kernel)].clone(ir.InsertionPoint(kernel))
                kernel.erase()
        known = compiled.remarks.entries[len(self._remarks.entries) :]
        return _Kept(
            {name: info for name, info in compiled.infos.items() if kernel_of(name) in same},
            {name: binary for name, binary in compiled.binaries.items() if kernel_of(name) in same},
            [
                r
                for r in known
                if r.pass_name != FuseAssignSchedule.name and r.function and kernel_of(r.function) in same
            ],
        )


@dataclass(frozen=True)
class _Kept:
    """What stays of kernels that are not compiled again: launch metadata, PTX, and remarks behind the schedule."""

    infos: dict[str, KernelInfo]
    binaries: dict[str, KernelBinary]
    remarks: list[Remark]


def _has_second_kernel(schedule: Schedule) -> bool:
    return schedule.persistent_loop is not None and schedule.persistent_loop.has_second_kernel


@dataclass(frozen=True)
class Compiled:
    """A compiled function.

    Attributes:
        lowered: the traced function.
        program: the host's buffers and launches.
        infos: how to launch each kernel.
        binaries: each kernel's PTX.
        remarks: the passes' remarks.
        attempts: by kernel, the schedules that were compiled before: that spilled, or took more registers than assumed.
        at_gpu: the module at the `gpu` stage, where it was compiled to be interpreted; not to be changed.
        schedules: of each kernel, by its name before it is tiled.
    """

    lowered: Lowered
    program: HostProgram
    infos: Mapping[str, KernelInfo]
    binaries: Mapping[str, KernelBinary]
    remarks: Remarks = field(repr=False)
    attempts: Attempts = field(default_factory=dict, repr=False)
    at_gpu: ir.Module | None = field(default=None, repr=False)
    schedules: Chosen = field(default_factory=dict, repr=False)

    def as_text(self, stage: str) -> str:
        """The text of a stage: `linalg`, `tile`, `gpu`, `nvvm` or `ptx`.

        Each can be read by `mlirfuse-opt`, edited, and run through the rest of the pipeline. Raises `ArgumentError`
        for another stage.
        """
        if stage not in STAGES:
            raise ArgumentError(f"unknown stage {stage!r}", where="as_text", hint=f"stages: {', '.join(STAGES)}")
        if stage == "ptx":
            return "\n".join(binary.ptx for binary in self.binaries.values())
        return str(self.module_at(stage))

    def module_at(self, stage: str) -> ir.Module:
        """A new module at the `linalg`, `tile`, `gpu` or `nvvm` stage."""
        module = self.lowered.module_with(self.attempts)
        names = {"tile": "fuse-tile-pipeline", "gpu": "fuse-gpu-pipeline", "nvvm": "fuse-lower-pipeline"}
        with module.context:
            if stage in names:
                run_pipeline(module, self.lowered.pipeline(names[stage]))
            if stage == "nvvm":
                to_nvvm(module.operation)
        return module

    @cached_property
    def interpreted(self) -> ir.Module:
        """The module at the `gpu` stage that the interpreter runs; not to be changed."""
        return self.at_gpu or self.module_at("gpu")

    @cached_property
    def assembled(self) -> dict[str, AssembledKernel]:
        """The machine code of each kernel, by its name; raises `CompileError` without ptxas."""
        return dict(zip(self.binaries, assemble_kernels(self.binaries.values()), strict=True))

    @property
    def resources(self) -> list[KernelResources]:
        """Registers, spills and memory of each kernel, as ptxas reports them; raises `CompileError` without ptxas."""
        return [kernel.resources for kernel in self.assembled.values()]

    def predicted(self, shapes: Shapes | None = None) -> Predicted:
        """What a call is predicted to take on the device, or on the model of the target's: see `Predicted`.

        Args:
            shapes: of a call's arguments, in order, with None for numbers; None takes what is expected of extents that
                are known at run time only.

        Raises:
            ArgumentError: the shapes do not fit the arguments.
        """
        from mlirfuse.compiler.problems import expected_shapes  # which needs this module

        target = self.lowered.target
        call = Call(self.program, shapes, expected_shapes(self.lowered))
        problems = self._problems.of(call.shapes)
        machine = machine_of(target, self.lowered.device)
        return predicted(call, self.schedules, problems, target, machine, self.infos)

    @cached_property
    def _problems(self) -> KernelProblems:
        from mlirfuse.compiler.problems import KernelProblems  # which needs this module

        return KernelProblems(self.lowered)

    def explain(self, *, shapes: Shapes | None = None, verbose: bool = False) -> str:
        """What was compiled, and why, as text.

        A summary comes first: kernels, what bounds each, predicted and roofline time, and the first three candidates
        that each schedule was chosen among, with the parts of their predictions in microseconds. Where the function
        transposes anything, or a convolution is given its channels first, a line names the kernels that do so.

        Args:
            shapes: of a call's arguments, which times are predicted for; see `predicted`.
            verbose: whether the remarks of all passes follow, one a line: what was fused, what was not and why.

        Raises:
            ArgumentError: the shapes do not fit the arguments.
        """
        from mlirfuse.compiler.explanation import summary  # which imports rich, as calls need not
        from mlirfuse.compiler.layout_changes import layout_changes  # which only explain needs

        remarks = [str(remark) for remark in self.remarks.entries]
        spilled = [remark for remark in remarks if SPILLED in remark]
        found = self.predicted(shapes)
        problems = {kernel.name: kernel.problem for kernel in found.kernels}
        lines = [
            *self.lowered.notes,
            *self.program.views(),
            summary(found),
            *layout_changes(host_function(self.lowered.module.operation), self.program, problems),
            *(remarks if verbose else spilled),
        ]
        if not spills.are_known(self.lowered.target):
            lines.append(
                "no ptxas is installed: spills are unknown, and no other schedule is chosen for kernels that spill"
            )
        lines.append(f"assembled by {chosen_assembler(self.lowered.target)}")
        if not verbose:
            lines.append(f"{len(remarks)} remarks of passes: explain(verbose=True), or mlirfuse explain --verbose")
        return "\n".join(lines)


def _copy(module: ir.Module) -> ir.Module:
    with module.context:
        copy = ir.Module.create(module.operation.location)
        for name in module.operation.attributes.keys():
            copy.operation.attributes[name] = module.operation.attributes[name]
        for op in module.body.operations:
            copy.body.append(op.operation.clone())
    return copy
