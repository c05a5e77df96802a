"""Decide which cells run, and why the others do not; nothing is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import Any

from runner.catalog.cases import CASES, is_network_of_user
from runner.catalog.hardware.versions import format_capability, version_numbers
from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model import Block, Cell, Gpu, Measurement, Plan, PlannedCell, Request, Skip
from runner.core.model.cells import is_called, plain
from runner.core.model.variant_ids import USUAL_LAUNCH, Launch, is_variant, without_variant
from runner.harness.adapters.base import Implementation
from runner.matrix import Matrix
from runner.plan import compatibility, estimate, limits
from runner.plan.compatibility import Judgement
from runner.plan.corpus import with_corpus
from runner.plan.estimate import Program
from runner.plan.rates import Preparation, Rates, fastest_rates, preparation, rates
from runner.plan.verdicts import class_of_cell, implementation_class, selected_cells


def plan(
    matrix: Matrix,
    request: Request,
    unavailable: Mapping[str, Skip],
    gpu: Gpu | None = None,
    *,
    locked: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> Plan:
    """Return the selected cells with their verdicts, and the cells that run as blocks of one case each.

    Args:
        matrix: the checked matrix.
        request: what was asked for.
        unavailable: the environments that cannot be built on this machine, and why.
        gpu: stands for all GPUs of the run, with their architecture and driver; None on a CPU.
        locked: environment -> the packages of its lock, see ``backends.lock_file``; those whose packages are not known
            are missing.

    Raises:
        NothingSelectedError: the request selects no cell.
        UsageError: a corpus was given but no language model is selected, or the corpus is too short; or no case of a
            workload has a phase that the matrix lists for it.
    """
    measurement = _measurement(matrix, request)
    judged = _judgements(matrix, request, unavailable, gpu)
    start = replace(measurement, seconds=0.0)
    speed = rates(gpu, measurement.threads)
    decision = _Decision(matrix, request, measurement, start, unavailable, judged, gpu, speed, locked)
    planned = tuple(decision.planned_cell(cell) for cell in selected_cells(matrix, request))
    importing = {name: decision.preparation(name).importing for name in request.environments}
    planned = estimate.with_servers(planned, importing, measurement)
    planned = limits.defer_over_budget(planned, measurement, request.devices)
    if not planned:
        raise NothingSelectedError(nothing_selected(matrix, request))
    cases = matrix.cases
    if request.corpus and not any(cases[planned_cell.cell.case_id].get("vocabulary") for planned_cell in planned):
        message = "--corpus is for language models, and none is selected"
        raise UsageError(Problem(message, hint="add --workload lm-lstm"))
    blocks = _blocks(cases, planned, request)
    digests = {block.spec.get("files") for block in blocks}
    return Plan(
        device=request.device,
        devices=request.devices,
        backend=request.backend,
        measurement=measurement,
        cells=planned,
        blocks=blocks,
        frameworks={name: matrix.environments[name].framework for name in request.environments},
        launches=_launches(matrix, request.environments),
        models={of.files.digest: of.files for of in matrix.networks.values() if of.files.digest in digests},
    )


def _launches(matrix: Matrix, names: Sequence[str]) -> Mapping[str, Launch]:
    """Return how the processes of environments are started, without those that are started as all others."""
    launches = {name: matrix.launch_of(name) for name in names}
    return {name: launch for name, launch in launches.items() if launch != USUAL_LAUNCH}


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
        process=request.process or matrix.measure.process,
    )


def _judgements(
    matrix: Matrix, request: Request, unavailable: Mapping[str, Skip], gpu: Gpu | None
) -> Mapping[str, Judgement]:
    """Return environment -> what it does on the GPU; empty on a CPU.

    Interpreters and images as they are are not judged: nothing says which packages they have.
    """
    if gpu is None:
        return {}
    judged = compatibility.judgements(matrix, request, gpu, unavailable)
    return {name: each for name, each in judged.items() if matrix.image_of(name) not in matrix.as_is}


def _blocks(
    cases: Mapping[str, Mapping[str, Any]], planned: tuple[PlannedCell, ...], request: Request
) -> tuple[Block, ...]:
    """Return a block for each case with a cell that runs, in the order of the cells.

    Raises:
        UsageError: the corpus is too short for a case.
    """
    cells_by_case: dict[str, list[Cell]] = {}
    for planned_cell in planned:
        if planned_cell.skip is None:
            cells_by_case.setdefault(planned_cell.cell.case_id, []).append(planned_cell.cell)
    return tuple(
        Block(
            case_id=case_id,
            spec=with_corpus(cases[case_id], request.corpus),
            device=request.device,
            cells=tuple(cells),
            memory_bytes=estimate.process_bytes(case_id),
        )
        for case_id, cells in cells_by_case.items()
    )


@dataclass(frozen=True, slots=True)
class _Decision:
    """What the verdict of each cell is based on.

    Attributes:
        matrix: the checked matrix.
        request: what was asked for.
        measurement: how the run measures.
        start: the same with no second of measuring.
        unavailable: environment -> why it cannot be built.
        judgements: environment -> what it does on the GPU; empty on a CPU.
        gpu: stands for all GPUs of the run; None on a CPU.
        rates: how fast the device computes.
        locked: environment -> the packages of its lock.
    """

    matrix: Matrix
    request: Request
    measurement: Measurement
    start: Measurement
    unavailable: Mapping[str, Skip]
    judgements: Mapping[str, Judgement]
    gpu: Gpu | None
    rates: Rates
    locked: Mapping[str, frozenset[str]]

    def planned_cell(self, cell: Cell) -> PlannedCell:
        """Return a cell with its verdict and its estimated cost."""
        environment = self.matrix.environments[cell.environment]
        implementation = class_of_cell(self.matrix, cell)
        release = version_numbers(environment.release)
        kind, uses_cudnn = implementation.kind_in(release), implementation.uses_cudnn_in(release)
        program = Program(
            framework=environment.framework,
            kind=kind,
            compiling=implementation.compile_seconds,
            preparation=self.preparation(cell.environment),
        )
        cost = estimate.cell_cost(cell, program, self.measurement, self.rates)
        min_seconds = self._min_seconds(cell, program, cost.first)
        skip = self._skip(cell, implementation, min_seconds)
        judgement, rounds = self.judgements.get(cell.environment), self.measurement.rounds
        return PlannedCell(
            cell=cell,
            device=self.request.device,
            kind=kind,
            skip=skip,
            seconds=min(cost.of(rounds), rounds * max(self.measurement.timeout, min_seconds)),
            control_seconds=0.0 if skip else self._control_seconds(cell, program),
            jit=judgement.jit(uses_cudnn=uses_cudnn) if judgement and skip is None else "",
            deferred=limits.deferral(cost.first, self.measurement) if skip is None else "",
        )

    def preparation(self, environment: str) -> Preparation:
        """Return what a process of an environment takes before it computes."""
        source = self.matrix.environments[environment]
        return preparation(source.framework, version_numbers(source.release))

    def _control_seconds(self, cell: Cell, program: Program) -> float:
        """Return the estimated seconds of a cell's plain-process control; 0 where it gets none."""
        if self.measurement.process == "plain" or not is_called(cell.phase):
            return 0.0
        control = plain(cell)
        rounds = self.measurement.planned_rounds(control)
        return estimate.cell_cost(control, program, self.measurement, self.rates).of(rounds)

    def _min_seconds(self, cell: Cell, program: Program, estimated: float) -> float:
        """Return the seconds that one round of a cell takes at least; 0 where nothing is known of GPU or network."""
        if is_network_of_user(cell.case_id):
            return 0.0
        if self.request.device == "cpu":
            return estimated  # at the rate of real runs
        fastest = fastest_rates(self.gpu.name) if self.gpu else None
        if fastest is None:
            return 0.0
        program = Program(framework=program.framework, kind=program.kind, compiling=(0.0, 0.0))
        return estimate.cell_cost(cell, program, self.start, fastest).first

    def _skip(self, cell: Cell, implementation: type[Implementation], min_seconds: float) -> Skip | None:
        """Return why a cell does not run, None if it does; of several reasons the first that the user can change.

        The order: a rule of the matrix, what the implementation lacks, the precision on the GPU, the build on the GPU,
        whether it can be made, the cost.
        """
        names = [cell.id]
        if is_variant(cell.environment):
            names.append(replace(cell, environment=without_variant(cell.environment)).id)
        for rule in self.matrix.exclude:
            if any(fnmatchcase(name, rule.select) for name in names):
                return Skip("excluded", rule.reason)
        environment = self.matrix.environments[cell.environment]
        protocol, device = cell.protocol, (self.request.device, cell.precision)
        if cell.case_id in CASES:
            work = cell.case_id, protocol
            lacks = _lacks(environment.framework, environment.release, cell.implementation, work, device)
        else:
            spec = dict(self.matrix.cases[cell.case_id], protocol=protocol, variant=cell.implementation)
            lacks = _as_skip(implementation.lacks(spec, version_numbers(environment.release), *device))
        judgement = self.judgements.get(cell.environment)
        uses_cudnn = implementation.uses_cudnn_in(version_numbers(environment.release))
        on_gpu = judgement.skip(uses_cudnn=uses_cudnn, allow_jit=self.request.allow_jit) if judgement else None
        gpus = self.request.devices if self.request.device == "cuda" else 0
        return (
            lacks
            or self._missing_package(cell, implementation)
            or self._precision_refusal(cell, implementation)
            or on_gpu
            or self.unavailable.get(cell.environment)
            or limits.resource_skip(cell, min_seconds, self.measurement, self.request.memory, gpus)
        )

    def _missing_package(self, cell: Cell, implementation: type[Implementation]) -> Skip | None:
        """Return why an implementation lacks a package beside the framework; None where the packages are not known."""
        if cell.environment in self.locked:
            needed = frozenset[str](implementation.packages)
            for name in sorted(needed - self.locked[cell.environment]):
                reason = f"{cell.implementation} needs {name}, which the lock of {cell.environment} has not"
                return Skip("framework-lacks", f"{reason}: add {name} to its requirements")
        return None

    def _precision_refusal(self, cell: Cell, implementation: type[Implementation]) -> Skip | None:
        """Return why the GPU, or the library on this GPU, does not compute in the precision of a cell."""
        if self.gpu is None:
            return None
        refusal = compatibility.precision_refusal(cell.precision, self.gpu)
        oldest = implementation.oldest_gpu.get(cell.precision, (0, 0))
        if refusal is not None or self.gpu.capability >= oldest:
            return refusal
        capabilities = [format_capability(capability) for capability in (self.gpu.capability, oldest)]
        where = "{} (compute capability {}), only from {} on".format(self.gpu.name, *capabilities)
        return Skip("precision-lacks", f"{cell.implementation} does not compute {cell.precision} on {where}")


@cache
def _lacks(
    framework: str, release: str, slug: str, case_and_protocol: tuple[str, str], device_and_precision: tuple[str, str]
) -> Skip | None:
    """Return why an implementation of a release cannot compute a case, None if it can; asked once for all phases."""
    case_id, protocol = case_and_protocol
    lacks = implementation_class(framework, slug).lacks(
        dict(CASES[case_id], protocol=protocol), version_numbers(release), *device_and_precision
    )
    return _as_skip(lacks)


def _as_skip(code_and_reason: tuple[str, str] | None) -> Skip | None:
    return Skip(*code_and_reason) if code_and_reason else None


def _phase_hint(matrix: Matrix, request: Request) -> str:
    """Return what to write where cells of a network are selected in a phase that its workload does not list."""
    for words in (selector.split("/") for selector in request.cell_selectors):
        for workload in matrix.networks.keys() & set(words):
            listed = matrix.phases_of(workload)
            phases = [word for word in words if word in matrix.networks[workload].phases and word not in listed]
            if phases:
                all_of = ", ".join(dict.fromkeys((*listed, *phases)))
                return (
                    f"{workload} is measured in {', '.join(listed)}: write phases: [{all_of}] for it below workloads:"
                )
    return ""


def nothing_selected(matrix: Matrix, request: Request) -> Problem:
    """Return the problem of a selection without cells; it names everything that was selected."""
    environments = request.environments if len(request.environments) < 4 else ()
    hint = "`runner list tests` lists every test"
    if request.cell_selectors:
        names = " ".join(environments)
        hint = (
            "a test is environment/implementation/workload/case/phase/precision: "
            f"`runner list tests{f' {names}' if names else ''}` lists them"
        )
    hint = _phase_hint(matrix, request) or hint
    parts = {
        "selector": request.cell_selectors,
        "preset": (request.preset,) if request.preset else (),
        "workload": request.workloads,
        "phase": request.phases,
        "precision": request.precisions,
        "environment": () if request.cell_selectors else environments,
    }
    selected = "; ".join(f"{name} {', '.join(values)}" for name, values in parts.items() if values)
    message = f"no test matches the selection ({selected})" if selected else "no test matches the selection"
    return Problem(message, hint=hint)
