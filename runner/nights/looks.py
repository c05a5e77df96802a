"""What earlier nights left: ``reports/nights/*.json``, read as the looks at each cell against each earlier run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runner.core.errors import RecordError
from runner.core.metrics import CHANGES, NOT_WORSE, WORSE
from runner.nights.night import Night, NightChange, State
from runner.nights.night_files import read_nights
from runner.store.run import Run

OPEN_STATES = frozenset({"no-time", "interrupted", "environment-gone"})
"""States of changes without a verdict in turns. Later nights compare with the same baseline."""
EARLY_STAGES = frozenset({"resolve", "measure"})
"""Stages of a night before it compares: one that ended there says nothing about any cell."""
WITHOUT_CANDIDATES = EARLY_STAGES | {"compare"}
"""Stages of a night before its candidates are stored: if it ended there, all cells of its run are open."""
EARLY_ENDS = frozenset({"killed", "interrupted", "failed"})
WAITING_STATES = frozenset({"no-time", "interrupted"})
"""States of changes that the next night confirms before others."""


class Look(NamedTuple):
    """What a night said of a cell against an earlier run.

    Attributes:
        night: the id of the night's first run.
        device: of the night, as series name it.
        state: how the change ended, see ``night.State``.
        verdict: in turns; empty if it was not measured in turns, or if a side failed.
        leans_slower: whether the 95 % interval of the ratio in turns lies above 1.
        rounds: rounds in turns; 0 without.
        more_rounds: forecast of further rounds for an open verdict in turns, else 0.
        confirmed_in: the night that confirmed a regression that still stands; else empty.
        digest: what pinned the environment's content in that night; empty if it was not recorded.
        ratio: in turns, with the ends of its 95 % interval; None without.
    """

    night: str
    state: State
    verdict: str = ""
    leans_slower: bool = False
    rounds: int = 0
    more_rounds: int = 0
    confirmed_in: str = ""
    digest: str = ""
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    device: str = ""


@dataclass(frozen=True, slots=True)
class EarlierNights:
    """What the stored nights say of cells.

    Attributes:
        nights: the ids of their first runs, oldest first.
        looks: (id of a row, run that it was compared with) -> its looks, oldest first; see ``core.row_ids``.
        open_cells: run -> ids of the cells of which its night found a row neither ``same`` nor better than their
            baselines, and of what stands for environments with such a row; all cells of the run if its night ended
            before it compared them.
        seconds: id of a cell -> (run, median seconds) of the nights that measured it, oldest first.
    """

    nights: tuple[str, ...]
    looks: Mapping[tuple[str, str], tuple[Look, ...]]
    open_cells: Mapping[str, frozenset[str]]
    seconds: Mapping[str, tuple[tuple[str, float], ...]]

    def of(self, row: str, before: str) -> tuple[Look, ...]:
        """Return the looks at a row against a run, oldest first."""
        return self.looks.get((row, before), ())


def nights_waiting(looks: Sequence[Look]) -> int:
    """Return for how many nights in a row a change had no time: the number of such looks at the end."""
    waiting = 0
    for look in reversed(looks):
        if look.state not in WAITING_STATES:
            break
        waiting += 1
    return waiting


def is_confirmed(looks: Sequence[Look]) -> bool:
    """Return True while a confirmed regression stands."""
    return bool(looks and looks[-1].confirmed_in)


def is_slower_once(looks: Sequence[Look]) -> bool:
    """Return True where the newest verdict in turns is for the worse and needs another night to confirm it."""
    last = last_in_turns(looks)
    return bool(last and last.verdict in WORSE and not is_confirmed(looks))


def last_in_turns(looks: Sequence[Look]) -> Look | None:
    """Return the newest look with a verdict in turns; None without."""
    return next((look for look in reversed(looks) if look.verdict), None)


def is_over(verdict: str, ratio_high: float | None, margin: float) -> bool:
    """Return True where a night could tell, in turns, that a slow-down is over.

    An open verdict tells that only if its interval is below the margin as a whole: what no night could decide lasts.

    Args:
        verdict: in turns.
        ratio_high: the upper end of the 95 % interval of the ratio; None without one.
        margin: the relative change that counts as none.
    """
    if verdict == "inconclusive":
        return ratio_high is not None and ratio_high < 1 + margin
    return verdict in NOT_WORSE


def earlier_nights(reports: Path) -> EarlierNights:
    """Read the stored nights; a file that this program did not write is ignored."""
    stored = read_nights(reports)
    nights = {run: night for run, night in stored.items() if night.stage not in EARLY_STAGES}
    looks: dict[tuple[str, str], list[Look]] = {}
    seconds: dict[str, list[tuple[str, float]]] = {}
    for run, night in nights.items():
        for change in night.changes:
            looks.setdefault((change.row, change.before), []).append(_look(run, night.series_device, change))
        for cell, median in night.seconds.items():
            seconds.setdefault(cell, []).append((run, median))
    return EarlierNights(
        nights=tuple(nights),
        looks={key: tuple(of_key) for key, of_key in looks.items()},
        open_cells={
            **{
                run: frozenset(change.cell for change in night.changes if _is_open(change))
                for run, night in nights.items()
            },
            **{run: _cells_of(reports, run) for run, night in stored.items() if _ended_without_candidates(night)},
        },
        seconds={cell: tuple(of_cell) for cell, of_cell in seconds.items()},
    )


def _ended_without_candidates(night: Night) -> bool:
    """Return True for a night that ended too early: before its candidates were stored."""
    return night.stage in WITHOUT_CANDIDATES and night.state in EARLY_ENDS and not night.changes


def _cells_of(reports: Path, run: str) -> frozenset[str]:
    """Return the ids of the cells of which a run has records; none if there is no such run."""
    try:
        return frozenset(entry.cell for entry in Run(reports / "runs" / run).journal().entries)
    except (RecordError, OSError):
        return frozenset()


def _look(run: str, device: str, change: NightChange) -> Look:
    """Return a stored change as a look."""
    look = Look(night=run, device=device, state=change.state, confirmed_in=change.confirmed_in, digest=change.digest)
    again = change.again
    if again is None:
        return look
    return look._replace(
        verdict=again.verdict if again.verdict in (*CHANGES, "same", "inconclusive") else "",
        leans_slower=(again.ratio_low or 0.0) > 1,
        ratio=again.ratio,
        ratio_low=again.ratio_low,
        ratio_high=again.ratio_high,
        rounds=again.rounds,
        more_rounds=again.more_rounds,
    )


def _is_open(change: NightChange) -> bool:
    """Return True where a change keeps its run from becoming a baseline; a change against an anchor does not."""
    if change.against != "baseline":
        return False
    if change.again is None:
        return change.state in OPEN_STATES
    return change.again.verdict not in NOT_WORSE
