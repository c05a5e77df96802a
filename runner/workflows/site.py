"""Writes a static site over the stored runs: an index, trends, and the page of each run."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, RunnerError, UsageError, file_problem
from runner.core.files import write_whole
from runner.report.formatting import counted
from runner.report.run_summary import NAME, VERSION
from runner.report.site import site
from runner.store.run import Run, runs
from runner.workflows.results import write_report

COPIED = ("index.html", "report.md", "plan.json")
"""Files of a run that the site has, too; samples and logs stay in the run's folder."""
LINKS_OF_FOLDER = ', <a href="samples.csv">samples.csv</a>, <a href="plan.json">plan.json</a>, <a href="logs/">logs</a>'
LINK_TO_LOG = re.compile(r'<a href="logs/[^"]*">([^<]*)</a>')
LINKS_OF_SITE = ', <a href="plan.json">plan.json</a>'


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
    stored = [run for run in runs(reports) if run.journal().entries]
    if not stored:
        raise UsageError(Problem(f"{reports} holds no run with results", hint="start one with `runner run`"))
    summaries = []
    for run in stored:
        try:
            summaries.append(_summary(run, margin))
        except RunnerError as error:
            note(f"run {run.id} is left out: {error.problems[0].message}")
            continue
        with _writing(folder):
            _copy(run, folder / "runs" / run.id)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in site(summaries).items():
            write_whole(folder / name, content)
    note(f"{counted(len(summaries), 'run')} in {folder}")
    return folder / "index.html"


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Make an OSError of the block a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(file_problem(error, folder)) from error


def _summary(run: Run, margin: float) -> dict[str, Any]:
    """Return the summary of a run; its report is written first if it has none, or one of an older program."""
    path = run.path / NAME
    if not (path.exists() and (run.path / "index.html").exists()):
        write_report(run, margin)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if document.get("version") != VERSION:
        write_report(run, margin)
        document = json.loads(path.read_text(encoding="utf-8"))
    return document


def _copy(run: Run, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        if name == "index.html":
            page = (run.path / name).read_text(encoding="utf-8").replace(LINKS_OF_FOLDER, LINKS_OF_SITE)
            write_whole(folder / name, LINK_TO_LOG.sub(r"\1", page))
        else:
            shutil.copyfile(run.path / name, folder / name)
