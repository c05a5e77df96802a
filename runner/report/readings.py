"""What was read while a cell computed, as text: times of host and GPU, clock, power, temperature, throttling."""

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from runner.core import units
from runner.core.grouping import grouped
from runner.report.formatting import counted

if TYPE_CHECKING:
    import pandas as pd

Read = Callable[[object], float | None]
HOST, DEVICE, LATENCY = "dispatch_seconds", "device_seconds", "latency_seconds"
HOST_BOUND = "host-bound"
COMPILED = ("compiled_graphs", "graph_breaks", "recompilations")
TELEMETRY = ("clock_mhz", "power_watts", "temperature_celsius", "joules_per_step", "throttled", "held_back")


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
    if name not in rounds:
        return {}
    values = (value if read is None else read(value) for value in rounds[name].tolist())
    pairs = zip(rounds["cell"].tolist(), values, strict=True)
    return grouped((cell, value) for cell, value in pairs if value is not None and value == value)  # noqa: PLR0124  nan


def telemetry(rounds: "pd.DataFrame") -> dict[str, str]:
    """Return cell id -> its readings over all rounds; a cell without readings is missing.

    Args:
        rounds: a row for each good record; ``clock_mhz`` is the lowest, median and highest clock in MHz.
    """
    known = rounds[["cell", *(name for name in TELEMETRY if name in rounds)]]
    readings: dict[str, list[dict[Any, Any]]] = grouped((str(row["cell"]), row) for row in known.to_dict("records"))
    texts = ((cell, ", ".join(_parts(rows))) for cell, rows in readings.items())
    return {cell: text for cell, text in texts if text}


def compiled(rounds: "pd.DataFrame") -> dict[str, str]:
    """Return cell id -> what torch.compile did: graphs, breaks with their reasons, recompilations; if it was used.

    Args:
        rounds: a row for each good record. The numbers are the largest of a round.
    """
    graphs, breaks, again = (_values_by_cell(rounds, name) for name in COMPILED)
    reasons = _values_by_cell(rounds, "graph_break_reasons")
    texts = {}
    for cell, counts in graphs.items():
        parts = [counted(int(max(counts)), "compiled graph"), counted(int(max(breaks.get(cell, [0]))), "graph break")]
        if cell in again:
            parts.append(counted(int(max(again[cell])), "recompilation"))
        why = "; ".join(dict.fromkeys(reason for of_round in reasons.get(cell, []) for reason in of_round))
        texts[cell] = ", ".join(parts) + (f" ({why})" if why else "")
    return texts


def _parts(rows: list[dict[Any, Any]]) -> Iterator[str]:
    clocks = [row["clock_mhz"] for row in rows if isinstance(row.get("clock_mhz"), (list, tuple))]
    if clocks:
        low, high = min(clock[0] for clock in clocks), max(clock[-1] for clock in clocks)
        middle = median(clock[len(clock) // 2] for clock in clocks)
        yield f"{middle:,.0f} MHz" + (f" ({low:,.0f} to {high:,.0f})" if low != high else "")
    if watts := _numbers(rows, "power_watts"):
        yield f"{fmean(watts):.0f} W on average"
    if joules := _numbers(rows, "joules_per_step"):
        yield f"{median(joules):.3g} J a step"
    if celsius := _numbers(rows, "temperature_celsius"):
        yield f"at most {max(celsius):.0f} °C"
    throttled = sum(number > 0 for number in _numbers(rows, "throttled"))
    if throttled:
        lists = [row["held_back"] for row in rows if isinstance(row.get("held_back"), (list, tuple))]
        reasons = ", ".join(dict.fromkeys(reason for reasons in lists for reason in reasons))
        yield f"throttled in {throttled} of {len(rows)} rounds" + (f" by {reasons}" if reasons else "")


def _numbers(rows: list[dict[Any, Any]], name: str) -> list[float]:
    values = [row.get(name) for row in rows]
    return [float(value) for value in values if isinstance(value, int | float) and value == value]  # noqa: PLR0124  nan
