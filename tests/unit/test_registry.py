"""Every registered pass keeps the conventions that let a reader find it: name, file, docstring, options, lit test."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirfuse.errors import PipelineError
from mlirfuse.passes import registry
from mlirfuse.passes.base import Pass
from mlirfuse.passes.spec import options_of, parse_options, print_options
from mlirfuse.passes.syntax import parse_pipeline
from mlirfuse.pipeline import named

LIT = Path(__file__).parents[2] / "test" / "lit"


@pytest.fixture(params=registry.names())
def pass_class(request: pytest.FixtureRequest) -> type[Pass]:
    return registry.lookup(request.param)


def test_name_file_and_lit_test_agree(pass_class: type[Pass]) -> None:
    _, directory, file = pass_class.__module__.split(".")
    assert registry.PASSES[pass_class.name] == f"{pass_class.__module__}:{pass_class.__name__}"
    assert file == pass_class.name.replace("-", "_")
    assert pass_class.__name__ == "".join(word.capitalize() for word in pass_class.name.split("-"))
    assert (LIT / directory / f"{pass_class.name}.mlir").is_file()


def test_order_is_the_pipelines() -> None:
    pipeline = parse_pipeline(named("fuse-lower-pipeline", "sm_90a"))
    ours = [element.name for element in pipeline if element.name in registry.PASSES]
    assert registry.names() == (*ours, "fuse-verify")


def test_docstring_shows_ir(pass_class: type[Pass]) -> None:
    assert pass_class.__doc__ is not None
    assert registry.summary(pass_class).endswith(".")
    assert "```mlir" in pass_class.__doc__, "a pass's docstring shows the IR before and after"


def test_options_round_trip(pass_class: type[Pass]) -> None:
    required = [option.name for option in options_of(pass_class) if "MISSING" in repr(option.default)]
    assert not required, "passes have defaults for all options, so that --list-passes and flags work"
    default = pass_class()
    assert parse_options(pass_class, print_options(default)) == default
    for option in options_of(pass_class):
        assert option.type_name, f"{option.name} has a type with a text form"


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(PipelineError, match=r"unknown pass 'fuse-verfy'\n.*did you mean 'fuse-verify'"):
        registry.lookup("fuse-verfy")
