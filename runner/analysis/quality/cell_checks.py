"""Quality issues of a cell: one check for each code, on the shape of its rounds and the facts of its records."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.analysis.model import MIN_ROUNDS, Dataset, QualityIssue, TurnMedians
from runner.analysis.model_checks import (
    NO_UPDATE,
    OTHER_TYPES,
    PARTLY,
    STEPS_CHANGE,
    UNCHECKED,
    later_steps,
    no_update,
    other_types,
    partly,
    why_unchecked,
)
from runner.analysis.process_states import TWO_STATES
from runner.core import units
from runner.core.facts import QUALITY_FACTS
from runner.core.grouping import grouped
from runner.core.model.variant_ids import without_variant
from runner.core.units import percent
from runner.harness.timing import WINDOW, WINDOWS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from runner.stats.sample_shape import Modes, Shape

MAX_CLOCK_CHANGE = 0.02
"""The largest relative difference between clock readings: the margin that counts as no change."""
MIN_SWAPPED_BYTES = 1 << 20
"""A few pages that are never touched again do not delay a step."""
MAX_STOLEN_SHARE = 0.02
"""The largest share of its processors' time that a hypervisor may take: the margin that counts as no change."""
MAX_SLOW_SHARE = 0.05
"""The largest share of slow outliers among a round's samples."""
UNSETTLED = 2.0
"""Factor between the first and the last samples of a round from which cells that took turns did not settle, either."""
MAX_SPREAD = 0.05
"""The largest standard deviation of the logarithms of a cell's rounds."""
MIN_WARMUP_SAMPLES = WINDOWS * WINDOW
"""A warm-up with fewer samples cannot be called steady."""


@dataclass(frozen=True, slots=True)
class CellSamples:
    """The R good rounds of a cell: the shape and the median of each, and facts by name, each (R,).

    Attributes:
        clusters: two clusters of the medians; None if they form one.
        times: the samples of each round.
        turns: the turns of each round; None of those without.
    """

    cell: str
    environment: str
    shapes: "Sequence[Shape]"
    medians: Sequence[float]
    clusters: "Modes | None"
    facts: Mapping[str, Sequence[Any]]
    times: "Sequence[NDArray[np.float64]]" = ()
    turns: Sequence[TurnMedians | None] = ()

    def issue(self, code: str, sentence: str, *, serious: bool, extent: float = 0.0) -> QualityIssue:
        """Return a quality issue of this cell."""
        return QualityIssue(
            code=code,
            sentence=sentence,
            serious=serious,
            extent=extent,
            environment=self.environment,
            cell=self.cell,
        )

    @property
    def took_turns(self) -> bool:
        """True if the cell took turns with others: their ratios compare the same moments, whatever the times did."""
        return bool(self.known_values("turns_with"))

    def known_values(self, fact: str) -> list[Any]:
        """Return the values of a fact, without the rounds that lack it."""
        return [value for value in self.facts.get(fact, ()) if is_known(value)]

    def had_time_for_check(self) -> list[bool]:
        """Return, for each warm-up that ended at its time limit, whether the time allowed MIN_WARMUP_SAMPLES samples.

        With fewer samples there are no three windows to compare, so the warm-up was never checked.
        """
        if "steady" not in self.facts or "warmup_seconds" not in self.facts:
            return []
        batches = self.facts.get("batch", [None] * len(self.medians))
        columns = (self.facts["steady"], self.facts["warmup_seconds"], batches, self.medians)
        return [
            seconds >= MIN_WARMUP_SAMPLES * (batch if is_known(batch) else 1) * median
            for steady, seconds, batch, median in zip(*columns, strict=True)
            if is_known(steady) and is_known(seconds) and not steady
        ]

    def in_rounds(self, count: int) -> str:
        """Return in how many of the rounds something was seen, as the end of a sentence."""
        total = len(self.medians)
        return "in its only round" if total == 1 else f"in {count} of {total} rounds"

    def is_majority(self, count: int) -> bool:
        """Return True if ``count`` is at least half of the rounds: then the median over the rounds is affected."""
        return 2 * count >= len(self.medians)


def is_known(value: object) -> bool:
    """Return True if a fact was recorded: it is neither None nor NaN."""
    return value is not None and value == value  # noqa: PLR0124 - NaN is not equal to itself


def cell_samples(dataset: Dataset) -> Iterator[CellSamples]:
    """Yield the cells of a run, in the order in which they were first measured."""
    import numpy as np

    from runner.stats.sample_shape import shapes

    rounds = dataset.rounds
    round_shapes = shapes(dataset.samples["seconds"].to_numpy(), rounds["iterations"].to_numpy())
    rows_by_cell = grouped((cell, row) for row, cell in enumerate(rounds["cell"].tolist()))
    medians, environments = rounds["seconds"].tolist(), rounds["environment"].tolist()
    times, turns = rounds["times"].tolist(), rounds["turns"].tolist()
    facts = {name: rounds[name].tolist() for name in QUALITY_FACTS if name in rounds and rounds[name].notna().any()}
    order = [row for rows in rows_by_cell.values() for row in rows]
    counts = np.array([len(rows) for rows in rows_by_cell.values()], dtype=np.int64)
    cell_shapes = shapes(np.array([medians[row] for row in order], dtype=np.float64), counts)
    for (cell, rows), cell_shape in zip(rows_by_cell.items(), cell_shapes, strict=True):
        yield CellSamples(
            cell,
            environments[rows[0]],
            [round_shapes[row] for row in rows],
            [medians[row] for row in rows],
            cell_shape.modes,
            {name: [values[row] for row in rows] for name, values in facts.items()},
            [times[row] for row in rows],
            [turns[row] for row in rows],
        )


def few_rounds(cell: CellSamples) -> Iterator[QualityIssue]:
    """Check the number of rounds of a cell that is compared with others."""
    count = len(cell.medians)
    if count < MIN_ROUNDS:  # with two the interval reaches nine standard deviations to each side
        text = f"{count} good round{'s' * (count > 1)}; estimating the noise takes {MIN_ROUNDS} or more"
        yield cell.issue("few-rounds", text, serious=True, extent=MIN_ROUNDS - count)


def rounds_in_clusters(cell: CellSamples) -> Iterator[QualityIssue]:
    """Check the medians of ten rounds or more, in a cell whose processes have no two states that are far apart."""
    if cell.clusters:
        share, above = cell.clusters.share, cell.clusters.above
        text = f"the rounds fall in two clusters, {percent(share)} of them {percent(above)} above the rest"
        yield cell.issue(TWO_STATES, text, serious=not cell.took_turns, extent=above)


def _two_modes(cell: CellSamples) -> Iterator[QualityIssue]:
    modes = [shape.modes for shape in cell.shapes if shape.modes]
    if modes:
        worst = max(modes)
        text = f"two clusters, {percent(worst.share)} of the samples {percent(worst.above)} above the rest"
        text += f", {cell.in_rounds(len(modes))}"
        serious = cell.is_majority(len(modes)) and not cell.took_turns
        yield cell.issue("two-modes", text, serious=serious, extent=worst.above)


def _trend(cell: CellSamples) -> Iterator[QualityIssue]:
    changes = [shape.change for shape in cell.shapes if shape.change is not None]
    if changes:
        worst = max(changes, key=abs)
        direction = "fall" if worst < 0 else "rise"
        size, where = percent(abs(worst)), cell.in_rounds(len(changes))
        text = f"the samples still {direction}, by {size} from first to last, {where}"
        unsettled = sum(abs(math.log1p(change)) > math.log(UNSETTLED) for change in changes)
        serious = cell.is_majority(unsettled if cell.took_turns else len(changes))
        yield cell.issue("trend", text, serious=serious, extent=abs(worst))


def _interference(cell: CellSamples) -> Iterator[QualityIssue]:
    shares = [shape.slow for shape in cell.shapes if shape.slow > MAX_SLOW_SHARE and not shape.modes]
    if shares:
        text = f"{percent(max(shares))} of the samples are far slower than the rest, {cell.in_rounds(len(shares))}"
        yield cell.issue("interference", text, serious=False, extent=max(shares))


def _unsteady(cell: CellSamples) -> Iterator[QualityIssue]:
    count = sum(cell.had_time_for_check())
    if count and cell.is_majority(count):
        text = f"the warm-up reached its time limit before the times were steady, {cell.in_rounds(count)}"
        yield cell.issue("unsteady", text, serious=False, extent=count / len(cell.medians))


def _throttled(cell: CellSamples) -> Iterator[QualityIssue]:
    counts = [int(count) for count in cell.known_values("throttled") if count]
    if counts:
        text = f"the device was throttled {cell.in_rounds(len(counts))}"
        yield cell.issue("throttled", text, serious=not cell.took_turns, extent=len(counts))


def _clock(cell: CellSamples) -> Iterator[QualityIssue]:
    readings = [mhz for value in cell.known_values("clock_mhz") for mhz in _numbers(value)]
    if readings and max(readings) > (1 + MAX_CLOCK_CHANGE) * min(readings):
        text = f"the clock moved between {min(readings):.0f} and {max(readings):.0f} MHz"
        # A CPU's clock follows its load. Only records of a CPU have CPUs without their relation to a GPU.
        on_gpu = not cell.known_values("cpus") or bool(cell.known_values("gpu_affinity"))
        yield cell.issue("clock-moved", text, serious=on_gpu, extent=max(readings) / min(readings))


def _numbers(value: object) -> list[float]:
    """Return the readings in a fact that is a number, a list of them, or an object of them."""
    if isinstance(value, Mapping):
        return [number for item in value.values() for number in _numbers(item)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [number for item in value for number in _numbers(item)]
    return [float(value)] if isinstance(value, int | float) and value > 0 else []


def _swapping(cell: CellSamples) -> Iterator[QualityIssue]:
    sizes = [size for size in cell.known_values("swapped_bytes") if size >= MIN_SWAPPED_BYTES]
    if sizes:
        text = f"{units.memory(max(sizes))} of the process were in swap, {cell.in_rounds(len(sizes))}"
        yield cell.issue("swapping", text, serious=True, extent=max(sizes))


def _stolen(cell: CellSamples) -> Iterator[QualityIssue]:
    shares = [share for share in cell.known_values("stolen") if share > MAX_STOLEN_SHARE]
    if shares:
        text = f"up to {percent(max(shares))} of the CPU time went to other virtual machines (steal), "
        text += cell.in_rounds(len(shares))
        yield cell.issue("stolen", text, serious=False, extent=max(shares))


def _host_bound(cell: CellSamples) -> Iterator[QualityIssue]:
    bound = [value for value in cell.known_values("host_bound") if value]
    if bound and cell.is_majority(len(bound)):
        text = f"the time is that of the host, which starts a call as slowly as calls end, {cell.in_rounds(len(bound))}"
        yield cell.issue("host-bound", text, serious=False, extent=len(bound) / len(cell.medians))


def _spread(cell: CellSamples) -> Iterator[QualityIssue]:
    count = len(cell.medians)
    if count < MIN_ROUNDS:
        return
    logs = [math.log(seconds) for seconds in cell.medians]
    mean = sum(logs) / count
    spread = math.sqrt(sum((log - mean) ** 2 for log in logs) / (count - 1))
    if spread > MAX_SPREAD:
        text = f"its rounds differ by {percent(spread)}, as a standard deviation"
        yield cell.issue("spread", text, serious=False, extent=spread)


def _unchecked(cell: CellSamples) -> Iterator[QualityIssue]:
    for check in cell.known_values("model_check"):
        if reason := why_unchecked(check):
            yield cell.issue(UNCHECKED, reason, serious=True, extent=float(bool(check.get("differs"))))
            return


def _no_update(cell: CellSamples) -> Iterator[QualityIssue]:
    for check in cell.known_values("model_check"):
        if reason := no_update(check):
            yield cell.issue(NO_UPDATE, reason, serious=True)
            return


def _steps_change(cell: CellSamples) -> Iterator[QualityIssue]:
    for check in cell.known_values("model_check"):
        if text := later_steps(check):
            yield cell.issue(STEPS_CHANGE, text, serious=False)
            return


def _other_types(cell: CellSamples) -> Iterator[QualityIssue]:
    for check in cell.known_values("model_check"):
        if types := other_types(check):
            yield cell.issue(OTHER_TYPES, types, serious=False)
            return


def _partly_compared(cell: CellSamples) -> Iterator[QualityIssue]:
    for check in cell.known_values("model_check"):
        if text := partly(check):
            yield cell.issue(PARTLY, text, serious=False)
            return


def _set_too_late(cell: CellSamples) -> Iterator[QualityIssue]:
    names = sorted({name for names in cell.known_values("set_too_late") for name in names})
    if names:
        keys = ", ".join(f'{name}: "..."' for name in names)
        options = " ".join(f"--env {name}=..." for name in names)
        text = f"the model file sets {' and '.join(names)} after the framework is imported, which may have no effect: "
        text += f"write env: {{{keys}}} in the environment {without_variant(cell.environment)}, or add {options}"
        yield cell.issue("set-too-late", text, serious=True)


def _conduct(cell: CellSamples) -> Iterator[QualityIssue]:
    for remarks in cell.known_values("conduct"):
        yield cell.issue("conduct", "; ".join(remarks), serious=True)
        return


CELL_CHECKS: tuple[Callable[[CellSamples], Iterator[QualityIssue]], ...] = (
    _unchecked,
    _no_update,
    _steps_change,
    _other_types,
    _partly_compared,
    _set_too_late,
    _conduct,
    _two_modes,
    _trend,
    _interference,
    _unsteady,
    _throttled,
    _clock,
    _swapping,
    _stolen,
    _host_bound,
    _spread,
)
"""The checks of every cell."""
