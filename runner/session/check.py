"""`runner check`: what to distrust about a stored run, which comparisons are open, and the command to run next."""

from dataclasses import replace
from pathlib import Path

from runner.analysis.analyse import Analysis, analyse_run
from runner.analysis.disturbed_rounds import disturbed_rounds
from runner.analysis.model import Dataset
from runner.backends import harness_archive
from runner.core.collector import collector_paused
from runner.core.model.cells import is_control
from runner.report.check import Check, Counts, Failure
from runner.report.formatting import counted
from runner.session.results import find_run, matrix_margin
from runner.session.suggest import next_step
from runner.store.run import Run


@collector_paused()
def check(reports: Path, name: str | None, matrix: Path) -> Check:
    """Return the quality issues of a run, its failures, its open comparisons, and the command to run next.

    Args:
        reports: the folder that holds the runs.
        name: the run's id or folder; None is the newest one.
        matrix: the matrix file, for its margin; stored runs do not need one.

    Raises:
        UsageError: there is no such run.
        RecordError: the run cannot be read.
    """
    run = find_run(reports, name)
    return review(analyse_run(run, matrix_margin(matrix)), run, reports)


def review(analysis: Analysis, run: Run, reports: Path) -> Check:
    """Return the quality issues of a run, its failures, its open comparisons, and the command to run next.

    Args:
        analysis: the run.
        run: its folder.
        reports: the folder that holds the runs, for the command.
    """
    results, journal = analysis.dataset, analysis.dataset.journal
    state = "at work" if run.is_held() else "unfinished" if journal.unfinished else "finished"
    disturbed = disturbed_rounds(journal)
    resumable = journal.header.get("harness") == harness_archive.version()
    checked = Check(
        run=run.id,
        state=state,
        settings=_settings(results),
        counts=_counts(results),
        grade=analysis.grade,
        quality_issues=analysis.issues,
        failures=_failures(results),
        comparisons=tuple(each for each in analysis.comparisons if not each.is_control),
        notes=(*results.warnings, *filter(None, [disturbed.sentence, _resume_note(state, resumable=resumable)])),
        command="",
        plain=tuple(analysis.measured.plain_pairs.values()),
    )
    step = next_step(checked, run, journal, reports, resumable=resumable)
    return replace(checked, command=step.command, advice=step.advice)


def _resume_note(state: str, *, resumable: bool) -> str | None:
    if state == "unfinished" and not resumable:
        return "it was measured with another version of the measuring code, so it cannot be resumed"
    return None


def _settings(results: Dataset) -> tuple[str, ...]:
    """Return device, backend, threads and effort of a run, as texts."""
    plan = results.settings
    gpu = results.machine.get("gpu")
    name = gpu["name"] if gpu else results.machine.get("cpu")
    backend = plan.get("backend")
    threads = counted(plan["threads"], "thread") if "threads" in plan else ""
    effort = f"{counted(plan['rounds'], 'round')} of {plan['seconds']:g} s for each test" if "seconds" in plan else ""
    return tuple(filter(None, (name, f"backend {backend}" if backend else "", threads, effort)))


def _counts(results: Dataset) -> Counts:
    running = [planned for planned in results.plan if planned.verdict == "run"]
    return Counts(
        cells=len(running),
        skipped=len(results.plan) - len(running),
        rounds=results.settings.get("rounds", 0),
        good=len(results.rounds),
        failed=results.failures["cell"].nunique(),
        environments=len({name for name in results.rounds["environment"].unique() if not is_control(name)}),
    )


def _failures(results: Dataset) -> tuple[Failure, ...]:
    """Return each cell that failed once, with its last failure."""
    columns = ("failure", "reason", "environment", "cell")
    rows = zip(*(results.failures[name].tolist() for name in columns), strict=True)
    return tuple({row[-1]: Failure(**dict(zip(Failure.__slots__, row, strict=True))) for row in rows}.values())
