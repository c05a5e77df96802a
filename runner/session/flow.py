"""One run from what was typed to the next command: plan, build, run, report, remember, answer, propose.

``measure`` starts with options, ``measure_planned`` with a plan that its caller has changed, and ``finish`` with a run
that other hosts have measured. A caller leaves out steps of the tail by their names.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runner.analysis.analyse import Analysis, analyse_run
from runner.core.progress import Progress
from runner.report.answer import Answer
from runner.report.check import Check
from runner.session.check import review
from runner.session.context import PlannedRun, prepared
from runner.session.execution import run
from runner.session.execution.recorder import Totals
from runner.session.execution.resume import resumed
from runner.session.last_run import last_run
from runner.session.options import Options
from runner.session.quick_cells import refuse_long
from runner.session.remember import history_url, remember_run
from runner.session.results import run_answer, write_report
from runner.session.trust import Resume
from runner.store.run import Run


@dataclass(kw_only=True)
class RunSession:
    """A run that has ended, and what the steps of the tail made of it.

    Attributes:
        totals: its folder, and how many cells have a good record.
        margin: the change that counts as none, as a share.
        note: takes sentences for the user.
        history: the address of the history as typed; None for that of the reports.
        page: its report, or its folder as long as it has none.
        answer: which releases are faster; None where that was left out.
        check: what to distrust, and the command to run next; None where that was left out.
    """

    totals: Totals
    margin: float
    note: Callable[[str], object]
    history: str | None = None
    page: Path
    answer: Answer | None = None
    check: Check | None = None

    @property
    def run(self) -> Run:
        """The folder of the run."""
        return self.totals.run

    @property
    def reports(self) -> Path:
        """The folder that holds the run."""
        return self.run.reports

    @cached_property
    def analysis(self) -> Analysis:
        """What is concluded from the run, which is read once."""
        return analyse_run(self.run, self.margin)


def measure(options: Options, progress: Progress, *, resume: Resume = "no", history: str | None = None) -> RunSession:
    """Plan by what was typed, build, measure, and carry out the tail.

    Args:
        options: what was typed; with ``resume`` the selector is the run.
        progress: shows the work.
        resume: continue a run instead of starting one.
        history: the address of the history as typed; None for that of the reports.

    Raises:
        UsageError: an option is wrong, or there is no such run, or it would take hours that nobody asked for.
        RunnerError: whatever ``execution.run`` raises.
    """
    history_url(options.reports, history)  # a wrong address is an error before anything is measured
    with planned(options, progress, resume=resume) as work:
        measured = execute(work, progress, history)
    return finish(measured)


def measure_planned(work: PlannedRun, progress: Progress, *, without: "Collection[Step]" = ()) -> RunSession:
    """Build, measure, and carry out the tail; ``without`` has the steps of TAIL that are left out."""
    if remember not in without:
        history_url(work.context.settings.reports, None)  # a wrong address is an error before anything is measured
    return finish(execute(work, progress), without)


@contextmanager
def planned(options: Options, progress: Progress, *, resume: Resume = "no") -> Iterator[PlannedRun]:
    """Give a new run, or with ``resume`` the one that continues, which is locked for the length of the block."""
    if resume != "no":
        with resumed(options, progress.note, trust=resume == "any") as (context, preparation, stored):
            yield PlannedRun(context, preparation, stored)
    else:
        context, preparation = prepared(options, progress.note, quick=True)
        refuse_long(preparation.plan, context.matrix, options)
        yield PlannedRun(context, preparation)


def execute(work: PlannedRun, progress: Progress, history: str | None = None) -> RunSession:
    """Build the environments of a run and measure it."""
    totals, margin = run(work, progress), work.context.settings.margin
    return RunSession(totals=totals, margin=margin, note=progress.note, history=history, page=totals.run.path)


def finish(measured: RunSession, without: "Collection[Step]" = ()) -> RunSession:
    """Carry out the steps of TAIL, but for those in ``without``; a run without a good record has none."""
    for step in TAIL if measured.totals.good else ():
        if step not in without:
            step(measured)
    return measured


def report(measured: RunSession) -> None:
    """Write the report into the folder of the run."""
    measured.note("writing the report")
    last = last_run(measured.analysis, measured.run, history_url(measured.reports, measured.history))
    measured.page = write_report(measured.analysis, measured.run, last=last)


def remember(measured: RunSession) -> None:
    """Add the run to the history."""
    url = history_url(measured.reports, measured.history)
    remember_run(measured.run, measured.margin, url, measured.note, measured.analysis)


def answer(measured: RunSession) -> None:
    """Find which releases are faster, and by how much."""
    measured.answer = run_answer(measured.analysis)


def propose(measured: RunSession) -> None:
    """Find what to distrust, and the command to run next."""
    measured.check = review(measured.analysis, measured.run, measured.reports)


Step = Callable[[RunSession], None]
TAIL: tuple[Step, ...] = (report, remember, answer, propose)
"""What follows once a run is measured: for ``runner run``, and for every caller that does not leave a step out.

Nights, bisect, reproduce and Python's ``compare_models`` name the steps that they leave out, ``without``.
"""
