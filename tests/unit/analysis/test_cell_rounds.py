"""The log ratios of two cells."""

import pytest

from runner.analysis.cell_rounds import log_ratios
from runner.analysis.model import Round, TurnMedians, log_ratio

FOUR = TurnMedians("a", (1.0, 3.0, 1.5, 0.7))
OTHER_FOUR = TurnMedians("a", (2.0, 6.0, 1.0, 0.9))


@pytest.mark.parametrize(
    ("base", "other"),
    [
        ([], []),
        ([(1.0, None), (2.0, FOUR)], [(3.0, None), (4.0, OTHER_FOUR)]),
        ([(1.0, FOUR), (2.0, FOUR)], [(3.0, OTHER_FOUR), (4.0, FOUR)]),
        ([(1.0, FOUR)], [(3.0, TurnMedians("a", (2.0, 6.0)))]),
        ([(1.0, FOUR)], [(3.0, TurnMedians("b", (2.0, 6.0, 1.0, 0.9)))]),
        ([(1.0, TurnMedians("a", (1.0, 3.0, 2.0)))], [(3.0, TurnMedians("a", (2.0, 6.0, 7.0)))]),
    ],
)
def test_the_log_ratios_of_many_rounds_are_those_of_each(base: list[Round], other: list[Round]) -> None:
    assert log_ratios(base, other) == [log_ratio(*rounds) for rounds in zip(base, other, strict=True)]
