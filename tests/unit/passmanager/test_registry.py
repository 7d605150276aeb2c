"""Every registered pass keeps the conventions that let a reader find it: name, file, docstring, options, lit test."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import mlirfuse
from mlirfuse.compiler.pipeline import named, passes
from mlirfuse.errors import PipelineError
from mlirfuse.passmanager import registry
from mlirfuse.passmanager.base import Pass
from mlirfuse.passmanager.spec import options_of, parse_options, print_options
from mlirfuse.passmanager.syntax import parse_pipeline

ROOT = Path(mlirfuse.__file__).parent
LIT = Path(__file__).parents[3] / "test" / "lit"


@pytest.fixture(params=registry.names())
def pass_class(request: pytest.FixtureRequest) -> type[Pass]:
    return registry.lookup(request.param)


def test_name_file_and_lit_test_agree(pass_class: type[Pass]) -> None:
    _, *rooms, file = pass_class.__module__.split(".")
    prefix, _, stem = pass_class.name.partition("-")
    assert rooms[0] == registry.PACKAGES[prefix]
    assert file == stem.replace("-", "_")
    assert pass_class.__name__ == registry.class_name(pass_class.name)
    assert LIT.joinpath(*rooms, f"{stem}.mlir").is_file()


def test_every_pass_is_registered() -> None:
    """A class whose name or file does not follow from the pass's name would not be found."""
    for cls in _subclasses(Pass):
        if cls.__module__.startswith("mlirfuse."):
            assert registry.find(cls.name) is cls


def test_no_two_modules_could_have_the_same_pass() -> None:
    for package in registry.PACKAGES.values():
        stems = [path.stem for path in (ROOT / package).rglob("*.py") if path.stem != "__init__"]
        assert len(stems) == len(set(stems))


def _subclasses(cls: type[Pass]) -> set[type[Pass]]:
    for package in registry.PACKAGES.values():
        for path in (ROOT / package).rglob("*.py"):
            import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"))
    return set(cls.__subclasses__())


def test_order_is_the_pipelines() -> None:
    elements = parse_pipeline(named("fuse-lower-pipeline"))
    ours = dict.fromkeys(element.name for element in elements if registry.find(element.name))  # some run twice
    assert passes() == (*ours, "fuse-verify")
    assert set(registry.names()) == set(passes())


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
