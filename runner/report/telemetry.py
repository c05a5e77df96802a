"""What the GPU, or the CPU, did while a cell computed, as text: clock, power, temperature, energy, throttling."""

from collections.abc import Iterator
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("clock_mhz", "power_watts", "temperature_celsius", "joules_per_step", "throttled", "held_back")


def telemetry(rounds: "pd.DataFrame") -> dict[str, str]:
    """Return cell id -> its readings over all rounds; a cell without readings is missing.

    Args:
        rounds: a row for each good record; ``clock_mhz`` is the lowest, median and highest clock in MHz.
    """
    known = rounds[["cell", *(name for name in COLUMNS if name in rounds)]]
    readings: dict[str, list[dict[str, Any]]] = {}
    for row in known.to_dict("records"):
        readings.setdefault(str(row["cell"]), []).append({str(name): value for name, value in row.items()})
    texts = ((cell, ", ".join(_parts(rows))) for cell, rows in readings.items())
    return {cell: text for cell, text in texts if text}


def _parts(rows: list[dict[str, Any]]) -> Iterator[str]:
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


def _numbers(rows: list[dict[str, Any]], name: str) -> list[float]:
    values = [row.get(name) for row in rows]
    return [float(value) for value in values if isinstance(value, int | float) and value == value]  # noqa: PLR0124  nan
