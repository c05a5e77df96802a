"""Further rounds: for open pairs alone, at planned looks alone, up to the cap and while the run's budget lasts."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis.stopping import StoppingRule
from runner.core.errors import UsageError
from runner.core.model import Cell, Further, Measurement, Outcome, Past, Plan, PlannedCell, Record
from runner.core.units import seconds
from runner.store.run import Run
from tests.support.fake_runs import bad, cell, make, rounds
from tests.support.fake_servers import FakeBackend, block, cells, events, outcomes

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


def asked(
    folder: Path, clock: Clock, said: list[str], noisy: Sequence[float], budget: float | None = None
) -> StoppingRule:
    """Return what says which cells are wanted of a run with an open pair and a settled one, three rounds each."""
    records = [*rounds(NOISY[0], [1.0] * len(noisy)), *rounds(NOISY[1], noisy)]
    records += [*rounds(CLEAR[0], [1.0, 1.001, 0.999]), *rounds(CLEAR[1], [2.0, 2.001, 1.999])]
    return wanted_of(make(folder, records), clock, said, budget=budget)


def wanted_of(
    run: Run, clock: Clock, said: list[str], past: Past = NOTHING, budget: float | None = None
) -> StoppingRule:
    """Return what says which cells are wanted of a run, in whose plan are all that it has records of."""
    measured = dict.fromkeys(record.cell for record in run.records())
    planned = tuple(PlannedCell(cell=one, device="cpu", seconds=SECONDS) for one in measured)
    names = {one.cell.environment: "torch" for one in planned}
    measurement = Measurement(rounds=3, max_rounds=9, budget=budget)
    found = Plan(
        device="cpu", backend="venv", measurement=measurement, cells=planned, blocks=(), frameworks=names, past=past
    )
    return StoppingRule(found, run, 0.02, said.append, clock)


def turns(of: tuple[Cell, Cell], *ratios: float) -> list[Record]:
    """Return the records of a pair, round by round from the first."""
    both = zip(rounds(of[0], [1.0] * len(ratios)), rounds(of[1], ratios), strict=True)
    return [replace(record, round=record.round + 1) for turn in both for record in turn]


def test_the_first_rounds_are_everybodys_and_further_ones_for_open_pairs(tmp_path: Path) -> None:
    said: list[str] = []
    wanted = asked(tmp_path, Clock(), said, SLOWER)
    assert set(wanted(1)) == set(wanted(2)) == {*NOISY, *CLEAR}
    assert set(wanted(3)) == set(NOISY)
    assert said == ["after 3 rounds 1 verdict is open: a further round for 2 cells"]


def test_nothing_more_is_wanted_where_all_is_settled(tmp_path: Path) -> None:
    wanted = asked(tmp_path, Clock(), [], [1.0, 1.0, 1.0])
    assert not wanted(3)


def test_a_spent_budget_ends_the_rounds_whatever_is_open(tmp_path: Path) -> None:
    clock, said = Clock(), list[str]()
    wanted = asked(tmp_path, clock, said, SLOWER, budget=60.0)
    assert wanted(1)
    clock.now = 61.0
    assert not wanted(2)
    assert said == ["the budget is spent after 2 rounds"]


def test_what_was_spent_before_counts(tmp_path: Path) -> None:
    clock, said = Clock(), list[str]()
    run = make(tmp_path, [*turns(NOISY, *SLOWER), *turns(CLEAR, 2.0, 2.001, 1.999)])
    wanted = wanted_of(run, clock, said, Past(spent=50.0), budget=60.0)
    clock.now = 9.0
    assert wanted(1)
    assert (wanted.spent(), wanted.left()) == (59.0, 1.0)
    clock.now = 11.0
    assert not wanted(2)
    assert said == ["the budget is spent after 2 rounds"]


def test_a_resumed_run_wants_what_it_would_have_wanted_undisturbed(tmp_path: Path) -> None:
    run = make(tmp_path, [*turns(NOISY, *SLOWER), *turns(OTHER, 1.04, 1.13, 1.15)], each=10.0)
    behind = Past(spent=80.0)
    found = []
    for budget in range(150, 1500, 50):
        one, other = Clock(), Clock()
        whole = wanted_of(run, one, [], budget=float(budget))
        later = wanted_of(run, other, [], behind, budget=float(budget))
        one.now, other.now = 120.0, 40.0
        assert whole(3) == later(3)
        found.append(len(whole(3)))
    assert sorted(set(found)) == [2, 4]  # one pair can be afforded, then both
    assert found == sorted(found)


def test_the_pace_is_that_of_the_good_records_whose_time_is_known(tmp_path: Path) -> None:
    failed = [bad(OTHER[0], 1, "crash", "gone")]
    timed = make(tmp_path / "timed", [*turns(NOISY, *SLOWER), *failed], each=7.0)
    clock = Clock()
    clock.now = 7.0  # for the failed one nothing was expected
    wanted = wanted_of(timed, clock, [], Past(spent=42.0))
    clock.now += 7.0
    assert wanted._pace() == pytest.approx(49.0 / (6 * SECONDS / 3))
    old = make(tmp_path / "old", turns(NOISY, *SLOWER))
    assert wanted_of(old, clock, [])._pace() == 1.0
    for count, one in enumerate(NOISY, 1):
        old.add(replace(turns(NOISY, 1.0)[0], cell=one, round=4), spent=3.0 * count)
    assert wanted_of(old, clock, [], Past(spent=6.0))._pace() == pytest.approx(6.0 / (2 * SECONDS / 3))


def test_earlier_rounds_of_a_resumed_run_are_as_they_were(tmp_path: Path) -> None:
    records = [*turns(NOISY, *SLOWER, 1.1, 1.2)[:-1], *turns(CLEAR, 2.0, 2.001, 1.999, 2.0)]
    run, said = make(tmp_path, records), list[str]()
    attempts = {(record.cell.case_id, record.round): 1 for record in records}
    wanted = wanted_of(run, Clock(), said, Past(attempts=attempts))
    assert set(wanted(1)) == set(wanted(2)) == {*NOISY, *CLEAR}
    assert set(wanted(3)) == {*NOISY, *CLEAR}  # the fourth round had them all, though one pair is settled by now
    assert said == []
    assert set(wanted(4)) == set(NOISY)  # the fifth round is the one that was at work
    assert said == ["after 4 rounds 1 verdict is open: a further round for 2 cells"]


def test_the_first_rounds_of_a_resumed_run_are_everybodys_whoever_has_records(tmp_path: Path) -> None:
    records = [*turns(NOISY, *SLOWER), *turns(CLEAR, 2.0)]
    attempts = {(record.cell.case_id, record.round): 1 for record in records}
    wanted = wanted_of(make(tmp_path, records), Clock(), [], Past(attempts=attempts))
    assert set(wanted(1)) == set(wanted(2)) == {*NOISY, *CLEAR}


def test_a_round_between_two_looks_goes_on_with_the_cells_of_the_one_before(tmp_path: Path) -> None:
    records = [*turns(NOISY, *SLOWER, 1.0, 1.1, 1.2), *turns(CLEAR, *[2.0] * 6), *turns(NOISY, *SLOWER * 3)[12:13]]
    attempts = {(record.cell.case_id, record.round): 1 for record in records}
    wanted = wanted_of(make(tmp_path, records), Clock(), [], Past(attempts=attempts))
    assert wanted.behind == 7
    assert [set(wanted(number)) for number in range(1, 7)] == [{*NOISY, *CLEAR}] * 6  # six is no look


def test_a_run_whose_budget_was_spent_when_it_was_killed_ends_at_once(tmp_path: Path) -> None:
    run, said = make(tmp_path, turns(NOISY, *SLOWER)), list[str]()
    attempts = {(NOISY[0].case_id, number): 1 for number in (1, 2, 3)}
    wanted = wanted_of(run, Clock(), said, Past(attempts=attempts, spent=61.0), budget=60.0)
    assert wanted(1)  # is there already
    assert not wanted(2)
    assert said == ["the budget is spent in round 3"]


def test_rounds_of_a_further_group_are_those_of_the_first() -> None:
    measurement = Measurement(rounds=3, max_rounds=5)
    assert [measurement.turn(number) for number in (1, 5, 6, 10, 11)] == [1, 5, 1, 5, 1]


def test_further_rounds_that_are_whole_are_not_announced_again() -> None:
    two = cells("a/x", "b/x")
    attempts = {("rnn-step/tiny", number): 1 for number in (1, 2, 3)}
    finished = frozenset({("rnn-step/tiny", 1), ("rnn-step/tiny", 2)})
    behind = Past(attempts=attempts, finished=finished, groups={"cpu": (("a", "b"),)})
    found = list(events(FakeBackend(), block(*two), rounds=1, max_rounds=4, wanted=lambda _: two, past=behind))
    assert [one.round for one in found if isinstance(one, Further)] == [3, 4]
    assert [(one.round, one.attempt) for one in found if isinstance(one, Outcome)] == [(3, 2), (3, 2), (4, 1), (4, 1)]


def test_only_the_planned_looks_decide(tmp_path: Path) -> None:
    wanted = asked(tmp_path, Clock(), [], [1.05, 1.12, 1.16, 1.0, 1.1, 1.2, 1.05, 0.99])
    assert wanted.looks == {3, 4, 5, 7, 9}
    assert set(wanted(3)) == set(NOISY)
    wanted.chosen = frozenset(CLEAR)
    assert set(wanted(6)) == set(CLEAR)  # six is no look
    assert set(wanted(7)) == set(NOISY)


def test_further_rounds_measure_the_wanted_cells_and_say_so() -> None:
    four = cells("a/x", "a/y", "b/x", "b/y")
    some = cells("a/x", "b/x")
    found = list(
        events(FakeBackend(), block(*four), rounds=2, max_rounds=5, wanted=lambda done: four if done < 2 else some)
    )
    by_round = itertools.groupby((one for one in found if isinstance(one, Outcome)), key=lambda one: one.round)
    assert {number: {one.cell for one in turn} for number, turn in by_round} == {
        **{number: set(four) for number in (1, 2)},
        **{number: set(some) for number in (3, 4, 5)},
    }
    assert [one.round for one in found if isinstance(one, Further)] == [3, 4, 5]


def test_when_no_cell_is_wanted_the_rounds_are_over() -> None:
    two = cells("a/x", "b/x")
    found = outcomes(FakeBackend(), block(*two), rounds=2, max_rounds=9, wanted=lambda done: two if done < 4 else ())
    assert max(one.round for one in found) == 4


def test_groups_number_their_rounds_apart_up_to_the_cap() -> None:
    backend = FakeBackend()
    backend.sizes = dict.fromkeys("abc", 3)
    three = cells("a/x", "b/x", "c/x")
    found = list(outcomes(backend, block(*three), rounds=1, max_rounds=2, memory=12, wanted=lambda _: three))
    assert [(one.cell.environment, one.round) for one in found if one.cell.environment != "a"] == [
        ("b", 1),
        ("c", 3),
        ("b", 2),
        ("c", 4),
    ]


@pytest.mark.parametrize(("text", "length"), [("90s", 90), ("30m", 1800), ("5 min", 300), ("1.5h", 5400)])
def test_lengths_of_time(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "30", "m", "-3m", "0s", "1d"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        seconds(text)
