"""Rows whose plain-process controls show another ratio than their cells: the rounds of the controls decide them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.pairing import CellPair
from runner.analysis.compare.verdicts import draft
from runner.analysis.model import QualityIssue
from runner.analysis.plain_control import DIFFERS, PlainPair, differ_unlike
from runner.core import units
from runner.core.model.cells import is_control, plain


def in_plain_processes(drafts: Iterable[Draft], runs: Mapping[str, MeasuredRun]) -> Iterator[Draft]:
    """Yield the drafts; where plain processes show another ratio of the sides, with the rounds of plain processes.

    Such a draft keeps its cells: it is another measurement of the same pair. One without controls, or whose controls
    share no round, stays as it is.

    Args:
        drafts: rows before their verdicts.
        runs: run -> the run, of those that were read.
    """
    for drafted in drafts:
        row = drafted.row
        run = runs.get(row.runs[0]) if len(row.runs) == 1 and drafted.ratios else None
        if run is None or is_control(row.environment):
            yield drafted
            continue
        base, other = run.plain_pairs.get(row.base), run.plain_pairs.get(row.other)
        differs = base is not None and other is not None and differ_unlike(base, other)
        yield _of_controls(drafted, run, base, other) if base and other and differs else drafted


def _of_controls(drafted: Draft, run: MeasuredRun, base: PlainPair, other: PlainPair) -> Draft:
    """Return the draft of the controls of a pair, under the names of its cells."""
    row = drafted.row
    pair = CellPair(plain(row.base), plain(row.other))
    made = draft(run.side(pair.base.environment), run.side(pair.other.environment), pair)
    if not made.ratios:
        return drafted
    issues = (*row.quality_issues, _issue(base, other))
    return replace(
        made, row=replace(made.row, base=row.base, other=row.other, in_plain_processes=True, quality_issues=issues)
    )


def _issue(base: PlainPair, other: PlainPair) -> QualityIssue:
    """Return the issue of a row, which replaces those of its cells: how many times as long plain processes take."""
    texts = [f"{units.digits(pair.ratio)} times for {pair.cell.environment}" for pair in (base, other)]
    return QualityIssue(
        code=DIFFERS,
        sentence=f"compared in plain processes, which take {' and '.join(texts)} what was measured",
        serious=False,
        environment=other.cell.environment,
        cell=other.cell.id,
        extent=abs(other.ratio / base.ratio - 1),
    )
