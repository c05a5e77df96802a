"""Decide what is to be measured and what cannot be, and why; touches nothing."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache

from runner import compat
from runner.errors import NothingSelectedError, Problem
from runner.harness.adapters import implementations
from runner.matrix import Environment, Matrix
from runner.model import Block, Cell, Gpu, Measurement, Plan, PlannedCell, Request, Skip
from runner.workloads import CASES, forward_flops

FLOPS_PER_THREAD = 3e10  # what these networks reached on one thread of a 2024 server CPU; for estimates alone
FLOPS_GPU = 5e11
CHECK_STEPS = 8  # forward and back: the first call, the gradients, the checked steps, the warm-up
ROUND_SECONDS = 0.5  # data, weights and the fork


def plan(matrix: Matrix, request: Request, unavailable: Mapping[str, Skip], gpu: Gpu | None = None) -> Plan:
    """Expand the matrix into cells with verdicts, and the runnable ones into blocks of one case each.

    Args:
        matrix: the checked matrix.
        request: what was asked for.
        unavailable: environments that cannot be had on this machine, and why.
        gpu: the device's architecture and driver, where there is one.

    Raises:
        NothingSelectedError: no cell is left.
    """
    measurement = _measurement(matrix, request)
    planned = tuple(
        PlannedCell(
            cell=cell,
            device=request.device,
            skip=_skip(matrix, cell, request, unavailable, gpu),
            seconds=_seconds(cell, measurement, request.device),
        )
        for cell in _cells(matrix, request)
        if request.chosen is None or request.chosen(cell.id)
    )
    if not planned:
        raise NothingSelectedError(_nothing(request))
    runnable: dict[str, list[Cell]] = {}
    for found in planned:
        if found.skip is None:
            runnable.setdefault(found.cell.case_id, []).append(found.cell)
    return Plan(
        device=request.device,
        backend=request.backend,
        measurement=measurement,
        cells=planned,
        blocks=tuple(
            Block(case_id=case_id, spec=CASES[case_id], device=request.device, cells=tuple(cells))
            for case_id, cells in runnable.items()
        ),
        frameworks={name: matrix.environments[name].framework for name in request.environments},
    )


def kind(framework: str, slug: str) -> str:
    """Return ``flexible``, ``fused`` or ``vendor`` for an implementation; empty for one that is not known."""
    return next((found.kind for found in implementations(framework) if found.slug == slug), "")


def _measurement(matrix: Matrix, request: Request) -> Measurement:
    preset = matrix.presets[request.preset] if request.preset else matrix.measure
    return Measurement(
        rounds=request.rounds or preset.rounds,
        seconds=request.seconds or preset.seconds,
        timeout=matrix.measure.timeout,
        threads=request.threads,
        seed=request.seed,
        restart=matrix.measure.restart,
    )


def _cases(matrix: Matrix, request: Request) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Yield (case id, phases, precisions) of every case that is wanted, in the order of the matrix."""
    preset = matrix.presets[request.preset] if request.preset else None
    for workload, choice in matrix.workloads.items():
        if request.workloads and workload not in request.workloads:
            continue
        for case_id, spec in CASES.items():
            if spec["workload"] != workload:
                continue
            if preset and not any(fnmatchcase(case_id, glob) for glob in preset.select):
                continue
            if not preset and not any(fnmatchcase(spec["name"], glob) for glob in choice.cases):
                continue
            phases = preset.phases if preset and preset.phases else choice.phases
            yield case_id, tuple(dict.fromkeys(phases)), tuple(dict.fromkeys(choice.precisions))


def _cells(matrix: Matrix, request: Request) -> Iterator[Cell]:
    for case_id, phases, precisions in _cases(matrix, request):
        workload, _, case = case_id.partition("/")
        for name in request.environments:
            for found in implementations(matrix.environments[name].framework):
                if CASES[case_id]["cell"] not in found.cells:
                    continue
                for phase in phases:
                    for precision in precisions:
                        yield Cell(
                            environment=name,
                            implementation=found.slug,
                            workload=workload,
                            case=case,
                            phase=phase,
                            precision=precision,
                        )


def _skip(
    matrix: Matrix, cell: Cell, request: Request, unavailable: Mapping[str, Skip], gpu: Gpu | None
) -> Skip | None:
    """Return why a cell is not run, the reason nearest to the user's own choice first."""
    for rule in matrix.exclude:
        if fnmatchcase(cell.id, rule.select):
            return Skip("excluded", rule.reason)
    environment = matrix.environments[cell.environment]
    return (
        _lacks(environment, cell.implementation, cell.case_id, request.device, cell.precision)
        or (compat.refuse(environment, gpu) if gpu and request.backend != "host" else None)
        or unavailable.get(cell.environment)
    )


def _lacks(environment: Environment, slug: str, case_id: str, device: str, precision: str) -> Skip | None:
    return _lacks_by_release(environment.framework, environment.release, slug, case_id, device, precision)


@cache
def _lacks_by_release(
    framework: str, release: str, slug: str, case_id: str, device: str, precision: str
) -> Skip | None:
    found = next(found for found in implementations(framework) if found.slug == slug)
    lacks = found.lacks(dict(CASES[case_id]), compat.release(release), device, precision)
    return Skip(*lacks) if lacks else None


@cache
def _step_seconds(case_id: str, device: str, threads: int) -> float:
    rate = FLOPS_GPU if device == "cuda" else FLOPS_PER_THREAD * threads
    return 3 * forward_flops(CASES[case_id]) / rate


def _seconds(cell: Cell, measurement: Measurement, device: str) -> float:
    step = _step_seconds(cell.case_id, device, measurement.threads)
    measured = 0.0 if cell.phase.startswith("compile") else max(measurement.seconds, 5 * step)
    return measurement.rounds * (ROUND_SECONDS + CHECK_STEPS * step + measured)


def _nothing(request: Request) -> Problem:
    wanted = ", ".join(request.workloads or request.environments)
    return Problem(f"{wanted!r} selects no cell", hint="`runner plan` lists every cell there is")
