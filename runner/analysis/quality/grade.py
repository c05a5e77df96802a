"""The grade of a run: whether its numbers can be used, and the reasons, from its controls, its machine and its rounds.

``docs/doubts.md`` lists the thresholds and where each comes from.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from runner.analysis.compare.forecasts import detectable_by_kind, typical_sd, unbiased_sd
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.controls import AA_FALSE_DISCOVERY_RATE, MAX_AA_CHANGE, canary_by_host, different_pairs
from runner.analysis.forecast import detectable_change
from runner.analysis.model import LEVELS, MIN_ROUNDS, Dataset, Figures, Grade, QualityIssue, Reason
from runner.analysis.quality.run import knows_cpus, online_cpus, others_busy
from runner.core.metrics import BY_NAME, TIME, margin_of
from runner.core.model.cells import environment_of, is_control, is_plain
from runner.core.units import percent

FAIR_AA_MEDIAN, POOR_AA_MEDIAN = 0.03, 0.10
"""Relative difference of an environment from itself, in the median A/A pair. With a normal noise of standard deviation
s between rounds, the median is 0.67 s / sqrt(rounds): at 5 rounds, 3 % is a noise of 10 %, and 10 % one of 33 %."""
FAR_AA_PAIR = 0.25
"""Relative difference of an A/A pair that counts as one that differs, whatever its p-value."""
EIGHT_OF_TEN = 0.8416
"""The normal quantile of 0.8."""
POOR_AA_SHARE = 0.1
"""Share of the A/A pairs that differ; a single one never makes a run poor."""
FAIR_CANARY, POOR_CANARY = 0.10, 0.25
"""Relative difference of the canary between its slowest and its quickest part of the run, each a median of times."""
MIN_CANARY = 5
"""Times of the canary in a part of the run: their median is right though two of them were disturbed."""
FAIR_SERIOUS_CELLS, POOR_SERIOUS_CELLS = 0.1, 0.5
"""Share of the cells with a serious quality issue; at a half, the median cell has one."""
FAIR_ROUNDS, POOR_ROUNDS = 5, MIN_ROUNDS
"""Rounds below which the noise of a cell is hardly known, and not at all. Student's t at 95 % is 12.7 with two rounds,
4.3 with three and 2.8 with five: the interval reaches 9.0, 2.5 and 1.2 standard deviations to each side. The first is
for runs that compare nothing: in others, the half width shows it."""
FAIR_HALF_WIDTH, POOR_HALF_WIDTH = 0.05, 0.25
"""How far the 95 % interval of the median comparison reaches to either side, had it got the rounds of an open one.

It depends on the noise and on the rounds that were offered, not on how far the releases are apart: a clear pair ends
early with a wide interval, and that is no fault of the run.
"""
WIDEST_SHOWN = 9.0
"""The half width from which on its number says nothing: a tenth of the time is as likely as ten times it."""
ELSEWHERE_COUNTED = frozenset({"few-rounds", "a-a-differs", "no-update", "steps-change", "unchecked"})
"""Codes of issues of cells that other inputs of the grade cover, or that are not about times."""


class MedianInterval(NamedTuple):
    """The interval of the median comparison: ``rounds`` and ``half_width`` of ``Figures``."""

    rounds: float
    half_width: float | None


def grade(
    run: Dataset | MeasuredRun, issues: Sequence[QualityIssue], comparisons: Sequence[Comparison]
) -> Grade | None:
    """Return the grade of a run; None without a good record, as there is no number to grade.

    Args:
        run: as tables.
        issues: its quality issues, as ``quality_issues`` returns them.
        comparisons: its environments against a base each, as ``summarise`` returns them.
    """
    measured = MeasuredRun.of(run)
    if measured.dataset.rounds.empty:
        return None
    figures = _figures(measured, issues, comparisons)
    reasons = [*_machine(issues, figures), *(reason for check in CHECKS for reason in check(figures))]
    reasons.sort(key=lambda reason: -LEVELS.index(reason.level))  # stable: the order of importance remains
    return Grade(level=reasons[0].level if reasons else "good", reasons=tuple(reasons), figures=figures)


def _figures(run: MeasuredRun, issues: Sequence[QualityIssue], comparisons: Sequence[Comparison]) -> Figures:
    dataset, pairs = run.dataset, run.aa_pairs
    changes = [max(pair.ratio, 1 / pair.ratio) - 1 for pair in pairs]
    far = {pair.twin for pair, change in zip(pairs, changes, strict=True) if change > FAR_AA_PAIR}
    metric, offered = widest_decided(dataset, comparisons)
    rounds_by_cell = dataset.rounds["cell"].value_counts()
    cells = {name for name in rounds_by_cell[rounds_by_cell > 0].index if not is_plain(environment_of(name))}
    serious = {issue.cell for issue in issues if issue.serious and issue.code not in ELSEWHERE_COUNTED}
    ranges = map(canary_range, canary_by_host(dataset).values())
    busy = None if not knows_cpus(dataset) else others_busy(dataset)
    return Figures(
        others_busy=busy,
        cpus=online_cpus(dataset),
        aa_pairs=len(pairs),
        aa_differing=len(far.union(pair.twin for pair in different_pairs(pairs))),
        aa_median=median(changes) if changes else None,
        canary=max([each for each in ranges if each is not None], default=None),
        cells=len(cells),
        serious_cells=len(cells & serious),
        rounds=offered.rounds or median(rounds_by_cell[rounds_by_cell > 0].tolist()),
        comparisons=len(compared(comparisons, metric)),
        half_width=offered.half_width,
        metric=metric,
        decided=decided_metrics(dataset, comparisons),
        aa_visible=_visible(comparisons, dataset.looks) if pairs else None,
        plain_pairs=len(run.plain_pairs),
        plain_differing=sum(pair.differs for pair in run.plain_pairs.values()),
    )


def _visible(comparisons: Iterable[Comparison], looks: tuple[int, ...]) -> float | None:
    """Return the smallest difference that an A/A pair would be reported with in 8 of 10 runs; None without noise.

    The pair is the only one that differs. It is reported beyond chance, or because it is above FAR_AA_PAIR.
    """
    rows = [row for each in comparisons if each.is_control for row in each.rows if row.rounds > 1]
    sd = typical_sd(rows)
    if sd is None:
        return None
    rounds = int(median(row.rounds for row in rows))
    reached = tuple(number for number in looks if 1 < number <= rounds) if len(looks) > 1 else ()
    numbers, at = (reached, looks) if reached else ((rounds,), (rounds,))
    beyond_chance = detectable_change(sd, numbers, at, AA_FALSE_DISCOVERY_RATE / len(rows), MAX_AA_CHANGE)
    far = math.expm1(math.log1p(FAR_AA_PAIR) + EIGHT_OF_TEN * sd / math.sqrt(rounds))
    return min(beyond_chance, far)


def canary_range(canary: Sequence[tuple[str, int, float]]) -> float | None:
    """Return how much longer the canary took in its slowest part of the run than in its quickest.

    A part is a round. Further rounds have few cases, and the median of two times is as far off as one of them, so
    neighbouring rounds are one part until it has MIN_CANARY times.

    Args:
        canary: (case id, round, seconds). The time of a part is the median of its times.

    Returns:
        the relative difference; None with fewer than two parts.
    """
    parts: list[list[float]] = []
    for _, times in itertools.groupby(canary, key=lambda reading: reading[1]):
        seconds = [each for _, _, each in times]
        if parts and min(len(parts[-1]), len(seconds)) < MIN_CANARY:
            parts[-1] += seconds
        else:
            parts.append(seconds)
    medians = list(map(median, parts))
    return max(medians) / min(medians) - 1 if len(medians) > 1 else None


def widest_decided(run: Dataset, comparisons: Sequence[Comparison]) -> tuple[str, MedianInterval]:
    """Return the metric, of those that a run decides, whose median comparison has the widest interval; and that.

    A run goes on until the verdicts on these metrics are decided, and says little of the precision of others. It is
    time where none of them is compared.
    """
    intervals = {name: median_interval(comparisons, name, run.looks) for name in decided_metrics(run, comparisons)}
    return max(intervals.items(), key=lambda item: item[1].half_width or 0.0)


def decided_metrics(run: Dataset, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Return the names of the metrics that a run decides and that are compared; time where there is none."""
    named = run.provenance.get("metrics") or ()
    return tuple(name for name in named if compared(comparisons, name)) or (TIME,)


def median_interval(
    comparisons: Iterable[Comparison], metric: str = TIME, looks: tuple[int, ...] = ()
) -> MedianInterval:
    """Return how many rounds an open comparison got, and the typical 95 % interval of a comparison with that many.

    Clear comparisons end early with wide intervals. Theirs count as if they had gone on, so that the grade shows the
    noise, and not how far the releases are apart. Servers, whose number is not that of rounds, do not go on.

    Args:
        comparisons: those with an A/A control do not count.
        metric: the name of the metric.
        looks: the numbers of rounds at which the run takes verdicts; comparisons have those of times.
    """
    from scipy.special import stdtrit

    counts, widths = [0.0], list[float]()
    for comparison in comparisons:
        rows = compared([comparison], metric)
        of_rows = [looks if BY_NAME[metric].scope == "cell" else ()] * len(rows)
        by_kind = (
            comparison.detectable_by_kind
            if metric == TIME
            else detectable_by_kind(rows, of_rows, margin_of(metric, comparison.margin))
        )
        reached = {kind: each.rounds[-1] for kind, each in by_kind.items() if each.rounds}
        for row in rows:
            rounds = reached.get(row.device_name, max(reached.values(), default=row.rounds))
            counts.append(rounds)
            independent = rounds * row.independent_rounds / max(row.rounds, 1)
            if row.round_sd is not None and independent > 1:
                widths.append(float(stdtrit(independent - 1, 0.975)) * unbiased_sd(row) / math.sqrt(independent))
    return MedianInterval(median(counts[1:] or counts), math.expm1(min(median(widths), 100.0)) if widths else None)


def compared(comparisons: Iterable[Comparison], metric: str = TIME) -> list[Row]:
    """Return the rows about a metric, by its name, that have a ratio, without those of A/A controls."""
    rows = (row for each in comparisons for row in each.rows_of(metric))
    return [row for row in rows if row.ratio and not is_control(row.environment)]


def _machine(issues: Sequence[QualityIssue], figures: Figures) -> Iterator[Reason]:
    """Yield a reason for each issue of the run as a whole that shows a busy machine, or that is serious.

    The load at the start counts only where the load of others during the run is not known.
    """
    for issue in issues:
        if issue.cell or issue.environment:
            continue
        if issue.serious:
            yield Reason("poor", issue.code, issue.sentence)
        elif issue.code == "busy" or (issue.code == "load" and figures.others_busy is None):
            yield Reason("fair", issue.code, issue.sentence)


def _controls(figures: Figures) -> Iterator[Reason]:
    pairs, differing, middle = figures.aa_pairs, figures.aa_differing, figures.aa_median
    if middle is None:
        if figures.comparisons:
            yield Reason("fair", "no-controls", "no A/A control shows how far an environment differs from itself")
        return
    if middle > FAIR_AA_MEDIAN:
        which = f"in the median of {pairs} A/A controls" if pairs > 1 else "in the only A/A control"
        text = f"environments differ from themselves by {percent(middle)}, {which}"
        yield Reason("poor" if middle > POOR_AA_MEDIAN else "fair", "a-a-median", text)
    if differing:
        verb = "differ" if differing > 1 else "differs"
        text = f"{differing} of {pairs} A/A controls {verb} beyond chance, or by more than {100 * FAR_AA_PAIR:g} %"
        poor = differing > max(1.0, POOR_AA_SHARE * pairs)
        yield Reason("poor" if poor else "fair", "a-a-differs", text)


def _canary(figures: Figures) -> Iterator[Reason]:
    if figures.canary is not None and figures.canary > FAIR_CANARY:
        longer = percent(figures.canary)
        text = f"a fixed product took {longer} longer in the slowest part of the run than in the quickest"
        yield Reason("poor" if figures.canary > POOR_CANARY else "fair", "canary", text)


def _serious_cells(figures: Figures) -> Iterator[Reason]:
    share = figures.serious_cells / figures.cells
    if share > FAIR_SERIOUS_CELLS:
        text = f"{figures.serious_cells} of {figures.cells} tests have a serious warning"
        yield Reason("poor" if share > POOR_SERIOUS_CELLS else "fair", "serious-cells", text)


def _rounds(figures: Figures) -> Iterator[Reason]:
    if BY_NAME[figures.metric].exact:
        return  # one value decides
    if figures.rounds < (POOR_ROUNDS if figures.comparisons else FAIR_ROUNDS):
        what = "comparison" if figures.comparisons else "cell"
        text = f"the median {what} has {figures.rounds:g} round{'s' * (figures.rounds > 1)}; "
        text += f"{FAIR_ROUNDS} or more show the noise well"
        yield Reason("poor" if figures.rounds < POOR_ROUNDS else "fair", "rounds", text)


def _half_width(figures: Figures) -> Iterator[Reason]:
    width = figures.half_width
    if width is not None and width > FAIR_HALF_WIDTH:
        of_metric = "" if figures.metric == TIME else f" of {BY_NAME[figures.metric].title}"
        text = f"with {figures.rounds:g} rounds, the 95 % interval of the median comparison{of_metric} would "
        if width < WIDEST_SHOWN:
            text += f"reach {percent(width)} to either side"
        else:
            text += "exclude no change: the rounds scatter too much, or are too few"
        yield Reason("poor" if width > POOR_HALF_WIDTH else "fair", "half-width", text)


CHECKS: tuple[Callable[[Figures], Iterator[Reason]], ...] = (_controls, _canary, _serious_cells, _rounds, _half_width)
"""The most important first; the issues of the machine come before them."""
