"""What needs stored runs only: find one, write its report, compare environments."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from runner.analysis.analyse import Analysis, analyse_run
from runner.analysis.compare import compare
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Comparison
from runner.analysis.dataset import load_dataset
from runner.analysis.disturbed_rounds import disturbed_rounds
from runner.analysis.model import Dataset
from runner.analysis.of_run import of_run, split, with_facts_of
from runner.analysis.quality import annotate
from runner.analysis.releases import releases
from runner.catalog import published
from runner.core.collector import collector_paused
from runner.core.errors import DamagedRunWarning, Problem, RecordError, RunnerError, UsageError, file_problem
from runner.core.grouping import grouped
from runner.core.model.cells import is_control
from runner.core.model.variant_ids import is_variant
from runner.matrix import Matrix, load, select_environments
from runner.matrix.select import none_remains
from runner.matrix.variants import canonical
from runner.releases.existing import split_existing, with_ids
from runner.releases.named import id_of, split_selector, with_id
from runner.report import report
from runner.report.accuracy import Accuracy, accuracy
from runner.report.answer import Answer, answer
from runner.report.last_run import LastRun
from runner.report.markdown import summary
from runner.report.page import arrange
from runner.stats.intervals import MARGIN
from runner.store.documents import save
from runner.store.profile_files import read_profiles
from runner.store.run import Run, is_ahead, runs


def find_run(reports: Path, name: str | None) -> Run:
    """Return a run by its id or its folder; the newest run with records where no name is given.

    Raises:
        UsageError: there is no such run.
        RecordError: the run cannot be read.
    """
    if name and os.path.isdir(name):  # noqa: PTH112  Path.is_dir raises for a name that is too long
        return Run.open(Path(name))
    try:
        stored = runs(reports)
    except OSError as error:
        raise UsageError(file_problem(error, reports, "read")) from error
    if name is None:
        warn_ahead(stored)
    for run in stored:
        if run.id == name or (name is None and has_records(run)):
            return run
    known = ", ".join(run.id for run in stored[:5])
    hint = f"the newest runs are {known}" if known else "start one with `runner run`, or name another folder: --reports"
    raise UsageError(
        Problem(f"there is no run {name!r} in {reports}" if name else f"{reports} holds no run", hint=hint)
    )


def has_records(run: Run) -> bool:
    """Return whether a run has records; one that cannot be read has none, and a warning says so."""
    try:
        return bool(run.journal().entries)
    except RecordError as error:
        warn_unreadable(run, error)
        return False


def warn_ahead(stored: Sequence[Run]) -> None:
    """Warn of runs whose names are times in the future, where the newest run is looked for."""
    future = [run.id for run in stored if is_ahead(run.id)]
    if future:
        names = f"{future[0]} and {len(future) - 1} more" if len(future) > 1 else future[0]
        advice = "remove what was measured under a wrong clock, or set the clock"
        sentence = f"run {names}: named after a time in the future, and not taken for the newest; {advice}"
        warnings.warn(sentence, DamagedRunWarning, stacklevel=2)


def warn_unreadable(run: Run, error: RunnerError) -> None:
    """Warn that a run is left out because it cannot be read."""
    warnings.warn(f"run {run.id} is left out: {error.problems[0].message}", DamagedRunWarning, stacklevel=2)


@collector_paused()
def write_report(analysis: Analysis, run: Run, source: str | None = None, last: LastRun | None = None) -> Path:
    """Write a run's report into its folder; return the path of the page.

    Args:
        analysis: the run to report on.
        run: its folder.
        source: a publication whose figures are shown next to the run's.
        last: the run before on the same machine; None if that is not known.

    Raises:
        RecordError: the report cannot be written.
    """
    damaged: list[str] = []
    cells = (planned.cell.id for planned in analysis.dataset.plan)
    profiles = dict(read_profiles(run.path, cells, damaged.append))
    for name, content in report(analysis, source, profiles, damaged, last).items():
        save(run.path / name, content)
    return run.path / "index.html"


def run_answer(analysis: Analysis) -> Answer:
    """Return which releases of a run are faster, by how much, and its grade."""
    disturbed = disturbed_rounds(analysis.dataset.journal).sentence
    return answer(analysis.comparisons, analysis.releases, analysis.grade, analysis.dataset.run, disturbed)


def report_summary(analysis: Analysis) -> str:
    """Return the first part of a run's report as Markdown."""
    return summary(arrange(analysis))


def run_accuracy(run: Run) -> tuple[Accuracy, ...]:
    """Return the largest errors against the reference, by environment and implementation, without A/A controls."""
    return tuple(row for row in accuracy(load_dataset(run)) if not is_control(row.environment))


def comparison(matrix: Path, reports: Path, names: Sequence[str], *, best: bool, run: str | None = None) -> Comparison:
    """Return the comparison of ``compared_runs``."""
    return compared_runs(matrix, reports, names, best=best, run=run)[0]


@collector_paused()
def compared_runs(
    matrix: Path, reports: Path, names: Sequence[str], *, best: bool, run: str | None = None
) -> tuple[Comparison, Mapping[str, Analysis]]:
    """Compare environments by the newest runs that hold them, with the margin of the matrix file.

    Returns:
        the comparison, and the run of each of its rows by its id.

    Args:
        matrix: the matrix file.
        reports: the folder that holds the runs.
        names: ids, or selectors of environments or of published figures; the first id is the base. An id may end in
            ``@`` and the id of a run, whose times that side then has.
        best: compare the fastest implementation of each side.
        run: compare in this run only; the newest by default.

    Raises:
        UsageError: there is no such environment or run.
        RunnerError: nothing can be compared.
    """
    loaded = load(matrix, networks=False) if matrix.exists() else None
    margin = loaded.measure.margin if loaded else MARGIN
    typed, names = names, with_ids(names, loaded.environments if loaded else ())
    ids = _sides(names, loaded)
    analyses: dict[str, Analysis] = {}
    sides = [split(name) for name in ids if not published.is_published(name)]
    pinned = grouped((of, environment) for environment, of in sides if of)

    def analysed(stored_run: Run) -> Analysis:
        analyses[stored_run.id] = analyse_run(stored_run, margin)
        return analyses[stored_run.id]

    def stored() -> Iterator[Dataset | MeasuredRun]:
        for name, environments in pinned.items():
            yield of_run(analysed(find_run(reports, name)).dataset, environments)
        if run:
            yield analysed(find_run(reports, run)).measured
        else:
            for each in _readable(reports, analysed):
                environments = pinned.get(each.dataset.run, [])
                yield with_facts_of(each.dataset, environments) if environments else each.measured

    known = tuple(loaded.environments) if loaded else ()
    words = _typed_words(typed, names, loaded)
    compared = compare(stored(), ids[0], ids[1:], margin=margin, best=best, known=known, words=words)
    used = {name: analyses[name] for row in compared.rows for name in row.runs}
    by_environment = {
        name: release
        for run_id, each in used.items()
        for name, release in releases(with_facts_of(each.dataset, pinned.get(run_id, ()))).items()
    }
    grades = {name: each.grade for name, each in used.items() if each.grade}
    annotated = annotate(compared, {name: each.issues for name, each in used.items()})
    return replace(annotated, grades=grades, releases=by_environment), used


def _readable(reports: Path, read: Callable[[Run], Analysis]) -> Iterator[Analysis]:
    """Yield the runs of a folder that can be read, newest first; a warning names each that cannot."""
    for stored_run in runs(reports):
        try:
            analysis = read(stored_run)
        except RecordError as error:
            warn_unreadable(stored_run, error)
        else:
            yield analysis


def _typed_words(typed: Sequence[str], names: Sequence[str], matrix: Matrix | None) -> Mapping[str, str]:
    """Return environment id -> the word that was typed for it, of releases, interpreters and images.

    Args:
        typed: selectors as they were typed.
        names: the same with the ids of interpreters and images.
        matrix: the matrix file.
    """
    words = {}
    for text, name in zip(typed, names, strict=True):
        existing, word = split_existing(text)[1], split_selector(name)[1]
        if existing is not None:
            words[word] = f"{existing.name}={existing.word}" if existing.name else existing.word
        elif release := id_of(name, matrix):
            words[release] = word
    return words


def _sides(names: Sequence[str], matrix: Matrix | None) -> list[str]:
    """Return the ids that names select, the first of the base; a ``!`` excludes what follows from those of the others.

    Raises:
        NothingSelectedError: a name selects nothing, or all is excluded.
        UsageError: a range cannot be read.
    """
    included = [name for name in names if not name.startswith("!")] or [*(matrix.environments if matrix else ())]
    ids = dict.fromkeys(each for name in included for each in _selected(name, matrix))
    excluded = set[str]()
    for name in names:
        if name.startswith("!"):
            sides = {*ids} & {*_selected(name[1:], matrix)}
            excluded |= sides or {*(select_environments(matrix, [name[1:]]) if matrix else ())}
    if not {*ids} - excluded:
        raise none_remains(names)
    return [each for each in ids if each not in excluded]


def _selected(name: str, matrix: Matrix | None) -> Sequence[str]:
    """Return the ids that a name selects; without a matrix file, or without a glob or range in it, a name is an id."""
    if published.is_published(name):
        return published.select_sides(name)
    name = with_id(name, matrix)
    if is_variant(name):
        environment, of = split(name)
        return ["@".join(filter(None, (canonical(environment), of)))]
    is_id = matrix is None or name in matrix.environments or not any(sign in name for sign in "*?<>=:")
    return [name] if matrix is None or is_id else select_environments(matrix, [name])


def matrix_margin(matrix: Path) -> float:
    """Return the margin of a matrix file, the default one where the file does not exist: stored runs need none."""
    return load(matrix, networks=False).measure.margin if matrix.exists() else MARGIN
