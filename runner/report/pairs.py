"""The comparisons of a page by pairs of releases: a heading with the average of each pair, and its tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.analysis.releases import EnvironmentRelease
from runner.core.grouping import grouped
from runner.report import wording
from runner.report.answer import Answer
from runner.report.compared_rows import ComparedRow
from runner.report.formatting import counted
from runner.report.release_change import ReleaseChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two releases and the tests that are compared between them.

    Attributes:
        title: both releases, ``PyTorch 1.0.0 → 2.13.0``.
        environments: the ids of the base and the other.
        rows: the slower first, those without a ratio last.
        average: the change on average; empty if there is no average, or only one test.
        scope: what it is, with its 95 % interval; empty without a ratio.
        css_word: whether the average is faster or slower, as a word that has a colour.
        counts: how many rows have each word, in a line.
        note: what the reader has to know of the pair; otherwise empty.
        device_name: the kind of device if the comparisons have several, and else empty.
    """

    title: str
    environments: tuple[str, str]
    rows: tuple[ComparedRow, ...]
    average: str
    scope: str
    css_word: str
    counts: str
    note: str
    device_name: str = ""


def pairs(rows: Sequence[ComparedRow], answer: Answer, names: Mapping[str, EnvironmentRelease]) -> list[Pair]:
    """Return the pairs of each kind of device in the order of the answer's cards: newest releases, then others.

    Args:
        rows: the comparisons that are shown.
        answer: of the same run or comparison.
        names: environment -> its release.
    """
    changes = {
        (card.device_name, change.rows[0].base.environment, change.environment): change
        for card in answer.cards
        for change in (card.newest, *card.between)
        if change.rows
    }
    newest = {(card.device_name, card.newest.environment) for card in answer.cards}
    kinds = list(dict.fromkeys(each.device_name for each in rows))
    groups = grouped(((each.device_name, each.row.base.environment, each.row.environment), each) for each in rows)
    order = {key: position for position, key in enumerate(changes)}
    ordered = sorted(
        groups,
        key=lambda key: (kinds.index(key[0]), (key[0], key[2]) not in newest, order.get(key, len(order))),
    )
    return [_pair(key, groups[key], changes.get(key), names) for key in ordered]


def _pair(
    key: tuple[str, str, str],
    rows: Sequence[ComparedRow],
    change: ReleaseChange | None,
    names: Mapping[str, EnvironmentRelease],
) -> Pair:
    device_name, base, other = key
    average = change if change and len(change.rows) > 1 else None
    ends = wording.speedup_range(average.low, average.high, direction=not average.has_direction) if average else ""
    left_out = (
        f"the average leaves out {counted(sum(average.others.values()), 'test')}" if average and average.others else ""
    )
    return Pair(
        title=f"{rows[0].base} → {rows[0].other}",
        environments=(base, other),
        rows=tuple(sorted(rows, key=lambda each: -(each.row.ratio or 0.0))),
        average=average.big if average else "",
        scope=", ".join(filter(None, ("on average", ends))) if average and average.ratio else "",
        css_word=_css_word(average),
        counts=wording.counted_words(wording.counts(each.word for each in rows), " · "),
        note="; ".join(filter(None, (_backend_note(base, other, names), average.noise if average else "", left_out))),
        device_name=device_name,
    )


def _css_word(change: ReleaseChange | None) -> str:
    if change is None or not change.has_direction or change.ratio is None:
        return "can't tell"
    return "faster" if change.ratio < 1 else "slower"


def _backend_note(base: str, other: str, names: Mapping[str, EnvironmentRelease]) -> str:
    """Return a note if the two are one release on two backends, so that the change is no release's."""
    if base not in names or other not in names or names[base].backend == names[other].backend:
        return ""
    same = (names[base].framework, names[base].version) == (names[other].framework, names[other].version)
    return "the same release on another backend" if same else ""
