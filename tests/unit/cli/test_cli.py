"""What the program does without a command, its version, its typed choices, and what the shell completes."""

import io
import os
import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from runner import __version__, cli
from runner.cli import completion, console, results
from runner.cli.groups import EXAMPLES, GROUPS
from runner.report import FORMATS
from tests.support.fake_runs import cell, make, rounds

MATRIX = """\
version: 1
environments:
  np-old: {framework: numpy, release: "2.4.6", python: "3.11", lock: numpy.txt}
  np-new: {framework: numpy, release: "2.4.6", python: "3.11", lock: numpy.txt}
workloads:
  rnn-step: {}
presets:
  tiny: {select: [rnn-step/rnn-b32-h128]}
"""


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, arguments, standalone_mode=False)


@pytest.fixture
def context(tmp_path: Path) -> typer.Context:
    """The context of a half-typed command, whose matrix and reports options were typed already."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    command = get_command(cli.app)
    click_context: Any = command.make_context("runner", [], resilient_parsing=True)
    click_context.params.update(matrix=tmp_path / "matrix.yaml", reports=tmp_path / "reports")
    click_like: typer.Context = click_context
    return click_like


def test_no_command_prints_three_commands_to_start_with_and_succeeds() -> None:
    shown = invoke()
    assert shown.exit_code == 0
    assert not shown.return_value
    commands = [line.split("  ")[1].split() for line in shown.stdout.splitlines() if line.startswith("  runner ")]
    assert [words[1] for words in commands] == ["run", "new", "open"]


def test_the_help_has_every_command_once_in_a_group_and_each_command_an_example() -> None:
    names = list(vars(get_command(cli.app))["commands"])
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(names)
    shown = invoke("--help").stdout
    assert all(re.search(rf"^  {name} ", shown, re.MULTILINE) for name in names)
    for name in names:
        assert EXAMPLES[name].split()[:2] == ["runner", name]
        assert f"Example:\n  {EXAMPLES[name]}\n" in invoke(name, "--help").stdout


def test_version_is_printed() -> None:
    shown = invoke("--version")
    assert (shown.exit_code, shown.stdout) == (0, f"runner {__version__}\n")


def test_formats_of_compare_are_those_of_the_report() -> None:
    (literal, _) = get_args(results.Format)
    assert set(get_args(literal)) == set(FORMATS)


@pytest.mark.parametrize("command", ["plan", "compare np-old np-new", "check", "doctor", "tune", "clocks", "schedule"])
def test_an_unknown_format_is_a_usage_error(command: str) -> None:
    shown = invoke(*command.split(), "--format", "xml")
    assert "'xml' is not one of " in str(shown.exception)


def test_environments_presets_and_workloads_are_completed_from_the_matrix(context: typer.Context) -> None:
    assert completion.environments(context, "np-") == ["np-old", "np-new"]
    assert completion.environments(context, "np-o") == ["np-old"]
    assert completion.presets(context, "") == ["tiny"]
    assert completion.workloads(context, "rnn") == ["rnn-step"]


NETWORK = """\
PHASES = ["prefill", "decode"]
class NumpyModel:
    def forward(self): ...
    def prefill(self): ...
    def decode(self): ...
"""


def test_phases_are_completed_from_the_program_and_from_model_files(context: typer.Context, tmp_path: Path) -> None:
    assert completion.phases(context, "for") == ["forward"]
    assert completion.phases(context, "dec") == []
    (tmp_path / "net.py").write_text(NETWORK)
    context.params["model"] = ["missing.py", "timm:resnet18", f"mine={tmp_path / 'net.py'}"]
    assert completion.phases(context, "dec") == ["decode"]
    assert completion.phases(context, "")[-2:] == ["prefill", "decode"]
    context.params["matrix"] = tmp_path / "none.yaml"
    assert "decode" in completion.phases(context, "")
    assert "compile-warm" in completion.phases(context, "")


def test_the_shell_completes_phases_of_a_model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    words = f"matrix-runner run --model {tmp_path / 'net.py'} --phase pre"
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", "5")
    done = CliRunner().invoke(cli.app, [], env={"_MATRIX_RUNNER_COMPLETE": "complete_bash"}, prog_name="matrix-runner")
    assert done.output.split() == ["prefill"]


def test_runs_are_completed_from_the_reports_folder(context: typer.Context, tmp_path: Path) -> None:
    assert completion.runs(context, "") == []
    run = make(tmp_path / "reports", rounds(cell(), [1.0]))
    assert completion.runs(context, run.id[:8]) == [run.id]
    assert completion.runs(context, "x") == []


@pytest.mark.parametrize("text", ["", "environments: [", "version: 1\nworkload: {}\n"])
def test_a_matrix_that_cannot_be_read_completes_nothing(context: typer.Context, text: str, tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(text)
    assert completion.environments(context, "") == []
    context.params["matrix"] = tmp_path / "none.yaml"
    assert completion.presets(context, "") == []


def test_completers_are_of_options_that_exist() -> None:
    parameters = {parameter.name for parameter in vars(get_command(cli.app))["commands"]["plan"].params}
    assert set(completion.COMPLETERS) <= parameters


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_gets_a_link_to_the_page_and_a_pipe_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    page = tmp_path / "a page.html"
    written, slave = os.openpty() if terminal else os.pipe()
    with os.fdopen(slave, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        console.emit_path(page)
        text = os.read(written, 4096).decode()
    os.close(written)
    uri = f"file://{tmp_path}/a%20page.html"
    expected = f"\033]8;;{uri}\033\\{page}\033]8;;\033\\" if terminal else str(page)
    assert text.rstrip() == expected


COLOUR_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "TERM")


class _Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),  # https://no-color.org: present and not an empty string
        ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_the_environment_and_the_terminal_choose_colours(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, terminal: bool, coloured: bool
) -> None:
    for name in COLOUR_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert console.colour(_Stream(terminal=terminal)) is coloured


@pytest.mark.parametrize(("when", "coloured"), [("always", True), ("never", False)])
@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR"])
def test_an_option_for_colours_overrides_the_environment(
    monkeypatch: pytest.MonkeyPatch, when: Literal["always", "never"], variable: str, *, coloured: bool
) -> None:
    for name in COLOUR_VARIABLES:  # set first, so that the ones that the option sets are removed again
        monkeypatch.setenv(name, "")
    monkeypatch.setenv(variable, "1")
    console.choose_colour(when)
    assert console.colour(_Stream(terminal=not coloured)) is coloured
