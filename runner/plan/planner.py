"""Decide what is to be measured and what cannot be, and why; touches nothing."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from runner.catalog.cases import CASES, ORIGINAL_PHASES, PHASES, PUBLISHED
from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model import Block, Cell, Gpu, Measurement, Plan, PlannedCell, Request, Skip
from runner.harness.adapters import implementation, implementations
from runner.harness.adapters.base import Implementation
from runner.matrix import Matrix, Preset, Selector
from runner.matrix.select import fits, fits_phase
from runner.plan import compatibility, estimate
from runner.plan.corpus import given


def plan(matrix: Matrix, request: Request, unavailable: Mapping[str, Skip], gpu: Gpu | None = None) -> Plan:
    """Expand the matrix into cells with verdicts, and the runnable ones into blocks of one case each.

    Args:
        matrix: the checked matrix.
        request: what was asked for.
        unavailable: environments that cannot be had on this machine, and why.
        gpu: the device's architecture and driver, where there is one.

    Raises:
        NothingSelectedError: no cell is left.
        UsageError: the corpus is too short, or no language model is there to learn it; or a workload has not the phase
            that the matrix asks it for.
    """
    measurement = _measurement(matrix, request)
    served: Mapping[str, compatibility.Judgement] = {}
    if gpu and request.backend != "host":  # what the host holds, its own interpreter knows
        served = compatibility.judgements(matrix, request, gpu, unavailable)
    planned = tuple(
        _judged(matrix, cell, request, measurement, unavailable, served)
        for cell in _cells(matrix, request)
        if request.chosen is None or request.chosen(cell.id)
    )
    planned = estimate.affordable(planned, measurement, request.devices)
    if not planned:
        raise NothingSelectedError(_nothing(request))
    if request.corpus and not any(CASES[planned_cell.cell.case_id].get("vocabulary") for planned_cell in planned):
        raise UsageError(Problem("--corpus is for language models, and none is selected", hint="--workload lm-lstm"))
    runnable: dict[str, list[Cell]] = {}
    for planned_cell in planned:
        if planned_cell.skip is None:
            runnable.setdefault(planned_cell.cell.case_id, []).append(planned_cell.cell)
    return Plan(
        device=request.device,
        devices=request.devices,
        backend=request.backend,
        measurement=measurement,
        cells=planned,
        blocks=tuple(
            Block(
                case_id=case_id,
                spec=given(CASES[case_id], request.corpus),
                device=request.device,
                cells=tuple(cells),
                memory_bytes=estimate.held_bytes(case_id),
            )
            for case_id, cells in runnable.items()
        ),
        frameworks={name: matrix.environments[name].framework for name in request.environments},
    )


def _measurement(matrix: Matrix, request: Request) -> Measurement:
    preset = matrix.presets[request.preset] if request.preset else matrix.measure
    return Measurement(
        rounds=request.rounds or preset.rounds,
        max_rounds=request.max_rounds or request.rounds or preset.max_rounds or matrix.measure.max_rounds,
        budget=request.budget,
        seconds=request.seconds or preset.seconds,
        timeout=matrix.measure.timeout,
        threads=request.threads,
        seed=request.seed,
        restart=matrix.measure.restart,
    )


def _protocol(matrix: Matrix, request: Request) -> str:
    preset = matrix.presets[request.preset] if request.preset else None
    return request.protocol or (preset.protocol if preset else "aligned")


@dataclass(frozen=True, slots=True)
class _Choice:
    """The phases and precisions of one case, and the selectors of the preset that fit the case; None without preset."""

    case_id: str
    phases: tuple[str, ...]
    precisions: tuple[str, ...]
    selectors: tuple[Selector, ...] | None

    def includes(self, environment: str, implementation: str, phase: str, precision: str) -> bool:
        """Return True where a selector of the preset fits a cell, or there is no preset."""
        return self.selectors is None or any(
            fits_phase(selector.cases, self.case_id, phase)
            and (selector.phases is None or phase in selector.phases)
            and (selector.precisions is None or precision in selector.precisions)
            and fits(selector.environments, environment)
            and fits(selector.implementations, implementation)
            for selector in self.selectors
        )


def _choices(matrix: Matrix, request: Request) -> Iterator[_Choice]:
    """Yield what is selected of each case, in the order of the matrix."""
    preset = matrix.presets[request.preset] if request.preset else None
    for workload, choice in matrix.workloads.items():
        if request.workloads and workload not in request.workloads:
            continue
        _known(workload, choice.phases)
        for case_id, spec in CASES.items():
            if spec["workload"] != workload:
                continue
            precisions = request.precisions or _precisions(choice.precisions, preset)
            if preset is None:
                if fits(choice.cases, spec["name"]):
                    yield _Choice(case_id, choice.phases, precisions, None)
                continue
            selectors = tuple(selector for selector in preset.select if _may_fit(selector, case_id))
            if selectors:
                extra = (phase for selector in selectors for phase in selector.phases or ())
                phases = tuple(dict.fromkeys((*(preset.phases or choice.phases), *extra)))
                yield _Choice(case_id, phases, precisions, selectors)


@cache
def _may_fit(selector: Selector, case_id: str) -> bool:
    """Return True where a selector fits some phase of a case."""
    return any(fits_phase(selector.cases, case_id, phase) for phase in CASES[case_id].get("phases", PHASES))


def _precisions(listed: tuple[str, ...], preset: Preset | None) -> tuple[str, ...]:
    """Return the precisions of a workload, each once; those of a preset among them, where it names some."""
    requested = preset.precisions if preset and preset.precisions is not None else listed
    return tuple(dict.fromkeys(precision for precision in listed if precision in requested))


@cache
def _known(workload: str, phases: tuple[str, ...]) -> None:
    """Raise UsageError where no case of a workload has one of the phases."""
    of_cases = (spec.get("phases", PHASES) for spec in CASES.values() if spec["workload"] == workload)
    known = dict.fromkeys(phase for phases_of_case in of_cases for phase in phases_of_case)
    for phase in phases:
        if phase not in known:
            hint = f"it has {', '.join(known)}: change its phases below workloads in the matrix file"
            raise UsageError(Problem(f"{workload} has no phase {phase!r}", hint=hint))


def _timed(case_id: str, phases: tuple[str, ...], protocol: str) -> tuple[str, ...]:
    """Return the phases of a case in a protocol, each once; none where it has none, or its original timed none."""
    has = CASES[case_id].get("phases", PHASES)
    if protocol == "aligned":
        return tuple(dict.fromkeys(phase for phase in phases if phase in has))
    known = (
        [phase for phase in ORIGINAL_PHASES[CASES[case_id]["workload"]] if phase in has] if case_id in PUBLISHED else ()
    )
    named = (phase if phase.startswith("compile") else f"{phase}+published" for phase in phases if phase in known)
    return tuple(dict.fromkeys(named))


def _cells(matrix: Matrix, request: Request) -> Iterator[Cell]:
    protocol = _protocol(matrix, request)
    for choice in _choices(matrix, request):
        case_id = choice.case_id
        workload, _, case = case_id.partition("/")
        timed = _timed(case_id, choice.phases, protocol)
        for name in request.environments:
            for slug in _slugs(matrix.environments[name].framework):
                implementation_class = _class(matrix.environments[name].framework, slug)
                if not implementation_class.concerns(dict(CASES[case_id])):
                    continue
                if protocol == "published" and slug not in PUBLISHED.get(case_id, ()):
                    continue
                for phase, precision in itertools.product(timed, choice.precisions):
                    if choice.includes(name, slug, phase.partition("+")[0], precision):
                        yield Cell(
                            environment=name,
                            implementation=slug,
                            workload=workload,
                            case=case,
                            phase=phase,
                            precision=precision,
                        )


@cache
def _slugs(framework: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(implementation_class.slug for implementation_class in implementations(framework)))


@cache
def _class(framework: str, slug: str) -> type[Implementation]:
    return implementation(framework, slug)


def _judged(
    matrix: Matrix,
    cell: Cell,
    request: Request,
    measurement: Measurement,
    unavailable: Mapping[str, Skip],
    served: Mapping[str, compatibility.Judgement],
) -> PlannedCell:
    environment = matrix.environments[cell.environment]
    implementation_class = _class(environment.framework, cell.implementation)
    kind = implementation_class.kind_in(compatibility.release(environment.release))
    seconds = estimate.cell_seconds(cell, implementation_class.compile_seconds, measurement, request.device)
    judged = served.get(cell.environment)
    on_gpu = judged.skip(kind, allow_jit=request.allow_jit) if judged else None
    skip = _skip(matrix, cell, request, on_gpu or unavailable.get(cell.environment))
    gpus = request.devices if request.device == "cuda" else 0
    skip = skip or estimate.too_much(cell, seconds, measurement, request.memory, gpus)
    return PlannedCell(
        cell=cell,
        device=request.device,
        kind=kind,
        skip=skip,
        seconds=measurement.rounds * seconds,
        jit=judged.jit(kind) if judged and skip is None else "",
    )


def _skip(matrix: Matrix, cell: Cell, request: Request, made: Skip | None) -> Skip | None:
    """Return why a cell is not run, the reason nearest to the user's own choice first.

    ``made`` is why its environment does not run on the GPU, or cannot be had.
    """
    for rule in matrix.exclude:
        if fnmatchcase(cell.id, rule.select):
            return Skip("excluded", rule.reason)
    environment = matrix.environments[cell.environment]
    lacks = _lacks(
        environment.framework,
        environment.release,
        cell.implementation,
        (cell.case_id, cell.protocol),
        (request.device, cell.precision),
    )
    return lacks or made


@cache
def _lacks(framework: str, release: str, slug: str, case: tuple[str, str], where: tuple[str, str]) -> Skip | None:
    """Return what an implementation lacks for ``case``, its id and protocol, in ``where``, (device, precision)."""
    implementation_class = _class(framework, slug)
    lacks = implementation_class.lacks(dict(CASES[case[0]], protocol=case[1]), compatibility.release(release), *where)
    return Skip(*lacks) if lacks else None


def _nothing(request: Request) -> Problem:
    """Return the problem of a selection without cells; it names all that was selected."""
    parts = {
        "preset": (request.preset,) if request.preset else (),
        "workload": request.workloads,
        "precision": request.precisions,
        "environment": request.environments if len(request.environments) < 4 else (),
    }
    selected = "; ".join(f"{name} {', '.join(values)}" for name, values in parts.items() if values)
    message = f"no cell fits the selection ({selected})" if selected else "no cell fits the selection"
    return Problem(message, hint="`runner plan` without these options lists every cell")
