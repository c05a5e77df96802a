"""``runner compare --fail-on``: what it prints, and how it ends; and ``--issue`` beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import runner
from runner import cli
from runner.core.errors import GateError, UsageError
from tests.support.fake_runs import cell, make, rounds

SIDES = ("compare", "torch-1.12", "torch-2.x")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, arguments, standalone_mode=False)


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a run in which one of two tests is 10 % slower."""
    monkeypatch.chdir(tmp_path)
    base = [0.1, 0.1001, 0.0999, 0.10005, 0.09995]
    same, slower = ([factor * seconds for seconds in base] for factor in (1.0, 1.1))
    records = [*rounds(cell("torch-1.12"), base), *rounds(cell("torch-2.x"), slower)]
    other = {"phase": "forward"}
    make(Path("reports"), [*records, *rounds(cell("torch-1.12", **other), base), *rounds(cell(**other), same)])


def test_a_slower_test_ends_with_exit_code_8_after_the_table() -> None:
    shown = invoke(*SIDES, "--fail-on", "slower:5%")
    assert "10 % slower" in shown.stdout
    assert isinstance(shown.exception, GateError)
    assert shown.exception.exit_code == 8
    (line,) = [line for line in str(shown.exception).splitlines() if line.startswith("  slower: ")]
    assert line.startswith("  slower: asr-lstm/1x320-ce-short train, nn-lstm: 10 % slower (10 %), ")
    assert line.endswith("PyTorch 1.12 → 2.x")
    assert "1 of 2 comparisons breaks --fail-on slower:5%:" in str(shown.exception)


@pytest.mark.parametrize("conditions", [(), ("--fail-on", "slower:15%"), ("--fail-on", "undecided")])
def test_a_comparison_that_breaks_no_condition_succeeds(conditions: tuple[str, ...]) -> None:
    shown = invoke(*SIDES, *conditions)
    assert (shown.exit_code, shown.exception) == (0, None)


def test_json_has_the_conditions_and_the_cells_that_break_them() -> None:
    shown = invoke(*SIDES, "--format", "json", "--fail-on", "slower:5%,undecided")
    result = json.loads(shown.stdout)["gate"]
    cells = [each["cell"] for each in result["broken"]]
    assert cells == ["torch-2.x/nn-lstm/asr-lstm/1x320-ce-short/train/fp32"]
    assert (result["fail_on"], result["passed"], result["compared"]) == (["slower:5%", "undecided"], False, 2)
    assert "gate" not in json.loads(invoke(*SIDES, "--format", "json").stdout)


@pytest.mark.parametrize("command", [SIDES, ("run", "torch-1.12")])
def test_a_mistake_is_an_error_before_anything_is_done(command: tuple[str, ...]) -> None:
    shown = invoke(*command, "--fail-on", "slower:5")
    assert isinstance(shown.exception, UsageError)
    assert not shown.stdout


def test_a_chart_and_an_issue_are_written_before_the_gate_ends_the_command() -> None:
    for words, path in ((("-o", "chart.svg"), "chart.svg"), (("--issue", "-o", "issue.md"), "issue.md")):
        assert isinstance(invoke(*SIDES, *words, "--fail-on", "slower").exception, GateError)
        assert Path(path).stat().st_size > 500
    assert isinstance(invoke(*SIDES, "--issue", "--format", "json").exception, UsageError)


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("--format", "json"), "json"),
        (("-o", "made.csv"), "csv"),
        (("-o", "made.svg"), "a chart"),
        (("--issue",), "an issue"),
    ],
)
def test_why_is_refused_where_no_table_is_written(words: tuple[str, ...], output: str) -> None:
    shown = invoke(*SIDES, "--why", *words)
    assert isinstance(shown.exception, UsageError)
    assert f"--why adds lines to the table, and not to {output}" in str(shown.exception)
    assert not shown.stdout
    assert not [*Path().glob("made.*")]
    assert "reasons: --why" not in invoke(*SIDES, "--why").stdout
    assert isinstance(invoke("plan", "--why", "--format", "json").exception, UsageError)


def test_python_has_the_same_result() -> None:
    broken = runner.compare("torch-1.12", "torch-2.x", fail_on="slower:5%")
    assert broken.gate
    assert not broken.gate.passed
    assert "asr-lstm/1x320-ce-short train" in broken.gate_message
    passed = runner.compare("torch-1.12", "torch-2.x", fail_on="slower:15%")
    assert passed.gate
    assert (passed.gate.passed, passed.gate_message) == (True, "")
    assert runner.compare("torch-1.12", "torch-2.x").gate is None
