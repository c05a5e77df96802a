"""Select the cells of a plan from the matrix and the request."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from runner.catalog.cases import CASES, ORIGINAL_PHASES, PHASES, PUBLISHED, WORKLOADS
from runner.core.errors import Problem, UsageError
from runner.core.model import Cell, Protocol, Request
from runner.core.model.variant_ids import without_variant
from runner.harness.adapters import implementation, implementations, of_case
from runner.harness.adapters.base import Implementation
from runner.matrix import Matrix, Selector, WorkloadChoice
from runner.matrix.select import fits, fits_phase, fits_some_phase


def selected_cells(matrix: Matrix, request: Request) -> Iterator[Cell]:
    """Yield the cells that a request selects, whether they can run or not.

    The cases are in the order of the matrix and the catalog; each has its environments in the request's order, their
    implementations in the adapter's order, then phases, then precisions.

    Raises:
        UsageError: no case of a workload has a phase that the matrix lists for it.
    """
    cells = (cell for cell in _all_cells(matrix, request) if request.chosen is None or request.chosen(cell.id))
    return with_bases(matrix, request.bases, cells) if request.bases else cells


def with_bases(matrix: Matrix, bases: Sequence[str], cells: Iterable[Cell]) -> Iterator[Cell]:
    """Yield cells by case, each case with the cells of the bases first that another environment has in it.

    Args:
        matrix: the checked matrix.
        bases: environments, one for each framework. They get each cell of another environment of their framework, and
            keep those that are selected for themselves.
        cells: ordered by case.
    """
    base_of = {matrix.environments[name].framework: name for name in bases}
    for _, group in itertools.groupby(cells, key=lambda cell: cell.case_id):
        selected = list(group)
        frameworks = [matrix.environments[cell.environment].framework for cell in selected]
        mirrored = [
            replace(cell, environment=base_of[framework])
            for cell, framework in zip(selected, frameworks, strict=True)
            if framework in base_of
        ]
        by_base = sorted(dict.fromkeys(mirrored), key=lambda cell: bases.index(cell.environment))
        yield from dict.fromkeys([*by_base, *selected])


def class_of_cell(matrix: Matrix, cell: Cell) -> type[Implementation]:
    """Return the class that computes a cell; of a user's network, all variants have one class.

    Raises:
        KeyError: the framework's adapter has none.
    """
    framework = matrix.environments[cell.environment].framework
    if cell.case_id in CASES:
        return implementation_class(framework, cell.implementation)
    return of_case(framework, cell.implementation, dict(matrix.cases[cell.case_id]))


@cache
def implementation_class(framework: str, slug: str) -> type[Implementation]:
    """Return the class of an implementation.

    Raises:
        KeyError: the framework's adapter has none of this slug.
    """
    return implementation(framework, slug)


def _all_cells(matrix: Matrix, request: Request) -> Iterator[Cell]:
    protocol = _protocol(matrix, request)
    for choice in _choices(matrix, request):
        workload, _, case = choice.case_id.partition("/")
        spec = matrix.cases[choice.case_id]
        phases = _protocol_phases(choice.case_id, spec, choice.phases, protocol)
        for name in request.environments:
            framework = matrix.environments[name].framework
            phases_here = _phases_of_framework(spec, framework, phases)
            for slug in _slugs(framework, choice.case_id, spec, protocol):
                for phase, precision in itertools.product(phases_here, choice.precisions):
                    if choice.includes(name, slug, phase.partition("+")[0], precision):
                        yield Cell(
                            environment=name,
                            implementation=slug,
                            workload=workload,
                            case=case,
                            phase=phase,
                            precision=precision,
                        )


def _protocol(matrix: Matrix, request: Request) -> Protocol:
    preset = matrix.presets[request.preset] if request.preset else None
    return request.protocol or (preset.protocol if preset else "aligned")


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is selected of one case.

    Attributes:
        case_id: ``workload/case``.
        phases: the selected phases; the case need not have all of them.
        precisions: the selected precisions, those of the selectors among them.
        selectors: the selectors of the preset that fit the case; None without a preset.
        preset_precisions: those of ``precisions`` that selectors without precisions select.
    """

    case_id: str
    phases: tuple[str, ...]
    precisions: tuple[str, ...]
    selectors: tuple[Selector, ...] | None
    preset_precisions: tuple[str, ...] = ()

    def includes(self, environment: str, implementation: str, phase: str, precision: str) -> bool:
        """Return True if a selector of the preset fits a cell, or there is no preset."""
        return self.selectors is None or any(
            fits_phase(selector.cases, self.case_id, phase)
            and (selector.phases is None or phase in selector.phases)
            and precision in (self.preset_precisions if selector.precisions is None else selector.precisions)
            and fits(selector.environments, without_variant(environment))
            and fits(selector.implementations, implementation)
            for selector in self.selectors
        )


def _choices(matrix: Matrix, request: Request) -> Iterator[_Choice]:
    """Yield what is selected of each case, in the order of the matrix."""
    preset = matrix.presets[request.preset] if request.preset else None
    for workload, choice in matrix.workloads.items():
        if request.workloads and workload not in request.workloads:
            continue
        _check_phases(matrix, workload, choice)
        for case_id, spec in matrix.cases.items():
            if spec["workload"] != workload:
                continue
            if preset is None:
                if fits(choice.cases, spec["name"]):
                    precisions = request.precisions or _once(choice.precisions)
                    yield _Choice(case_id, request.phases or matrix.phases_of(workload), precisions, None)
                continue
            selectors = tuple(
                selector
                for selector in preset.select
                if request.device in selector.devices
                and fits_some_phase(selector.cases, case_id, spec.get("phases", PHASES))
            )
            if selectors:
                extra = (phase for selector in selectors for phase in selector.phases or ())
                listed = preset.phases or matrix.phases_of(workload)
                phases = request.phases or tuple(dict.fromkeys((*listed, *extra)))
                common = request.precisions or _precisions(choice.precisions, preset.precisions)
                added = (precision for selector in selectors for precision in selector.precisions or ())
                precisions = request.precisions or _precisions(choice.precisions, (*common, *added))
                yield _Choice(case_id, phases, precisions, selectors, common)


def _precisions(listed: tuple[str, ...], requested: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the precisions that a workload lists, each once; only the requested ones if there are some."""
    return _once(listed if requested is None else tuple(precision for precision in listed if precision in requested))


def _once(precisions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(precisions))


def _check_phases(matrix: Matrix, workload: str, choice: WorkloadChoice) -> None:
    """Raise UsageError if no case of a workload has one of the phases that were chosen for it.

    A user's network need not have all of the default phases.
    """
    if workload not in WORKLOADS and "phases" not in choice.model_fields_set:
        return
    phases_by_case = (spec.get("phases", PHASES) for spec in matrix.cases.values() if spec["workload"] == workload)
    known = dict.fromkeys(phase for phases_of_case in phases_by_case for phase in phases_of_case)
    for phase in choice.phases:
        if phase not in known:
            hint = f"its phases are {', '.join(known)}: change them under workloads in the matrix file"
            raise UsageError(Problem(f"{workload} has no phase {phase!r}", hint=hint))


def _protocol_phases(
    case_id: str, spec: Mapping[str, Any], phases: tuple[str, ...], protocol: Protocol
) -> tuple[str, ...]:
    """Return those of the phases that a case has in a protocol, each once, as cells name them.

    In the published protocol a case has the phases that its original program timed, with ``+published`` at the end;
    a case that was never published has none. Compile phases are the same in both protocols.
    """
    of_case = spec.get("phases", PHASES)
    if protocol == "aligned":
        return tuple(dict.fromkeys(phase for phase in phases if phase in of_case))
    if case_id not in PUBLISHED:
        return ()
    timed = [phase for phase in ORIGINAL_PHASES[spec["workload"]] if phase in of_case]
    names = (phase if phase.startswith("compile") else f"{phase}+published" for phase in phases if phase in timed)
    return tuple(dict.fromkeys(names))


def _phases_of_framework(spec: Mapping[str, Any], framework: str, phases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the phases that the class of a framework has in the model file; of any other case all of them."""
    if "methods" not in spec:
        return phases
    methods = spec["methods"].get(framework, ())
    compiles = "forward" in methods or "train" in methods
    return tuple(phase for phase in phases if phase in methods or (compiles and phase.startswith("compile")))


def _slugs(framework: str, case_id: str, spec: Mapping[str, Any], protocol: Protocol) -> tuple[str, ...]:
    """Return the implementations of a framework that concern a case, in the published protocol those published."""
    concerned = _concerned(framework, case_id) if case_id in CASES else concerned_slugs(framework, spec)
    return tuple(slug for slug in concerned if protocol == "aligned" or slug in PUBLISHED.get(case_id, ()))


@cache
def _concerned(framework: str, case_id: str) -> tuple[str, ...]:
    return concerned_slugs(framework, CASES[case_id])


def concerned_slugs(framework: str, spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the implementations of a framework that concern a case."""
    slugs = dict.fromkeys(implementation.slug for implementation in implementations(framework))
    classes = (implementation_class(framework, slug) for slug in slugs)
    return tuple(slug for each in classes if each.concerns(dict(spec)) for slug in each.slugs(dict(spec)))
