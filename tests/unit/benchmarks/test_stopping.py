"""The benchmarks of the stopping rule measure by the rule that is shipped."""

import numpy as np
import pytest

from benchmarks import noise_kinds, stopping
from runner.analysis import open_rows
from runner.stats import intervals

LOOKS = intervals.looks(3, 20)


def noise(rows: int) -> intervals.Floats:
    """Return rounds of equal sides that 3 rounds never decide."""
    return np.random.default_rng(3).normal(0.0, 0.06, (rows, LOOKS[-1]))


def all_at_once(rounds: intervals.Floats, chance: intervals.Floats, looks: object) -> np.ndarray:
    """Give up all rows, whatever their chance is."""
    assert len(rounds) == len(chance) == len(looks)  # type: ignore[arg-type]
    return np.ones(len(rounds), dtype=np.bool_)


@pytest.mark.parametrize("table", ["pairs", "rows of a table", "reports"])
def test_the_published_tables_are_made_by_the_shipped_rule(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def rounds() -> int:
        if table == "pairs":
            return int(stopping.measured(noise(20), LOOKS).rounds.max())
        if table == "rows of a table":
            return int(stopping.measured_table(noise(20), LOOKS).counts.max())
        noise_kinds.report(noise(20), noise(6), LOOKS, inflate=True)
        return max(looked_at)

    def inflation(*given: object) -> object:
        looked_at.append(int(given[1].shape[1]))  # type: ignore[attr-defined]
        return shipped(*given)  # type: ignore[arg-type]

    shipped = noise_kinds._inflation
    monkeypatch.setattr(noise_kinds, "_inflation", inflation)
    assert rounds() > 3
    looked_at.clear()
    monkeypatch.setattr(open_rows, "abandoned", all_at_once)
    assert rounds() == 3


def test_a_pair_that_is_given_up_keeps_the_rounds_it_has() -> None:
    ended = stopping.measured(noise(200), LOOKS)
    undecided = ended.words == "inconclusive"
    assert {5, 7, 20} <= set(ended.rounds[undecided].tolist())
    assert ended.rounds.min() >= open_rows.LEAST_ROUNDS - 2


def test_tables_of_changed_rows_are_lines_of_found_and_false_ones() -> None:
    head, _, line, *_ = stopping.table_lines(2, seed=1)
    assert head.count("|") == line.count("|")
    assert line.startswith("| 28 | 5, 5% slower | 2% | 3 to 8 |")
