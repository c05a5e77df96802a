"""What is doubtful about the numbers of a run; pure functions on its tables. ``docs/doubts.md`` explains each code."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.comparison import Results
from runner.drift import controlled

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

CODES = (
    "few-rounds",
    "a-a-differs",
    "host-drift",
    "two-modes",
    "trend",
    "throttled",
    "clock-moved",
    "swapping",
    "interference",
    "unsteady",
    "spread",
    "load",
    "governor",
    "unpinned",
)
"""What may be doubtful, what weighs most first."""

FACTS = ("steady", "throttled", "clock_mhz", "swapped_bytes")
"""Facts of a record that are looked at where the table of rounds has a column of that name."""

FEW = 3  # rounds; with two the interval reaches nine standard deviations to each side
MOVED = 0.02  # by which the clock's highest reading is above its lowest: the margin that counts as no change
SWAPPED = 1 << 20  # bytes; a few pages that nobody touched again are not what a step waits for
SPREAD = 0.05  # standard deviation of the logarithms of a cell's rounds
BUSY = 0.1  # of the CPUs, that others keep busy, and at least one


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One thing that is doubtful.

    Attributes:
        code: one of ``CODES``.
        sentence: what was seen.
        serious: it puts a verdict into question; else it makes one harder to reach.
        environment: what it is about; empty for the run as a whole, and then ``cell`` is empty, too.
        cell: the id of the cell.
        extent: how bad it is beside others of the same code, larger is worse.
    """

    code: str
    sentence: str
    serious: bool
    environment: str = ""
    cell: str = ""
    extent: float = 0.0


def doubts(results: Results) -> tuple[Doubt, ...]:
    """Return what is doubtful about a run, the serious first and of each code the worst first.

    Args:
        results: the run; its samples stand in the order of its rounds, as ``merge.results`` gives them. ``FACTS`` are
            looked at where ``rounds`` has columns of their names; a value that is None or not a number says nothing.
    """
    compared = _compared(results)
    found = [*_machine(results), *(Doubt(**one) for one in controlled(results.rounds, results.canary))]
    for measured in _cells(results):
        for look in (_two_modes, _trend, _interference, _unsteady, _throttled, _clock, _swapping, _spread):
            found += look(measured)
        if measured.cell in compared:
            found += _few(measured)
    return tuple(sorted(found, key=lambda one: (not one.serious, CODES.index(one.code), -one.extent, one.cell)))


@dataclass(frozen=True, slots=True)
class _Measured:
    """A cell: the samples of each good round, the medians of the rounds, (R,), and facts by name, each (R,)."""

    cell: str
    environment: str
    samples: Sequence["NDArray[np.float64]"]
    medians: "NDArray[np.float64]"
    facts: Mapping[str, Sequence[Any]]

    def doubt(self, code: str, sentence: str, *, serious: bool, extent: float = 0.0) -> Doubt:
        """Return a doubt about this cell."""
        place = {"environment": self.environment, "cell": self.cell}
        return Doubt(code=code, sentence=sentence, serious=serious, extent=extent, **place)

    def known(self, name: str) -> list[Any]:
        """Return a fact of the rounds that have it."""
        return [value for value in self.facts.get(name, ()) if value is not None and value == value]  # noqa: PLR0124

    def often(self, rounds: int) -> str:
        """Return in how many of the rounds something was seen."""
        every = len(self.medians)
        return "in its only round" if every == 1 else f"in {rounds} of {every} rounds"

    def mostly(self, rounds: int) -> bool:
        """Say whether at least half of the rounds are meant: the median over the rounds goes with them."""
        return 2 * rounds >= len(self.medians)


def _cells(results: Results) -> Iterator[_Measured]:
    import numpy as np

    rounds = results.rounds
    ends = np.cumsum(rounds["iterations"].to_numpy())
    samples = np.split(results.samples["seconds"].to_numpy(), ends[:-1]) if len(rounds) else []
    medians = rounds["seconds"].to_numpy()
    environments = rounds["environment"].to_numpy()
    facts = {name: rounds[name].tolist() for name in FACTS if name in rounds}
    for cell, rows in _rows(rounds["cell"]):
        own = {name: [values[row] for row in rows] for name, values in facts.items()}
        yield _Measured(cell, environments[rows[0]], [samples[row] for row in rows], medians[rows], own)


def _rows(names: "pd.Series[Any]") -> Iterable[tuple[str, list[int]]]:
    """Return each name with the numbers of its rows, in order."""
    found: dict[str, list[int]] = {}
    for row, name in enumerate(names.tolist()):
        found.setdefault(name, []).append(row)
    return found.items()


def _compared(results: Results) -> set[str]:
    """Return the cells whose case and phase were to be measured in several environments."""
    sides: dict[tuple[str, ...], set[str]] = {}
    cells: dict[tuple[str, ...], set[str]] = {}
    for one in results.plan:
        if one.verdict == "run":
            key = (one.cell.case_id, one.cell.phase, one.cell.precision)
            sides.setdefault(key, set()).add(one.cell.environment)
            cells.setdefault(key, set()).add(one.cell.id)
    return {cell for key, environments in sides.items() if len(environments) > 1 for cell in cells[key]}


def _few(measured: _Measured) -> Iterator[Doubt]:
    count = len(measured.medians)
    if count < FEW:
        text = f"{count} good round{'s' * (count > 1)}; what the noise is takes {FEW} or more to say"
        yield measured.doubt("few-rounds", text, serious=True, extent=FEW - count)


def _two_modes(measured: _Measured) -> Iterator[Doubt]:
    from runner.shape import two_modes

    found = [modes for modes in map(two_modes, measured.samples) if modes]
    between = two_modes(measured.medians)
    if between:
        text = f"the rounds fall in two clusters, {between.share:.0%} of them {between.above:.0%} above the rest"
        yield measured.doubt("two-modes", text, serious=True, extent=between.above)
    elif found:
        worst = max(found)
        text = f"two clusters, {worst.share:.0%} of the samples {worst.above:.0%} above the rest"
        text += f", {measured.often(len(found))}"
        yield measured.doubt("two-modes", text, serious=measured.mostly(len(found)), extent=worst.above)


def _trend(measured: _Measured) -> Iterator[Doubt]:
    from runner.shape import trend

    found = [change for change in map(trend, measured.samples) if change is not None]
    if found:
        worst = max(found, key=abs)
        word = "fall" if worst < 0 else "rise"
        text = f"the samples still {word}, by {abs(worst):.0%} from first to last, {measured.often(len(found))}"
        yield measured.doubt("trend", text, serious=measured.mostly(len(found)), extent=abs(worst))


def _interference(measured: _Measured) -> Iterator[Doubt]:
    from runner.shape import SLOW, slow_share, two_modes

    found = [share for times in measured.samples if (share := slow_share(times)) > SLOW and not two_modes(times)]
    if found:
        text = f"{max(found):.0%} of the samples are far slower than the rest, {measured.often(len(found))}"
        yield measured.doubt("interference", text, serious=False, extent=max(found))


def _unsteady(measured: _Measured) -> Iterator[Doubt]:
    ended = [not steady for steady in measured.known("steady")]
    if any(ended):
        text = f"warm-up ended at its bound and not for being steady, {measured.often(sum(ended))}"
        yield measured.doubt("unsteady", text, serious=False, extent=sum(ended) / len(ended))


def _throttled(measured: _Measured) -> Iterator[Doubt]:
    found = [int(count) for count in measured.known("throttled") if count]
    if found:
        text = f"the device was throttled {measured.often(len(found))}"
        yield measured.doubt("throttled", text, serious=True, extent=len(found))


def _clock(measured: _Measured) -> Iterator[Doubt]:
    read = [mhz for value in measured.known("clock_mhz") for mhz in _numbers(value)]
    if read and max(read) > (1 + MOVED) * min(read):
        text = f"the clock moved between {min(read):.0f} and {max(read):.0f} MHz"
        yield measured.doubt("clock-moved", text, serious=True, extent=max(read) / min(read))


def _numbers(value: object) -> list[float]:
    """Return the readings of a fact that is a number, a list of them, or an object of them."""
    if isinstance(value, Mapping):
        return [one for part in value.values() for one in _numbers(part)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [one for part in value for one in _numbers(part)]
    return [float(value)] if isinstance(value, int | float) and value > 0 else []


def _swapping(measured: _Measured) -> Iterator[Doubt]:
    found = [size for size in measured.known("swapped_bytes") if size >= SWAPPED]
    if found:
        text = f"{max(found) / (1 << 20):.0f} MiB of the process were in swap, {measured.often(len(found))}"
        yield measured.doubt("swapping", text, serious=True, extent=max(found))


def _spread(measured: _Measured) -> Iterator[Doubt]:
    import numpy as np

    if len(measured.medians) < FEW:
        return
    spread = float(np.std(np.log(measured.medians), ddof=1))
    if spread > SPREAD:
        text = f"its rounds differ by {spread:.0%}, as a standard deviation"
        yield measured.doubt("spread", text, serious=False, extent=spread)


def _machine(results: Results) -> Iterator[Doubt]:
    """Give what is doubtful about the machine, and so about every number of the run."""
    facts = results.machine
    governor = facts.get("governor")
    if governor not in {None, "performance"}:
        text = f"the governor was {governor}: the clock of the processor followed the load"
        yield Doubt(code="governor", sentence=text, serious=False)
    load, cpus = (facts.get("load_average") or [0.0])[0], facts.get("logical_cores") or 1
    if load > max(1.0, BUSY * cpus):
        text = f"the load was {load:.1f} on {cpus} CPUs when the run began, its own building included"
        yield Doubt(code="load", sentence=text, serious=False, extent=load / cpus)
    if "clocks" in results.rounds and (results.rounds["clocks"] == "none").any():
        yield Doubt(code="unpinned", sentence="the clocks of the GPU were not held", serious=False)
