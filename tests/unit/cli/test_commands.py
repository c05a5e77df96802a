"""Options with a single value are refused where they are given twice, in every command; lists may be repeated."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from runner import cli
from runner.cli import commands
from runner.core.errors import UsageError


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yield the words and the command of each command of the program, and the program itself."""
    waiting: list[tuple[str, Any]] = [("runner", get_command(cli.app))]
    while waiting:
        words, command = waiting.pop()
        yield words, command
        waiting += [(f"{words} {name}", each) for name, each in getattr(command, "commands", {}).items()]


OPTIONS = [
    pytest.param(command, option, id=f"{words} {option.opts[0]}")
    for words, command in all_commands()
    for option in command.params
    if option.param_type_name == "option" and option.name not in ("help", "version", "install_completion")
]


def words_of(option: Any, value: str) -> list[str]:
    return [option.opts[0]] if option.is_flag else [option.opts[0], value]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_an_option_is_given_once_or_is_a_list(command: Any, option: Any) -> None:
    context = command.context_class(command, info_name="x")
    twice = [*words_of(option, "1"), *words_of(option, "2")]
    if option.multiple:
        commands.refuse_repeated(command, context, twice)
        return
    with pytest.raises(UsageError) as caught:
        command.parse_args(context, twice)
    assert str(caught.value).startswith(f"error: {option.opts[0]} is given twice\nhint: ")


def test_there_are_options_of_both_kinds() -> None:
    options: list[Any] = [each.values[1] for each in OPTIONS]
    assert {option.multiple for option in options} == {True, False}
    assert len(OPTIONS) > 100


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("--threads 1 --threads 2", "--threads is given twice", "--threads 1,2,4 compares these counts in one run"),
        ("--threads=1 --rounds 3 --threads=1", "--threads is given twice", "--threads 1,2,4"),
        (
            "--python a --backend host --python b",
            "--python is given twice",
            "to compare interpreters, give neither --python nor --backend, and select python:PATH for each",
        ),
        (
            "--python a --python b --python c",
            "--python is given 3 times",
            "to compare interpreters, give neither --python nor --backend, and select python:PATH for each",
        ),
        (
            "--python a --python b --backend venv",
            "--python is given twice",
            "to compare interpreters, give neither --python nor --backend, and select python:PATH for each",
        ),
        ("--pin --no-pin", "--pin is given twice", "keep one of them"),
        ("--seed 1 --seed 2 --seed 3", "--seed is given 3 times", "keep one of them"),
    ],
)
def test_what_to_do_instead_is_said(words: str, message: str, hint: str) -> None:
    command: Any = dict(all_commands())["runner run"]
    with pytest.raises(UsageError) as caught:
        command.parse_args(command.context_class(command), words.split())
    assert str(caught.value).startswith(f"error: {message}\nhint: {hint}")


def test_completion_of_a_half_typed_line_refuses_nothing() -> None:
    command: Any = dict(all_commands())["runner run"]
    context = command.context_class(command, resilient_parsing=True)
    command.parse_args(context, ["--threads", "1", "--threads", "2"])


@pytest.mark.parametrize(
    ("file", "chosen", "expected"),
    [
        ("a.json", "table", "json"),
        ("a.JSON", "json", "json"),
        ("a.csv", "csv", "csv"),
        ("a.txt", "table", "table"),
        ("a", "csv", "csv"),
        ("2026-11.26", "table", "table"),
        ("a.svg", "table", "table"),
    ],
)
def test_the_name_of_a_file_says_its_format(file: str, chosen: str, expected: str) -> None:
    assert commands.format_of(Path(file), chosen, ("table", "json", "csv"), (".svg",)) == expected


def test_a_file_that_a_command_cannot_write_is_refused_before_anything_else() -> None:
    with pytest.raises(UsageError, match=r"a\.pdf: this command writes no PDF\nhint: name it a\.json, or a\.txt"):
        commands.format_of(Path("a.pdf"), "table", ("table", "json"))
    with pytest.raises(UsageError, match="is not a file for --format html"):
        commands.format_of(Path("a.csv"), "html", ("table", "csv", "html"))
    assert commands.format_of(Path("a.md"), "coverage", ("table", "json", "coverage")) == "coverage"
    refused = CliRunner().invoke(cli.app, ["plan", "-o", "plan.csv"])
    assert "plan.csv: this command writes no CSV" in str(refused.exception)
