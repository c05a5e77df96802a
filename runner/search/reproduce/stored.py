"""The stored side of a reproduction: a run, some of its cells, and what it was measured with."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from runner.core.errors import NothingSelectedError, Problem, RecordError, UsageError
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.core.model import Cell, Past, Plan
from runner.core.model.cells import environment_of, is_control
from runner.plan.document import read_plan
from runner.plan.pairs import of_cells
from runner.session.execution.header import read_header
from runner.session.results import find_run
from runner.store.header import RunHeader
from runner.store.run import MAX_RECORD_BYTES, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is reproduced.

    Attributes:
        run: the run.
        header: what it was measured with.
        plan: the chosen cells alone, with nothing measured yet.
    """

    run: Run
    header: RunHeader
    plan: Plan

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The chosen cells, in the order of the plan."""
        return tuple(planned.cell for planned in self.plan.cells)

    @property
    def environments(self) -> dict[str, str]:
        """The environments of the cells, each under its own name."""
        return {cell.environment: cell.environment for cell in self.cells}


def find_stored(reports: Path, text: str) -> Stored:
    """Return the run and the cells that a text names.

    Args:
        reports: the folder that holds the runs.
        text: the file of a record, a run's id or folder, or either with ``/`` and a cell or a glob after it.

    Raises:
        UsageError: there is no such run.
        NothingSelectedError: the run has no good record of such a cell.
        RecordError: the run cannot be read.
    """
    run, pattern = _run_and_pattern(reports, text)
    journal = run.journal()
    good = {entry.cell for entry in journal.counting() if entry.status == "ok"}
    chosen = {name for name in good if fnmatchcase(name, pattern) and not is_control(environment_of(name))}
    if not chosen:
        known = sorted(name for name in good if not is_control(environment_of(name)))
        hint = f"it has {known[0]}" + (f" and {len(known) - 1} more" if known[1:] else "") if known else None
        raise NothingSelectedError(Problem(f"run {run.id} has no good record of {pattern!r}", hint=hint))
    header = read_header(run)
    try:
        plan = read_plan(run.plan(), run.cases(), header.measurement, Past(), run.models())
    except (KeyError, TypeError) as error:
        raise RecordError(Problem(f"{run.path}: the plan cannot be read: {error}")) from error
    return Stored(run=run, header=header, plan=of_cells(plan, chosen))


def _run_and_pattern(reports: Path, text: str) -> tuple[Run, str]:
    """Return the run that a text names, and a glob over ids of its cells."""
    path = Path(text)
    if text.endswith(".json") and path.is_file():
        cell = _cell_of_file(path)
        return Run.open(path.resolve().parent.parent), cell
    if path.is_dir():
        return Run.open(path), "*"
    parts = text.split("/")
    for count in range(len(parts) - 1, 0, -1):  # a folder, or an id, before the cell
        name = "/".join(parts[:count])
        if Path(name).is_dir() and (Path(name) / "plan.json").exists():
            return Run.open(Path(name)), "/".join(parts[count:])
    run, _, pattern = text.partition("/")
    return find_run(reports, run), f"{pattern}/*" if pattern and "/" not in pattern else pattern or "*"


def _cell_of_file(path: Path) -> str:
    """Return the id of the cell of a record, without special characters of a glob.

    Raises:
        UsageError: the file is no record.
    """
    try:
        cell = parse_object(read_bounded(path, MAX_RECORD_BYTES), path, 1).get("cell")
        return Cell.parse(cell if isinstance(cell, str) else "").id
    except (OSError, RecordError) as error:
        hint = "name a file of the folder records/ of a run"
        raise UsageError(Problem(f"{path} is no record", hint=hint)) from error
