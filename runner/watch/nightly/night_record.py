"""``reports/nights/<run>.json`` from the start of a night to its end, so that what a killed night left is visible.

While a night runs, its file says so, and what it does. The next night holds the lock on the folder, so a file that
still says ``running`` then is of a night that was killed. Rows of an analysis become the ratios that it holds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from runner.analysis.comparison_model import Comparison, Row
from runner.core.errors import RecordError, RunnerError
from runner.core.model import Cell
from runner.nights.looks import EARLY_STAGES
from runner.nights.night import End, Night, NightChange, NightDifference, NightPair, NightRatio, RatioInTurns, Stage
from runner.nights.night_files import read_nights, write_night
from runner.report.formatting import counted
from runner.session.execution.failures import run_name
from runner.store.documents import NewerVersionError
from runner.store.run import Run

ACTIVITY: dict[Stage, str] = {
    "resolve": "looked for new releases",
    "measure": "measured",
    "compare": "compared with earlier runs",
    "confirm": "confirmed changes",
    "alert": "sent alerts",
}
"""Stage -> what the night did, to follow ``while it``."""


@dataclass(slots=True)
class NightFile:
    """The file of a night that runs: each change is written at once.

    Attributes:
        night: what the file has.
        reports: the folder that holds the nights.
        add: adds a run to the history at ``url``; by default there is none.
    """

    night: Night
    reports: Path
    add: Callable[[Run], object] = lambda _: None
    url: str = ""

    def write(self, night: Night) -> Path:
        """Replace the night; return the path of its file."""
        self.night = night
        return write_night(night, self.reports)

    def enter(self, stage: Stage, *notes: str) -> None:
        """Note what the night does from now on."""
        self.write(replace(self.night, stage=stage, notes=(*self.night.notes, *notes)))

    def remember(self, run: str) -> None:
        """Add a run of the reports to the history if it has a good record, whether it ended or not."""
        stored = Run(self.reports / "runs" / run)
        if _good_cells(stored):
            self.add(stored)

    @contextmanager
    def recorded(self, say: Callable[[str], None]) -> Iterator[None]:
        """Write how the block ended where that was too early, and say what the night leaves."""
        self.write(self.night)
        try:
            yield
        except BaseException as error:
            if self.night.stage == "alert":  # the file has the entire night, and which alerts were sent
                raise
            interrupted = isinstance(error, KeyboardInterrupt)
            reason = "was interrupted" if interrupted else f"failed: {_reason(error)}"
            left = left_by(self.reports, self.night.run, self.night.stage)
            note = f"the night {reason} while it {ACTIVITY[self.night.stage]}; {left}"
            state: End = "interrupted" if interrupted else "failed"
            with suppress(RunnerError):  # the disk may be full
                self.write(replace(self.night, state=state, notes=(*self.night.notes, note)))
            with suppress(RunnerError):
                self.remember(self.night.run)
            say(f"the night ended while it {ACTIVITY[self.night.stage]}; {left}")
            raise


def _reason(error: BaseException) -> str:
    text = error.problems[0].message if isinstance(error, RunnerError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split()).rstrip(".")


def left_by(reports: Path, run: str, stage: Stage) -> str:
    """Return what a night left that ended too early, as the end of a sentence."""
    stored = Run(reports / "runs" / run)
    good = _good_cells(stored)
    if good is None:
        return "nothing was measured"
    kept = f"{counted(len(good), 'record')} of {counted(len(set(good)), 'test')} are kept in run {run}" if good else ""
    if stage in EARLY_STAGES and stored.journal().unfinished:
        command = f"`runner run --resume {run_name(stored)}` continues it"
        return f"{kept}; {command}" if kept else f"it kept no record; {command}"
    return f"{kept}; the next night confirms what was left" if kept else "it kept no record"


def _good_cells(run: Run) -> list[str] | None:
    """Return the cell of each good record of a run; None if there is no such run, or it cannot be read."""
    try:
        run.plan()  # a run that was killed while its folder was made is none
        return [entry.cell for entry in run.journal().counting() if entry.status == "ok"]
    except (RecordError, OSError):
        return None


def killed_nights(reports: Path, tonight: str) -> Iterator[tuple[str, str]]:
    """Mark the nights that were killed, each once; yield (run, sentence) for each. The caller holds the lock on nights.

    Raises:
        RecordError: a file cannot be written.
    """
    for run, night in read_nights(reports).items():
        if night.state == "running" and run != tonight:
            note = f"night {run} was killed while it {ACTIVITY[night.stage]}; {left_by(reports, run, night.stage)}"
            try:
                write_night(replace(night, state="killed", notes=(*night.notes, note)), reports)
            except NewerVersionError:
                continue  # what a newer program knows of it would be lost
            yield run, note


def night_change(cell: Cell, row: Row, *, again: Row | None = None, reason: str = "", **fields: Any) -> NightChange:  # noqa: ANN401
    """Return a cell that may have changed.

    Args:
        cell: in tonight's environment; for a metric of environments, what stands for one.
        row: tonight against the earlier run; their rounds were not measured in turns.
        again: the row in turns.
        reason: why there is no verdict, or why it does not fail the night; without it, that of ``row``.
        fields: the other fields of a ``NightChange``.
    """
    return NightChange(
        cell=cell.id,
        **asdict(cell),
        metric=row.metric,
        **_numbers(row, reason),
        again=None if again is None else RatioInTurns(**_numbers(again), run=" and ".join(again.runs)),
        **fields,
    )


def night_pair(environment: str, folder: Path, comparison: Comparison) -> NightPair:
    """Return an environment as it was and as it is, with what differs between the two."""
    different = comparison.differences.get(environment, ())
    return NightPair(
        environment=environment,
        base=comparison.base,
        folder=str(folder),
        differences=tuple(
            NightDifference(name=each.name, base=each.base, other=each.other, kind=each.kind) for each in different
        ),
    )


def _numbers(row: Row, reason: str = "") -> dict[str, Any]:
    numbers = {name: getattr(row, name) for name in NightRatio.__dataclass_fields__}
    return {**numbers, "reason": reason or row.reason}
