"""A grade is about the machine and the rounds: how far the releases are apart does not move it. Simulated tables."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.forecasts import detectable_by_kind
from runner.analysis.compare.verdicts import with_verdicts
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import LEVELS
from runner.analysis.quality import grade as grades
from runner.stats import intervals
from runner.stats.intervals import Floats
from tests.support.fake_runs import cell
from tests.unit.analysis.quality.test_grade import GOOD

ROWS, TABLES = 16, 25
LOOKS = intervals.looks(3, 8)
Changes = Callable[[np.random.Generator], Floats]


def equal(_: np.random.Generator) -> Floats:
    return np.zeros(ROWS)


def far_apart(_: np.random.Generator) -> Floats:
    return np.full(ROWS, np.log(1.5))


def measured(draw: np.random.Generator, sd: float, changes: Floats) -> Comparison:
    """Return a table whose open rows got further rounds."""
    values = draw.normal(0, sd, (ROWS, LOOKS[-1])) + changes[:, None]
    cells = [(cell("torch-1.0", case=f"c{number}"), cell("torch-2.x", case=f"c{number}")) for number in range(ROWS)]
    counts = dict.fromkeys(range(ROWS), LOOKS[0])
    rows, drafts = list[Row](), list[Draft]()
    for look in LOOKS:
        drafts = []
        for number, (base, other) in enumerate(cells):
            ratios = dict(enumerate(values[number, : counts[number]].tolist()))
            row = Row(base=base, other=other, verdict="inconclusive", runs=("run",))
            drafts.append(Draft(row, intervals.paired(np.array(list(ratios.values()))), LOOKS, ratios=ratios))
        rows = with_verdicts(drafts, intervals.MARGIN)
        for number, row in enumerate(rows):
            if row.verdict == "inconclusive" and look < LOOKS[-1]:
                counts[number] = LOOKS[LOOKS.index(look) + 1]
    by_kind = detectable_by_kind(rows, [draft.looks for draft in drafts], intervals.MARGIN)
    return Comparison(
        base="torch-1.0",
        others=("torch-2.x",),
        device="cpu",
        device_name="",
        rows=tuple(rows),
        detectable_by_kind=by_kind,
    )


def levels(sd: float, changes: Changes) -> list[str]:
    """Return the grades of tables by the precision of their comparisons alone."""
    draw = np.random.default_rng(1)
    of_tables = []
    for _ in range(TABLES):
        figures = replace(GOOD, **grades.median_interval([measured(draw, sd, changes(draw))])._asdict())
        of_tables.append(
            max(
                (reason.level for check in grades.CHECKS for reason in check(figures)), default="good", key=LEVELS.index
            )
        )
    return of_tables


@pytest.mark.parametrize(("sd", "level"), [(0.01, "good"), (0.04, "good"), (0.1, "fair"), (0.6, "poor")])
def test_equal_releases_and_releases_far_apart_have_the_same_grade(sd: float, level: str) -> None:
    for changes in (equal, far_apart):
        assert levels(sd, changes).count(level) >= TABLES - 2, changes
