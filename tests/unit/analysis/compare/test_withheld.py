"""Verdicts that depend on the state of a process are withheld."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.comparison_model import Row
from runner.analysis.model import Dataset
from runner.analysis.tables import TableBuilder
from runner.core.model import Cell, Record
from runner.core.model.cells import plain, twin
from tests.support.fake_runs import cell, good, make, rounds
from tests.support.needs import slow

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
FAST, SLOW = 0.5e-3, 2.4e-3
AROUND = (0.9999, 1.0, 1.0001, 1.0)


def near(of: Cell, seconds: float, count: int = 4) -> list[Record]:
    """Return rounds that differ by little."""
    return rounds(of, [seconds * AROUND[number] for number in range(count)])


def row_of(folder: Path, records: Sequence[Record]) -> Row:
    (row,) = compare([dataset.load_dataset(make(folder, records))], BASE.environment, [OTHER.environment]).rows
    return row


def test_no_verdict_where_the_state_decides_which_side_is_faster(tmp_path: Path) -> None:
    records = near(BASE, 0.55e-3) + near(OTHER, SLOW) + rounds(plain(OTHER), [SLOW, FAST, SLOW])
    row = row_of(tmp_path, records)
    assert (row.verdict, row.code, row.more_rounds) == ("inconclusive", "two-states", 0)
    assert row.reason == (
        "torch-2.x takes in 6 of 7 processes 2.40 ms, else 0.500 ms: "
        "the state of a process decides which side is faster"
    )


def test_a_verdict_stays_where_both_states_say_the_same(tmp_path: Path) -> None:
    records = near(BASE, 0.1e-3) + near(OTHER, SLOW) + rounds(plain(OTHER), [SLOW, FAST, SLOW])
    assert row_of(tmp_path, records).verdict == "slower"


def planted(count: int, share: float, runs: int = 100) -> Counter[str]:
    """Return how often simulated runs say what of a program that is slow in a share of its processes.

    The other side takes 0.55 ms, so a slow process is slower, and a fast one faster. Both sides have three plain
    processes, and the base an A/A pair.
    """
    draw = np.random.default_rng(count)

    def record(of: Cell, number: int) -> Record:
        state = SLOW if draw.random() < share else FAST
        seconds = (state if "torch-2" in of.environment else 0.55e-3) * draw.lognormal(0, 0.02)
        return good(of, number, seconds * draw.lognormal(0, 0.01, 9))

    verdicts = Counter[str]()
    for _ in range(runs):
        builder = TableBuilder()
        for number in range(count):
            for of in (BASE, OTHER, twin(BASE), *((plain(BASE), plain(OTHER)) if number < 3 else ())):
                builder.add(record(of, number))
        run = Dataset(run="run", plan=(), looks=(count,), **builder.tables()._asdict())
        (row,) = compare([run], BASE.environment, [OTHER.environment]).rows
        verdicts[row.code if row.verdict == "inconclusive" else row.verdict] += 1
    return verdicts


@pytest.mark.simulation
@pytest.mark.parametrize(("count", "share"), [(3, 5 / 6), *slow((20, 1 / 2), (5, 5 / 6), (20, 5 / 6), (5, 2 / 3))])
def test_a_program_of_two_states_is_withheld_or_right_in_100_of_100(count: int, share: float) -> None:
    verdicts = planted(count, share)
    assert verdicts.keys().isdisjoint({"faster", "same"}), verdicts
    assert verdicts["two-states"] >= (60 if count == 3 else 75), verdicts
