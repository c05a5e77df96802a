"""Page faults a call: a state of the memory allocator that sides, rounds of a side, or plain processes do not share.

An allocator that gives memory back to the kernel gets pages anew in each call, and the kernel fills each with zeros.
Which blocks it keeps depends on what the process has allocated and freed before: glibc raises its threshold for good
once it has freed a large block (mallopt(3), ``M_MMAP_THRESHOLD``). Another program that makes the same calls may be in
another state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from runner.analysis.model import QualityIssue
from runner.analysis.quality.cell_checks import CellSamples
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.model.cells import is_control, is_plain, origin, without_environment

CODE = "page-faults"
FACT = "minor_faults_per_call"
MIN_FAULTS = 50
"""Faults a call that differ at least: 200 KiB of memory, some 25 us. Threads and lists that grow cause a few."""
MIN_FACTOR = 2.0
"""A call that maps its memory anew has all faults of its arrays, or none; between releases, sizes change a little."""
FAULT_SECONDS = 0.5e-6
"""What a fault costs at least: some 0.25 us in the kernel, and zeros for 4 KiB at 16 GB/s. In a virtual machine it
costs more: a NumPy call with 257 faults took 0.40 ms and without them 0.12 ms, so 1.1 us each (Xeon at 2.8 GHz, Linux
6.18), and in a PyTorch call with 1247, each took 1.5 us (EPYC)."""
SERIOUS_SHARE = 0.05
"""Share of the time of a call that the faults of one state may take: with more, the state changes the time by more than
the noise that rounds may have (``cell_checks.MAX_SPREAD``), and another program sees another time."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The page faults a call in the rounds of a cell: the fewest, the median and the largest number."""

    fewest: float
    median: float
    largest: float

    @property
    def text(self) -> str:
        """The number, ``none`` without any, or the range where rounds differ."""
        if differ(self.fewest, self.largest):
            return f"{self.fewest:,.0f} to {self.largest:,.0f}"
        return f"{self.median:,.0f}" if round(self.median) else "none"


def rounds_differ(cell: CellSamples) -> Iterator[QualityIssue]:
    """Yield an issue where some rounds of a cell have many page faults a call and others few."""
    faults = _faults(cell)
    if faults and differ(faults.fewest, faults.largest):
        text = f"{faults.text} page faults a call in the rounds of {cell.environment}"
        yield _issue(cell, text, faults.largest - faults.fewest)


def sides_differ(cells: Sequence[CellSamples]) -> Iterator[QualityIssue]:
    """Yield an issue for each cell with more page faults than the same call has in another environment.

    It is compared with the environment with the fewest; controls are left out.
    """
    measured = [cell for cell in cells if not is_control(cell.environment)]
    for alike in grouped((without_environment(cell.cell), cell) for cell in measured).values():
        known = [(faults, cell) for cell in alike if (faults := _faults(cell))]
        known.sort(key=lambda each: each[0].median)
        for faults, cell in known[1:]:
            fewest, other = known[0]
            if differ(fewest.median, faults.median):
                text = f"{faults.text} page faults a call in {cell.environment}, {fewest.text} in {other.environment}"
                yield _issue(cell, text, faults.median - fewest.median)


def plain_differs(cells: Sequence[CellSamples]) -> Iterator[QualityIssue]:
    """Yield an issue for each cell whose plain-process control has many more page faults, or many fewer."""
    controls = {origin(Cell.parse(cell.cell)).id: cell for cell in cells if is_plain(cell.environment)}
    for cell in cells:
        control = controls.get(cell.cell)
        measured, plain = _faults(cell), _faults(control) if control else None
        if measured is None or plain is None:
            continue
        fewer, more = sorted((measured.median, plain.median))
        if differ(fewer, more):
            states = f"{plain.text} in plain processes, {measured.text} as measured"
            yield _issue(cell, f"page faults a call in {cell.environment}: {states}", more - fewer)


def differ(fewer: float, more: float) -> bool:
    """Return whether two numbers of faults a call are those of different states."""
    return more - fewer >= MIN_FAULTS and more >= MIN_FACTOR * fewer


def _faults(cell: CellSamples) -> Faults | None:
    values = cell.known_values(FACT)
    return Faults(min(values), median(values), max(values)) if values else None


def _issue(cell: CellSamples, text: str, faults: float) -> QualityIssue:
    share = faults * FAULT_SECONDS / median(cell.medians)
    return cell.issue(CODE, text, serious=share > SERIOUS_SHARE, extent=share)
