"""What is doubtful about a run as a whole: its machine, and its budget."""

import math
from collections.abc import Iterator, Sequence

from runner.analysis.model import Dataset, QualityIssue
from runner.analysis.quality.cells import CALLS, Measured
from runner.harness.timing import WARMUP_SHARE

BUSY = 0.1  # of the CPUs, that others keep busy, and at least one


def machine(results: Dataset) -> Iterator[QualityIssue]:
    """Give what is doubtful about the machine, and so about every number of the run."""
    facts = results.machine
    governor = facts.get("governor")
    if governor not in {None, "performance"}:
        text = f"the governor was {governor}: the clock of the processor followed the load"
        yield QualityIssue(code="governor", sentence=text, serious=False)
    load, cpus = (facts.get("load_average") or [0.0])[0], facts.get("logical_cores") or 1
    if load > max(1.0, BUSY * cpus):
        text = f"the load was {load:.1f} on {cpus} CPUs when the run began, its own building included"
        yield QualityIssue(code="load", sentence=text, serious=False, extent=load / cpus)
    if "clocks" in results.rounds and results.rounds["clocks"].isin(["none", "left"]).any():
        yield QualityIssue(code="unpinned", sentence="the clocks of the GPU were not held", serious=False)


def short_budget(cells: Sequence[Measured]) -> Iterator[QualityIssue]:
    """Say how many cells were too slow for a warm-up check, and what ``--seconds`` has room for it."""
    checked = [cell for cell in cells if cell.known("steady")]
    slow = [cell for cell in checked if cell.mostly(cell.room().count(False))]
    if not slow:
        return
    needs = sorted(CALLS / WARMUP_SHARE * max(cell.medians) for cell in slow)
    most, half = (_rounded(needs[place]) for place in (-1, (len(needs) - 1) // 2))
    text = f"{len(slow)} of {len(checked)} cells {'were' if len(slow) > 1 else 'was'} too slow for a check of the "
    text += f"warm-up, which takes {CALLS} calls in half of the time: "
    text += f"--seconds {most:g} has room for {'all of them' if len(slow) > 1 else 'it'}"
    text += f", --seconds {half:g} for half of them" if half < most else ""
    yield QualityIssue(code="short-budget", sentence=text, serious=False, extent=len(slow) / len(checked))


def _rounded(seconds: float) -> float:
    """Return a time rounded up to two digits."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return round(math.ceil(seconds / step) * step, 12)
