"""What is doubtful about a cell: one function for each code, on what its rounds look like and what they recorded."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.analysis.model import Dataset, QualityIssue
from runner.core import units
from runner.harness.timing import WINDOW, WINDOWS

if TYPE_CHECKING:
    from runner.analysis.sample_shape import Modes, Shape

FACTS = ("steady", "batch", "warmup_seconds", "throttled", "clock_mhz", "swapped_bytes", "turns_with", "stolen", "cpus")
"""Facts of a record that are looked at where the table of rounds has a column of that name."""

MIN_ROUNDS = 3  # rounds; with two the interval reaches nine standard deviations to each side
MOVED = 0.02  # by which the clock's highest reading is above its lowest: the margin that counts as no change
SWAPPED = 1 << 20  # bytes; a few pages that nobody touched again are not what a step waits for
STOLEN = 0.02  # of the time of a cell's processors: the margin that counts as no change
SLOW = 0.05  # of a round's samples
SPREAD = 0.05  # standard deviation of the logarithms of a cell's rounds
CALLS = WINDOWS * WINDOW  # samples of a warm-up at least, before it can be called steady


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell: of each of its R good rounds the shape and the median, and facts by name, each (R,).

    Attributes:
        between: the clusters that the medians fall in.
    """

    cell: str
    environment: str
    shapes: "Sequence[Shape]"
    medians: Sequence[float]
    between: "Modes | None"
    facts: Mapping[str, Sequence[Any]]

    def doubt(self, code: str, sentence: str, *, serious: bool, extent: float = 0.0) -> QualityIssue:
        """Return a doubt about this cell."""
        place = {"environment": self.environment, "cell": self.cell}
        return QualityIssue(code=code, sentence=sentence, serious=serious, extent=extent, **place)

    def known(self, name: str) -> list[Any]:
        """Return a fact of the rounds that have it."""
        return [value for value in self.facts.get(name, ()) if is_known(value)]

    def room(self) -> list[bool]:
        """Say of each warm-up that ended at its bound whether its time had room for CALLS samples such as the round's.

        With fewer there are no three windows to be alike, and nobody has looked whether the step was steady.
        """
        if "steady" not in self.facts or "warmup_seconds" not in self.facts:
            return []
        batches = self.facts.get("batch", [None] * len(self.medians))
        columns = (self.facts["steady"], self.facts["warmup_seconds"], batches, self.medians)
        return [
            seconds >= CALLS * (batch if is_known(batch) else 1) * median
            for steady, seconds, batch, median in zip(*columns, strict=True)
            if is_known(steady) and is_known(seconds) and not steady
        ]

    def often(self, rounds: int) -> str:
        """Return in how many of the rounds something was seen."""
        every = len(self.medians)
        return "in its only round" if every == 1 else f"in {rounds} of {every} rounds"

    def mostly(self, rounds: int) -> bool:
        """Say whether at least half of the rounds are meant: the median over the rounds goes with them."""
        return 2 * rounds >= len(self.medians)


def is_known(value: object) -> bool:
    """Say whether a fact was recorded: it is neither None nor not a number."""
    return value is not None and value == value  # noqa: PLR0124


def measured(results: Dataset) -> Iterator[Measured]:
    """Yield the cells of a run, in the order in which they were first measured."""
    import numpy as np

    from runner.analysis.sample_shape import shapes

    rounds = results.rounds
    every = shapes(results.samples["seconds"].to_numpy(), rounds["iterations"].to_numpy())
    cells: dict[str, list[int]] = {}
    for row, cell in enumerate(rounds["cell"].tolist()):
        cells.setdefault(cell, []).append(row)
    medians, environments = rounds["seconds"].tolist(), rounds["environment"].tolist()
    facts = {name: rounds[name].tolist() for name in FACTS if name in rounds and rounds[name].notna().any()}
    order = [row for rows in cells.values() for row in rows]
    counts = np.array([len(rows) for rows in cells.values()], dtype=np.int64)
    between = shapes(np.array([medians[row] for row in order], dtype=np.float64), counts)
    for (cell, rows), own in zip(cells.items(), between, strict=True):
        yield Measured(
            cell,
            environments[rows[0]],
            [every[row] for row in rows],
            [medians[row] for row in rows],
            own.modes,
            {name: [values[row] for row in rows] for name, values in facts.items()},
        )


def few_rounds(cell: Measured) -> Iterator[QualityIssue]:
    """Look at the number of rounds of a cell that was to be compared."""
    count = len(cell.medians)
    if count < MIN_ROUNDS:
        text = f"{count} good round{'s' * (count > 1)}; what the noise is takes {MIN_ROUNDS} or more to say"
        yield cell.doubt("few-rounds", text, serious=True, extent=MIN_ROUNDS - count)


def _two_modes(cell: Measured) -> Iterator[QualityIssue]:
    turns = bool(cell.known("turns_with"))  # their ratios are of moments, not of medians
    if cell.between:
        share, above = cell.between.share, cell.between.above
        text = f"the rounds fall in two clusters, {share:.0%} of them {above:.0%} above the rest"
        yield cell.doubt("two-modes", text, serious=not turns, extent=above)
        return
    found = [one.modes for one in cell.shapes if one.modes]
    if found:
        worst = max(found)
        text = f"two clusters, {worst.share:.0%} of the samples {worst.above:.0%} above the rest"
        text += f", {cell.often(len(found))}"
        yield cell.doubt("two-modes", text, serious=cell.mostly(len(found)) and not turns, extent=worst.above)


def _trend(cell: Measured) -> Iterator[QualityIssue]:
    found = [one.change for one in cell.shapes if one.change is not None]
    if found:
        worst = max(found, key=abs)
        word = "fall" if worst < 0 else "rise"
        text = f"the samples still {word}, by {abs(worst):.0%} from first to last, {cell.often(len(found))}"
        yield cell.doubt("trend", text, serious=cell.mostly(len(found)), extent=abs(worst))


def _interference(cell: Measured) -> Iterator[QualityIssue]:
    found = [one.slow for one in cell.shapes if one.slow > SLOW and not one.modes]
    if found:
        text = f"{max(found):.0%} of the samples are far slower than the rest, {cell.often(len(found))}"
        yield cell.doubt("interference", text, serious=False, extent=max(found))


def _unsteady(cell: Measured) -> Iterator[QualityIssue]:
    ended = sum(cell.room())
    if ended and cell.mostly(ended):
        text = f"warm-up ended at its bound and not for being steady, {cell.often(ended)}"
        yield cell.doubt("unsteady", text, serious=False, extent=ended / len(cell.medians))


def _throttled(cell: Measured) -> Iterator[QualityIssue]:
    found = [int(count) for count in cell.known("throttled") if count]
    if found:
        text = f"the device was throttled {cell.often(len(found))}"
        yield cell.doubt("throttled", text, serious=not cell.known("turns_with"), extent=len(found))


def _clock(cell: Measured) -> Iterator[QualityIssue]:
    read = [mhz for value in cell.known("clock_mhz") for mhz in _numbers(value)]
    if read and max(read) > (1 + MOVED) * min(read):
        text = f"the clock moved between {min(read):.0f} and {max(read):.0f} MHz"
        held = not cell.known("cpus")  # a CPU's clock follows its load
        yield cell.doubt("clock-moved", text, serious=held, extent=max(read) / min(read))


def _numbers(value: object) -> list[float]:
    """Return the readings of a fact that is a number, a list of them, or an object of them."""
    if isinstance(value, Mapping):
        return [one for part in value.values() for one in _numbers(part)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [one for part in value for one in _numbers(part)]
    return [float(value)] if isinstance(value, int | float) and value > 0 else []


def _swapping(cell: Measured) -> Iterator[QualityIssue]:
    found = [size for size in cell.known("swapped_bytes") if size >= SWAPPED]
    if found:
        text = f"{units.memory(max(found))} of the process were in swap, {cell.often(len(found))}"
        yield cell.doubt("swapping", text, serious=True, extent=max(found))


def _stolen(cell: Measured) -> Iterator[QualityIssue]:
    found = [share for share in cell.known("stolen") if share > STOLEN]
    if found:
        text = f"a hypervisor gave up to {max(found):.0%} of its processors' time to others, {cell.often(len(found))}"
        yield cell.doubt("stolen", text, serious=False, extent=max(found))


def _spread(cell: Measured) -> Iterator[QualityIssue]:
    count = len(cell.medians)
    if count < MIN_ROUNDS:
        return
    logs = [math.log(seconds) for seconds in cell.medians]
    mean = sum(logs) / count
    spread = math.sqrt(sum((one - mean) ** 2 for one in logs) / (count - 1))
    if spread > SPREAD:
        text = f"its rounds differ by {spread:.0%}, as a standard deviation"
        yield cell.doubt("spread", text, serious=False, extent=spread)


LOOKS: tuple[Callable[[Measured], Iterator[QualityIssue]], ...] = (
    _two_modes,
    _trend,
    _interference,
    _unsteady,
    _throttled,
    _clock,
    _swapping,
    _stolen,
    _spread,
)
"""What is looked at in every cell."""
