"""Estimate the seconds and the bytes that a cell takes on a device, before anything is measured.

The estimates are rough on purpose: they order the cells, choose which fit into memory, and say how long a run will
take. An iteration takes its arithmetic at the rate of the device plus the time to launch its operations
(``runner.plan.rates``). What a run measures replaces them (``runner.session.execution.costs``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from runner.catalog.cases import CASES, forward_bytes, forward_flops, is_kernel, is_network_of_user, training_bytes
from runner.core import units
from runner.core.model import Cell, Measurement, PlannedCell, Skip
from runner.core.units import duration
from runner.harness import cases, turn_plan
from runner.plan.rates import Rates

DRAW_SECONDS_PER_BYTE = 1e-8  # to draw the arrays of an operation at random, and to sum them
TRAINING_COST = 3  # a training step costs about three forward passes
CHECK_COST = 5 * TRAINING_COST + 2  # forward passes of the check: first step, gradients, three steps, outputs twice
EXTRA_LAYER_COST = 0.3  # of compiling one layer, for each further layer and direction
FRAMEWORK_BYTES = 1 << 29  # memory of a framework with its libraries
NETWORK_CHECK_SECONDS = 3.0  # to build a user's network and check it: NumPy calls took 0.05 s, a network in JAX 1.5 s
NETWORK_BYTES = 1 << 29  # memory of a user's network, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What an estimate needs to know of an implementation in a release.

    Attributes:
        framework: its framework.
        kind: ``flexible``, ``fused`` or ``vendor``.
        compiling: seconds to compile one layer, with cold caches and with warm ones.
    """

    framework: str
    kind: str
    compiling: tuple[float, float]


@cache
def step_seconds(case_id: str, phase: str, precision: str, kind: str, rates: Rates) -> float:
    """Return the estimated seconds of one iteration of a phase.

    Args:
        case_id: ``workload/case``.
        phase: a phase of the aligned protocol, other than a compile phase.
        precision: ``fp32``, ``tf32``, ...
        kind: ``flexible``, ``fused`` or ``vendor``.
        rates: how fast the device computes.
    """
    case = CASES[case_id]
    passes = 1 if phase == "forward" or is_kernel(case) else TRAINING_COST
    return passes * _forward_seconds(case, precision, kind, rates)


def cell_seconds(cell: Cell, program: Program, measurement: Measurement, rates: Rates) -> float:
    """Return the estimated seconds of one round of a cell: start, compilation, check and measured iterations.

    Args:
        cell: the cell.
        program: its implementation.
        measurement: how the run measures.
        rates: how fast the device computes.
    """
    plain = cell.phase.partition("+")[0]
    if is_network_of_user(cell.case_id):
        prepared = rates.start(program.framework) + NETWORK_CHECK_SECONDS
        return prepared if plain.startswith("compile") else prepared + measurement.seconds
    check, layers = _preparation(cell.case_id, cell.precision, program.kind, rates)
    compilation = layers * program.compiling[0 if plain == "compile" else 1]
    prepared = rates.start(program.framework) + check + compilation
    if plain.startswith("compile"):
        return prepared
    step = step_seconds(cell.case_id, plain, cell.precision, program.kind, rates)
    if cell.protocol == "published":
        iterations: int = sum(cases.iterations(dict(CASES[cell.case_id])))
        return prepared + iterations * step
    measured = max(measurement.seconds, 5 * step)
    if rates.device == "cpu" and step < turn_plan.LEAD_BELOW:
        turn = max(turn_plan.LED_SAMPLES * step, turn_plan.TURN)
        measured *= 1 + step / turn  # the first call of each turn is no sample
    return prepared + measured


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
    needed = process_bytes(cell.case_id, chips if gpus else 1)
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


@cache
def process_bytes(case_id: str, parts: int = 1) -> int:
    """Return about how many bytes a process holds that trains a case, or each of ``parts`` processes that share it."""
    if is_network_of_user(case_id):
        return FRAMEWORK_BYTES + NETWORK_BYTES
    return FRAMEWORK_BYTES + training_bytes(CASES[case_id]) // parts


@cache
def _preparation(case_id: str, precision: str, kind: str, rates: Rates) -> tuple[float, float]:
    """Return the seconds of a case's check, and its compilation time as a multiple of that of one layer."""
    case = CASES[case_id]
    forward = _forward_seconds(case, precision, kind, rates)
    if is_kernel(case):
        return 4 * forward + DRAW_SECONDS_PER_BYTE * forward_bytes(case), 1.0
    small: Mapping[str, Any] = cases.checked(dict(case))
    check = CHECK_COST * _forward_seconds(small, precision, kind, rates)
    at_full_size = small == case
    if not at_full_size:
        check += (TRAINING_COST + 1) * forward  # the first step, and the final outputs
    layers = case["layers"] * (2 if case["bidirectional"] else 1) * (1 if at_full_size else 2)
    return check, 1 + EXTRA_LAYER_COST * (layers - 1)


def _forward_seconds(case: Mapping[str, Any], precision: str, kind: str, rates: Rates) -> float:
    """Return the seconds of one forward pass: arithmetic at a fixed rate, and the launches of each time step."""
    arithmetic = forward_flops(case) / rates.operations[precision]
    if is_kernel(case):
        return arithmetic + rates.call_seconds
    directions = 2 if case["bidirectional"] else 1
    steps: int = case["steps"] * case["layers"] * directions
    return arithmetic + rates.launch_seconds[kind] * steps
