"""Tonight beside its last good run, its anchor and its series: what is measured in turns, and why."""

import functools
import shutil
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.nights.looks import earlier_nights
from runner.nights.night import Night
from runner.session.execution.recorder import Totals
from runner.store.run import Run
from runner.watch.nightly.compared import compared, read_earlier, read_series, restore_series, suspects
from runner.watch.nightly.requests import NightCandidate
from runner.watch.nightly.series_candidates import measured_before
from tests.support.changed_runs import change_header
from tests.support.fake_runs import cell, make, rounds
from tests.unit.watch.nightly.test_series import points

MARGIN = 0.02
STEP = [1.0] * 10 + [1.08] * 3


def ended(reports: Path, digest: str, later: int) -> Run:
    """Make a run that ended, of one cell in an environment of a certain content."""
    run = make(reports, rounds(cell(), [1.0, 1.05, 0.97]), later=later)
    change_header(
        run, digests={"torch-2.x": digest}, device="cpu", device_name="EPYC", backend="venv", at="2026-11-20T02:30:00Z"
    )
    run.note("ended", how="done")
    return run


def found_in(reports: Path, tonight: Run, series: Any) -> tuple[list[NightCandidate], frozenset[str], Night]:
    """Return what may have changed, the cells that were compared, and the night with those of the same environment."""
    results, totals = dataset.load_dataset(tonight), Totals(run=tonight, good=1, bad=())
    earlier = read_earlier(reports, totals, results, earlier_nights(reports), series)
    read = functools.partial(measured_before, reports, tonight)
    digests = tonight.journal().header["digests"]
    candidates, ids = suspects(results, digests, earlier, read, MARGIN)
    night = Night(
        run=tonight.id, at="", device="cpu", device_name="EPYC", backend="venv", notes=("torch 2.9.1",), changes=()
    )
    unchanged = [each for each in candidates if each.digest == each.baseline.digest]
    return candidates, ids, compared(night, [cell()], earlier, unchanged, MARGIN)


def test_a_change_of_level_is_measured_in_turns_with_the_night_before_it(tmp_path: Path) -> None:
    first, before, yesterday, tonight = (ended(tmp_path, f"d{later}", later) for later in range(4))
    between = before.id.replace("-104600-", "-104630-")
    runs = [*(f"202611{10 + number}-100000-aaaa" for number in range(8)), first.id, before.id, between]
    runs += [yesterday.id, tonight.id]
    series = points(STEP)
    named = tuple(each._replace(run=run, digest=run) for each, run in zip(series, runs, strict=True))
    candidates, ids, night = found_in(tmp_path, tonight, {cell().id: named})
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
    candidates, _, _ = found_in(tmp_path, ended(tmp_path, "d1", 1), {})
    assert {(candidate.against, candidate.series_p) for candidate in candidates} == {("baseline", None)}


def test_the_same_environment_is_not_measured_again_whatever_its_series_shows(tmp_path: Path) -> None:
    before, tonight = ended(tmp_path, "d0", 0), ended(tmp_path, "d0", 1)
    runs = [f"2026111{number}-100000-aaaa" for number in range(8)]
    series = points([1.0] * 6 + [1.2, 1.2, 1.2, 1.2])
    names = [*runs, before.id, tonight.id]
    named = tuple(each._replace(run=name) for each, name in zip(series, names, strict=True))
    candidates, _, night = found_in(tmp_path, tonight, {cell().id: named})
    assert {candidate.baseline.digest for candidate in candidates} <= {"d0"}
    assert [change.state for change in night.changes] == ["same-environment"] * len(candidates)


def test_what_may_have_changed_is_decided_without_a_file(tmp_path: Path) -> None:
    before, tonight = ended(tmp_path, "d0", 0), ended(tmp_path, "d1", 1)
    results, totals = dataset.load_dataset(tonight), Totals(run=tonight, good=1, bad=())
    earlier = read_earlier(tmp_path, totals, results, earlier_nights(tmp_path), {})
    shutil.rmtree(tmp_path)
    (candidate,), _ = suspects(results, {"torch-2.x": "d1"}, earlier, lambda _: {}, MARGIN)
    assert (candidate.baseline.run, candidate.digest) == (before.id, "d1")


def test_a_history_that_is_gone_is_made_again_so_that_a_night_finds_the_same(tmp_path: Path) -> None:
    run = ended(tmp_path, "d0", 0)
    lines: list[str] = []
    url = f"sqlite:///{tmp_path / 'history.db'}"
    restore_series(url, tmp_path, MARGIN, lines.append)
    series = read_series(url, "venv EPYC", lines.append)
    assert [point.run for point in series[cell().id]] == [run.id]
    later = ended(tmp_path, "d0", 1)
    restore_series(url, tmp_path, MARGIN, lines.append)
    assert later.id not in {point.run for point in read_series(url, "venv EPYC", lines.append)[cell().id]}
    assert lines == []
    restore_series(f"sqlite:///{tmp_path / 'history.db' / 'no'}", tmp_path, MARGIN, lines.append)
    assert "cannot be made" in lines[0]


def test_a_history_that_cannot_be_read_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "history.db").write_text("no database")
    lines: list[str] = []
    assert read_series(f"sqlite:///{tmp_path / 'history.db'}", "venv EPYC", lines.append) == {}
    assert "no series are looked at" in lines[0]
    assert capsys.readouterr().err == ""
