"""Pieces of a run folder that are removed, cut or replaced between run and resume."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.faults.bench import Bench
from tests.faults.declared.pieces import FOLDER_FAULTS
from tests.faults.fault import Fault, Kept


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def first_record(run: Path) -> Path:
    return min((run / "records").iterdir())


def records_file(run: Path) -> None:
    shutil.rmtree(run / "records")
    (run / "records").touch()


def lock_folder(run: Path) -> None:
    (run / ".lock").unlink(missing_ok=True)
    (run / ".lock").mkdir()


def newer(run: Path) -> None:
    plan = run / "plan.json"
    plan.write_text(plan.read_text().replace('"version": ', '"version": 9', 1))


ACTIONS: Mapping[str, Callable[[Path], object]] = {
    "plan-removed": lambda run: (run / "plan.json").unlink(),
    "plan-cut": lambda run: cut(run / "plan.json"),
    "journal-cut": lambda run: lines(run / "journal.jsonl", lambda all_: [*all_[:-1], all_[-1][:30]]),
    "journal-removed": lambda run: (run / "journal.jsonl").unlink(),
    "journal-empty": lambda run: (run / "journal.jsonl").write_bytes(b""),
    "journal-garbage": lambda run: lines(run / "journal.jsonl", lambda all_: [all_[0], b"\xff{[\n", *all_[2:]]),
    "journal-doubled": lambda run: lines(run / "journal.jsonl", lambda all_: [*all_, all_[-1]]),
    "record-removed": lambda run: first_record(run).unlink(),
    "record-cut": lambda run: cut(first_record(run)),
    "cases-removed": lambda run: (run / "cases.json").unlink(),
    "environments-removed": lambda run: (run / "environments.json").unlink(),
    "records-file": records_file,
    "lock-folder": lock_folder,
    "newer": newer,
}


@pytest.mark.parametrize("fault", FOLDER_FAULTS, ids=lambda fault: fault.id)
def test_a_damaged_run_folder(fault: Fault, bench: Bench, unfinished: Path) -> None:
    bench.take_over(unfinished)
    (run,) = bench.reports.glob("runs/[!.]*")
    ACTIONS[fault.id.removeprefix("piece-")](run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    bench.check(bench("run", "--resume"))
    if fault.kept is Kept.UNCHANGED:
        for path, content in before.items():
            now = path.read_bytes()
            assert now == content or (path.name == "journal.jsonl" and now.startswith(content))
