"""The answer of a run: which release is faster, by how much, on what, and whether to believe it.

The page, ``report.md`` and the end of ``runner run`` show it first.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from runner.analysis.comparison_model import Comparison, GeometricMean, Row
from runner.analysis.model import Grade
from runner.analysis.releases import EnvironmentRelease
from runner.report import metric_text, panels, wording
from runner.report.headline import headline
from runner.report.release_change import Card, ReleaseChange
from runner.stats.intervals import probable, significant


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a run.

    Attributes:
        headline: a sentence.
        cards: one for each comparison of releases on each kind of device, A/A controls left out.
        slower: the rows that are slower, or probably, the largest change first, with the names of their releases.
        grade: of the run; None without a good record.
        undecided: how many comparisons of releases are not decided, of ``compared``; the run gave ``abandoned`` of them
            up.
        disturbed: how many rounds other programs disturbed, and were measured again, as a sentence; empty if none.
        changed: the rows about other metrics than time that changed, the largest change first, with the same names.
    """

    headline: str
    cards: tuple[Card, ...] = field(repr=False)
    slower: tuple[tuple[Row, str, str], ...] = field(repr=False)
    grade: Grade | None = field(repr=False)
    undecided: int
    compared: int
    abandoned: int = 0
    disturbed: str = ""
    changed: tuple[tuple[Row, str, str], ...] = field(default=(), repr=False)


def answer(
    comparisons: Iterable[Comparison],
    names: Mapping[str, EnvironmentRelease],
    grade: Grade | None,
    fallback: str,
    disturbed: str = "",
) -> Answer:
    """Return the answer of a run.

    Args:
        comparisons: of its environments, each against a base; those with an A/A control do not count.
        names: environment -> its release; an environment that it lacks is called by its id.
        grade: of the run.
        fallback: the headline where nothing is compared.
        disturbed: a sentence about its disturbed rounds; empty if it has none.
    """
    of_releases = [each for each in comparisons if not each.is_control]
    several = panels.has_several_kinds(of_releases)
    parts = panels.split(of_releases)
    is_poor = grade is not None and grade.level == "poor"
    changes = _with_claims([[_change(part, other, names) for other in part.others] for part in parts], is_poor=is_poor)
    cards = tuple(
        replace(card, device_name=part.device_name if several else "")
        for part, of_part in zip(parts, changes, strict=True)
        if (card := _card(of_part))
    )
    rows = [row for each in of_releases for row in each.rows if row.ratio is not None]
    return Answer(
        headline=headline(cards, grade) or fallback,
        cards=cards,
        slower=tuple(_slower(of_releases, names)),
        grade=grade,
        undecided=sum(row.verdict == "inconclusive" for row in rows),
        compared=len(rows),
        abandoned=sum(row.abandoned for row in rows),
        disturbed=disturbed,
        changed=changed_metrics(of_releases, names, is_disturbed=is_poor),
    )


def changed_metrics(
    comparisons: Iterable[Comparison], names: Mapping[str, EnvironmentRelease], *, is_disturbed: bool = False
) -> tuple[tuple[Row, str, str], ...]:
    """Return the rows about other metrics than time that changed, the largest change first, with their releases.

    A quantile of the calls that changed as the time did is left out: it repeats the verdict.

    Args:
        comparisons: those with an A/A control do not count.
        names: environment -> its release.
        is_disturbed: whether the run cannot be used, so that other metrics that are times are left out, too.
    """
    of_releases = [each for each in comparisons if not each.is_control]
    bases = {id(row): each.base for each in of_releases for row in each.metrics}
    times = {(row.base, row.other): row.verdict for each in of_releases for row in each.rows}
    return tuple(
        (row, name(bases[id(row)], names), base_name(row.environment, bases[id(row)], names))
        for row in metric_text.changed(row for each in of_releases for row in each.metrics)
        if not (metric_text.metric_of(row).quantile and times.get((row.base, row.other)) == row.verdict)
        if not (is_disturbed and metric_text.metric_of(row).unit == "seconds")
    )


def _with_claims(changes: Sequence[Sequence[ReleaseChange]], *, is_poor: bool) -> list[list[ReleaseChange]]:
    """Return the changes of all comparisons; an average is clear or probable only by what all of them show.

    The levels are those of a row's verdict, and so are the shares of false ones among all that are called, and among
    those that are called probable. No average of a poor run is probable.
    """
    p_values = np.array([change.p_value for of_part in changes for change in of_part if change.p_value is not None])
    called = significant(p_values)
    levels = np.where(called, "called", np.where(probable(p_values, called) & (not is_poor), "probable", ""))
    of_averages = iter(levels.tolist())
    return [
        [change if change.p_value is None else _judged(change, next(of_averages)) for change in of_part]
        for of_part in changes
    ]


def _judged(change: ReleaseChange, level: str) -> ReleaseChange:
    """Return an average as clear if it is called, or else as probable if its interval excludes 1, too."""
    low, high = change.low or 0.0, change.high or math.inf
    if change.clear and level == "probable" and (low > 1 or high < 1):
        return replace(change, clear=False, word=wording.PROBABLY[0] if high < 1 else wording.PROBABLY[1])
    return replace(change, clear=change.clear and level == "called")


def _card(changes: Sequence[ReleaseChange]) -> Card | None:
    measured = [change for change in changes if change.words]
    if not measured:
        return None
    *between, newest = measured
    return Card(newest=newest, between=tuple(reversed(between)))


def _change(comparison: Comparison, other: str, names: Mapping[str, EnvironmentRelease]) -> ReleaseChange:
    of_other = [row for row in comparison.rows if row.environment == other]
    mean = _mean(comparison, other, of_other, names)
    averaged = None if mean is None else frozenset(mean.cell_ids)
    by_ratio: dict[bool, list[Row]] = {True: [], False: []}
    for row in of_other:
        by_ratio[row.ratio is not None and (averaged is None or row.other.id in averaged)].append(row)
    rows = sorted(by_ratio[True], key=lambda row: -(row.ratio or 0.0))
    ratio, low, high = _average(mean, rows)
    noise = mean.noise if mean else ""
    word = wording.word(rows[0]) if mean is None and len(rows) == 1 else None
    is_beyond = mean is not None and mean.p_value is not None and abs(mean.ratio - 1) > comparison.margin
    base, newer = name(comparison.base, names), base_name(other, comparison.base, names)
    return ReleaseChange(
        base=base_name(comparison.base, other, names),
        other=name(other, names),
        pair=f"{base} \N{RIGHTWARDS ARROW} {newer}",
        environment=other,
        ratio=ratio,
        low=low,
        high=high,
        tests=len(rows),
        workloads=tuple(mean.workloads if mean else dict.fromkeys(row.workload for row in rows)),
        clear=word in ("faster", "slower") or (is_beyond and not noise),
        median_ratio=mean.median_ratio if mean else None,
        p_value=mean.p_value if mean else None,
        word=word,
        noise=noise,
        words=wording.counts(map(wording.word, rows or of_other)),
        others=wording.counts(map(wording.word, by_ratio[False] if rows else ())),
        rows=tuple(rows),
        rounds=mean.rounds if mean else max((row.rounds for row in rows), default=0),
    )


def _mean(
    comparison: Comparison, other: str, rows: Sequence[Row], names: Mapping[str, EnvironmentRelease]
) -> GeometricMean | None:
    """Return the mean of an environment; None across frameworks that share only some of the tests' APIs.

    Such a mean would be about the few APIs that happen to have the same name in both.
    """
    mean = next((each for each in comparison.overall if each.environment == other), None)
    frameworks = {names[each].framework for each in (comparison.base, other) if each in names}
    compared = [row for row in rows if row.ratio is not None]
    return None if mean and len(frameworks) > 1 and len(compared) > len(mean.cell_ids) else mean


def _average(mean: GeometricMean | None, rows: Sequence[Row]) -> tuple[float | None, float | None, float | None]:
    if mean:
        return mean.ratio, mean.ratio_low, mean.ratio_high
    if len(rows) == 1:
        return rows[0].ratio, rows[0].ratio_low, rows[0].ratio_high
    return None, None, None


def name(environment: str, names: Mapping[str, EnvironmentRelease]) -> str:
    """Return the name of an environment's release; its id if the release is not known."""
    return names[environment].name if environment in names else environment


def base_name(base: str, other: str, names: Mapping[str, EnvironmentRelease]) -> str:
    """Return the name of a base next to that of the other release: without the framework if both have the same."""
    if base not in names or other not in names or names[base].framework != names[other].framework:
        return name(base, names)
    return names[base].short


def _slower(
    comparisons: Iterable[Comparison], names: Mapping[str, EnvironmentRelease]
) -> Iterator[tuple[Row, str, str]]:
    slower = [
        (row, name(each.base, names), base_name(row.environment, each.base, names))
        for each in comparisons
        for row in each.rows
        if wording.is_slower(wording.word(row))
    ]
    yield from sorted(slower, key=lambda entry: -(entry[0].ratio or 0.0))
