"""Quality issue ``memory-grows``: a step that keeps memory from each call, a leak."""

from collections.abc import Iterator
from statistics import median

from runner.analysis.model import QualityIssue
from runner.analysis.quality.cell_checks import CellSamples
from runner.core import units

CODE = "memory-grows"
MIN_BYTES = 512.0
"""Bytes per call that count as growth. The harness itself keeps about 40 per sample, for its time."""
MIN_SHARE = 0.75
"""The share of the rounds in which the memory has to grow: growth in a few processes is not a leak of the step."""


def memory_grows(cell: CellSamples) -> Iterator[QualityIssue]:
    """Yield an issue where the memory of a cell grows from call to call in most of its rounds."""
    growths = [float(value) for value in cell.known_values("growth_bytes_per_call")]
    growing = sum(growth >= MIN_BYTES for growth in growths)
    if not growths or growing < MIN_SHARE * len(growths):
        return
    growth = median(growths)
    size = units.amount(growth, "bytes")
    text = f"the memory of {cell.environment} grows by {size} with each call {cell.in_rounds(growing)}"
    yield cell.issue(CODE, text, serious=False, extent=growth)
