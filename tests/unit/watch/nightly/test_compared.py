"""Tonight beside its last good run, its anchor and its series: what is measured in turns, and why."""

from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.matrix import parse
from runner.nights.looks import read_history
from runner.session.context import Context
from runner.session.execution.recorder import Totals
from runner.session.preparation import RunSettings
from runner.store.run import Run
from runner.watch.nightly.compared import compare, read_series
from runner.watch.nightly.night import Night
from runner.watch.nightly.requests import Candidate
from tests.support.changed_runs import change_header
from tests.support.fake_runs import cell, make, rounds
from tests.unit.watch.nightly.test_series import points

MATRIX = 'version: 1\nworkloads: {rnn-step: {}}\nenvironments: {np: {framework: numpy, release: "2", image: x}}\n'
STEP = [1.0] * 10 + [1.08] * 3


def ended(reports: Path, digest: str, later: int) -> Run:
    """Make a run that ended, of one cell in an environment of a certain content."""
    run = make(reports, rounds(cell(), [1.0, 1.05, 0.97]), later=later)
    change_header(run, digests={"torch-2.x": digest}, device="cpu", device_name="EPYC", backend="venv", at="now")
    run.note("ended", how="done")
    return run


def compared(reports: Path, tonight: Run, series: Any) -> tuple[Night, list[Candidate], frozenset[str]]:
    results = dataset.load_dataset(tonight)
    settings = RunSettings(file=reports / "matrix.yaml", reports=reports, cache=reports)
    request: Any = None
    context = Context(
        matrix=parse(MATRIX.encode(), "m.yaml"), request=request, backend=request, settings=settings, gpus=()
    )
    night = Night(run=tonight.id, at="now", device="cpu", device_name="EPYC", backend="venv", notes=("torch 2.9.1",))
    return compare(night, Totals(run=tonight, good=1, bad=()), results, read_history(reports), series, context)


def test_a_change_of_level_is_measured_in_turns_with_the_night_before_it(tmp_path: Path) -> None:
    first, before, yesterday, tonight = (ended(tmp_path, f"d{later}", later) for later in range(4))
    between = before.id.replace("-104600-", "-104630-")
    runs = [*(f"202611{10 + number}-100000-aaaa" for number in range(8)), first.id, before.id, between]
    runs += [yesterday.id, tonight.id]
    series = points(STEP)
    named = tuple(each._replace(run=run, digest=run) for each, run in zip(series, runs, strict=True))
    night, candidates, ids = compared(tmp_path, tonight, {cell().id: named})
    assert ids == {cell().id}
    assert "torch 2.9.1" in night.notes
    (suspect,) = [candidate for candidate in candidates if candidate.against == "series"]
    assert (suspect.baseline.run, suspect.digest) == (before.id, "d3")
    assert suspect.series_p is not None
    assert suspect.row.reason.endswith(f"since run {between}")
    (baseline,) = [candidate for candidate in candidates if candidate.against == "baseline"]
    assert baseline.baseline.run == yesterday.id


def test_without_a_series_the_runs_decide(tmp_path: Path) -> None:
    ended(tmp_path, "d0", 0)
    _, candidates, _ = compared(tmp_path, ended(tmp_path, "d1", 1), {})
    assert {(candidate.against, candidate.series_p) for candidate in candidates} == {("baseline", None)}


def test_the_same_environment_is_not_measured_again_whatever_its_series_shows(tmp_path: Path) -> None:
    before, tonight = ended(tmp_path, "d0", 0), ended(tmp_path, "d0", 1)
    runs = [f"2026111{number}-100000-aaaa" for number in range(8)]
    series = points([1.0] * 6 + [1.2, 1.2, 1.2, 1.2])
    names = [*runs, before.id, tonight.id]
    named = tuple(each._replace(run=name) for each, name in zip(series, names, strict=True))
    _, candidates, _ = compared(tmp_path, tonight, {cell().id: named})
    assert candidates == []


def test_a_history_that_cannot_be_read_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "history.db").write_text("no database")
    lines: list[str] = []
    assert read_series(f"sqlite:///{tmp_path / 'history.db'}", "venv EPYC", lines.append) == {}
    assert "no series are looked at" in lines[0]
    assert capsys.readouterr().err == ""
