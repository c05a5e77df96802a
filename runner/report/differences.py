"""In what environments differ from a base, in words: a sentence, and groups for a table."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runner.analysis.model import Comparison, Difference
from runner.report import formatting

UNKNOWN = "not known"
ABSENT = formatting.DASH
SHOWN = 8
"""Differences with both values in a sentence; tables have all."""
NAMED = 3
"""Differences of a kind that are named; more are counted."""


class Row(NamedTuple):
    """A difference as text."""

    name: str
    base: str
    other: str

    def __str__(self) -> str:
        """Return it in a line."""
        values = [value for value in (self.base, self.other) if value != ABSENT]
        return f"{self.name} {' → '.join(values)}"


class Group(NamedTuple):
    """Differences of a kind; that of what time may depend on has no title."""

    title: str
    rows: tuple[Row, ...]


def sentences(comparison: Comparison) -> list[str]:
    """Return a sentence for each environment that was measured, as the base was."""
    return [sentence(comparison, other) for other in comparison.others if other in comparison.differences]


def sentence(comparison: Comparison, other: str) -> str:
    """Return in what an environment differs from the base: values where time may depend on them, else counts."""
    base, found = comparison.base, comparison.differences[other]
    named = [one for one in found if one.kind in {"framework", "speed"}]
    if not found:
        return f"{base} and {other} differ in nothing that was recorded"
    if brief(found) and not named:
        return f"{base} and {other} differ in their digest, and in nothing else that was recorded"
    if brief(found):
        release = _row(named[0])
        name = "the framework" if release.name == "framework" else release.name
        return f"between {base} and {other} only {name} differs: {release.base}, {release.other}"
    clauses = [*_changes(named), *_unknown(base, other, named), *_counts(found)]
    return f"{other} differs from {base} in {'; '.join(clauses)}"


def brief(found: Sequence[Difference]) -> bool:
    """Say whether the sentence says all: at most the release differs, and with it the digest."""
    return {one.kind for one in found} <= {"framework", "digest"}


def groups(comparison: Comparison, other: str) -> tuple[Group, ...]:
    """Return all differences of an environment, what time may depend on first."""
    found = comparison.differences[other]
    alone = [one for one in found if one.kind == "alone"]
    made = {
        "": [one for one in found if one.kind in {"framework", "speed", "digest"}],
        "Packages in different versions": [one for one in found if one.kind == "package"],
        f"Packages of {comparison.base} alone": [one for one in alone if one.other is None],
        f"Packages of {other} alone": [one for one in alone if one.base is None],
        "Other settings, and what has no part in these times": [one for one in found if one.kind == "rest"],
    }
    return tuple(Group(title, tuple(map(_row, kind))) for title, kind in made.items() if kind)


def _row(one: Difference) -> Row:
    return Row(one.name, *(_value(side, one.kind) for side in (one.base, one.other)))


def _value(side: str | None, kind: str) -> str:
    """Return what a side has, a digest by its first 12 digits."""
    if side is None:
        return ABSENT if kind == "alone" else UNKNOWN
    return side[:19] if kind == "digest" and side.startswith("sha256:") else side


def _changes(found: Sequence[Difference]) -> Iterator[str]:
    """Give what both sides know, the framework before the rest."""
    release = [str(_row(one)).removeprefix("framework ") for one in found if one.kind == "framework"]
    rest = [str(_row(one)) for one in found if one.kind == "speed" and one.base and one.other]
    shown = formatting.few(rest, SHOWN)
    parts = [*release, *([f"also in {shown}" if release else shown] if rest else [])]
    if parts:
        yield ", and ".join(parts)


def _unknown(base: str, other: str, found: Sequence[Difference]) -> Iterator[str]:
    """Give what only one side knows."""
    for side, names in (
        (base, [one.name for one in found if one.kind == "speed" and one.other is None]),
        (other, [one.name for one in found if one.kind == "speed" and one.base is None]),
    ):
        if names:
            yield f"{', '.join(names)} (known of {side} alone)"


def _counts(found: Sequence[Difference]) -> Iterator[str]:
    """Give what has no place in a sentence, by name where that is short."""
    for kind, one, more in (
        ("package", "package", "packages"),
        ("alone", "package on one side alone", "packages on one side alone"),
        ("rest", "other setting", "other settings"),
    ):
        names = [difference.name for difference in found if difference.kind == kind]
        if names:
            listed = f" ({', '.join(names)})" if len(names) <= NAMED else ""
            yield f"{len(names)} {one if len(names) == 1 else more}{listed}"
