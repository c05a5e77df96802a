"""What is doubtful, in the words that every form of a report shares: a mark beside a row, and groups by code."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from runner.analysis.model import Comparison, QualityIssue, Row
from runner.report import formatting
from runner.report.formatting import counted

MOST = 3
"""Doubts of a code that are given as sentences, the worst ones."""
MOST_ENVIRONMENTS = 2
"""Environments that are named in a line."""
DECIDED = frozenset({"faster", "slower", "same"})


class Mark(NamedTuple):
    """What stands beside a doubtful row: a code, with ``base:`` before it where it is about the base's cell."""

    label: str
    sentence: str
    serious: bool


class Group(NamedTuple):
    """The doubts of one code: about how many cells of which environments, the worst, and how many more there are."""

    code: str
    where: str
    worst: tuple[str, ...]
    more: int


class Section(NamedTuple):
    """The doubts about a run: what they mean for its verdicts, the serious by code, the others in a line for each."""

    title: str
    serious: tuple[Group, ...]
    lesser: tuple[tuple[str, str], ...]
    total: str


def marks(doubts: Iterable[QualityIssue], base: str = "") -> tuple[Mark, ...]:
    """Return the marks of a row, one for each doubt; ``base`` is the environment of the base's cell."""
    return tuple(
        Mark(f"base: {one.code}" if one.environment == base else one.code, one.sentence, one.serious) for one in doubts
    )


def by_cell(doubts: Iterable[QualityIssue], comparisons: Iterable[Comparison]) -> Mapping[str, tuple[Mark, ...]]:
    """Return cell id -> its marks: those of its own, then what is serious about the cell it is compared with.

    Args:
        doubts: about a run.
        comparisons: with the doubts of their rows; of several rows of a cell the first counts.
    """
    found: dict[str, tuple[Mark, ...]] = {}
    for one in doubts:
        if one.cell:
            found[one.cell] = (*found.get(one.cell, ()), *marks([one]))
    seen: set[str] = set()
    for comparison in comparisons:
        for row in comparison.rows:
            cell = row.other.id if row.quality_issues else ""
            if cell and cell not in seen:
                seen.add(cell)
                of_base = [one for one in row.quality_issues if one.serious and one.environment == comparison.base]
                found[cell] = (*found.get(cell, ()), *marks(of_base, comparison.base))
    return found


def section(doubts: Sequence[QualityIssue], comparisons: Iterable[Comparison]) -> Section:
    """Return the doubts about a run for a page."""
    serious = [one for one in doubts if one.serious]
    lesser = [one for one in doubts if not one.serious]
    found = questioned(serious, comparisons)
    parts = [f"{len(group)} {word}" for group, word in ((serious, "serious"), (lesser, "lesser")) if group]
    return Section(
        title=title(found) if serious else "no serious doubts" if lesser else "no doubts",
        serious=tuple(_group(code, group) for code, group in _by_code(serious).items()),
        lesser=tuple(lines(lesser, named=False)),
        total=", ".join(parts) or "none",
    )


def title(verdicts: int) -> str:
    """Return what serious doubts mean for so many verdicts."""
    return f"doubts that put {counted(verdicts, 'verdict')} into question" if verdicts else "serious doubts"


def questioned(doubts: Iterable[QualityIssue], comparisons: Iterable[Comparison]) -> int:
    """Return how many verdicts are about a cell with a serious doubt."""
    cells = {one.cell for one in doubts if one.serious and one.cell}
    decided = (row.cell_ids for one in comparisons for row in one.rows if row.verdict in DECIDED)
    return sum(not cells.isdisjoint(both) for both in decided) if cells else 0


def lines(doubts: Iterable[QualityIssue], *, named: bool) -> Iterator[tuple[str, str]]:
    """Give each code once, with how many cells of which environments it is about, and the worst of them.

    Args:
        doubts: of each code the worst first.
        named: whether the cell of the worst is named where there are several.
    """
    for code, group in _by_code(doubts).items():
        worst, alike = group[0], len({one.sentence for one in group}) == 1
        if len(group) == 1:
            yield code, _said(worst)
        else:
            which = "" if alike else f"; at worst, in {worst.cell}" if named else "; at worst"
            yield code, f"{_where(group)}{which}: {worst.sentence}"


def of_rows(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the serious doubts about the cells of rows, the worst of each code: the code, and of which cell what.

    Args:
        rows: of one case, which the cells are not told apart by.
    """
    precisions = {row.precision for row in rows}
    found = _by_code(dict.fromkeys(one for row in rows for one in row.quality_issues if one.serious))
    said = []
    for code, doubts in found.items():
        doubts.sort(key=lambda one: -one.extent)
        for one in doubts[:MOST]:
            environment, implementation, *_, phase, precision = one.cell.split("/")
            name = f"{environment} {implementation} {formatting.phase(phase, precision, precisions)}"
            said.append((code, f"{name}: {one.sentence}"))
        said += [(code, f"and {len(doubts) - MOST} more")] if len(doubts) > MOST else []
    return said


def values(doubt: QualityIssue) -> Mapping[str, Any]:
    """Return a doubt as JSON values."""
    return {name: getattr(doubt, name) for name in ("code", "serious", "environment", "cell", "sentence")}


def _by_code(doubts: Iterable[QualityIssue]) -> dict[str, list[QualityIssue]]:
    groups: dict[str, list[QualityIssue]] = {}
    for one in doubts:
        groups.setdefault(one.code, []).append(one)
    return groups


def _group(code: str, doubts: Sequence[QualityIssue]) -> Group:
    shown = doubts if len(doubts) == MOST + 1 else doubts[:MOST]  # one more takes no more room than to say so
    return Group(code, _where(doubts), tuple(_said(one) for one in shown), len(doubts) - len(shown))


def _said(doubt: QualityIssue) -> str:
    return f"{doubt.cell}: {doubt.sentence}" if doubt.cell else doubt.sentence


def _where(doubts: Iterable[QualityIssue]) -> str:
    return of_environments(one.environment for one in doubts if one.environment)


def of_environments(names: Iterable[str]) -> str:
    """Return how many cells there are of which environments, from the environment of each; empty where there are none.

    >>> of_environments(["jax", "jax", "tf-1.8"])
    '2 cells of jax, 1 of tf-1.8'
    """
    counts = Counter(names).most_common()
    if not counts:
        return ""
    shown = counts[: MOST_ENVIRONMENTS if len(counts) > MOST_ENVIRONMENTS + 1 else MOST_ENVIRONMENTS + 1]
    parts = [f"{count} of {name}" for name, count in shown]
    parts[0] = f"{counted(shown[0][1], 'cell')} of {shown[0][0]}"
    rest = counts[len(shown) :]
    if rest:
        return f"{', '.join(parts)} and {sum(count for _, count in rest)} of {len(rest)} more environments"
    return ", ".join(parts)
