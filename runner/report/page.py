"""The content of a run's report, which the HTML page and the Markdown report both show."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.analysis.analyse import Analysis
from runner.analysis.boards import boards_of
from runner.analysis.comparison_model import Comparison
from runner.analysis.disturbed_rounds import disturbed_rounds
from runner.analysis.model import Dataset
from runner.analysis.quality.run import measured_elsewhere
from runner.analysis.releases import EnvironmentRelease
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.model.cells import environment_of, is_control, is_plain
from runner.core.model.profiles import StepProfile
from runner.report import formatting, wording
from runner.report.accuracy import Accuracy, accuracy
from runner.report.answer import Answer, answer
from runner.report.compared_rows import ComparedRow, compared_rows
from runner.report.controls_table import ControlLine, control_lines
from runner.report.headline import without_comparisons
from runner.report.last_run import LastRun
from runner.report.panels import Panel, panels
from runner.report.pictures import Samples
from runner.report.profile_section import Profiles, arrange_profiles
from runner.report.provenance import provenance, repeated_options
from runner.report.quality import Section, marks_by_cell, section
from runner.report.throughput import throughput
from runner.report.times import Case, CaseArranger
from runner.report.trust import TrustMark, trust_lines, trust_marks

DRAWN_ROWS = 200
"""Comparisons of a page whose samples are all drawn; a larger page has those of slower and of questioned rows."""

SHOWN_HOSTS = 6
"""Hosts that the facts of a run name; more are counted."""

Fact = tuple[str, str]
"""Name and text."""


class Missing(NamedTuple):
    """Cells of an environment without a good record, for one reason.

    Attributes:
        outcome: ``failed`` or ``skipped``.
        code: a failure class, or a skip code.
        reason: a sentence.
        cells: the ids of the cells without their environment.
    """

    environment: str
    outcome: str
    code: str
    reason: str
    cells: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything a report shows.

    Attributes:
        title: the answer in a sentence.
        facts: of the run as a whole; ``peaks`` are what shares of a peak refer to, as sentences.
        comparisons: with the quality issues of their rows, those of A/A controls last.
        answer: the headline, the cards and the rows that are slower.
        trust: topic and sentence of how far to trust the numbers; ``marks`` say it in a few words each.
        last: the run before on the same machine; None if that is not known.
        rows: all comparisons of releases, the largest change first.
        releases: environment -> its release.
        quality_issues: None without a good record.
        cases: the times of every measured cell; ``controls`` are what the controls of some of them show.
        missing: why the others have none.
        samples: cell id -> its samples by round, of the cells whose samples are drawn.
        provenance: what it takes to repeat the run.
        profiles: where the time of a step goes; None if the run has no profiles.
        panels: the kinds of devices; empty if there is only one.
        machine_title: what ``machine`` describes.
    """

    title: str
    run: str
    facts: tuple[Fact, ...]
    peaks: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    answer: Answer
    trust: tuple[Fact, ...]
    rows: tuple[ComparedRow, ...]
    releases: Mapping[str, EnvironmentRelease]
    quality_issues: Section | None
    cases: tuple[Case, ...]
    controls: tuple[ControlLine, ...]
    missing: tuple[Missing, ...]
    accuracy: tuple[Accuracy, ...]
    environments: Mapping[str, tuple[Fact, ...]]
    machine: tuple[Fact, ...]
    samples: Mapping[str, Samples]
    provenance: tuple[Fact, ...]
    notes: tuple[str, ...]
    profiles: Profiles | None = None
    panels: tuple[Panel, ...] = ()
    marks: tuple[TrustMark, ...] = ()
    last: LastRun | None = None
    machine_title: str = "This machine"


def arrange(
    analysis: Analysis,
    profiles: Mapping[str, StepProfile] = MappingProxyType({}),
    damaged: Sequence[str] = (),
    last: LastRun | None = None,
) -> Page:
    """Return the content of the report of a run.

    Args:
        analysis: the run; the verdict of a cell is from the first comparison that has it.
        profiles: cell id -> its profile.
        damaged: a sentence for each profile that cannot be read.
        last: the run before on the same machine; None if that is not known.
    """
    dataset, issues, comparisons = analysis.dataset, analysis.issues, analysis.comparisons
    medians = _medians(dataset)
    rates = throughput(dataset, {cell.id: median(seconds) for cell, seconds in medians.items()})
    cases = CaseArranger(dataset, comparisons, medians, marks_by_cell(issues, comparisons), rates).arranged()
    device, names = _device(dataset), analysis.releases
    disturbed = disturbed_rounds(dataset.journal).sentence
    run_answer = answer(comparisons, names, analysis.grade, without_comparisons(dataset, names, device), disturbed)
    rows = tuple(compared_rows(comparisons, names, repeated_options(dataset.provenance)))
    missing = tuple(missing_cells(dataset))
    failed = sum(len(each.cells) for each in missing if each.outcome == "failed")
    return Page(
        title=run_answer.headline,
        run=dataset.run,
        facts=tuple(_facts(dataset, device)),
        peaks=rates.peaks,
        comparisons=comparisons,
        answer=run_answer,
        trust=tuple(trust_lines(run_answer, failed=failed, cells=len(medians))),
        rows=rows,
        releases=names,
        quality_issues=section(issues, comparisons) if cases else None,
        cases=cases,
        controls=tuple(control_lines(comparisons, analysis.measured.plain_pairs.values(), names)),
        missing=missing,
        accuracy=tuple(row for row in accuracy(dataset) if not is_control(row.environment)),
        environments={
            name: tuple(formatting.facts(facts)) for name, facts in dataset.environments.items() if not is_control(name)
        },
        machine=tuple(formatting.facts(dataset.machine)),
        samples=samples_by_cell(dataset, drawn_cells(rows)),
        provenance=tuple(provenance(dataset)),
        notes=dataset.warnings,
        profiles=arrange_profiles(profiles, rows, names, damaged),
        panels=tuple(panels(comparisons)),
        marks=tuple(trust_marks(run_answer, rows, failed=failed, cells=len(medians))),
        last=last,
        machine_title="The machine that handed out the tests" if measured_elsewhere(dataset) else "This machine",
    )


def missing_cells(dataset: Dataset) -> Iterator[Missing]:
    """Yield the failures, then the skips, each reason once with its cells."""
    columns = (dataset.failures[name].tolist() for name in ("cell", "failure", "reason"))
    failed = [(Cell.parse(cell), failure, reason) for cell, failure, reason in zip(*columns, strict=True)]
    skipped = [(planned.cell, planned.code, planned.reason) for planned in dataset.plan if planned.verdict == "skip"]
    for outcome, cells in (("failed", failed), ("skipped", skipped)):
        ids = grouped(
            ((cell.environment, code, reason), cell.id.removeprefix(f"{cell.environment}/"))
            for cell, code, reason in cells
        )
        for (environment, code, reason), names in ids.items():
            yield Missing(environment, outcome, code, reason, list(dict.fromkeys(names)))


def drawn_cells(rows: Sequence[ComparedRow]) -> set[str]:
    """Return the cells whose samples are drawn: of all rows, or of the serious and slower ones if there are many."""
    shown = [each for each in rows if each.row.ratio is not None]
    if len(shown) > DRAWN_ROWS:
        shown = [each for each in shown if each.serious or wording.is_slower(each.word)][:DRAWN_ROWS]
    return {cell for each in shown for cell in each.row.cell_ids}


def samples_by_cell(dataset: Dataset, cells: set[str]) -> dict[str, Samples]:
    """Return cell id -> its samples by round, of some cells."""
    frame = dataset.samples[dataset.samples["cell"].isin(cells)]
    by_cell: dict[str, dict[int, NDArray[np.float64]]] = defaultdict(dict)
    for cell, of_cell in frame.groupby("cell", observed=True):
        for number in of_cell["round"].unique().tolist():
            by_cell[str(cell)][number] = of_cell.loc[of_cell["round"] == number, "seconds"].to_numpy()
    return {**by_cell}


def _medians(dataset: Dataset) -> Mapping[Cell, list[float]]:
    """Return each cell -> the medians of its rounds in seconds, without plain-process controls."""
    columns = (dataset.rounds["cell"].tolist(), dataset.rounds["seconds"].tolist())
    by_id: dict[str, list[float]] = grouped(zip(*columns, strict=True))
    return {Cell.parse(cell): seconds for cell, seconds in by_id.items() if not _is_plain_cell(cell)}


def _is_plain_cell(cell_id: str) -> bool:
    return is_plain(environment_of(cell_id))


def _device(dataset: Dataset) -> str:
    """Return the names of the devices of a run, each with the number of its boards if there are several."""
    counts = Counter(board.device_name for board in dict.fromkeys(boards_of(dataset.rounds)))
    if len(counts) > 1 or measured_elsewhere(dataset):
        return formatting.few([f"{count} x {name}" if count > 1 else name for name, count in counts.most_common()])
    names = [name for name in dataset.rounds["device_name"].unique().tolist() if name]
    boards = len(dataset.machine.get("gpus", ()))  # each board measured cases of its own
    text = formatting.few(names) or ", ".join(dataset.rounds["device"].unique().tolist()) or "no device"
    return f"{boards} x {text}" if boards > 1 else text


def _facts(dataset: Dataset, device: str) -> Iterator[Fact]:
    """Yield what a reader needs to know of the run at once; ``provenance`` has the rest."""
    rounds = dataset.rounds
    cpu_only = set(rounds["device"].unique().tolist()) == {"cpu"}
    yield "Device", f"{device} (CPU, no GPU)" if cpu_only else device
    hosts = sorted({name for name in rounds["host"].unique().tolist() if name})
    if len(hosts) > 1:
        yield "Hosts", formatting.few(hosts, SHOWN_HOSTS)
    for name, column in (("Driver", "driver"), ("Threads", "threads"), ("Backend", "backend")):
        known = [value for value in rounds[column].unique().tolist() if value]
        if known:
            yield name, formatting.few(known)
    protocols = [value for value in rounds["protocol"].unique().tolist() if value and value != "aligned"]
    if protocols:
        yield "Protocol", formatting.few(protocols)
    yield "Rounds", _range([count for cell, count in Counter(rounds["cell"]).items() if not _is_plain_cell(cell)])
    yield "Samples", f"{rounds['iterations'].sum():,} of {rounds['cell'].nunique():,} programs"
    if formatting.date(dataset.run):
        yield "Measured", formatting.date(dataset.run)
    yield "Run", dataset.run


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"
