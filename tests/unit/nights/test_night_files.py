"""The file of a night: written and read as the same value, whichever program wrote it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import RecordError
from runner.nights.alert_entry import AlertEntry, alert_key
from runner.nights.night import KIND, Night
from runner.nights.night_files import night_path, read_night, read_nights, write_night
from runner.session.run_entry import change_entry
from runner.store.documents import NewerVersionError, newest
from runner.watch.alerts.overview import overview
from runner.watch.nightly.night_record import killed_nights
from tests.support.nights import BEFORE, change, many, night, run_of

CELLS = many(3)
ENTRY = AlertEntry(
    key=alert_key("torch-2.x", run_of(1)),
    action="opened",
    environment="torch-2.x",
    cells=(CELLS[0].id,),
    delivered=True,
)


def a_night() -> Night:
    """Return a night with all that a night can hold."""
    changes = [
        change(CELLS[0], run_of(1)),
        change(CELLS[1], run_of(1), against="anchor"),
        replace(change(CELLS[2], run_of(1), stands=False), again=None, state="no-time"),
    ]
    return replace(night(1, changes, CELLS, facts={"cuDNN": "9.2"}), failed=("a",), notes=("so",), alerts=(ENTRY,))


def stored_document(reports: Path) -> tuple[Path, dict[str, Any]]:
    """Write a night; return its file and what that holds."""
    path = write_night(a_night(), reports)
    return path, json.loads(path.read_text())


def as_version_1(document: dict[str, Any]) -> dict[str, Any]:
    """Return a night as version 1 had it: no stages, no anchors, and it confirmed only what it measured itself."""
    changes = [
        {name: value for name, value in each.items() if name not in ("against", "confirmed_in", "digest")}
        for each in document["changes"]
    ]
    pairs = [
        {**pair, "differences": [{n: v for n, v in each.items() if n != "kind"} for each in pair["differences"]]}
        for pair in document["pairs"]
    ]
    kept = {name: value for name, value in document.items() if name not in ("stage", "seconds", "alerts")}
    return {**kept, "version": 1, "changes": changes, "pairs": pairs}


def test_the_night_of_a_newer_program_is_read_and_never_written(tmp_path: Path) -> None:
    path, document = stored_document(tmp_path)
    path.write_text(json.dumps({**document, "version": 99, "state": "running"}))
    before = path.read_text()
    assert read_night(path).run == a_night().run
    assert list(killed_nights(tmp_path, "tonight")) == []
    with pytest.raises(NewerVersionError):
        write_night(a_night(), tmp_path)
    assert path.read_text() == before


def test_a_damaged_night_is_written_again(tmp_path: Path) -> None:
    path, _ = stored_document(tmp_path)
    path.write_text("{")
    write_night(a_night(), tmp_path)
    assert read_night(path).run == a_night().run


def test_a_night_of_the_future_is_the_oldest(tmp_path: Path) -> None:
    for name in ("20261120-023000-aaaa", "29361120-023000-bbbb"):
        write_night(replace(a_night(), run=name), tmp_path)
    assert list(read_nights(tmp_path)) == ["29361120-023000-bbbb", "20261120-023000-aaaa"]


def test_a_night_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, document = stored_document(tmp_path)
    assert read_night(path) == a_night()
    assert read_nights(tmp_path) == {run_of(1): a_night()}
    assert (document["version"], document["exit_code"]) == (newest(KIND), 1)
    assert list(document["changes"][0])[:2] == ["cell", "environment"], "people look for the cell first"


def test_alerts_history_and_nights_agree_on_what_version_1_confirmed(tmp_path: Path) -> None:
    path, document = stored_document(tmp_path)
    path.write_text(json.dumps(as_version_1(document)))
    old = read_night(path)
    assert [each.cell for each in old.slower] == [CELLS[0].id, CELLS[1].id]
    assert [change_entry(each).confirmed_in for each in old.changes] == [run_of(1), run_of(1), ""]
    assert (old.stage, old.alerts, old.pairs[0].differences[0].kind) == ("confirm", (), "speed")
    assert overview(tmp_path).alerts == ()


def test_of_a_newer_night_everything_is_read_that_is_known(tmp_path: Path) -> None:
    path, document = stored_document(tmp_path)
    newer = {**document, "version": newest(KIND) + 1, "weather": [1]}
    newer["changes"] = [{**each, "humidity": 0.4} for each in document["changes"]]
    path.write_text(json.dumps(newer))
    assert read_night(path) == a_night()


@pytest.mark.parametrize(
    "damage",
    [
        {"version": "2"},
        {"changes": None},
        {"seconds": {"a": "1.0"}},
        {"stage": "sleep"},
        {"alerts": [{"key": "a"}]},
        {"pairs": [{"environment": 1, "base": "b", "folder": "c"}]},
    ],
)
def test_a_night_of_another_shape_is_a_sentence_and_left_out(tmp_path: Path, damage: dict[str, Any]) -> None:
    path, document = stored_document(tmp_path)
    path.write_text(json.dumps({**document, **damage}))
    with pytest.raises(RecordError, match=str(path)):
        read_night(path)
    assert read_nights(tmp_path) == {}


def test_the_name_of_the_file_is_the_run_whatever_it_says(tmp_path: Path) -> None:
    path, document = stored_document(tmp_path)
    path.write_text(json.dumps({**document, "run": "../elsewhere", "state": "running"}))
    assert [run for run, _ in killed_nights(tmp_path, "tonight")] == [run_of(1)]
    assert read_night(path).state == "killed"
    assert not (tmp_path / "elsewhere.json").exists()


def test_the_night_of_an_alert_is_part_of_its_key() -> None:
    assert (ENTRY.key, ENTRY.night) == (f"torch-2.x-{run_of(1)}", run_of(1))
    assert replace(ENTRY, environment="torch-1.0").night == ""
    assert night_path(Path("reports"), BEFORE) == Path(f"reports/nights/{BEFORE}.json")
