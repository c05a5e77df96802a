"""The differences between an environment and its base, as a sentence and as groups for a table."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runner.analysis.comparison_model import Comparison, Difference
from runner.nights.night import NightDifference
from runner.report import formatting

FactDifference = Difference | NightDifference

UNKNOWN = "not known"
ABSENT = formatting.DASH
SHOWN_VALUES = 8
"""Differences shown with both values in a sentence; tables have all."""
SHOWN_NAMES = 3
"""Differences of a kind that are named in a sentence; more are only counted."""


class DifferenceRow(NamedTuple):
    """A difference as text."""

    name: str
    base: str
    other: str

    def __str__(self) -> str:
        """Return it in a line."""
        values = [value for value in (self.base, self.other) if value != ABSENT]
        return f"{self.name} {' → '.join(values)}"


class DifferenceGroup(NamedTuple):
    """Differences of a kind; the group of those that time may depend on has no title."""

    title: str
    rows: tuple[DifferenceRow, ...]


def sentences(comparison: Comparison) -> list[str]:
    """Return a sentence for each environment that was measured, if the base was measured, too."""
    return [sentence(comparison, other) for other in comparison.others if other in comparison.differences]


def sentence(comparison: Comparison, other: str) -> str:
    """Return the differences from the base: values if time may depend on them, else counts."""
    return sentence_of(comparison.base, other, comparison.differences[other])


def sentence_of(base: str, other: str, differences: Sequence[FactDifference]) -> str:
    """Return the same sentence of differences by themselves, such as those that a night stored."""
    relevant = [each for each in differences if each.kind in {"framework", "speed"}]
    if not differences:
        return f"{base} and {other} differ in nothing that was recorded"
    if is_complete(differences) and not relevant:
        return f"{base} and {other} differ in their digest, and in nothing else that was recorded"
    if is_complete(differences):
        release = _row(relevant[0])
        name = "the framework" if release.name == "framework" else release.name
        return f"between {base} and {other} only {name} differs: {release.base}, {release.other}"
    clauses = [*_changes(relevant), *_unknown(base, other, relevant), *_counts(differences)]
    return f"{other} differs from {base} in {'; '.join(clauses)}"


def is_complete(differences: Sequence[FactDifference]) -> bool:
    """Return True if the sentence says all: only the release differs, and with it the digest."""
    return {each.kind for each in differences} <= {"framework", "digest"}


def groups(comparison: Comparison, other: str) -> tuple[DifferenceGroup, ...]:
    """Return all differences of an environment, those that time may depend on first."""
    differences = comparison.differences[other]
    one_sided = [each for each in differences if each.kind == "alone"]
    by_title = {
        "": [each for each in differences if each.kind in {"framework", "speed", "digest"}],
        "Packages in different versions": [each for each in differences if each.kind == "package"],
        f"Packages only in {comparison.base}": [each for each in one_sided if each.other is None],
        f"Packages only in {other}": [each for each in one_sided if each.base is None],
        "Other settings, and what does not affect these times": [each for each in differences if each.kind == "rest"],
    }
    return tuple(DifferenceGroup(title, tuple(map(_row, kind))) for title, kind in by_title.items() if kind)


def _row(difference: FactDifference) -> DifferenceRow:
    values = (_value(side, difference.kind) for side in (difference.base, difference.other))
    return DifferenceRow(difference.name, *values)


def _value(side: str | None, kind: str) -> str:
    """Return the value of a side, a digest by its first 12 digits."""
    if side is None:
        return ABSENT if kind == "alone" else UNKNOWN
    return side[:19] if kind == "digest" and side.startswith("sha256:") else side


def _changes(differences: Sequence[FactDifference]) -> Iterator[str]:
    """Yield the differences that both sides have a value for, the framework before the rest."""
    release = [str(_row(each)).removeprefix("framework ") for each in differences if each.kind == "framework"]
    rest = [str(_row(each)) for each in differences if each.kind == "speed" and each.base and each.other]
    shown = formatting.few(rest, SHOWN_VALUES)
    parts = [*release, *([f"also in {shown}" if release else shown] if rest else [])]
    if parts:
        yield ", and ".join(parts)


def _unknown(base: str, other: str, differences: Sequence[FactDifference]) -> Iterator[str]:
    """Yield the differences that only one side has a value for."""
    for side, names in (
        (base, [each.name for each in differences if each.kind == "speed" and each.other is None]),
        (other, [each.name for each in differences if each.kind == "speed" and each.base is None]),
    ):
        if names:
            yield f"{', '.join(names)} (known only for {side})"


def _counts(differences: Sequence[FactDifference]) -> Iterator[str]:
    """Yield counts of the other differences, with their names if they are few."""
    for kind, singular, plural in (
        ("package", "package", "packages"),
        ("alone", "package on one side only", "packages on one side only"),
        ("rest", "other setting", "other settings"),
    ):
        names = [difference.name for difference in differences if difference.kind == kind]
        if names:
            listed = f" ({', '.join(names)})" if len(names) <= SHOWN_NAMES else ""
            yield f"{len(names)} {singular if len(names) == 1 else plural}{listed}"
