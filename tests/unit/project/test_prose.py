"""The prose docs: their length, the paths that they name, and words that were retired."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlirfuse import dialect
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager import registry
from mlirfuse.support.renamed_names import RENAMED

ROOT = Path(__file__).parents[3]

PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])

MOST_LINES = {"architecture.md": 350, "contractions.md": 250}

TREES = ("benchmarks", "docs", "examples", "mlirfuse", "test", "tests")
"""Folders of the repository whose files a page may name."""

RETIRED = (
    "crossed tile",
    "finish=",
    "joint butterfl",
    "last arriver",
    "last_arriver",
    "late_addresses",
    "mailbox",
    "multiprocessor",
    "parked",
    "relayout",
    "shared end",
    "store factor",
    "turned factor",
    "turnstile",
)
"""Words that mlirfuse had of its own, as lower case. Plain words that mean something else too, such as "walk" and
"round", are left out, and so is what `renamed_names` has.
"""


@pytest.mark.parametrize("name", MOST_LINES)
def test_pages_are_short(name: str) -> None:
    assert len((ROOT / "docs" / name).read_text().splitlines()) <= MOST_LINES[name]


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in ROOT.glob("mlirfuse/**/*.py")}
    assert not {str(path): lines for path, lines in lengths.items() if lines > 400}
    assert sorted(lengths.values())[len(lengths) // 2] <= 130


def test_ir_tests_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in ROOT.glob("test/lit/**/*.mlir")}
    assert not {str(path): lines for path, lines in lengths.items() if lines > 400}


def test_the_glossary_is_short() -> None:
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert 0 < len(rows) - 1 <= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page: Path) -> None:
    named = paths_of(page.read_text())
    assert not {path for path in named if not (ROOT / path).exists()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = {link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()) if "://" not in link}
    assert not {link for link in links if not (page.parent / link).exists()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_retired_words(page: Path) -> None:
    text = page.read_text().lower()
    names = [name for kind in ("pass", "op", "attribute") for name in RENAMED[kind]]
    assert not {word for word in RETIRED if word in text}
    assert not {name for name in names if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_passes_and_ops_exist(page: Path) -> None:
    text = page.read_text()
    passes = set(re.findall(r"`((?:fuse|lower)-[a-z0-9-]+)`", text)) - {"lower-x", "fuse-x"}
    assert not passes - set(registry.names()) - set(pipeline.NAMED)
    assert not set(re.findall(r'"(fuse\.\w+)"\(', text)) - set(dialect.OPS)


def test_the_changelog_has_all_that_was_renamed() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    rows = [row for rows in RENAMED.values() for row in rows.items()]
    missing = [(old, new) for old, new in rows if not _has_row(text, old, new)]
    assert not missing


def _has_row(text: str, old: str, new: str) -> bool:
    names = (rf'`"?{re.escape(name)}=?"?`' for name in (old, new))
    return re.search(r" \| ".join(names), text) is not None


def test_paths_are_found() -> None:
    text = "see `mlirfuse/passes/x.py`, `tests/unit/`, `mlirfuse/passes/FOLDER/x.py`, `docs/*.md` and tests/gpu."
    assert paths_of(text) == {"mlirfuse/passes/x.py", "tests/unit/", "tests/gpu"}


def paths_of(text: str) -> set[str]:
    """Paths of the repository in a text, without those that have a placeholder: upper case, or an asterisk."""
    trees = "|".join(TREES)
    found = re.findall(rf"(?<![\w./~-])((?:{trees})/[\w./*-]*[\w/*])", text)
    return {path for path in found if "*" not in path and not re.search(r"(?:^|/)[A-Z]+(?:/|$)", path)}
