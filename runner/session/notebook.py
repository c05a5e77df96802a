"""The program from Python: stored runs as pandas frames, and comparisons with a chart that a notebook shows."""

import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from runner.analysis.analyse import Analysis, analyse_run
from runner.analysis.comparison_model import Comparison
from runner.analysis.dataset import all_samples
from runner.analysis.gate import GateResult, gate, parse_conditions
from runner.analysis.model import Dataset, Grade
from runner.analysis.releases import EnvironmentRelease
from runner.core.errors import Problem, UsageError
from runner.core.files import write_whole
from runner.core.metrics import BY_NAME, OTHERS, TIME
from runner.core.progress import Progress
from runner.matrix.wrapper import parse_model
from runner.releases.named import as_typed
from runner.report import answer_text, chart_file, data, formatting, gate_text, metric_text, render, wording
from runner.report.answer import Answer, changed_metrics
from runner.session import flow
from runner.session.context import cache_in_use
from runner.session.options import Options
from runner.session.results import comparison, find_run, matrix_margin, run_answer
from runner.store.documents import PLAN
from runner.store.run import Run

OF_OTHERS = frozenset(metric.name for metric in OTHERS)
WIDTH = 100
"""Columns of a text that no terminal shows."""


@dataclass(frozen=True)
class ForestPlot:
    """A forest plot of comparisons; a notebook draws it.

    Attributes:
        svg: the picture as SVG text.
    """

    svg: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the chart to a ``.svg`` or ``.png`` file, atomically.

        Raises:
            UsageError: the file name has another ending.
        """
        target = Path(path)
        if target.suffix not in chart_file.SUFFIXES:
            raise UsageError(Problem(f"{path}: a chart is a {' or '.join(chart_file.SUFFIXES)} file"))
        write_whole(target, chart_file.png(self.svg) if target.suffix == ".png" else self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """Environments against a base. ``print`` it for the text of ``runner compare``; a notebook shows its chart.

    Attributes:
        comparison: the rows with their intervals and verdicts, as the report uses them.
        gate: what the conditions of ``fail_on`` make of them; None without conditions.
    """

    comparison: Comparison = field(repr=False)
    gate: GateResult | None = field(default=None, repr=False)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each test and environment, with the columns of ``runner compare --format csv`` and ``change``.

        Times are in seconds; ``ratio`` is the time of ``environment`` divided by that of ``base``, below 1 if it is
        faster; ``change`` has it in words; ``doubts`` is a list of codes.
        """
        return _table([self.comparison])

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The rows about memory and the other metrics, with the columns of ``table``.

        ``metric`` is the name; ``base_amount`` and ``amount`` are the values in its unit: seconds, bytes or joules.
        """
        return _table([self.comparison], OF_OTHERS)

    @cached_property
    def chart(self) -> ForestPlot:
        """The rows on a logarithmic axis of speed-ups, without A/A controls.

        Raises:
            UsageError: no row compares releases.
        """
        return _chart([self.comparison], self.comparison.releases)

    @property
    def gate_message(self) -> str:
        """The rows that break ``fail_on``, as ``runner compare`` prints them; empty where the gate passes."""
        problems = gate_text.problems(self.gate, self.comparison.releases) if self.gate else []
        return "\n".join(problem.message for problem in problems)

    def __str__(self) -> str:
        """Return the tables and the answer, as ``runner compare`` prints them."""
        return render(self.comparison, "table", width=WIDTH)

    def __repr__(self) -> str:
        """Return the sides and the number of tests, then a line for each change of another metric than time."""
        compared = f"{self.comparison.base} → {', '.join(self.comparison.others)}"
        changed = changed_metrics([self.comparison], self.comparison.releases)
        lines = [f"<comparison of {compared}: {formatting.counted(len(self.comparison.rows), 'test')}>"]
        return "\n".join([*lines, *(metric_text.line(*each) for each in changed)])

    def _repr_svg_(self) -> str:
        return self.chart.svg


@dataclass(frozen=True)
class RunResult:
    """A stored run. ``print`` it for its answer; a notebook shows the chart of its comparisons.

    Attributes:
        id: the id of the run.
        analysis: what is concluded from the run, which the properties below give access to.
    """

    id: str
    analysis: Analysis = field(repr=False)

    @property
    def dataset(self) -> Dataset:
        """The run's records as tables, its machine, environments and settings."""
        return self.analysis.dataset

    @property
    def comparisons(self) -> Sequence[Comparison]:
        """The releases of each framework against the oldest, as the report shows them."""
        return self.analysis.comparisons

    @property
    def grade(self) -> Grade | None:
        """How far the run can be trusted, with reasons; None without a good record."""
        return self.analysis.grade

    @property
    def samples(self) -> pd.DataFrame:
        """A row for each measured iteration; ``seconds`` is its time. ``runner.load_samples`` lists the columns."""
        return all_samples(self.dataset)

    @property
    def rounds(self) -> pd.DataFrame:
        """A row for each cell and round; ``seconds`` is the median of its samples."""
        return self.dataset.rounds

    @property
    def failures(self) -> pd.DataFrame:
        """A row for each failed cell and round, with ``failure``, its class, and ``reason``."""
        return self.dataset.failures

    @cached_property
    def table(self) -> pd.DataFrame:
        """All comparisons of the run, with the columns of ``ComparisonResult.table``."""
        return _table(self.comparisons)

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The rows of all comparisons about memory and the other metrics, as ``ComparisonResult.metrics``."""
        return _table(self.comparisons, OF_OTHERS)

    @cached_property
    def chart(self) -> ForestPlot:
        """All comparisons of releases on one logarithmic axis of speed-ups, the rows of each pair together.

        Raises:
            UsageError: the run compares no releases.
        """
        return _chart(self.comparisons, self.analysis.releases)

    @cached_property
    def answer(self) -> Answer:
        """Which releases are faster and by how much, as the report and the terminal say it."""
        return run_answer(self.analysis)

    def __str__(self) -> str:
        """Return the answer of the run, as ``runner run`` ends with it."""
        return answer_text.text(self.answer, width=WIDTH, colour=False)

    def _repr_svg_(self) -> str:
        return self.chart.svg


def load_run(path: str | Path, reports: Path, matrix: Path) -> RunResult:
    """Return a run, as ``runner.load_run`` describes it."""
    run = _stored(Path(path), reports)
    return RunResult(run.id, analyse_run(run, matrix_margin(matrix)))


def compare(
    sides: Sequence[str], reports: Path, matrix: Path, *, run: str | None, best: bool, fail_on: str = ""
) -> ComparisonResult:
    """Return a comparison, as ``runner.compare`` describes it."""
    conditions = parse_conditions([fail_on] if fail_on else ())
    compared = comparison(matrix, reports, sides, best=best, run=run)
    return ComparisonResult(compared, gate([compared], conditions) if conditions else None)


def compare_models(
    options: Options, environments: Sequence[str], cases: Sequence[str] | None, *, build: bool, fail_on: str = ""
) -> ComparisonResult:
    """Measure the network of ``options.model`` and compare, as ``runner.compare_models`` describes it."""
    parse_conditions([fail_on] if fail_on else ())  # a mistake in them is an error before anything is measured
    if len(environments) < 2:
        hint = 'runner.compare_models("my_network.py", "torch-1.12", "torch-2.x")'
        raise UsageError(Problem("a comparison needs two environments", hint=hint))
    options = replace(options, selectors=_selectors(options, environments, cases))
    with Progress(_write) as progress, cache_in_use(progress.note), flow.planned(options, progress) as work:
        missing = [
            spec.environment for spec in work.prepared.specs if spec.environment not in work.prepared.survey.cached
        ]
        if missing and not build:
            missing = as_typed(missing, environments)
            hint = f"`{shlex.join(['runner', 'build', *missing])}` builds, or pass build=True"
            raise UsageError(Problem(f"not built yet: {', '.join(missing)}", hint=hint))
        measured = flow.measure_planned(work, progress, without=(flow.answer, flow.propose))
    where = (options.reports, options.matrix_file)
    return compare(environments, *where, run=measured.run.id, best=False, fail_on=fail_on)


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _selectors(options: Options, environments: Sequence[str], cases: Sequence[str] | None) -> list[str]:
    """Return the selectors of all cells of the network in some environments, or of some of its cases."""
    if cases is None:
        return list(environments)
    names = [parse_model(each).workload for each in options.model or ()]
    return [f"{each}/*/{name}/{case}/*" for each in environments for name in names for case in cases]


def _stored(path: Path, reports: Path) -> Run:
    """Return the run in a folder, the newest run of a reports folder, or the run with an id."""
    if path.is_dir() and not (path / PLAN).exists():
        return find_run(path, None)
    return find_run(reports, str(path))


def _table(comparisons: Iterable[Comparison], metrics: Collection[str] = (TIME,)) -> pd.DataFrame:
    rows = [row for each in comparisons for row in data.rows(each, metrics)]
    for row in rows:
        row["change"] = wording.change(BY_NAME[row["metric"]], row["ratio"]) if row["ratio"] else ""
    before = data.COLUMNS.index("ratio")
    return pd.DataFrame(rows, columns=["base", *data.COLUMNS[:before], "change", *data.COLUMNS[before:]])


def _chart(comparisons: Sequence[Comparison], names: Mapping[str, EnvironmentRelease]) -> ForestPlot:
    return ForestPlot(str(chart_file.content(comparisons, ".svg", names)))
