"""The copy of a large run's tables: it gives what the records give, and hides no damage to them."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from runner.analysis import dataset, table_copy
from runner.analysis.model import Dataset
from runner.core.errors import DamagedRunWarning
from runner.core.model import Record
from runner.store import records as stored_records
from runner.store.run import Run
from tests.support.fake_runs import bad, cell, good, make

FIELDS = ("run", "plan", "machine", "environments", "canary", "looks", "warnings", "provenance")
SEVERAL_TYPES: tuple[dict[str, Any], ...] = (
    {"steady": True, "cpus": [0, 1], "clock_mhz": {"0": 2400.0}, "batch": 1, "turns": [2, 1], "turns_with": "1/0"},
    {"steady": False, "cpus": None, "clock_mhz": [2400, 2401.5], "throttled": 1, "threads": None},
    {"steady": None, "clock_mhz": 2400, "throttled": True, "corpus": {"name": 'ä"\n'}, "host_bound": False},
)


@pytest.fixture(autouse=True)
def _every_run_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_copy, "MIN_RECORDS", 1)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with good and failed records, a canary, and facts of several types, that has a copy."""
    other = cell("tf-1.15", "lstm-block-fused-cell", phase="forward")
    records = [good(cell(), number, [0.3, 1 / 3, 0.1], **facts) for number, facts in enumerate(SEVERAL_TYPES, 1)]
    records += [bad(other, 1, "oom", "too much"), good(other, 2, [0.5]), bad(other, 3, "crash", "")]
    run = make(tmp_path, records)
    run.note("canary", case="rnn-step/lstm-b32-h128", round=1, seconds=0.25)
    run.note("ended", how="done")
    dataset.load_dataset(run)
    assert (run.path / table_copy.FILE).exists()
    return run


def without_copy(run: Run) -> Dataset:
    (run.path / table_copy.FILE).unlink(missing_ok=True)
    return dataset.load_dataset(run)


def assert_same(results: Dataset, expected: Dataset) -> None:
    for name in ("samples", "rounds", "failures"):
        pd.testing.assert_frame_equal(getattr(results, name), getattr(expected, name))
    for name in ("turns", "clock_mhz", "steady", "throttled"):
        assert [*map(repr, results.rounds[name])] == [*map(repr, expected.rounds[name])]
    assert all(getattr(results, name) == getattr(expected, name) for name in FIELDS)


def refuse_to_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> Record:
        pytest.fail("a record was parsed")

    monkeypatch.setattr(stored_records, "decode", refuse)


def test_a_copy_gives_what_the_records_give_and_none_is_parsed(run: Run) -> None:
    with pytest.MonkeyPatch.context() as patch:
        refuse_to_parse(patch)
        results = dataset.load_dataset(run)
    assert len(results.rounds) == 4
    assert_same(results, without_copy(run))


def test_a_run_in_another_folder_keeps_its_copy(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = Run(Path(shutil.copytree(run.path, tmp_path / "elsewhere" / run.id)))
    refuse_to_parse(monkeypatch)
    assert len(dataset.load_dataset(moved).rounds) == 4


@pytest.mark.parametrize("damage", ["digit", "cut", "missing", "folder"])
def test_a_damaged_record_is_left_out_though_there_is_a_copy(run: Run, damage: str) -> None:
    (file,) = (run.path / "records").glob("torch-*.1.1.json")
    content, status = file.read_bytes(), file.stat()
    if damage == "digit":  # neither its size nor its time shows it
        file.write_bytes(content.replace(b"[0.3,", b"[0.4,", 1))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert file.stat().st_size == status.st_size
    elif damage == "cut":
        file.write_bytes(content[:-5])
    else:
        file.unlink()
    if damage == "folder":
        file.mkdir()
    with pytest.warns(DamagedRunWarning, match="1 record is damaged and left out"):
        results = dataset.load_dataset(run)
    assert len(results.rounds) + len(results.failures) == 5


def test_a_record_that_no_line_names_is_counted_though_there_is_a_copy(run: Run) -> None:
    (run.path / "records" / "further.1.1.json").write_text("{}")
    with pytest.warns(DamagedRunWarning, match="not in the journal"):
        assert len(dataset.load_dataset(run).rounds) == 4


def test_a_damaged_line_of_the_journal_is_named_though_there_is_a_copy(run: Run) -> None:
    path = run.path / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"round": 2', b'"round": 7', 1))
    with pytest.warns(DamagedRunWarning) as caught:
        assert len(dataset.load_dataset(run).rounds) == 3
    assert any("1 line of the journal is damaged" in str(each.message) for each in caught)


def test_what_a_resumed_run_adds_counts(run: Run) -> None:
    run.add(good(cell(), 9, [0.25], run=run.id))
    assert dataset.load_dataset(run).rounds["round"].tolist() == [1, 2, 3, 2, 9]


def test_facts_of_the_environments_that_changed_count(run: Run) -> None:
    run.write_environments({name: {**facts, "python": "3.99"} for name, facts in run.environments().items()})
    before = (run.path / table_copy.FILE).read_bytes()
    assert_same(dataset.load_dataset(run), without_copy(run))
    assert (run.path / table_copy.FILE).read_bytes() != before


@pytest.mark.parametrize("position", [0, 40, -40, -1])
def test_a_damaged_copy_is_not_read(run: Run, position: int) -> None:
    expected, path = without_copy(run), run.path / table_copy.FILE
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    assert_same(dataset.load_dataset(run), expected)
    assert path.read_bytes() != bytes(content)  # it was written again


@pytest.mark.parametrize("content", [b"", b"x", bytes(64), b"ARROW1\0\0" + bytes(100)])
def test_a_file_that_is_no_copy_is_not_read(run: Run, content: bytes) -> None:
    expected = without_copy(run)
    for signed in (content, hashlib.sha256(content).digest() + content):
        (run.path / table_copy.FILE).write_bytes(signed)
        assert_same(dataset.load_dataset(run), expected)


def test_a_copy_by_another_program_is_not_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_copy, "_program", lambda: b"another")
    before = (run.path / table_copy.FILE).read_bytes()
    assert_same(dataset.load_dataset(run), without_copy(run))
    assert (run.path / table_copy.FILE).read_bytes() != before


def test_each_source_that_a_copy_depends_on_is_there() -> None:
    assert len(table_copy._program()) == 32
    assert len(set(table_copy.SOURCES)) == len(table_copy.SOURCES)


def test_small_runs_damaged_ones_and_old_ones_get_no_copy(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run.path / table_copy.FILE
    journal = run.path / "journal.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(table_copy, "MIN_RECORDS", 7)
        without_copy(run)
        assert not path.exists()
    with run.hold():  # a process adds records
        without_copy(run)
        assert not path.exists()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        line.update(version=2)
        for name in ("number", "checksum", "sha256"):
            line.pop(name, None)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(without_copy(run).rounds) == 4
    assert not path.exists()
    min((run.path / "records").iterdir()).unlink()
    with pytest.warns(DamagedRunWarning):
        without_copy(run)
    assert not path.exists()


def test_a_folder_that_cannot_be_written_has_no_copy(run: Run) -> None:
    without_copy(run)
    path = run.path / table_copy.FILE
    path.unlink()
    path.mkdir()
    assert len(dataset.load_dataset(run).rounds) == 4
