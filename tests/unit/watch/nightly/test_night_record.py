"""What a night leaves that ended too early, and what the next night says of one that was killed."""

import json
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import EngineError, RecordError
from runner.core.model import Cell
from runner.nights.looks import earlier_nights
from runner.nights.night import Night, Stage
from runner.watch.nightly.night_record import NightFile, killed_nights
from tests.support.fake_runs import cell, make, rounds

TONIGHT = "20261121-023000-ffff"


def the_file(reports: Path, run: str, stage: Stage = "resolve") -> NightFile:
    night = Night(
        run=run,
        at="2026-11-20T10:45:00Z",
        device="cpu",
        device_name="EPYC",
        backend="venv",
        state="running",
        stage=stage,
        changes=(),
    )
    return NightFile(night, reports, lambda _: None)


def stored(reports: Path, run: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((reports / "nights" / f"{run}.json").read_text())
    return document


def half_a_run(reports: Path) -> str:
    """Make a run of two cells that did not end; return its id."""
    other: Cell = cell("torch-2.x", "lstm-cell-basic")
    run = make(reports, [*rounds(cell(), [1.0, 1.0]), *rounds(other, [2.0])])
    return run.id


def test_the_file_says_what_the_night_does_from_its_start(tmp_path: Path) -> None:
    file, lines = the_file(tmp_path, TONIGHT), list[str]()
    with file.recorded(lines.append):
        assert stored(tmp_path, TONIGHT)["state"] == "running"
        assert stored(tmp_path, TONIGHT)["stage"] == "resolve"
        file.enter("measure", "torch 2.9.1 is new")
        assert stored(tmp_path, TONIGHT)["stage"] == "measure"
        assert stored(tmp_path, TONIGHT)["notes"] == ["torch 2.9.1 is new"]
    assert lines == []


@pytest.mark.parametrize(
    ("error", "state", "word"),
    [
        (KeyboardInterrupt(), "interrupted", "interrupted"),
        (EngineError("the engine is gone"), "failed", "engine is gone"),
    ],
)
def test_a_night_that_ends_half_way_keeps_its_half_and_says_so(
    tmp_path: Path, error: BaseException, state: str, word: str
) -> None:
    run, lines = half_a_run(tmp_path), list[str]()
    with pytest.raises(type(error)), the_file(tmp_path, run, "measure").recorded(lines.append):
        raise error
    night = stored(tmp_path, run)
    assert (night["state"], night["stage"]) == (state, "measure")
    assert word in night["notes"][-1]
    assert f"3 records of 2 tests are kept in run {run}; `runner run --resume" in lines[-1]


def test_an_interrupt_while_alerts_are_sent_keeps_what_was_sent(tmp_path: Path) -> None:
    file = the_file(tmp_path, TONIGHT, "alert")
    with pytest.raises(KeyboardInterrupt), file.recorded(list[str]().append):  # noqa: PT012  the alerts store it
        (tmp_path / "nights" / f"{TONIGHT}.json").write_text('{"state": "done", "alerts": [1]}')
        raise KeyboardInterrupt
    assert stored(tmp_path, TONIGHT) == {"state": "done", "alerts": [1]}


def test_a_full_disk_does_not_hide_the_error_of_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = the_file(tmp_path, TONIGHT)
    file.write(file.night)

    def full(*_: object) -> Path:
        raise RecordError("no space left on device")

    with pytest.raises(EngineError), file.recorded(list[str]().append):  # noqa: PT012  the disk is full from then on
        monkeypatch.setattr("runner.watch.nightly.night_record.write_night", full)
        raise EngineError("gone")


def test_a_killed_night_is_named_once_with_what_it_left(tmp_path: Path) -> None:
    run = half_a_run(tmp_path)
    the_file(tmp_path, run, "measure").write(the_file(tmp_path, run, "measure").night)
    the_file(tmp_path, TONIGHT).write(the_file(tmp_path, TONIGHT).night)
    ((killed, note),) = killed_nights(tmp_path, TONIGHT)
    assert killed == run
    assert f"night {run} was killed while it measured; 3 records of 2 tests are kept in run {run}" in note
    assert stored(tmp_path, run)["state"] == "killed"
    assert stored(tmp_path, run)["notes"] == [note]
    assert stored(tmp_path, TONIGHT)["state"] == "running"
    assert list(killed_nights(tmp_path, TONIGHT)) == []


def test_a_night_killed_before_its_run_left_nothing(tmp_path: Path) -> None:
    earlier = "20261120-023000-aaaa"
    the_file(tmp_path, earlier).write(the_file(tmp_path, earlier).night)
    ((_, note),) = killed_nights(tmp_path, TONIGHT)
    assert note == f"night {earlier} was killed while it looked for new releases; nothing was measured"


def test_damaged_files_and_finished_nights_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "nights"
    folder.mkdir()
    for name, content in {"a": "{", "b": "[]", "c": '{"state": "done"}', "d": "{}"}.items():
        (folder / f"{name}.json").write_text(content)
    assert list(killed_nights(tmp_path, TONIGHT)) == []
    assert (folder / "c.json").read_text() == '{"state": "done"}'


@pytest.mark.parametrize(("stage", "counted"), [("resolve", 0), ("measure", 0), ("compare", 1), ("confirm", 1)])
def test_a_night_that_never_compared_says_nothing_about_any_cell(tmp_path: Path, stage: Stage, counted: int) -> None:
    file = the_file(tmp_path, TONIGHT, stage)
    file.write(file.night)
    assert len(earlier_nights(tmp_path).nights) == counted
