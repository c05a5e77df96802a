"""Writes a static site over the stored runs: an index, trends, and the page of each run."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.errors import Problem, RecordError, RunnerError, UsageError
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.report.formatting import counted
from runner.report.run_summary import NAME, VERSION
from runner.report.site import site
from runner.store.documents import MAX_BYTES, save, unreadable
from runner.store.run import Run, runs
from runner.store.shapes import CONFIG, Count, Number, checked
from runner.workflows.results import has_records, write_report

COPIED = ("index.html", "report.md", "plan.json")
"""Files of a run that the site has, too; samples and logs stay in the run's folder."""
LINKS_OF_FOLDER = ', <a href="samples.csv">samples.csv</a>, <a href="plan.json">plan.json</a>, <a href="logs/">logs</a>'
LINK_TO_LOG = re.compile(r'<a href="logs/[^"]*">([^<]*)</a>')
MAX_SUMMARY_BYTES = 64 << 20
LINKS_OF_SITE = ', <a href="plan.json">plan.json</a>'


def _starts_with_a_time(times: list[float | None]) -> list[float | None]:
    if not times or times[0] is None or times[0] <= 0:
        message = "the first number has to be a time"
        raise ValueError(message)
    return times


@with_config(CONFIG)
class StoredSummary(TypedDict):
    """What the site reads of a run's summary."""

    version: int
    run: str
    measured: str
    title: str
    grade: str | None
    device: str
    alike: str
    tests: Count
    failed: Count
    words: dict[str, Count]
    cells: dict[str, Annotated[list[Number | None], AfterValidator(_starts_with_a_time)]]


SUMMARY = TypeAdapter[Any](StoredSummary)


def write_site(reports: Path, folder: Path, margin: float, note: Callable[[str], None]) -> Path:
    """Write the site; return the path of its index.

    Args:
        reports: the folder that holds the runs.
        folder: where the site goes; created if it is missing, and files of the same names are replaced.
        margin: the change that counts as none, for runs whose report has to be written first.
        note: prints a line for people.

    Raises:
        UsageError: there is no run, or the site cannot be written.
    """
    stored = [run for run in runs(reports) if has_records(run)]
    if not stored:
        raise UsageError(Problem(f"{reports} holds no run with results", hint="start one with `runner run`"))
    summaries = []
    for run in stored:
        try:
            summaries.append(_summary(run, margin))
        except RunnerError as error:
            note(f"run {run.id} is left out: {error.problems[0].message}")
            continue
        _copy(run, folder / "runs" / run.id)
    for name, content in site(summaries).items():
        save(folder / name, content)
    note(f"{counted(len(summaries), 'run')} in {folder}")
    return folder / "index.html"


def _summary(run: Run, margin: float) -> dict[str, Any]:
    """Return the summary of a run; its report is written first if it has none, or one of an older program."""
    if not ((run.path / NAME).exists() and (run.path / "index.html").exists()):
        write_report(run, margin)
    try:
        document = _stored_summary(run)
    except RecordError:
        document = {}
    if document.get("version") != VERSION:
        write_report(run, margin)
        document = _stored_summary(run)
    return document


def _stored_summary(run: Run) -> dict[str, Any]:
    """Return the summary in a run's folder; raises RecordError if it cannot be read."""
    path = run.path / NAME
    try:
        return checked(parse_object(read_bounded(path, MAX_SUMMARY_BYTES), path, 1), SUMMARY)
    except OSError as error:
        raise RecordError(Problem(f"{path} cannot be read: {error.strerror}")) from error
    except ValueError as error:
        raise RecordError(Problem(f"{path} is damaged: {error}")) from error


def _copy(run: Run, folder: Path) -> None:
    for name in COPIED:
        try:
            content = read_bounded(run.path / name, MAX_BYTES)
        except OSError as error:
            raise unreadable(run.path / name, error) from error
        if name == "index.html":
            page = content.decode(errors="replace").replace(LINKS_OF_FOLDER, LINKS_OF_SITE)
            content = LINK_TO_LOG.sub(r"\1", page).encode()
        save(folder / name, content)
