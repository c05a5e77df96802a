"""The journal of a run: one JSON object per line, written to disk before the run continues.

Events, in the order of a run: ``begun`` (the plan's hash, the device, and what it takes to resume), ``groups``
(environments that run at the same time), ``canary`` (the time of a fixed product), ``further`` (an extra round starts),
``measured`` (a finished record and its file), ``skipped`` (the budget has no time for a case), ``round`` (a case has
completed a round), ``disturbed`` (other programs disturbed some of its records; a further attempt, if there is one,
begins with its first record), ``times`` (where the time of a round went), ``resumed`` (with the cases that start anew,
because an outage had left out one of their environments), ``ended`` (how).

Events that are written while cells are measured have ``spent``: the seconds of measuring so far, over all parts of the
run. Journals of older programs lack it.

Each line has its number and a checksum. A line that was changed is left out with a warning, and so are repeated lines;
missing lines are counted. Lines that are missing at the end are noticed by the records that no line names (``run``).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from runner.core.errors import Problem, RecordError
from runner.core.files import read_bounded
from runner.core.model import Canary, CaseFinished, Cell, RoundDisturbed, RoundTimes
from runner.store.documents import NewerVersionError, unreadable
from runner.store.events import (
    BlockLease,
    Continued,
    DeviceGroups,
    Ended,
    Entry,
    MeasuredBlock,
    OverBudget,
    read_line,
)
from runner.store.journal_writer import is_followed, parse_line

MAX_BYTES = 1 << 30
"""The largest journal: three million lines."""
MAX_LISTED = 3  # damaged lines or records that a warning names


class Journal(NamedTuple):
    """The content of a journal.

    Attributes:
        entries: the finished records in the order they ended.
        warnings: sentences about lines that were changed, repeated, cut off, or are missing.
        header: the first line, with the digests of all environments since; empty if there is none.
        groups: device -> environments that run on it at the same time; without devices that have no groups yet.
        finished: (case id, round) of every round that a case has completed.
        canary: (case id, round, seconds) of each canary measurement.
        ended: how the run ended; None while it is running, and if it was killed.
        elapsed: seconds of measuring, as far as recorded.
        times: (round, seconds by activity) of each completed round, see ``core.model.events.ACTIVITIES``.
        skipped: case id -> why the budget had no time for it.
        leases: case id -> the last lease of its block, which was handed out to another host.
        blocks: case id -> a block that another host measured and whose records are complete.
        disturbances: which records other programs disturbed.
    """

    entries: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    header: Mapping[str, Any] = {}
    groups: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType({})
    finished: frozenset[tuple[str, int]] = frozenset()
    canary: tuple[tuple[str, int, float], ...] = ()
    ended: str | None = None
    elapsed: float = 0.0
    times: tuple[tuple[int, Mapping[str, float]], ...] = ()
    skipped: Mapping[str, str] = MappingProxyType({})
    leases: Mapping[str, BlockLease] = MappingProxyType({})
    blocks: Mapping[str, MeasuredBlock] = MappingProxyType({})
    disturbances: tuple[RoundDisturbed, ...] = ()

    @property
    def unfinished(self) -> bool:
        """True if the run can be resumed."""
        return bool(self.header) and self.ended != "done"

    def counting(self) -> Iterable[Entry]:
        """Return the finished attempt of each cell and round that counts, in the order they first ended.

        That is the last one. Of attempts that are marked as disturbed, a good one that is disturbed less counts.
        """
        extents = self.extents()
        last: dict[tuple[str, int], Entry] = {}
        for entry in self.entries:
            key = entry.cell, entry.round
            if key not in last or _replaces(entry, last[key], extents):
                last[key] = entry
        return last.values()

    def extents(self) -> dict[tuple[str, int, int], float]:
        """Return (cell id, round, attempt) -> how far it was disturbed, of each record that is marked."""
        return {
            (cell.id, marked.round, marked.attempt): marked.extent
            for marked in self.disturbances
            for cell in marked.cells
        }

    def set_aside(self) -> list[Entry]:
        """Return the attempts that are marked as disturbed and do not count, in their order."""
        extents = self.extents()
        counting = {(entry.cell, entry.round): entry.attempt for entry in self.counting()} if extents else {}
        marked = (entry for entry in self.entries if (entry.cell, entry.round, entry.attempt) in extents)
        return [entry for entry in marked if counting[entry.cell, entry.round] != entry.attempt]


def _replaces(entry: Entry, earlier: Entry, extents: Mapping[tuple[str, int, int], float]) -> bool:
    """Return whether an attempt counts instead of an earlier one."""
    if entry.attempt < earlier.attempt:
        return not _replaces(earlier, entry, extents)  # the records of a block come in another order
    extent = extents.get((earlier.cell, earlier.round, earlier.attempt))
    if extent is None or entry.attempt == earlier.attempt:
        return True
    return entry.status == "ok" and extents.get((entry.cell, entry.round, entry.attempt), 0.0) <= extent


def read(path: Path) -> Journal:
    """Read a journal; lines that were changed or cut off are left out, with a warning.

    Raises:
        RecordError: the file cannot be read, no line is sound, or a newer program wrote a line.
    """
    try:
        *lines, rest = read_bounded(path, MAX_BYTES).split(b"\n")
    except FileNotFoundError:
        lines, rest = [], b""
    except OSError as error:
        raise unreadable(path, error) from error
    reader = _Reader(path)
    count = len(lines) - bool(lines and not rest and parse_line(lines[-1]) is None)
    while count and is_followed(lines[count - 1]):
        count -= 1
    for number, line in enumerate(lines[:count], start=1):
        reader.read_line(line, number)
    return reader.journal(cut=range(count + 1, len(lines) + 1 + bool(rest)))


class _Reader:
    """Collects the events of a journal, and what is wrong with its lines.

    Attributes:
        number: the number of the last sound line; ``damaged_since``: how many lines after it are not.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.damaged_since = 0
        self.damaged: list[str] = []
        self.missing = 0
        self.repeated = 0
        self.entries: list[Entry] = []
        self.header: dict[str, Any] = {}
        self.groups: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.finished: set[tuple[str, int]] = set()
        self.canary: list[tuple[str, int, float]] = []
        self.disturbances: list[RoundDisturbed] = []
        self.times: list[tuple[int, Mapping[str, float]]] = []
        self.skipped: dict[str, str] = {}
        self.leases: dict[str, BlockLease] = {}
        self.blocks: dict[str, MeasuredBlock] = {}
        self.ended: str | None = None
        self.elapsed = 0.0

    def read_line(self, line: bytes, position: int) -> None:
        """Add the event of a line, unless the line is damaged or repeated; lines count from 1."""
        try:
            head, event = read_line(line, self.path, position)
        except NewerVersionError:
            raise
        except (RecordError, ValueError) as error:
            reason = error.problems[0].message if isinstance(error, RecordError) else error
            self.damaged.append(f"{self.path}:{position}: {reason}")
            self.damaged_since += 1
            return
        number = head.number or position
        if head.number and number <= self.number:
            self.repeated += 1
            return
        self.missing += max(0, number - self.number - self.damaged_since - 1)
        self.number, self.damaged_since = number, 0
        self.elapsed = head.elapsed or self.elapsed
        self._read_event(event)

    def _read_event(self, event: object) -> None:
        """Add one event; unknown ones are ignored."""
        match event:
            case Entry():
                self.entries.append(event)
                if event.attempt > 1:  # all of it is measured again
                    self.finished.discard((Cell.parse(event.cell).case_id, event.round))
            case CaseFinished(case_id, number):
                self.finished.add((case_id, number))
            case Canary(case_id, number, seconds):
                self.canary.append((case_id, number, seconds))
            case RoundTimes(number, times):
                self.times.append((number, {str(name): value for name, value in times.items()}))
            case OverBudget(case_id, reason):
                self.skipped[case_id] = reason
            case DeviceGroups(groups, device):
                self.groups[device] = groups
            case _:
                self._read_state(event)

    def _read_state(self, event: object) -> None:
        """Add an event that says where the run is: it began, was resumed, or ended; where its blocks are, and how."""
        match event:
            case RoundDisturbed():
                self.disturbances.append(event)
            case BlockLease():
                self.leases[event.case_id] = event
            case MeasuredBlock():
                self.blocks[event.case] = event
            case Ended(how):
                self.ended = how
            case dict():
                self.header = event
            case Continued(digests, anew):
                self.ended = None
                self.header = {**self.header, "digests": {**self.header.get("digests", {}), **digests}}
                self._reopen(anew)
            case _:
                pass

    def _reopen(self, cases: Collection[str]) -> None:
        """Forget that cases were finished, and who ran at the same time: an environment has come that was left out."""
        if cases:
            self.finished = {(case_id, number) for case_id, number in self.finished if case_id not in cases}
            self.groups = {}

    def journal(self, cut: range) -> Journal:
        """Return the journal that was read; ``cut`` has the numbers of the last lines if they were cut off.

        Raises:
            RecordError: no line is sound.
        """
        if self.damaged and not self.number:
            raise RecordError(Problem(f"{self.path} cannot be read: no line is sound: {listed(self.damaged)}"))
        finished, canary = frozenset(self.finished), tuple(self.canary)
        return Journal(
            entries=tuple(self.entries),
            warnings=tuple(self._warnings(cut)),
            header=self.header,
            groups=self.groups,
            finished=finished,
            canary=canary,
            ended=self.ended,
            elapsed=self.elapsed,
            times=tuple(self.times),
            skipped=self.skipped,
            leases=self.leases,
            blocks=self.blocks,
            disturbances=tuple(self.disturbances),
        )

    def _warnings(self, cut: range) -> Iterator[str]:
        if self.damaged:
            yield f"{_counted(len(self.damaged))} damaged and left out: {listed(self.damaged)}"
        if self.missing:
            yield f"{_counted(self.missing)} missing: {self.path}"
        if self.repeated:
            yield f"{_counted(self.repeated)} repeated, and counted once: {self.path}"
        if len(cut) == 1:
            yield f"{self.path}:{cut.start}: the last line was cut off; its record does not count"
        elif cut:
            yield f"{self.path}:{cut.start}: the last {len(cut)} lines were cut off; their records do not count"


def _counted(lines: int) -> str:
    return "1 line of the journal is" if lines == 1 else f"{lines} lines of the journal are"


def listed(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    rest = f"; and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return "; ".join(texts[:MAX_LISTED]) + rest
