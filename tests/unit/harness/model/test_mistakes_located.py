"""A failure about what a user's method has returned begins with the line of that method."""

import functools
from pathlib import Path
from typing import Any

import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import mistakes

TEXT = """\
import functools


def decorated(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)
    return call


class Model:
    def forward(self):
        return None

    @decorated
    def train(self):
        return None


made = Model()
made.step = lambda: None
"""


@pytest.fixture
def model(tmp_path: Path) -> Any:
    """An object of a class in a file."""
    path = tmp_path / "net.py"
    names: dict[str, Any] = {}
    exec(compile(TEXT, str(path), "exec"), names)
    return names["made"]


@pytest.mark.parametrize(("name", "line"), [("forward", 12), ("train", 15), ("step", 21)])
def test_a_failure_has_the_line_of_the_method(model: Any, tmp_path: Path, name: str, line: int) -> None:
    method = getattr(model, name)
    with pytest.raises(CellFailure) as caught, mistakes.located(method, str(tmp_path)):
        raise CellFailure("crash", "it returned None", {"a": 1})  # type: ignore[no-untyped-call]
    assert (caught.value.reason, caught.value.facts) == (f"net.py:{line}: it returned None", {"a": 1})
    with pytest.raises(TypeError) as raised, mistakes.located(functools.partial(method), str(tmp_path)):
        raise TypeError("unknown type")
    assert mistakes.location_of(raised.value, str(tmp_path)) == f"net.py:{line}: "


@pytest.mark.parametrize("function", [print, pytest.raises, None])
def test_a_function_of_another_file_has_no_line(function: Any, tmp_path: Path) -> None:
    assert mistakes.defined_at(function, str(tmp_path)) == ""
    assert mistakes.defined_at(function, "") == ""
