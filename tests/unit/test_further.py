"""Further rounds: for open pairs alone, at planned looks alone, up to the cap and while the budget lasts."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.further import Wanted
from runner.model import Cell, Further, Measurement, Outcome, Plan, PlannedCell
from runner.options import seconds
from tests.unit.fake_runs import cell, make, rounds
from tests.unit.fake_servers import FakeBackend, block, cells, events, outcomes

OPEN, SETTLED = "rnn-step", "asr-lstm"
SECONDS = 6.0  # of the first three rounds of a cell


def pair(workload: str, case: str) -> tuple[Cell, Cell]:
    return tuple(cell(name, workload=workload, case=case) for name in ("torch-1.0", "torch-2.x"))  # type: ignore[return-value]


NOISY, CLEAR = pair("rnn-step", "lstm-b32-h128"), pair("asr-lstm", "1x320-ce-short")


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def asked(folder: Path, clock: Clock, said: list[str], noisy: Sequence[float], **how: float | None) -> Wanted:
    """Return what says which cells are wanted of a run with an open pair and a settled one, three rounds each."""
    records = [*rounds(NOISY[0], [1.0] * len(noisy)), *rounds(NOISY[1], noisy)]
    records += [*rounds(CLEAR[0], [1.0, 1.001, 0.999]), *rounds(CLEAR[1], [2.0, 2.001, 1.999])]
    run = make(folder, records)
    planned = tuple(PlannedCell(cell=one, device="cpu", seconds=SECONDS) for one in (*NOISY, *CLEAR))
    names = {one.cell.environment: "torch" for one in planned}
    measurement = Measurement(**{"rounds": 3, "max_rounds": 9, **how})  # type: ignore[arg-type]
    found = Plan(device="cpu", backend="venv", measurement=measurement, cells=planned, blocks=(), frameworks=names)
    return Wanted(found, run, 0.02, said.append, clock)


def test_the_first_rounds_are_everybodys_and_further_ones_for_open_pairs(tmp_path: Path) -> None:
    said: list[str] = []
    wanted = asked(tmp_path, Clock(), said, [1.05, 1.12, 1.16])
    assert set(wanted(1)) == set(wanted(2)) == {*NOISY, *CLEAR}
    assert set(wanted(3)) == set(NOISY)
    assert said == ["after 3 rounds 1 verdict is open: a further round for 2 cells"]


def test_nothing_more_is_wanted_where_all_is_settled(tmp_path: Path) -> None:
    wanted = asked(tmp_path, Clock(), [], [1.0, 1.0, 1.0])
    assert not wanted(3)


def test_a_spent_budget_ends_the_rounds_whatever_is_open(tmp_path: Path) -> None:
    clock, said = Clock(), list[str]()
    wanted = asked(tmp_path, clock, said, [1.05, 1.12, 1.16], budget=60.0)
    assert wanted(1)
    clock.now = 61.0
    assert not wanted(2)
    assert said == ["the budget is spent after 2 rounds"]


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
