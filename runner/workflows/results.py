"""The stages that need no device: merge, compare and report, from stored runs to text and files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from runner.analysis import dataset, statistics
from runner.analysis.compare import compare
from runner.analysis.compare.summary import summarise
from runner.analysis.model import Comparison, Dataset, QualityIssue
from runner.analysis.quality import annotate, quality_issues
from runner.catalog import published
from runner.core.errors import Problem, UsageError
from runner.core.files import write_whole
from runner.matrix import load, select_environments
from runner.report import report
from runner.report.accuracy import accuracy, text
from runner.store.run import Run, runs


def find_run(reports: Path, name: str | None) -> Run:
    """Return a run by its id or its folder; the newest one where no name is given.

    Raises:
        UsageError: there is no such run.
        RecordError: it cannot be read.
    """
    if name and Path(name).is_dir():
        return Run.open(Path(name))
    found = runs(reports)
    for run in found:
        if run.id == name or (name is None and run.journal().entries):
            return run
    known = ", ".join(run.id for run in found[:5])
    hint = f"the newest are {known}" if known else "`runner run` makes one; --reports says where runs are kept"
    raise UsageError(
        Problem(f"there is no run {name!r} in {reports}" if name else f"{reports} holds no run", hint=hint)
    )


def write_report(run: Run, change: float, source: str | None = None) -> Path:
    """Write a run's report into its folder; return the page.

    ``change`` is the margin that counts as none; the figures of ``source``, a publication, stand beside the run's.
    """
    results = dataset.load_dataset(run)
    for name, content in report(results, summarise(results, margin=change), source).items():
        write_whole(run.path / name, content)
    return run.path / "index.html"


def accuracy_text(run: Run) -> str:
    """Return the largest errors against the reference, by environment and implementation."""
    return text(accuracy(dataset.load_dataset(run)))


def comparison(matrix: Path, reports: Path, names: Sequence[str], *, best: bool) -> Comparison:
    """Compare environments by the newest runs that hold them; the margin is the matrix's.

    Each name is an id, or selects ids of the matrix or of what was published; the first id is the base.
    """
    read = load(matrix) if matrix.exists() else None
    ids: list[str] = []
    for name in names:
        if published.is_published(name):
            ids += published.select(name)
            continue
        plain = read is None or name in read.environments or not any(sign in name for sign in "*?<>=:!")
        ids += [name] if read is None or plain else select_environments(read, [name])
    unique = tuple(dict.fromkeys(ids))
    doubtful: dict[str, tuple[QualityIssue, ...]] = {}

    def stored() -> Iterator[Dataset]:
        for run in runs(reports):
            results = dataset.load_dataset(run)
            doubtful[run.id] = quality_issues(results)
            yield results

    known = tuple(read.environments) if read else ()
    found = compare(stored(), unique[0], unique[1:], margin=margin(matrix), best=best, known=known)
    return annotate(found, doubtful)


def margin(matrix: Path) -> float:
    """Return the matrix's margin; the default one where there is no such file, since stored runs need none."""
    return load(matrix).measure.margin if matrix.exists() else statistics.MARGIN
