"""The survey's programs mean what NumPy makes of them; its runs lose nothing, and its figures are right."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.interpreter import run
from tests.support.pairwise import FULL

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
DOMAINS = (
    "transformer",
    "losses",
    "optimisers",
    "cnn",
    "quantisation",
    "statistics",
    "recurrent",
    "images",
    "planes",
    "slices",
    "reductions",
    "products",
    "unseen grids",
    "unseen models",
    "unseen learning",
    "unseen geometry",
    "unseen outside",
    "unseen second",
    "unseen third",
    "unseen fourth",
    "unseen fifth",
    "unseen sixth",
    "unseen seventh",
    "unseen eighth",
)
SAMPLED, IN_KERNELS = (1, 1) if FULL else (7, 3)
"""Of each domain's formulas each SAMPLED-th is run on tensors, and of those each IN_KERNELS-th as kernels too."""

SLACK = {"float8_e4m3fn": 5e-2, "float8_e5m2": 1e-1, "int8": 5e-2, "bfloat16": 2e-2, "float16": 4e-3}


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def _compare(program: Any, call: Callable[..., Any]) -> None:
    """Calls with small arrays, and compares with double precision by the 2-norm."""
    from survey_programs import numpy_arrays
    from survey_programs.draw import numpy_arrays_of

    arrays = numpy_arrays_of(program.arguments(small=True))
    wide = [a if a.dtype.kind in "bi" else a.astype(np.float64) for a in arrays]
    expected = program.fn(numpy_arrays, *wide)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = call(*arrays)
    found = found if isinstance(found, tuple | list) else (found,)
    slack = max(SLACK.get(a.dtype.name, 1e-5) for a in (*arrays, *found))
    assert [np.shape(f) for f in found] == [np.shape(e) for e in expected], program.name
    for one, exact in zip(found, expected, strict=True):
        exact = np.asarray(exact, np.float64)
        error = np.linalg.norm(np.asarray(one).astype(np.float64) - exact)
        assert error <= slack * np.linalg.norm(exact), program.name


def _on_tensors(program: Any) -> Callable[..., Any]:
    """The program as traced, in NumPy's own operations on whole tensors."""
    from survey_programs.draw import traced

    def call(*arrays: np.ndarray) -> Any:
        specs = [mf.TensorSpec(a.shape, a.dtype) for a in arrays]
        lowered = mf.fuse(traced(program, mf), target="sm_90a").lower(*specs)
        return run(lowered.module, program.fn.__name__, arrays)

    return call


@pytest.mark.parametrize("domain", DOMAINS)
def test_programs_mean_what_numpy_makes_of_them(domain: str) -> None:
    from survey_programs.draw import traced
    from survey_programs.table import programs

    formulas = {(p.label or p.fn.__name__, p.text): p for p in programs() if p.domain == domain}
    for number, program in enumerate(list(formulas.values())[DOMAINS.index(domain) % SAMPLED :: SAMPLED]):
        specs = [mf.TensorSpec(a.shape, a.dtype, name=a.name) for a in program.arguments()]
        text = mf.fuse(traced(program, mf), target="sm_90a").lower(*specs).as_text("linalg")
        assert "linalg.generic" in text, f"{program.name} is a view, which takes no time"
        _compare(program, _on_tensors(program))
        if number % IN_KERNELS == 0:
            _compare(program, mf.fuse(traced(program, mf), target="interpret"))


def test_random_programs_mean_what_numpy_makes_of_them() -> None:
    from survey_programs.generator import random_programs

    for program in random_programs(200)[:: 1 if FULL else 25]:
        _compare(program, _on_tensors(program))


def test_the_table_is_large_and_its_names_are_unique() -> None:
    from survey_programs.program import duplicates
    from survey_programs.table import programs

    table = programs()
    assert len(table) >= 200
    assert not duplicates(table)
    assert {program.domain for program in table} == set(DOMAINS)
    for program in table:
        assert all(extent > 0 for small in (False, True) for a in program.arguments(small) for extent in a.shape)
        assert sum(a.nbytes for a in program.arguments()) < 3e9


def test_random_programs_depend_on_their_seed_alone_and_are_as_large_as_promised() -> None:
    from survey_programs.generator import random_programs

    first, again, other = random_programs(200), random_programs(200), random_programs(200, seed=1)
    assert [(p.text, p.fn, p.sizes) for p in first] == [(p.text, p.fn, p.sizes) for p in again]
    assert [p.fn for p in first] != [p.fn for p in other]
    for program in first:
        assert 3 <= len(program.fn.steps) <= 12
        assert 15e6 <= sum(a.nbytes for a in program.arguments()) <= 260e6


def test_a_text_names_dtypes_extents_and_values() -> None:
    from survey_programs.program import Argument, parse

    found = parse("x:bf16[R,2*C] t:i32<V[R] s:f32+[R,1] n:f32~[V]", {"R": 3, "C": 5, "V": 9})
    assert found == (
        Argument("x", "bfloat16", (3, 10)),
        Argument("t", "int32", (3,), 9),
        Argument("s", "float32", (3, 1), "+"),
        Argument("n", "float32", (9,), "~"),
    )
    with pytest.raises(ValueError, match="what is"):
        parse("x:bf16[R] y", {"R": 3})


def _row(name: str, own: float, eager: float, compiled: float, **more: Any) -> dict[str, Any]:
    times = {"mlirfuse": own, "eager": eager, "torch.compile": compiled}
    speeds = {peer: time / own for peer, time in times.items() if peer != "mlirfuse"}
    row = {"name": name, "domain": "images", "failures": {}, "bytes": 4.26e8, "flops": 0.0, "product_dtype": "int8"}
    return row | {"microseconds": times, "speed": speeds} | more


def test_the_summary_is_against_the_faster_peer_and_the_roofline() -> None:
    from survey_results import add_roofline, summary

    failed = {"name": "c", "domain": "images", "failures": {"mlirfuse": "no"}}
    rows = [_row("a", 125.0, 250.0, 500.0), _row("b", 200.0, 900.0, 100.0, wrong=True), failed]
    for row in rows:
        add_roofline(row, "NVIDIA H200")
    assert rows[0]["roofline_us"] == pytest.approx(100.0)
    found = summary(rows)
    assert found["all"]["geomean"] == pytest.approx(1.0)
    assert found["all"]["at_least_1"] == 0.5
    assert found["all"]["share_of_roofline"] == pytest.approx(math.sqrt(0.8 * 0.5))
    assert [row["name"] for row in found["worst"]] == ["b", "a"]
    assert found["wrong"] == ["b"]
    assert list(found["failed"]) == ["c"]


def test_products_are_bound_by_the_rate_of_their_dtype() -> None:
    from survey_results import add_roofline

    row = _row("a", 1.0, 1.0, 1.0, flops=1979e8)
    add_roofline(row, "NVIDIA H200")
    assert (row["roofline_us"], row["bound"]) == (pytest.approx(100.0), "bytes")
    row["flops"] *= 2
    add_roofline(row, "NVIDIA H200")
    assert (row["roofline_us"], row["bound"]) == (pytest.approx(200.0), "products")


def test_targets_are_of_the_table_of_products_and_of_random_programs() -> None:
    from survey_results import add_roofline
    from survey_targets import checks

    rows = [_row("a", 100.0, 250.0, 500.0), _row("b", 110.0, 121.0, 121.0, domain="products", stack_bytes=8)]
    rows.append(_row("c", 250.0, 250.0, 250.0, domain="random"))
    for row in rows:
        add_roofline(row, "NVIDIA H200")
    missed = [check.name for check in checks(rows) if not check.passed]
    assert missed == ["random: speed", "b: bytes of stack", "c: of the bandwidth"]


def test_a_later_run_replaces_failures_but_no_failure_replaces_a_time(tmp_path: Path) -> None:
    from survey_results import append_row, read_rows, speed

    failure = {"name": "a", "failures": {"mlirfuse": "its process died"}}
    for row in (failure, _row("a", 1.0, 2.0, 3.0), failure):
        append_row(tmp_path / "rows.jsonl", row)
    (row,) = read_rows([tmp_path / "rows.jsonl"])
    assert speed(row) == 2.0


class Process:
    """Stands for a process that `Worker` may end."""

    def is_alive(self) -> bool:
        return False

    def join(self) -> None: ...


def _worker(play: Callable[[Any], None]) -> Any:
    from survey_workers import Worker

    ours, theirs = Pipe()
    Thread(target=lambda: (play(theirs), theirs.close()), daemon=True).start()
    return Worker(Process(), ours)


def test_what_a_dead_process_had_compiled_is_given_to_another() -> None:
    from survey_workers import Survey

    def dies_at_its_second(pipe: Any) -> None:
        for _ in range(2):
            pipe.send(("asks", None))
            name = pipe.recv()
            if name == "a":
                pipe.send(("ready", name))

    def compiles_all(pipe: Any) -> None:
        while True:
            pipe.send(("asks", None))
            if (name := pipe.recv()) is None:
                return
            pipe.send(("ready", name))

    rows: list[dict[str, Any]] = []
    survey = Survey(["a", "b", "c"], math.inf, rows.append)
    survey.talk([_worker(dies_at_its_second)])
    assert rows == [{"name": "b", "failures": {"mlirfuse": "its process died"}}]
    other = _worker(compiles_all)
    survey.talk([other])
    assert other.ready == ["c", "a"]


def test_the_command_line_lists_shards(capsys: pytest.CaptureFixture[str]) -> None:
    import survey

    every = survey.chosen(survey.parse_arguments(["--only", "^images"]))
    shards = [survey.chosen(survey.parse_arguments(["--only", "^images", "--shard", f"{i}/3"])) for i in range(3)]
    assert sorted(name for shard in shards for name in shard) == sorted(every)
    with pytest.raises(SystemExit):
        survey.parse_arguments(["--shard", "3/3"])
    assert "0 to N - 1" in capsys.readouterr().err


def test_runs_are_merged_into_one_summary(tmp_path: Path) -> None:
    import survey
    from survey_results import append_row

    for number in range(2):
        append_row(tmp_path / f"{number}.jsonl", _row(f"program {number}", 1.0, 2.0 + number, 9.0))
    runs = [str(tmp_path / f"{number}.jsonl") for number in range(2)]
    assert survey.main(["--merge", *runs, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "survey.json").read_text())
    assert found["summary"]["all"]["measured"] == 2
    assert found["summary"]["all"]["least"] == 2.0


def test_first_calls_are_timed_by_stage_and_compared(tmp_path: Path) -> None:
    runs = [tmp_path / "before.json", tmp_path / "after.json"]
    script = [sys.executable, str(BENCHMARKS / "first_calls.py")]
    one = ["--only", "^images vignette", "--json", str(runs[0])]
    said = subprocess.run([*script, *one], capture_output=True, text=True, check=True).stdout
    assert "first call: 1 programs" in said
    (row,) = json.loads(runs[0].read_text())
    assert {"trace", "graph", "schedule", "tile, gpu", "lower", "nvvm", "llvm", "choosing"} <= row["stages"].keys()
    assert sum(row["stages"].values()) <= row["seconds"]
    runs[1].write_text(json.dumps([row | {"ptx": "another"}]))
    compare = [*script, "--compare"]
    assert subprocess.run([*compare, str(runs[0]), str(runs[0])], capture_output=True, check=False).returncode == 0
    differing = subprocess.run([*compare, *map(str, runs)], capture_output=True, text=True, check=False)
    assert differing.returncode == 1
    assert "another ptx" in differing.stdout
