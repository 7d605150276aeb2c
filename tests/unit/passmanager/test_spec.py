"""Options as text: round trips over every type, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirfuse.errors import PipelineError
from mlirfuse.passmanager.spec import options_of, parse_options, print_options, print_pass
from mlirfuse.passmanager.syntax import parse_pipeline, truncate
from tests.support.toy_passes import ToyOptions, ToyRequired

TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)
OPTIONS = st.builds(
    ToyOptions,
    count=st.integers(),
    fast_math=st.booleans(),
    scale=st.floats(allow_nan=False),
    label=TEXT | st.just("none"),
    dims=st.lists(st.integers(-9, 9), max_size=4).map(tuple),
    limit=st.none() | st.integers(),
    alias=st.none() | TEXT | st.just("none"),
    memory=st.sampled_from(["registers", "shared"]),
)


@given(OPTIONS)
def test_printed_options_parse_to_an_equal_pass(pass_: ToyOptions) -> None:
    assert parse_options(ToyOptions, print_options(pass_)) == pass_


@given(OPTIONS)
def test_a_printed_pass_is_one_element_of_a_pipeline(pass_: ToyOptions) -> None:
    first, second = parse_pipeline(f"builtin.module({print_pass(pass_)}, cse)")
    assert parse_options(ToyOptions, first.options) == pass_
    assert second.name == "cse"


def test_defaults_are_not_printed() -> None:
    assert print_pass(ToyOptions()) == "toy-options"
    assert print_pass(ToyOptions(fast_math=True, dims=(1, 2))) == "toy-options{fast-math=true dims=1,2}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ToyOptions()),
        ("fast-math", ToyOptions(fast_math=True)),
        ("fast-math=TRUE", ToyOptions(fast_math=True)),
        ("dims={1,2}", ToyOptions(dims=(1, 2))),
        ("dims={}", ToyOptions()),
        ("  count=4   label='a b' ", ToyOptions(count=4, label="a b")),
        ("limit=none", ToyOptions()),
        ('alias="none"', ToyOptions(alias="none")),
        ('label="say \\"hi\\""', ToyOptions(label='say "hi"')),
    ],
)
def test_accepted_forms(text: str, expected: ToyOptions) -> None:
    assert parse_options(ToyOptions, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuont=4", r"column 11: toy-options has no option 'cuont'\n.*did you mean 'count'"),
        ("count=4 count=5", r"column 19: option 'count' of toy-options is given twice"),
        ("count=four", r"column 11: option 'count' of toy-options cannot be 'four'\n.*it is int"),
        ("count", r"option 'count' of toy-options needs a value\n.*it is int"),
        ("count=", r"option 'count' of toy-options cannot be ''"),
        ("fast-math=yes", r"cannot be 'yes'\n.*it is bool"),
        ("dims=1,x", r"cannot be '1,x'\n.*it is tuple\[int, \.\.\.\]"),
        ("dims=", r"option 'dims' of toy-options cannot be ''"),
        ("count=none", r"option 'count' of toy-options cannot be 'none'"),
        ("limit=x", r"it is int\|none"),
        ("memory=disk", r"it is registers\|shared"),
    ],
)
def test_refused_options_name_option_and_column(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        parse_options(ToyOptions, text, 10)


def test_required_options() -> None:
    with pytest.raises(PipelineError, match=r"toy-required needs option 'size'\n.*it is int"):
        parse_options(ToyRequired, None)
    with pytest.raises(PipelineError, match="size -1 is not positive"):
        parse_options(ToyRequired, "size=-1")


def test_options_of_names_types_and_defaults() -> None:
    by_name = {option.name: option for option in options_of(ToyOptions)}
    assert list(by_name) == ["count", "fast-math", "scale", "label", "dims", "limit", "alias", "memory"]
    assert (by_name["limit"].type_name, by_name["limit"].default) == ("int|none", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected a pass or op name, found the end"),
        ("cse", "not anchored on builtin.module"),
        ("builtin.module(cse", r"column 15: '\(' is never closed"),
        ("builtin.module(cse,)", r"column 20: expected a pass or op name, found '\)'"),
        ("builtin.module(a b)", "column 18: expected ',' or '\\)', found 'b'"),
        ("builtin.module(cse))", r"column 20: unexpected '\)' after the pipeline"),
        ("builtin.module(a{b)", "column 17: '{' is never closed"),
        ("builtin.module(a{b='})", "column 20: a quoted string is never closed"),
    ],
)
def test_syntax_errors_name_the_column(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        parse_pipeline(text)


def test_truncate_reaches_into_nested_pipelines() -> None:
    elements = parse_pipeline("builtin.module(a,gpu.module(b,c{x=1}),b)")
    assert [",".join(map(str, truncate(elements, "b", n)[0])) for n in (1, 2)] == [
        "a,gpu.module(b)",
        "a,gpu.module(b,c{x=1}),b",
    ]
    assert truncate(elements, "b", 3)[1] == 1
