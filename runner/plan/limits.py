"""Decide what exceeds the memory, the processors, the time-out of a round or the budget, by the estimates."""

from dataclasses import replace

from runner.catalog.cases import CASES
from runner.core import units
from runner.core.model import Cell, Measurement, PlannedCell, Skip
from runner.core.units import duration
from runner.plan import estimate


def resource_skip(cell: Cell, min_seconds: float, measurement: Measurement, memory: int, gpus: int = 0) -> Skip | None:
    """Return why a cell exceeds the time-out of a round, the processors or the memory; None if it fits.

    Args:
        cell: the cell.
        min_seconds: the seconds that one round takes at least: at the fastest rates of a GPU, or on a CPU by the
            estimate, whose rate is that of real runs.
        measurement: has the time-out of a round and the CPU threads.
        memory: bytes of the device's memory; 0 if unknown.
        gpus: the number of GPUs; 0 on a CPU.
    """
    if min_seconds > measurement.timeout:
        length = f"{min_seconds:.0f} s even at twice the GPU's peak rate" if gpus else f"about {min_seconds:.0f} s"
        return Skip("over-budget", f"one round would take {length}; the time-out is {measurement.timeout:.0f} s")
    chips = CASES.get(cell.case_id, {}).get("chips", 1)
    if gpus and chips > gpus:
        return Skip("processors", f"it needs {chips} GPUs at once; this run has {gpus}")
    if not gpus and chips > measurement.threads:
        return Skip("processors", f"it needs {chips} processes of one thread each; this run has {measurement.threads}")
    needed = estimate.process_bytes(cell.case_id, chips if gpus else 1)
    if memory and needed > memory:
        return Skip(
            "no-memory", f"it needs about {units.memory(needed)} of memory; {units.memory(memory)} are available"
        )
    return None


def deferral(seconds: float, measurement: Measurement) -> str:
    """Return why a cell is measured last: its estimate exceeds the time-out of a round; empty if it does not."""
    if seconds <= measurement.timeout:
        return ""
    estimated = f"one round would take about {seconds:.0f} s by an estimate"
    return f"{estimated}; it is tried once, and ends at the time-out of {measurement.timeout:.0f} s"


def defer_over_budget(
    planned: tuple[PlannedCell, ...], measurement: Measurement, devices: int = 1
) -> tuple[PlannedCell, ...]:
    """Return the cells, those deferred whose case's first rounds exceed the rest of the budget, case after case.

    An estimate decides the order only: whether there is time for a deferred case is decided by what was measured until
    then. The budget is wall-clock time, so each device has all of it. A case takes its time from the device with the
    most left, and a case of several chips from every device.

    Args:
        planned: the cells, in the order of their cases.
        measurement: has the budget in seconds; None defers nothing.
        devices: how many devices share the cases, at least 1.
    """
    if measurement.budget is None:
        return planned
    costs: dict[str, float] = {}
    for planned_cell in planned:
        if planned_cell.skip is None:
            costs[planned_cell.cell.case_id] = costs.get(planned_cell.cell.case_id, 0.0) + planned_cell.seconds
    remaining, deferred = [measurement.budget] * devices, dict[str, str]()
    for case_id, seconds in costs.items():
        on_all_devices = devices > 1 and CASES.get(case_id, {}).get("chips", 1) > 1
        available = min(remaining) if on_all_devices else max(remaining)
        if seconds > available:
            rounds = f"{measurement.rounds} rounds of {case_id} would take about {duration(seconds)} by an estimate"
            rest = f"{duration(available)} of the budget of {duration(measurement.budget)} remain"
            deferred[case_id] = f"{rounds}; {rest}"
            continue
        chosen = range(devices) if on_all_devices else [remaining.index(available)]
        for device in chosen:
            remaining[device] -= seconds
    return tuple(
        replace(planned_cell, deferred=deferred[planned_cell.cell.case_id])
        if planned_cell.skip is None and planned_cell.cell.case_id in deferred
        else planned_cell
        for planned_cell in planned
    )
