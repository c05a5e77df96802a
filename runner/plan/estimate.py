"""Estimate the seconds and the bytes that a cell takes on a device, before anything is measured.

The estimates are rough on purpose: they order the cells, choose which fit into memory, and say how long a run will
take. An iteration takes its arithmetic at the rate of the device plus the time to launch its operations
(``runner.plan.rates``). What a run measures replaces them (``runner.session.execution.costs``).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from runner.catalog.cases import CASES, forward_bytes, forward_flops, is_kernel, is_network_of_user, training_bytes
from runner.core.model import Cell, Measurement, PlannedCell
from runner.core.model.cells import is_plain, plain
from runner.harness import cases
from runner.plan.rates import NO_PREPARATION, SERVER_SECONDS, Preparation, Rates

DRAW_SECONDS_PER_BYTE = 1e-8  # to draw the arrays of an operation at random, and to sum them
TRAINING_COST = 3  # a training step costs about three forward passes
CHECK_COST = 5 * TRAINING_COST + 2  # forward passes of the check: first step, gradients, three steps, outputs twice
EXTRA_LAYER_COST = 0.3  # of compiling one layer, for each further layer and direction
WARM_UP = 0.6  # of the time budget, with the calls that catch up: 0.5 to 0.9 in real runs, 0.5 at most without those
TURNS = 0.4  # of the same, to wake processes for their turns, and for calls that are no samples: 0.25 to 0.45 likewise
SHORT_CALL = 0.1  # of the time budget: up to this, five calls of a network of unknown size fit into its warm-up
FRAMEWORK_BYTES = 1 << 29  # memory of a framework with its libraries
NETWORK_BYTES = 1 << 29  # memory of a user's network, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What an estimate needs to know of an implementation in a release.

    Attributes:
        framework: its framework.
        kind: ``flexible``, ``fused`` or ``vendor``.
        compiling: seconds to compile one layer, with cold caches and with warm ones.
        preparation: what each of its processes takes.
    """

    framework: str
    kind: str
    compiling: tuple[float, float]
    preparation: Preparation = NO_PREPARATION


class CellCost(NamedTuple):
    """Seconds of a cell: what only its first round takes, and what each round takes."""

    once: float
    each: float

    @property
    def first(self) -> float:
        """The seconds of its first round."""
        return self.of(1)

    def of(self, rounds: int) -> float:
        """Return the seconds of some rounds."""
        return self.once + rounds * self.each


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


def cell_cost(cell: Cell, program: Program, measurement: Measurement, rates: Rates) -> CellCost:
    """Return the estimated seconds of a cell: start, import, compilation and measured iterations; its check once.

    A forked process has its framework from its server, and a plain one imports it. Before the first plain process of a
    cell, a forked one checks it, which imports and builds, too; a plain-process control is checked by what it repeats.

    Args:
        cell: the cell.
        program: its implementation.
        measurement: how the run measures.
        rates: how fast the device computes.
    """
    is_control = is_plain(cell.environment)
    imports = program.preparation.importing if is_control or measurement.process == "plain" else 0.0
    check, build_for_check, build = _preparation(cell, program, rates)
    prepared_for_check = build_for_check + (imports + build if imports else 0.0)
    prepared = rates.start(program.framework) + imports + build
    return CellCost(
        once=0.0 if is_control else check + rates.side_by_side * prepared_for_check,
        each=rates.side_by_side * prepared + _measuring_seconds(cell, program, measurement, rates),
    )


def server_seconds(importing: float) -> float:
    """Return the estimated seconds to start a server whose framework takes ``importing`` seconds to import."""
    return SERVER_SECONDS + importing


def with_servers(
    planned: Iterable[PlannedCell], importing: Mapping[str, float], measurement: Measurement
) -> tuple[PlannedCell, ...]:
    """Return cells that cost their shares of the servers of their environments, too.

    A server of a run in plain processes imports nothing itself; its first child, which describes it, does.

    Args:
        planned: the cells.
        importing: environment -> seconds to import its framework.
        measurement: has the rounds, and after how many of them servers are replaced.
    """
    planned = tuple(planned)
    running = Counter(each.cell.environment for each in planned if each.skip is None)

    def share(environment: str, of: Cell) -> float:
        servers = math.ceil(measurement.planned_rounds(of) / max(measurement.restart, 1))
        return servers * server_seconds(importing[environment]) / running[environment]

    def with_share(each: PlannedCell) -> PlannedCell:
        if each.skip is not None:
            return each
        name = each.cell.environment
        of_control = share(name, plain(each.cell)) if each.control_seconds else 0.0
        seconds = each.seconds + share(name, each.cell)
        return replace(each, seconds=seconds, control_seconds=each.control_seconds + of_control)

    return tuple(with_share(each) for each in planned)


@cache
def process_bytes(case_id: str, parts: int = 1) -> int:
    """Return about how many bytes a process holds that trains a case, or each of ``parts`` processes that share it."""
    if is_network_of_user(case_id):
        return FRAMEWORK_BYTES + NETWORK_BYTES
    return FRAMEWORK_BYTES + training_bytes(CASES[case_id]) // parts


def _measuring_seconds(cell: Cell, program: Program, measurement: Measurement, rates: Rates) -> float:
    """Return the seconds of the warm-up and the measured iterations of one round of a cell."""
    phase, _, protocol = cell.phase.partition("+")
    if phase.startswith("compile"):
        return 0.0
    measured = measurement.seconds * (1 + WARM_UP + (TURNS if rates.device == "cpu" else 0.0))
    if is_network_of_user(cell.case_id):
        return measured
    step = step_seconds(cell.case_id, phase, cell.precision, program.kind, rates)
    if protocol == "published":
        iterations: int = sum(cases.iterations(dict(CASES[cell.case_id])))
        return iterations * step
    return max(measured, 5 * step)


def _preparation(cell: Cell, program: Program, rates: Rates) -> tuple[float, float, float]:
    """Return the seconds of a cell's check, of building what that needs besides, and of building the cell's program.

    The check computes on all threads, so two at a time take as long as one after the other.
    """
    if is_network_of_user(cell.case_id):
        return 0.0, program.preparation.building, program.preparation.building  # its check is like a second building
    check, layers, smaller = _check(cell.case_id, cell.precision, program.kind, rates)
    compiling = program.compiling[0 if cell.phase.partition("+")[0] == "compile" else 1]
    return check, smaller * compiling, layers * compiling


@cache
def _check(case_id: str, precision: str, kind: str, rates: Rates) -> tuple[float, float, float]:
    """Return the seconds of a case's check, and the compilation times as multiples of that of one layer.

    These are of the program, and of a smaller one that is checked in its place, 0 where there is none.
    """
    case = CASES[case_id]
    forward = _forward_seconds(case, precision, kind, rates)
    if is_kernel(case):
        return 4 * forward + DRAW_SECONDS_PER_BYTE * forward_bytes(case), 1.0, 0.0
    small: Mapping[str, Any] = cases.checked(dict(case))
    check = CHECK_COST * _forward_seconds(small, precision, kind, rates)
    at_full_size = small == case
    if not at_full_size:
        check += (TRAINING_COST + 1) * forward  # the first step, and the final outputs
    layers = case["layers"] * (2 if case["bidirectional"] else 1)
    compilation = 1 + EXTRA_LAYER_COST * (layers - 1)
    return check, compilation, 0.0 if at_full_size else compilation


def _forward_seconds(case: Mapping[str, Any], precision: str, kind: str, rates: Rates) -> float:
    """Return the seconds of one forward pass: arithmetic at a fixed rate, and the launches of each time step."""
    arithmetic = forward_flops(case) / rates.operations[precision]
    if is_kernel(case):
        return arithmetic + rates.call_seconds
    directions = 2 if case["bidirectional"] else 1
    steps: int = case["steps"] * case["layers"] * directions
    return arithmetic + rates.launch_seconds[kind] * steps
