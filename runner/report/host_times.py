"""What host and GPU spend on a step, as text, and which cells the host limits."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from runner.core import units

if TYPE_CHECKING:
    import pandas as pd

Read = Callable[[object], float | None]
HOST, DEVICE, LATENCY = "dispatch_seconds", "device_seconds", "latency_seconds"
HOST_BOUND = "host-bound"


def host_times(rounds: "pd.DataFrame") -> dict[str, str]:
    """Return cell id -> the medians over rounds of what is known: host, device, and the latency of a single call.

    Args:
        rounds: a row for each good record.
    """
    known = {name: _values_by_cell(rounds, name) for name in (HOST, DEVICE, LATENCY)}
    bound, texts = host_bound_cells(rounds), {}
    for cell in dict.fromkeys(cell for values in known.values() for cell in values):
        times = {name: median(values[cell]) for name, values in known.items() if cell in values}
        shown = {name: units.step_time(times[name], units.time_unit([times[name]])) for name in times}
        if HOST in times and DEVICE in times:
            unit = units.time_unit((times[HOST], times[DEVICE]))
            shown.update({name: units.step_time(times[name], unit) for name in (HOST, DEVICE)})
        labels = {HOST: "host {}", DEVICE: "device {}", LATENCY: "single call {}"}
        parts = [labels[name].format(shown[name]) for name in labels if name in shown]
        texts[cell] = ", ".join([*parts, *([HOST_BOUND] if cell in bound else [])])
    return texts


def host_bound_cells(rounds: "pd.DataFrame") -> frozenset[str]:
    """Return the ids of the cells that the host limited in at least half of their rounds."""
    values = _values_by_cell(rounds, "host_bound")
    return frozenset(cell for cell, of_rounds in values.items() if 2 * sum(of_rounds) >= len(of_rounds))


def held_clocks(rounds: "pd.DataFrame") -> dict[str, float]:
    """Return cell id -> the clock of its GPU in MHz: the median while it computed, or else the clock that was held."""
    clocks = {cell: median(values) for cell, values in _values_by_cell(rounds, "held_sm_mhz").items()}
    clocks.update({cell: median(values) for cell, values in _values_by_cell(rounds, "clock_mhz", _middle).items()})
    return clocks


def _middle(value: object) -> float | None:
    return float(value[len(value) // 2]) if isinstance(value, list | tuple) and value else None


def _values_by_cell(rounds: "pd.DataFrame", name: str, read: Read | None = None) -> Mapping[str, list[Any]]:
    """Return cell id -> the known values of a column, each as ``read`` gives it."""
    values: dict[str, list[Any]] = defaultdict(list)
    if name in rounds:
        for cell, value in zip(rounds["cell"].tolist(), rounds[name].tolist(), strict=True):
            known = value if read is None else read(value)
            if known is not None and known == known:  # noqa: PLR0124  nan
                values[cell].append(known)
    return values
