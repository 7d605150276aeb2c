"""Compiling again where kernels spill, with an assembler that says what the test wants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

import mlirfuse as mf
from mlirfuse.compiler import compile as compile_module
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.feedback import Refused, kernel_of, without_spills
from mlirfuse.errors import CompileError, SharedMemoryError
from mlirfuse.lowering.ptx import spills
from mlirfuse.lowering.ptx.resources import KernelResources
from mlirfuse.lowering.ptx.to_ptx import KernelBinary, ptx
from mlirfuse.schedule.choice.attempts import MOST_AGAIN, MOST_LEAN


class Assembler:
    """Says of each new code of a kernel how many bytes it spills: the next number of the kernel's list, and then 0.

    Attributes:
        spilled: bytes, or an error, by kernel.
        codes: by kernel, the PTX texts that it was given, in order.
    """

    def __init__(self, spilled: dict[str, Sequence[int | Exception]]):
        self.spilled = spilled
        self.codes: dict[str, list[str]] = {}

    def __call__(self, binaries: Iterable[KernelBinary]) -> list[KernelResources]:
        return [self._resources(binary) for binary in binaries]

    def _resources(self, binary: KernelBinary) -> KernelResources:
        codes = self.codes.setdefault(binary.name, [])
        if binary.ptx not in codes:
            codes.append(binary.ptx)
        said = [*self.spilled.get(binary.name, ()), *[0] * len(codes)][codes.index(binary.ptx)]
        if isinstance(said, Exception):
            raise said
        return KernelResources(binary.name, 40, said, said, 0, 0, 0, 128, 1)


def _lowered() -> Lowered:
    """Two kernels: a normalised row, and a sum of the columns of another array."""

    @mf.fuse
    def fn(x, y):
        return x - mf.mean(x, axis=-1, keepdims=True), mf.sum(y, axis=0)

    return fn.lower(mf.TensorSpec((None, 4096), mf.float16), mf.TensorSpec((512, 384), mf.float32))


def _compiled(assembler: Assembler) -> tuple[Compiled, int]:
    """What was compiled, and how often."""
    lowered, calls = _lowered(), []

    def compile_once(attempts):
        calls.append(attempts)
        return lowered._compile(attempts)

    return without_spills(compile_once, assembler), len(calls)


def _texts(compiled: Compiled) -> dict[str, str]:
    return {name: binary.ptx for name, binary in compiled.binaries.items()}


@pytest.fixture(scope="module")
def plain() -> Compiled:
    return _lowered().compile(choose_again=False)


def test_without_spills_everything_is_compiled_and_assembled_once(plain):
    assembler = Assembler({})
    compiled, times = _compiled(assembler)
    assert times == 1
    assert _texts(compiled) == _texts(plain)
    assert {name: len(codes) for name, codes in assembler.codes.items()} == {"fn_0_kernel": 1, "fn_1_kernel": 1}
    assert not compiled.attempts
    assert "spilled" not in compiled.explain(verbose=True)


def test_a_kernel_that_spills_has_another_schedule_and_the_other_stays(plain):
    assembler = Assembler({"fn_0_kernel": [24]})
    compiled, times = _compiled(assembler)
    assert times == 2
    assert (
        compiled.binaries["fn_0_kernel"].ptx == assembler.codes["fn_0_kernel"][1] != plain.binaries["fn_0_kernel"].ptx
    )
    assert compiled.binaries["fn_1_kernel"].ptx == plain.binaries["fn_1_kernel"].ptx
    (attempt,) = compiled.attempts["fn_0"]
    assert (attempt.registers, attempt.spilled) == (40, 24)
    (line,) = [line for line in compiled.explain(verbose=True).splitlines() if "spilled" in line]
    assert "spilled 24 bytes a thread" in line
    assert "was chosen instead" in line


def test_each_stage_shows_what_was_taken():
    compiled, _ = _compiled(Assembler({"fn_0_kernel": [24]}))
    first = str(_lowered().compile(choose_again=False).module_at("gpu"))
    assert compiled.as_text("gpu") != first
    assert "fuse.attempts" not in compiled.as_text("tile")
    with compiled.module_at("linalg").context:
        assert "fuse.attempts" in str(compiled.module_at("linalg"))


def test_after_all_that_are_tried_the_least_spilling_is_kept():
    assembler = Assembler({"fn_0_kernel": [160, 96, 48, 64, 128, 192, 224]})
    compiled, times = _compiled(assembler)
    codes = assembler.codes["fn_0_kernel"]
    assert 1 + MOST_AGAIN < len(codes) <= 1 + MOST_AGAIN + MOST_LEAN
    assert times == 1 + len(codes)
    assert compiled.binaries["fn_0_kernel"].ptx == codes[2]
    assert "loses least by that, and was kept" in compiled.explain(verbose=True)


@pytest.mark.parametrize("second_stage", ["auto", "second_kernel"])
@pytest.mark.parametrize("spilled", [("fn_0_kernel",), ("fn_1_kernel",), ("fn_0_kernel", "fn_1_kernel")], ids=str)
def test_kernels_that_stay_are_not_compiled_again_and_nothing_else_changes(spilled, second_stage, monkeypatch):
    @mf.fuse(grid_reduction=second_stage)
    def fn(x, y):
        return x - mf.mean(x, axis=-1, keepdims=True), mf.sum(y, axis=0)

    lowered = fn.lower(mf.TensorSpec((None, 4096), mf.float16), mf.TensorSpec((8192, 384), mf.float32))
    anew = without_spills(lowered._compile, Assembler({key: [24, 8] for key in spilled}))
    made: list[set[str]] = []

    def counted(*arguments):
        found = ptx(*arguments)
        made.append(set(found))
        return found

    monkeypatch.setattr(compile_module, "ptx", counted)
    kept = without_spills(compile_module._Compilation(lowered), Assembler({key: [24, 8] for key in spilled}))
    assert _texts(kept) == _texts(anew)
    assert kept.infos == anew.infos
    assert kept.program == anew.program
    assert kept.schedules == anew.schedules
    assert sorted(map(str, kept.remarks.entries)) == sorted(map(str, anew.remarks.entries))
    assert len(made) == 3
    if len(spilled) == 1 and second_stage == "auto":
        assert made[1:] == [set(spilled)] * 2


def test_kernels_whose_calls_passes_rewrite_are_compiled_again():
    """`fuse-share-slices` passes the array in place of its pairs, which the call of the next time does not yet."""

    @mf.fuse
    def fn(x, y):
        return mf.sum(x, axis=-1), mf.sum(y[:, 0::2] * y[:, 1::2], axis=-1)

    lowered = fn.lower(mf.TensorSpec((512, 4096), mf.float16), mf.TensorSpec((64, 4096), mf.float32))
    first, *_ = lowered.compile(choose_again=False).binaries
    compiled = without_spills(compile_module._Compilation(lowered), Assembler({first: [24]}))
    anew = without_spills(lowered._compile, Assembler({first: [24]}))
    assert any("slices of others" in line for line in compiled.explain(verbose=True).splitlines())
    assert _texts(compiled) == _texts(anew)
    assert compiled.program == anew.program


def test_kernels_that_spill_are_chosen_again_together():
    compiled, times = _compiled(Assembler({"fn_0_kernel": [24], "fn_1_kernel": [8, 8]}))
    assert times == 3
    assert {name: len(tried) for name, tried in compiled.attempts.items()} == {"fn_0": 1, "fn_1": 2}


def _column_sums(columns: int) -> Lowered:
    return mf.fuse(lambda x: mf.sum(x, axis=0), target="sm_90a").lower(mf.TensorSpec((128, columns), mf.bfloat16))


@pytest.mark.parametrize(
    ("columns", "registers", "looked_at"),
    [(65536, (64,), 0), (1024, (80,), 1), (65536, (250, 40), 1), (65536, (250, 250, 40), 2)],
    ids=["few", "a block an SM", "too many", "too many twice"],
)
def test_a_kernel_of_too_many_registers_has_another_schedule_where_that_is_faster(columns, registers, looked_at):
    codes = list[str]()

    def assemble(binaries: Sequence[KernelBinary]) -> list[KernelResources]:
        (binary,) = binaries
        codes.extend([binary.ptx] if binary.ptx not in codes else [])
        return [KernelResources(binary.name, registers[codes.index(binary.ptx)], 0, 0, 0, 0, 0, 128, 1)]

    compiled = without_spills(compile_module._Compilation(_column_sums(columns)), assemble)
    assert len(codes) == len(registers)
    assert [binary.ptx for binary in compiled.binaries.values()] == codes[-1:]
    tried = next(iter(compiled.attempts.values()), ())
    assert [attempt.registers for attempt in tried] == [*registers[:looked_at]]
    assert ("took 250 registers a thread" in compiled.explain(verbose=True)) == (250 in registers)


def test_the_same_reports_give_the_same_code():
    said = {"fn_0_kernel": [24, 400], "fn_1_kernel": [8]}
    assert _texts(_compiled(Assembler(said))[0]) == _texts(_compiled(Assembler(said))[0])


def test_a_schedule_that_the_assembler_refuses_is_passed_over():
    assembler = Assembler({"fn_0_kernel": [24, CompileError("too many registers")]})
    compiled, _ = _compiled(assembler)
    assert compiled.binaries["fn_0_kernel"].ptx == assembler.codes["fn_0_kernel"][2]
    assert "cannot be compiled (too many registers)" in compiled.explain(verbose=True)


def test_the_first_schedule_s_error_is_the_user_s():
    with pytest.raises(CompileError, match="out of order"):
        _compiled(Assembler({"fn_1_kernel": [CompileError("out of order")]}))


def test_a_given_schedule_is_kept_and_explained(plain):
    """It is the user's: it spills what it spills."""
    tile = next(line for line in plain.explain(verbose=True).splitlines() if "fn_0: chosen tile" in line)
    compiled, _ = _compiled(Assembler({"fn_0_kernel": [24]}))
    schedule = compiled.attempts["fn_0"][0].schedule

    @mf.fuse(schedule={"fn_0": schedule})
    def fn(x):
        return x - mf.mean(x, axis=-1, keepdims=True)

    lowered = fn.lower(mf.TensorSpec((None, 4096), mf.float16))
    kept = without_spills(lowered._compile, Assembler({"fn_0_kernel": [24]}))
    assert str(schedule.tile) in tile
    assert kept.binaries["fn_0_kernel"].ptx == plain.binaries["fn_0_kernel"].ptx
    assert "it is given" in kept.explain(verbose=True)


def test_without_an_assembler_the_first_schedules_stay(plain, monkeypatch):
    monkeypatch.setattr(spills, "are_known", lambda _: False)
    compiled = _lowered().compile()
    assert _texts(compiled) == _texts(plain)
    assert "no ptxas is installed: spills are unknown" in compiled.explain(verbose=True)


def test_what_runs_nowhere_is_not_assembled(monkeypatch):
    def assemble(*_):
        raise AssertionError("the interpreter needs no machine code")

    monkeypatch.setattr("mlirfuse.lowering.ptx.spills.assemble_kernels", assemble)
    import numpy as np

    double = mf.fuse(lambda x: x + x, target="interpret")
    assert double(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_what_is_interpreted_is_compiled_once(monkeypatch):
    compiled = _lowered().compile_to_interpret()
    assert str(compiled.interpreted) == str(compiled.module_at("gpu"))
    plain = _lowered().compile(choose_again=False)
    assert _texts(compiled) == _texts(plain)
    assert compiled.remarks.entries == plain.remarks.entries

    def again(*_):
        raise AssertionError("the passes are run twice")

    monkeypatch.setattr("mlirfuse.compiler.compile.Compiled.module_at", again)
    import numpy as np

    assert mf.fuse(lambda x: x + x, target="interpret")(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_names_of_kernels():
    for name in ("f_0_kernel", "f_0_second_stage_kernel"):
        assert kernel_of(name) == "f_0"


@pytest.mark.parametrize("choose_again", [True, False])
def test_errors_of_passes_are_the_user_s(choose_again, monkeypatch):
    def refuse(*_):
        raise CompileError("no code for it")

    monkeypatch.setattr("mlirfuse.compiler.compile.ptx", refuse)
    with pytest.raises(CompileError, match="no code for it"):
        _lowered().compile(choose_again=choose_again)


def _too_much(kernel: str) -> SharedMemoryError:
    error = SharedMemoryError("it needs more shared memory than a block has")
    error.kernel = f"{kernel}_kernel"
    return error


def test_a_kernel_that_needs_too_much_shared_memory_gets_another_schedule() -> None:
    lowered = _lowered()
    _, chosen = lowered._compile({})
    calls = []

    def compile_once(attempts):
        calls.append(attempts)
        if len(calls) == 1:
            raise Refused(_too_much("fn_0"), chosen)
        return lowered._compile(attempts)

    compiled = without_spills(compile_once, lambda _: [])
    assert compiled.schedules["fn_0"] != chosen["fn_0"]
    assert compiled.schedules["fn_1"] == chosen["fn_1"]


def test_an_error_is_the_users_where_no_other_schedule_is_chosen() -> None:
    _, chosen = _lowered()._compile({})

    def compile_once(attempts):
        raise Refused(_too_much("fn_0"), chosen)

    with pytest.raises(SharedMemoryError, match="more shared memory"):
        without_spills(compile_once, lambda _: [])
