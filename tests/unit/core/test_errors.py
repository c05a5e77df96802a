"""The text of errors, and their exit codes."""

import itertools
import re
from pathlib import Path

import pytest

from runner.core import errors
from runner.core.errors import Problem, ProvisionError, RunnerError, Where

DOCUMENTED = (Path(__file__).parents[3] / "docs" / "errors.md").read_text("utf-8")
CLASSES = {
    name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, RunnerError)
}


def test_every_error_class_is_documented_with_its_exit_code() -> None:
    headings = re.findall(r"^### (\w+Error) \(exit (\d+)\)$", DOCUMENTED, re.MULTILINE)
    assert {name: int(code) for name, code in headings} == {name: error.exit_code for name, error in CLASSES.items()}


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "RunnerError"])
def test_every_error_is_a_runner_error_and_nothing_else(name: str) -> None:
    assert CLASSES[name].__bases__ == (RunnerError,)
    assert not issubclass(RunnerError, (OSError, ValueError, SystemExit))
    assert CLASSES[name].__doc__


def test_problem_without_place_and_hint_is_a_sentence() -> None:
    assert str(Problem("there is no engine")) == "error: there is no engine"


def test_hint_has_its_own_line() -> None:
    assert str(Problem("there is no engine", hint="start it")) == "error: there is no engine\nhint: start it"


def test_place_is_shown_with_line_and_carets() -> None:
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


def test_caret_in_the_first_column_after_a_long_line_number() -> None:
    assert (
        str(Problem("unknown key 'x'", Where("m.yaml", 12345, 1, "x: 1")))
        == """\
m.yaml:12345:1: error: unknown key 'x'
12345 | x: 1
      | ^"""
    )


def test_carets_underline_the_given_columns() -> None:
    for column, width in itertools.product((1, 3, 8), (1, 2, 5)):
        text = "0123456789abc"
        _, line, carets = str(Problem("it", Where("f", 1, column, text, width))).splitlines()
        marked = "".join(letter for letter, caret in zip(line, carets, strict=False) if caret == "^")
        assert marked == text[column - 1 : column - 1 + width]


def test_width_of_0_has_one_caret() -> None:
    assert str(Problem("it", Where("f", 1, 1, "x", 0))).endswith("      | ^")


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_line_is_not_shown(text: str) -> None:
    assert str(Problem("the file is empty", Where("f", 1, 1, text))) == "f:1:1: error: the file is empty"


def test_error_shows_all_problems_with_an_empty_line_between() -> None:
    error = RunnerError(Problem("one", hint="first"), "two")
    assert str(error) == "error: one\nhint: first\n\nerror: two"
    assert error.problems == (Problem("one", hint="first"), Problem("two"))


def test_provision_error_has_a_class_and_a_log() -> None:
    error = ProvisionError("image-build", "no wheel", log="last line")
    assert (error.code, error.log, str(error)) == ("image-build", "last line", "error: no wheel")
    assert ProvisionError("import", "no").log == ""
