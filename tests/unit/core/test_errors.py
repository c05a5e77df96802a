"""What an error looks like, and the exit code that each one ends the program with."""

import itertools

import pytest

from runner.core import errors
from runner.core.errors import Problem, ProvisionError, RunnerError, Where

CODES = {
    "RunnerError": 1,
    "ProvisionError": 1,
    "MatrixError": 2,
    "UsageError": 2,
    "NothingSelectedError": 3,
    "EngineError": 4,
    "GpuError": 5,
    "RecordError": 6,
    "InterruptedRunError": 130,
}


def classes() -> dict[str, type[RunnerError]]:
    found = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    return {name: value for name, value in found.items() if issubclass(value, RunnerError)}


def test_every_error_has_the_exit_code_of_the_design() -> None:
    assert {name: found.exit_code for name, found in classes().items()} == CODES


def test_every_code_of_the_design_has_an_error() -> None:
    assert set(CODES.values()) == {1, 2, 3, 4, 5, 6, 130}


@pytest.mark.parametrize("name", [name for name in CODES if name != "RunnerError"])
def test_every_error_can_be_caught_as_one_and_none_is_another(name: str) -> None:
    assert classes()[name].__bases__ == (RunnerError,)
    assert not issubclass(RunnerError, (OSError, ValueError, SystemExit))
    assert classes()[name].__doc__


def test_a_sentence_alone() -> None:
    assert str(Problem("there is no engine")) == "error: there is no engine"


def test_a_hint_stands_on_its_own_line() -> None:
    assert str(Problem("there is no engine", hint="start it")) == "error: there is no engine\nhint: start it"


def test_a_place_comes_with_its_line_and_carets() -> None:
    where = Where("matrix.yaml", 5, 13, "    python: 3.10", 4)
    problem = Problem("python must be text, and YAML read a number", where, "put it in quotes: '3.10'")
    assert (
        str(problem)
        == """\
matrix.yaml:5:13: error: python must be text, and YAML read a number
    5 |     python: 3.10
      |             ^^^^
hint: put it in quotes: '3.10'"""
    )


def test_the_first_column_and_a_long_line_number() -> None:
    assert (
        str(Problem("unknown key 'x'", Where("m.yaml", 12345, 1, "x: 1")))
        == """\
m.yaml:12345:1: error: unknown key 'x'
12345 | x: 1
      | ^"""
    )


def test_carets_stand_under_what_they_mean() -> None:
    for column, width in itertools.product((1, 3, 8), (1, 2, 5)):
        text = "0123456789abc"
        _, line, carets = str(Problem("it", Where("f", 1, column, text, width))).splitlines()
        marked = "".join(letter for letter, caret in zip(line, carets, strict=False) if caret == "^")
        assert marked == text[column - 1 : column - 1 + width]


def test_something_of_no_width_still_gets_a_caret() -> None:
    assert str(Problem("it", Where("f", 1, 1, "x", 0))).endswith("      | ^")


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_line_is_not_shown(text: str) -> None:
    assert str(Problem("the file is empty", Where("f", 1, 1, text))) == "f:1:1: error: the file is empty"


def test_an_error_shows_all_its_problems_with_a_gap_between() -> None:
    error = RunnerError(Problem("one", hint="first"), "two")
    assert str(error) == "error: one\nhint: first\n\nerror: two"
    assert error.problems == (Problem("one", hint="first"), Problem("two"))


def test_an_environment_that_could_not_be_made_keeps_its_class_and_log() -> None:
    error = ProvisionError("image-build", "no wheel", log="last line")
    assert (error.code, error.log, str(error)) == ("image-build", "last line", "error: no wheel")
    assert ProvisionError("import", "no").log == ""
