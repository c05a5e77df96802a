"""The scheduler of rounds: the stopping rule with the budget's clock, a stored run, and rounds that are replayed."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.dataset import load_dataset
from runner.analysis.model import Dataset
from runner.analysis.stopping import Verdicts
from runner.core.model import Cell, Measurement, Past, Plan, PlannedCell, Record
from runner.core.model.cells import plain
from runner.session.execution.further_rounds import RoundScheduler
from runner.store.run import Run
from tests.support.fake_runs import bad, cell, make, rounds

SECONDS = 6.0  # of the first three rounds of a cell
SLOWER = [1.05, 1.12, 1.16]  # and nobody knows yet by how much


def pair(workload: str, case: str) -> tuple[Cell, Cell]:
    return tuple(cell(name, workload=workload, case=case) for name in ("torch-1.0", "torch-2.x"))  # type: ignore[return-value]


NOISY, CLEAR = pair("rnn-step", "lstm-b32-h128"), pair("asr-lstm", "1x320-ce-short")
OTHER = pair("rnn-step", "lstm-b128-h512")
NOTHING = Past()


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def scheduler_of_two_pairs(
    folder: Path, clock: Clock, messages: list[str], noisy: Sequence[float], budget: float | None = None
) -> RoundScheduler:
    """Return the scheduler of a run with an open pair and a decided one, three rounds each."""
    records = [*rounds(NOISY[0], [1.0] * len(noisy)), *rounds(NOISY[1], noisy)]
    records += [*rounds(CLEAR[0], [1.0, 1.001, 0.999]), *rounds(CLEAR[1], [2.0, 2.001, 1.999])]
    return scheduler(make(folder, records), clock, messages, budget=budget)


def scheduler(
    run: Run, clock: Clock, messages: list[str], past: Past = NOTHING, budget: float | None = None
) -> RoundScheduler:
    """Return the scheduler of a run whose plan has all cells of its records."""
    measured = dict.fromkeys(record.cell for record in run.records())
    planned = tuple(PlannedCell(cell=cell, device="cpu", seconds=SECONDS) for cell in measured)
    frameworks = {entry.cell.environment: "torch" for entry in planned}
    measurement = Measurement(rounds=3, max_rounds=9, budget=budget)
    plan = Plan(
        device="cpu",
        backend="venv",
        measurement=measurement,
        cells=planned,
        blocks=(),
        frameworks=frameworks,
        past=past,
    )
    return RoundScheduler(plan, run, Verdicts(0.02), messages.append, clock)


def turns(of: tuple[Cell, Cell], *ratios: float) -> list[Record]:
    """Return the records of a pair, round by round from the first."""
    both = zip(rounds(of[0], [1.0] * len(ratios)), rounds(of[1], ratios), strict=True)
    return [replace(record, round=record.round + 1) for turn in both for record in turn]


def test_the_first_rounds_are_everybodys_and_further_ones_for_open_pairs(tmp_path: Path) -> None:
    messages: list[str] = []
    next_cells = scheduler_of_two_pairs(tmp_path, Clock(), messages, SLOWER)
    assert set(next_cells(1)) == set(next_cells(2)) == {*NOISY, *CLEAR}
    assert set(next_cells(3)) == set(NOISY)
    assert messages == ["after 3 rounds 1 verdict is open: a further round for 2 tests"]


def test_the_plain_process_of_a_cell_that_agrees_in_the_first_round_has_no_second_one(tmp_path: Path) -> None:
    agreeing, differing = plain(CLEAR[0]), plain(NOISY[1])
    records = [record for of in (NOISY, CLEAR) for each in of for record in rounds(each, [1.0])]
    records += [*rounds(agreeing, [1.02]), *rounds(differing, [1.3])]
    records = [replace(record, round=1) for record in records]
    next_cells = scheduler(make(tmp_path, records), Clock(), [])
    assert set(next_cells(1)) == set(next_cells(2)) == {*NOISY, *CLEAR, differing}


def test_a_run_without_plain_processes_is_not_read_before_its_planned_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_cells = scheduler_of_two_pairs(tmp_path, Clock(), [], SLOWER)
    monkeypatch.setattr(dataset, "load_dataset", lambda _: pytest.fail("the run is read"))
    assert set(next_cells(1)) == set(next_cells(2)) == {*NOISY, *CLEAR}


def test_the_lock_of_the_run_is_held_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, held = threading.Lock(), list[bool]()

    def load(run: Run) -> Dataset:
        held.append(lock.locked())
        return load_dataset(run)

    records = [record for each in NOISY for record in rounds(each, [1.0, 1.1, 1.2])]
    next_cells = scheduler(make(tmp_path, [*records, *rounds(plain(NOISY[0]), [1.0])]), Clock(), [])
    next_cells.lock = lock
    monkeypatch.setattr(dataset, "load_dataset", load)
    for number in (1, 3):
        next_cells(number)
    assert held == [True, True]
    assert not lock.locked()


def test_nothing_more_is_wanted_where_all_is_settled(tmp_path: Path) -> None:
    next_cells = scheduler_of_two_pairs(tmp_path, Clock(), [], [1.0, 1.0, 1.0])
    assert not next_cells(3)


def test_a_spent_budget_ends_the_rounds_whatever_is_open(tmp_path: Path) -> None:
    clock, messages = Clock(), list[str]()
    next_cells = scheduler_of_two_pairs(tmp_path, clock, messages, SLOWER, budget=60.0)
    assert next_cells(1)
    clock.now = 61.0
    assert not next_cells(2)
    assert messages == ["the budget is spent after 2 rounds"]


def test_what_was_spent_before_counts(tmp_path: Path) -> None:
    clock, messages = Clock(), list[str]()
    run = make(tmp_path, [*turns(NOISY, *SLOWER), *turns(CLEAR, 2.0, 2.001, 1.999)])
    next_cells = scheduler(run, clock, messages, Past(elapsed=50.0), budget=60.0)
    clock.now = 9.0
    assert next_cells(1)
    assert (next_cells.elapsed(), next_cells.remaining()) == (59.0, 1.0)
    clock.now = 11.0
    assert not next_cells(2)
    assert messages == ["the budget is spent after 2 rounds"]


def test_a_resumed_run_wants_what_it_would_have_wanted_undisturbed(tmp_path: Path) -> None:
    run = make(tmp_path, [*turns(NOISY, *SLOWER), *turns(OTHER, 1.04, 1.13, 1.15)], each=10.0)
    behind = Past(elapsed=80.0)
    counts = []
    for budget in range(150, 1500, 50):
        clock, later_clock = Clock(), Clock()
        undisturbed = scheduler(run, clock, [], budget=float(budget))
        later = scheduler(run, later_clock, [], behind, budget=float(budget))
        clock.now, later_clock.now = 120.0, 40.0
        assert undisturbed(3) == later(3)
        counts.append(len(undisturbed(3)))
    assert sorted(set(counts)) == [2, 4]  # one pair can be afforded, then both
    assert counts == sorted(counts)


def test_the_pace_is_that_of_the_good_records_whose_time_is_known(tmp_path: Path) -> None:
    failed = [bad(OTHER[0], 1, "crash", "gone")]
    timed = make(tmp_path / "timed", [*turns(NOISY, *SLOWER), *failed], each=7.0)
    clock = Clock()
    clock.now = 7.0  # for the failed one nothing was expected
    next_cells = scheduler(timed, clock, [], Past(elapsed=42.0))
    clock.now += 7.0
    assert next_cells.pace() == pytest.approx(49.0 / (6 * SECONDS / 3))
    old = make(tmp_path / "old", turns(NOISY, *SLOWER))
    assert scheduler(old, clock, []).pace() == 1.0
    for count, of in enumerate(NOISY, 1):
        old.add(replace(turns(NOISY, 1.0)[0], cell=of, round=4), elapsed=3.0 * count)
    assert scheduler(old, clock, [], Past(elapsed=6.0)).pace() == pytest.approx(6.0 / (2 * SECONDS / 3))


def test_earlier_rounds_of_a_resumed_run_are_as_they_were(tmp_path: Path) -> None:
    records = [*turns(NOISY, *SLOWER, 1.1, 1.2)[:-1], *turns(CLEAR, 2.0, 2.001, 1.999, 2.0)]
    run, messages = make(tmp_path, records), list[str]()
    attempts = {(record.cell.case_id, record.round): 1 for record in records}
    next_cells = scheduler(run, Clock(), messages, Past(attempts=attempts))
    assert set(next_cells(1)) == set(next_cells(2)) == {*NOISY, *CLEAR}
    assert set(next_cells(3)) == {*NOISY, *CLEAR}  # the fourth round had them all, though one pair is settled by now
    assert messages == []
    assert set(next_cells(4)) == set(NOISY)  # the fifth round is the one that was at work
    assert messages == ["after 4 rounds 1 verdict is open: a further round for 2 tests"]


def test_the_first_rounds_of_a_resumed_run_are_everybodys_whoever_has_records(tmp_path: Path) -> None:
    records = [*turns(NOISY, *SLOWER), *turns(CLEAR, 2.0)]
    attempts = {(record.cell.case_id, record.round): 1 for record in records}
    next_cells = scheduler(make(tmp_path, records), Clock(), [], Past(attempts=attempts))
    assert set(next_cells(1)) == set(next_cells(2)) == {*NOISY, *CLEAR}


def test_a_round_between_two_looks_goes_on_with_the_cells_of_the_one_before(tmp_path: Path) -> None:
    records = [*turns(NOISY, *SLOWER, 1.0, 1.1, 1.2), *turns(CLEAR, *[2.0] * 6), *turns(NOISY, *SLOWER * 3)[12:13]]
    attempts = {(record.cell.case_id, record.round): 1 for record in records}
    next_cells = scheduler(make(tmp_path, records), Clock(), [], Past(attempts=attempts))
    assert next_cells.resumed_round == 7
    assert [set(next_cells(number)) for number in range(1, 7)] == [{*NOISY, *CLEAR}] * 6  # six is no look


def test_a_run_whose_budget_was_spent_when_it_was_killed_ends_at_once(tmp_path: Path) -> None:
    run, messages = make(tmp_path, turns(NOISY, *SLOWER)), list[str]()
    attempts = {(NOISY[0].case_id, number): 1 for number in (1, 2, 3)}
    next_cells = scheduler(run, Clock(), messages, Past(attempts=attempts, elapsed=61.0), budget=60.0)
    assert next_cells(1)  # is there already
    assert not next_cells(2)
    assert messages == ["the budget is spent in round 3"]


def test_a_repeat_has_time_where_the_budget_also_covers_the_planned_rounds(tmp_path: Path) -> None:
    clock = Clock()
    next_cells = scheduler_of_two_pairs(tmp_path, clock, [], SLOWER, budget=60.0)
    next_cells.admitted = [*NOISY, *CLEAR]
    assert next_cells.has_time_for(3, NOISY)
    clock.now = 58.0  # 2 s remain, and a round of each cell takes 2 s
    assert not next_cells.has_time_for(3, NOISY)
    assert next_cells.has_time_for(3, NOISY[:1])
    clock.now = 50.0
    assert next_cells.has_time_for(2, NOISY[:1])
    assert not next_cells.has_time_for(1, NOISY[:1])  # two planned rounds of four cells are still to come
    unlimited = scheduler_of_two_pairs(tmp_path / "unlimited", clock, [], SLOWER)
    assert unlimited.has_time_for(1, NOISY)


def test_only_the_planned_looks_decide(tmp_path: Path) -> None:
    next_cells = scheduler_of_two_pairs(tmp_path, Clock(), [], SLOWER)
    assert next_cells.rule.looks == (3, 4, 5, 7, 9)
    assert set(next_cells(3)) == set(NOISY)
    next_cells.chosen = frozenset(CLEAR)
    assert set(next_cells(6)) == set(CLEAR)  # six is no look
    assert set(next_cells(7)) == set(NOISY)
