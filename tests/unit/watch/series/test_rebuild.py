"""What runs add to the history, and a rebuild makes again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.core.errors import DamagedRunWarning
from runner.history.database import History
from runner.session.remember import remember_run
from runner.stats.intervals import MARGIN
from runner.store.documents import sealed
from runner.store.run import Run
from runner.watch.series.accept import AcceptanceRequest, accept
from runner.watch.series.rebuild import Rebuilt, rebuild
from tests.support.fake_runs import bad, cell, make, rounds
from tests.support.histories import night

OLD, NEW = cell("torch-1.0"), cell("torch-2.x")


def measured(reports: Path, count: int = 3, *, later: int = 0) -> Run:
    """Make a run of two cells with some rounds."""
    run = make(reports, [*rounds(OLD, [1.0] * count), *rounds(NEW, [1.1] * count)], later=later)
    run.note("ended", how="done")
    return run


def url_of(reports: Path) -> str:
    return f"sqlite:///{reports}/history.db"


def rebuilt(reports: Path, note: Callable[[str], object] = print) -> Rebuilt:
    with History.open(url_of(reports)) as history:
        return rebuild(reports, history, MARGIN, note, ())


def runs_of(reports: Path) -> list[tuple[str, str]]:
    with History.open(url_of(reports)) as history:
        return [(row.run, row.kind) for row in history.runs()]


def test_a_rebuild_adds_what_the_runs_added_themselves(tmp_path: Path) -> None:
    first, second = measured(tmp_path), measured(tmp_path, later=10)
    notes: list[str] = []
    assert all(remember_run(run, MARGIN, url_of(tmp_path), notes.append) for run in (first, second, first))
    assert notes == []
    before = runs_of(tmp_path)
    again = rebuilt(tmp_path)
    assert (again.changed, again.unchanged) == (0, 2)
    (tmp_path / "history.db").unlink()
    assert rebuilt(tmp_path).changed == 2
    assert runs_of(tmp_path) == before


def test_a_night_brings_the_runs_that_confirmed_its_changes(tmp_path: Path) -> None:
    first = measured(tmp_path)
    path = tmp_path / "nights" / f"{first.id}.json"
    confirmation = measured(path.with_suffix(""), later=5)
    path.write_text(json.dumps({"changes": []}))
    assert remember_run(first, MARGIN, url_of(tmp_path), print)
    assert runs_of(tmp_path) == [(first.id, "night"), (confirmation.id, "confirmation")]
    assert rebuilt(tmp_path).unchanged == 2


def test_damaged_runs_are_named_and_left_out_and_others_stay(tmp_path: Path) -> None:
    damaged, sound = measured(tmp_path), measured(tmp_path, later=10)
    make(tmp_path, [], later=20)
    failed = make(tmp_path, [bad(OLD, 0, "crash", "it ended")], later=30)
    (damaged.path / "journal.jsonl").write_text("no journal\nat all\n")
    with History.open(url_of(tmp_path)) as history:
        history.add(night(1, kind="import"))
        history.add(night(2, source=f"{tmp_path}/runs/gone"))
    with pytest.warns(DamagedRunWarning, match=damaged.id):
        result = rebuilt(tmp_path)
    assert (result.damaged, result.changed, result.empty, result.gone) == ((damaged.id,), 1, 2, (night(2).run,))
    assert {run for run, _ in runs_of(tmp_path)} == {night(1).run, night(2).run, sound.id}
    assert damaged.id in result.text()
    assert failed.id not in result.text()


def test_a_run_without_a_time_is_named_and_keeps_no_other_out(tmp_path: Path) -> None:
    damaged, sound = measured(tmp_path), measured(tmp_path, later=10)
    lines = (damaged.path / "journal.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    lines[0] = sealed({**{key: value for key, value in first.items() if key != "sum"}, "at": "20.11.2026 10:45"})
    (damaged.path / "journal.jsonl").write_text("\n".join([lines[0].strip(), *lines[1:], ""]))
    notes: list[str] = []
    assert rebuilt(tmp_path, notes.append).damaged == (damaged.id,)
    assert [run for run, _ in runs_of(tmp_path)] == [sound.id]
    assert any("20.11.2026 10:45" in note for note in notes)


def test_a_run_that_was_resumed_replaces_what_it_was(tmp_path: Path) -> None:
    run = measured(tmp_path)
    assert remember_run(run, MARGIN, url_of(tmp_path), print)
    for record in rounds(NEW, [1.1] * 6)[3:]:
        run.add(record)
    assert remember_run(run, MARGIN, url_of(tmp_path), print)
    with History.open(url_of(tmp_path)) as history:
        assert [point.rounds for point in history.series(NEW.id)] == [6]


def test_a_history_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    run = measured(tmp_path)
    (tmp_path / "history.db").write_text("no database, but a text of some length " * 20)
    notes: list[str] = []
    assert not remember_run(run, MARGIN, url_of(tmp_path), notes.append)
    assert not remember_run(run, MARGIN, "postgresql://ann:hunter2@127.0.0.1:1/bench", notes.append)
    assert len(notes) == 2
    assert all(run.id in note and "runner history rebuild" in note and "hunter2" not in note for note in notes)


def test_runs_of_a_folder_whose_name_is_not_utf_8_enter(tmp_path: Path) -> None:
    reports = tmp_path / "caf\udce9"
    run = measured(reports)
    notes: list[str] = []
    assert remember_run(run, MARGIN, url_of(reports), notes.append)
    assert notes == []
    again = rebuilt(reports)
    assert (again.unchanged, again.damaged, again.gone) == (1, (), ())
    with History.open(url_of(reports)) as history:
        (row,) = history.runs()
    assert row.source == f"{tmp_path}/caf\\udce9/runs/{run.id}"
    shutil.rmtree(run.path)
    assert rebuilt(reports).gone == (run.id,)


def test_accepted_levels_come_back(tmp_path: Path) -> None:
    run = measured(tmp_path)
    at = "2026-11-24T12:00:00Z"
    accept(tmp_path, AcceptanceRequest(patterns=("torch-2.x",), run=None, reason="why", person="ann", at=at))
    assert rebuilt(tmp_path).levels == 1
    with History.open(url_of(tmp_path)) as history:
        (((cell_id, _), (level,)),) = history.levels().items()
    assert (cell_id, level.run, level.reason, level.person) == (NEW.id, run.id, "why", "ann")
    assert rebuilt(tmp_path).levels == 0
