"""What a cell will about cost on a device: seconds and bytes, before anything is measured. Rough on purpose."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from runner.catalog.cases import CASES, forward_bytes, forward_flops, is_kernel, training_bytes
from runner.core import units
from runner.core.model import Cell, Measurement, PlannedCell, Skip
from runner.core.units import duration
from runner.harness import cases, timing

FLOPS_PER_THREAD = 3e10  # what these networks reached on one thread of a 2024 server CPU
FLOPS_GPU = 5e11
FORK_SECONDS = 0.3  # data, weights and the fork
DRAWN = 1e-8  # seconds that a byte of an operation's arrays takes to be drawn and summed up
STEP_SECONDS = 2e-5  # what starting the operations of one time step of one layer takes at least
TRAINING = 3  # a training step costs about three forward passes
CHECKED = 5 * TRAINING + 2  # forward passes of the check: first step, gradients, three steps, outputs twice
EXTRA_LAYER = 0.3  # of what compiling one layer takes, for each further layer and way
OVERHEAD = 1 << 29  # bytes of a framework with its libraries


@cache
def step_seconds(case_id: str, phase: str, device: str, threads: int) -> float:
    """Return the seconds of one iteration of a phase."""
    case = CASES[case_id]
    share = 1 if phase == "forward" or is_kernel(case) else TRAINING
    return share * _forward_seconds(case, device, threads)


def cell_seconds(cell: Cell, compiling: tuple[float, float], measurement: Measurement, device: str) -> float:
    """Return the seconds of one round of a cell: its fork, its compilers, its check and its iterations.

    Args:
        cell: what to measure.
        compiling: seconds of compiling one layer, from cold caches and from warm ones.
        measurement: how.
        device: where.
    """
    plain = cell.phase.partition("+")[0]
    check, share = _before(cell.case_id, device, measurement.threads)
    cold = share * compiling[0 if plain == "compile" else 1]
    if plain.startswith("compile"):
        return FORK_SECONDS + check + cold
    step = step_seconds(cell.case_id, plain, device, measurement.threads)
    measured = max(measurement.seconds, 5 * step)
    if device == "cpu" and step < timing.LEAD_BELOW:
        measured *= 1 + step / max(step, timing.TURN)  # the calls that lead
    if cell.protocol == "published":
        measured = sum(cases.iterations(dict(CASES[cell.case_id]))) * step
    return FORK_SECONDS + check + cold + measured


def too_much(cell: Cell, seconds: float, measurement: Measurement, memory: int, gpus: int = 0) -> Skip | None:
    """Return why a cell would not fit in a round's time, the device's memory or its processors; None where it does.

    Args:
        cell: what to measure.
        seconds: the estimate of one round.
        measurement: its time-out is the budget of a round.
        memory: bytes that the device has; 0 where that is not known.
        gpus: how many there are; 0 on a CPU.
    """
    if seconds > measurement.timeout:
        return Skip("over-budget", f"a round takes about {seconds:.0f} s here, {measurement.timeout:.0f} s are allowed")
    chips = CASES[cell.case_id].get("chips", 1)
    if gpus and chips > gpus:
        return Skip("processors", f"{chips} GPUs are wanted at once, and this is on {gpus}")
    if not gpus and chips > measurement.threads:
        there = f"{measurement.threads} threads are there"
        return Skip("processors", f"{chips} processes of a thread each are wanted, and {there}")
    needed = held_bytes(cell.case_id, chips if gpus else 1)
    if memory and needed > memory:
        return Skip("no-memory", f"it holds about {units.memory(needed)} at once, {units.memory(memory)} are there")
    return None


def affordable(planned: tuple[PlannedCell, ...], measurement: Measurement, devices: int = 1) -> tuple[PlannedCell, ...]:
    """Return the cells with a skip for each case whose first rounds do not fit into what is left of the budget.

    Each of several ``devices`` has the whole of it, and a case is measured on one, or has all of them.
    """
    if measurement.budget is None:
        return planned
    costs: dict[str, float] = {}
    for planned_cell in planned:
        if planned_cell.skip is None:
            costs[planned_cell.cell.case_id] = costs.get(planned_cell.cell.case_id, 0.0) + planned_cell.seconds
    left, skips = [measurement.budget] * devices, dict[str, Skip]()
    for case_id, seconds in costs.items():
        together = devices > 1 and CASES.get(case_id, {}).get("chips", 1) > 1
        available = min(left) if together else max(left)
        if seconds <= available:
            left = [
                seconds_left - seconds if together or device == left.index(available) else seconds_left
                for device, seconds_left in enumerate(left)
            ]
            continue
        rounds = f"{measurement.rounds} rounds of {case_id} take about {duration(seconds)}"
        there = f"{duration(available)} of {duration(measurement.budget)} are left"
        skips[case_id] = Skip("over-budget", f"{rounds}, and {there}")
    return tuple(
        replace(planned_cell, skip=skips[planned_cell.cell.case_id])
        if planned_cell.skip is None and planned_cell.cell.case_id in skips
        else planned_cell
        for planned_cell in planned
    )


@cache
def held_bytes(case_id: str, parts: int = 1) -> int:
    """Return about how many bytes are held by a process that trains a case, or by each of several that share it."""
    return OVERHEAD + training_bytes(CASES[case_id]) // parts


@cache
def _before(case_id: str, device: str, threads: int) -> tuple[float, float]:
    """Return the seconds of the check, and how many times one layer's compiling all of it takes."""
    case = CASES[case_id]
    if is_kernel(case):
        return 4 * _forward_seconds(case, device, threads) + DRAWN * forward_bytes(case), 1.0
    small: Mapping[str, Any] = cases.checked(dict(case))
    check = CHECKED * _forward_seconds(small, device, threads)
    at_full_size = small == case
    if not at_full_size:
        check += (TRAINING + 1) * _forward_seconds(case, device, threads)  # its first step, and its outputs at the end
    parts = case["layers"] * (2 if case["bidirectional"] else 1) * (1 if at_full_size else 2)
    return check, 1 + EXTRA_LAYER * (parts - 1)


def _forward_seconds(case: Mapping[str, Any], device: str, threads: int) -> float:
    rate = FLOPS_GPU if device == "cuda" else FLOPS_PER_THREAD * threads
    if is_kernel(case):
        return forward_flops(case) / rate + STEP_SECONDS
    ways = 2 if case["bidirectional"] else 1
    steps: int = case["steps"] * case["layers"] * ways
    return forward_flops(case) / rate + STEP_SECONDS * steps
