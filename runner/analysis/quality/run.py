"""Quality issues of a run as a whole: its machine and its time budget."""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from runner.analysis.error_inflation import Inflation, correlation_sentence
from runner.analysis.model import Dataset, QualityIssue
from runner.analysis.quality.cell_checks import MIN_WARMUP_SAMPLES, CellSamples, is_known
from runner.core import busy
from runner.harness.timing import WARMUP_SHARE

MAX_LOAD_SHARE = 0.1
"""The largest load average as a share of the CPUs; 1 is always allowed."""


def machine_issues(dataset: Dataset) -> Iterator[QualityIssue]:
    """Yield the issues of the machine, which concern every number of the run; of other hosts that measured, none."""
    facts = {} if measured_elsewhere(dataset) else dataset.machine
    governor = facts.get("governor")
    if governor not in {None, "performance"}:
        text = f"the governor was {governor}: the clock of the processor followed the load"
        yield QualityIssue(code="governor", sentence=text, serious=False)
    load, cpus = (facts.get("load_average") or [0.0])[0], facts.get("logical_cores") or 1
    if load > max(1.0, MAX_LOAD_SHARE * cpus):
        text = f"the load was {load:.1f} on {cpus} CPUs when the run started, including its own builds"
        yield QualityIssue(code="load", sentence=text, serious=False, extent=load / cpus)
    if "clocks" in dataset.rounds and dataset.rounds["clocks"].isin(["none", "left"]).any():
        yield QualityIssue(code="unpinned", sentence="the clocks of the GPU were not locked", serious=False)


def others_busy(dataset: Dataset) -> float | None:
    """Return how many CPUs other programs kept busy while the median cell was measured; None if that is not known.

    A cell's value is the median over its rounds. Callers ask only about runs of which ``knows_cpus`` is True.
    """
    if "others_busy" not in dataset.rounds:
        return None
    by_cell: dict[str, list[float]] = {}
    for cell, value in zip(dataset.rounds["cell"].tolist(), dataset.rounds["others_busy"].tolist(), strict=True):
        if is_known(value):
            by_cell.setdefault(cell, []).append(value)
    return median(map(median, by_cell.values())) if by_cell else None


def busy_issues(dataset: Dataset) -> Iterator[QualityIssue]:
    """Yield an issue if other programs kept more of the CPUs busy than ``busy.allowed`` during the run."""
    cpus, value = online_cpus(dataset), others_busy(dataset)
    if value is None or not knows_cpus(dataset) or value <= busy.allowed(cpus):
        return
    text = f"other programs kept {value:.1f} of {cpus} CPUs busy while the median test was measured"
    yield QualityIssue(code="busy", sentence=text, serious=value > busy.serious(cpus), extent=value / cpus)


def online_cpus(dataset: Dataset) -> int:
    """Return the number of CPUs of a machine; of those that the runner could use in runs of older versions."""
    return int(dataset.machine.get("online_cpus") or dataset.machine.get("logical_cores") or 1)


def knows_cpus(dataset: Dataset) -> bool:
    """Return whether the CPUs that other programs kept busy are those of the run's machine, and of other programs.

    Where several devices measure at the same time, their servers are other programs to each other.
    """
    return len(dataset.machine.get("gpus") or ()) < 2 and not measured_elsewhere(dataset)


def measured_elsewhere(dataset: Dataset) -> bool:
    """Return whether other hosts than that of the run's machine measured; its facts are not theirs."""
    host = dataset.machine.get("host")
    return any(name not in ("", host) for name in dataset.rounds["host"].unique())


def short_budget(cells: Sequence[CellSamples]) -> Iterator[QualityIssue]:
    """Yield an issue if cells were too slow for a warm-up check, with the ``--seconds`` that would allow it."""
    checked = [cell for cell in cells if cell.known_values("steady")]
    slow = [cell for cell in checked if cell.is_majority(cell.had_time_for_check().count(False))]
    if not slow:
        return
    needs = sorted(MIN_WARMUP_SAMPLES / WARMUP_SHARE * max(cell.medians) for cell in slow)
    for_all, for_half = (_rounded_up(needs[index]) for index in (-1, (len(needs) - 1) // 2))
    text = f"{len(slow)} of {len(checked)} tests {'were' if len(slow) > 1 else 'was'} too slow for a warm-up check, "
    text += f"which takes {MIN_WARMUP_SAMPLES} calls in half of the time: "
    text += f"--seconds {for_all:g} is enough for {'all of them' if len(slow) > 1 else 'it'}"
    text += f", --seconds {for_half:g} for half of them" if for_half < for_all else ""
    yield QualityIssue(code="short-budget", sentence=text, serious=False, extent=len(slow) / len(checked))


def _rounded_up(seconds: float) -> float:
    """Return a time rounded up to two digits."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return round(math.ceil(seconds / step) * step, 12)


def serial_correlation_issues(inflation: Inflation) -> Iterator[QualityIssue]:
    """Yield an issue if neighbouring rounds of the run are more alike than independent rounds are."""
    correlation = inflation.correlation
    if correlation and correlation.is_significant:
        yield QualityIssue(
            code="serial-correlation",
            sentence=correlation_sentence(correlation),
            serious=True,
            extent=correlation.correlation,
        )
