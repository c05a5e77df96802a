"""The flow of a run: its tail reads the run once, and a caller leaves out steps by their names."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.core.errors import UsageError
from runner.core.progress import Progress
from runner.history.database import History
from runner.history.location import VARIABLE
from runner.session import flow
from runner.session.context import PlannedRun
from runner.session.execution.recorder import Totals, totals_of
from runner.session.flow import RunSession, Step
from runner.session.remember import history_url
from runner.store.run import Run
from tests.support.fake_runs import cell, make, rounds

NAMES = ("report", "remember", "answer", "propose")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of what is read of runs, as it is read."""
    seen: list[str] = []
    for name in ("journal", "quick_records"):
        original = getattr(Run, name)

        def read(self: Run, *arguments: Any, _name: str = name, _original: Any = original) -> Any:
            seen.append(_name)
            return _original(self, *arguments)

        monkeypatch.setattr(Run, name, read)
    return seen


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, *without: Step, good: int = 2) -> RunSession:
    """Return a run that was measured in a second by a fake, with its tail."""
    records = [*rounds(cell("torch-1.12"), [1.0] * 5), *rounds(cell("torch-2.x"), [0.5] * 5)] if good else []
    stored = make(folder, records)
    monkeypatch.setattr(flow, "run", lambda *_: Totals(run=stored, good=good, bad=()))
    context: Any = SimpleNamespace(settings=SimpleNamespace(margin=0.02, reports=folder))
    prepared: Any = None
    return flow.measure_planned(PlannedRun(context, prepared), Progress(lambda _: None), without=without)


def kept(measured: RunSession) -> tuple[bool, ...]:
    """Return for each step of the tail whether it has done its work."""
    with History.open(history_url(measured.reports, None)) as history:
        in_history = bool(list(history.all_series(device="")))
    return measured.page.name == "index.html", in_history, measured.answer is not None, measured.check is not None


def test_the_tail_reports_remembers_answers_and_proposes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = measured(tmp_path, monkeypatch)
    assert kept(ended) == (True, True, True, True)
    assert ended.check
    assert ended.check.command.startswith("runner ")


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_left_out_by_its_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = measured(tmp_path, monkeypatch, getattr(flow, name))
    assert kept(ended) == tuple(each != name for each in NAMES)


def test_a_run_without_a_good_record_has_no_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = measured(tmp_path, monkeypatch, good=0)
    assert kept(ended) == (False, False, False, False)
    assert ended.page == ended.run.path


def test_a_wrong_address_of_the_history_is_an_error_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "ftp://elsewhere")
    monkeypatch.setattr(flow, "run", pytest.fail)
    context: Any = SimpleNamespace(settings=SimpleNamespace(margin=0.02, reports=tmp_path))
    prepared: Any = None
    with pytest.raises(UsageError, match="ftp"):
        flow.measure_planned(PlannedRun(context, prepared), Progress(lambda _: None))


def test_the_tail_reads_the_journal_and_the_records_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:

    measured(tmp_path, monkeypatch)
    assert sorted(reads) == ["journal", "quick_records"]


def test_a_cell_with_one_good_record_is_good() -> None:
    run = Run(Path("runs/a"))
    statuses = {("a", 1): "ok", ("a", 2): "failed", ("b", 1): "failed"}
    assert totals_of(run, statuses) == Totals(run=run, good=1, bad=("b",))
