"""What servers, engines and files wrote is text in all outputs: no escape sequence, no markup, no formula."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from typer.testing import CliRunner

from runner import cli
from runner.analysis import dataset
from runner.analysis.analyse import analyse, analyse_run
from runner.analysis.comparison_model import Comparison
from runner.cli import console, program
from runner.core.progress import LiveProgress
from runner.report import chart_file, render, report
from runner.session.results import comparison, write_report
from runner.store import samples
from runner.store.run import Run
from tests.support.fake_runs import bad, cell, good, make, times

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x9b31m[red]<script>alert(1)</script>\u202e*b*`c`\r\u2028"
FORMULA = "=cmd|' /C calc'!A0"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\ud800-\udfff]")
BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run in which everything that an environment or a machine can say is hostile."""
    records = []
    for number in (1, 2, 3):
        facts: dict[str, Any] = {"device_name": HOSTILE, "release": FORMULA, "driver": HOSTILE, "held_back": [HOSTILE]}
        facts |= {"gradient_errors": {HOSTILE: 1e-6}, "output_errors": {HOSTILE: 1e-7}}
        records += [good(BASE, number, times(1e-3), **facts), good(OTHER, number, times(2e-3), **facts)]
        failing = cell("torch-2.x", implementation="lstm-cell-basic")
        records.append(bad(failing, number, "crash", HOSTILE, **facts))
    made = make(tmp_path, records, cpu=HOSTILE, host=HOSTILE, kernel=HOSTILE)
    known = {**made.environments()}
    for name, each in known.items():
        known[name] = {**each, "packages": {HOSTILE: HOSTILE, "numpy": name + HOSTILE}, "python": HOSTILE + name}
    made.write_environments(known)
    return made


@pytest.fixture
def compared(run: Run) -> Comparison:
    """Its comparison."""
    return comparison(Path("nowhere.yaml"), run.path.parents[1], ["torch-1.0", "torch-2.x"], best=False)


@pytest.mark.parametrize("output", ["table", "md", "html", "csv", "json"])
def test_a_comparison_controls_no_terminal(output: str, compared: Comparison) -> None:
    text = render(compared, output)
    assert not CONTROLS.search(text)
    if output in {"html", "md"}:
        assert "<script>alert" not in text
    if output == "md":
        assert not re.search(r"(?<!\\)[*`]b", text), "what is Markdown there is shown as it is"


def test_a_chart_is_an_image_whatever_releases_are_called(run: Run, compared: Comparison, tmp_path: Path) -> None:
    names = {
        name: replace(each, version=HOSTILE, name=HOSTILE, short=HOSTILE) for name, each in compared.releases.items()
    }
    text = chart_file.content([compared], ".svg", names)
    assert isinstance(text, str)
    assert not CONTROLS.search(text)
    ET.fromstring(text)
    results = dataset.load_dataset(run)
    page = report(analyse(replace(results, machine={**results.machine, "cpu": HOSTILE})))["index.html"]
    assert not CONTROLS.search(str(page))


def test_with_colours_only_colours_are_escape_sequences(compared: Comparison) -> None:
    text = render(compared, "table", colour=True)
    assert "\x1b[" in text
    assert not CONTROLS.search(program.COLOURS.sub("", text))


def test_the_files_of_a_report_control_no_terminal_and_no_page(run: Run) -> None:
    write_report(analyse_run(run, 0.02), run)
    for name in ("index.html", "report.md", "samples.csv", "summary.json"):
        text = (run.path / name).read_text(encoding="utf-8")
        assert not CONTROLS.search(text), name
        assert name.endswith(("csv", "json")) or "<script>alert" not in text


def test_no_cell_of_a_table_for_spreadsheets_is_a_formula(run: Run, compared: Comparison, tmp_path: Path) -> None:
    write_report(analyse_run(run, 0.02), run)
    assert CliRunner().invoke(cli.app, ["export", "-o", f"{tmp_path}/x.csv", "--reports", str(tmp_path)]).exit_code == 0
    for text in (
        (run.path / "samples.csv").read_text(),
        (tmp_path / "x.csv").read_text(),
        render(compared, "csv"),
    ):
        cells = [value for row in csv.reader(io.StringIO(text)) for value in row]
        assert not [value for value in cells if value.startswith(("=", "@", "+", "\t"))]
    exported = samples.read(tmp_path / "x.csv")
    assert set(exported["release"]) == {"'" + FORMULA}
    assert exported["seconds"].min() > 0


@pytest.mark.parametrize("text", ["2.4.6", "-1.5", "+3", "-inf", "torch-2.x", "", "a=b"])
def test_numbers_and_names_are_left_as_they_are(text: str) -> None:
    assert samples.csv_text(text) == text
    frame = pd.DataFrame({"release": pd.Categorical([text, text]), "seconds": [1.0, -2.0]})
    rows = list(csv.reader(io.StringIO(samples.to_csv(frame).decode())))
    assert rows == [["release", "seconds"], [text, "1"], [text, "-2"]]


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd", "-2+3", "\t=1", "\r=1", "\uff1d1"])
def test_formulas_become_text(text: str) -> None:
    assert samples.csv_text(text).startswith("'")


@pytest.mark.parametrize("command", [["check"], ["accuracy"], ["compare", "torch-1.0", "torch-2.x"], ["list"]])
def test_commands_print_what_an_environment_said_as_text(command: list[str], run: Run) -> None:
    arguments = [*command, "--reports", str(run.path.parents[1])]
    shown = CliRunner().invoke(cli.app, arguments, standalone_mode=False)
    assert shown.exception is None, shown.exception
    assert shown.stdout
    assert not CONTROLS.search(shown.output)


def test_the_history_and_the_site_show_what_an_environment_said_as_text(run: Run, tmp_path: Path) -> None:
    for command in (
        ["history", "rebuild"],
        ["history"],
        ["history", BASE.id],
        ["history", "--format", "csv"],
        ["history", "prune", "--dry-run", "--days", "0"],
        ["report", "--site", f"{tmp_path}/site"],
    ):
        shown = CliRunner().invoke(cli.app, [*command, "--reports", str(tmp_path)], standalone_mode=False)
        assert shown.exception is None, (command, shown.exception)
        assert not CONTROLS.search(shown.output), command
        assert "\n=" not in shown.output
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) == 5, "index, run, device, two cells"
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not CONTROLS.search(text), page
        assert "<script>alert" not in text, page


def test_notes_keep_colours_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    console.note(HOSTILE + "\x1b[31mred\nnext")
    err = capsys.readouterr().err
    assert not CONTROLS.search(err)
    assert err.endswith("next\n")
    monkeypatch.setenv("FORCE_COLOR", "1")
    console.note("\x1b[31mred\x1b[0m \x1b[2J")
    assert capsys.readouterr().err == "\x1b[31mred\x1b[0m \\x1b[2J\n"


def test_the_live_table_takes_text_for_text() -> None:
    from rich.console import Console

    stream = io.StringIO()
    progress = LiveProgress(Console(file=stream, width=100))
    progress.status("torch-2.x", f"[/nothing] {HOSTILE}")
    progress.note(f"[/nothing] {HOSTILE}")
    Console(file=stream, width=200).print(progress.table())
    assert stream.getvalue().count("[/nothing]") == 2
    assert "\\x1b]0;pwned" in stream.getvalue()
    assert not CONTROLS.search(stream.getvalue())
