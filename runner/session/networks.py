"""The networks that ``--model`` names: they join the workloads of the matrix."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import get_args

from runner.catalog.cases import WORKLOADS
from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model import Plan, Precision, Request
from runner.matrix import FRAMEWORKS, Matrix
from runner.matrix.model_file import CLASS_NAMES, Network, model_path, network_name, read_network
from runner.matrix.model_file.classes import METHODS
from runner.matrix.models import Preset, Selector, WorkloadChoice
from runner.session.options import Options

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def with_models(matrix: Matrix, options: Options, cells: Sequence[str] = ()) -> tuple[Matrix, list[str] | None]:
    """Return the matrix with the networks of ``--model``, and the names of the selected workloads.

    They alone are selected; with ``--workload`` or ``--preset`` they are selected besides. Their phases are those of
    their methods, and those that selectors of cells, or ``cells``, name, such as ``compile``.

    Raises:
        MatrixError: a model file has mistakes.
        UsageError: a model file cannot name a workload, or another workload has its name.
    """
    if not options.model:
        return matrix, options.workload
    networks: dict[str, Network] = {}
    choices = dict(matrix.workloads)
    for path in options.model:
        name, network = network_name(path), read_network(model_path(path))
        known = networks.get(name) or matrix.networks.get(name)
        if name in WORKLOADS or (known is not None and known.path.resolve() != network.path.resolve()):
            where = f"the file {known.path}" if known else "a workload of the program"
            hint = f"give it another name: --model {name}-2={model_path(path)}"
            raise UsageError(Problem(f"{path}: the name {name!r} is taken by {where}", hint=hint))
        networks[name] = network
        if name not in choices:
            choices[name] = _choice(network, (*(options.selectors or ()), *cells))
    presets = dict(matrix.presets)
    if options.preset in presets:
        presets[options.preset] = _with_cases(presets[options.preset], networks)
    selected = None if options.preset and not options.workload else [*(options.workload or ()), *networks]
    return matrix.with_networks(networks, workloads=choices, presets=presets), selected


def _choice(network: Network, selectors: Sequence[str]) -> WorkloadChoice:
    """Return what is measured of a network that no matrix lists."""
    words = {word for selector in selectors if "/" in selector for word in selector.split("/")}
    named = [phase for phase in network.phases if phase in words and phase not in METHODS]
    if not named:
        return WorkloadChoice()
    return WorkloadChoice.model_validate({"phases": [phase for phase in network.phases if phase in (*METHODS, *named)]})


def with_stored_networks(matrix: Matrix, plan: Plan) -> Matrix:
    """Return the matrix with the networks that a stored plan measures, from the files that its run keeps."""
    networks: dict[str, Network] = {}
    choices = dict(matrix.workloads)
    for block in plan.blocks:
        if "files" not in block.spec:
            continue
        name, spec = block.spec["workload"], block.spec
        known = networks.get(name)
        networks[name] = Network(
            path=Path(spec["entry"]),
            files=plan.models[spec["files"]],
            cases={**(known.cases if known else {}), spec["name"]: spec["sizes"]},
            classes=spec["classes"],
            methods={framework: tuple(methods) for framework, methods in spec["methods"].items()},
            takes_weights=tuple(spec["takes_weights"]),
            takes_precision=tuple(spec["takes_precision"]),
            tolerance=spec["tolerance"],
        )
        choices[name] = WorkloadChoice(phases=("compile", "compile-warm", "forward", "train"), precisions=PRECISIONS)
    return matrix.with_networks(networks, workloads=choices)


def _with_cases(preset: Preset, networks: dict[str, Network]) -> Preset:
    """Return a preset that selects the cases of networks, too."""
    selector = Selector(cases=tuple(f"{name}/*" for name in networks))
    return preset.model_copy(update={"select": (*preset.select, selector)})


def network_notes(matrix: Matrix, request: Request) -> list[str]:
    """Return a sentence for each class of a requested network whose framework no selected environment has.

    Raises:
        NothingSelectedError: no selected environment has a framework of any selected network, and nothing else is
            selected.
    """
    networks = {
        name: network for name, network in matrix.networks.items() if not request.workloads or name in request.workloads
    }
    frameworks = {matrix.environments[name].framework for name in request.environments}
    if request.workloads and set(request.workloads) <= set(networks):
        unusable = [network for network in networks.values() if not frameworks & set(network.classes)]
        if len(unusable) == len(networks):
            raise NothingSelectedError(*(_without_environment(network, frameworks) for network in unusable))
    requested = [network for name, network in networks.items() if name in request.workloads]
    return [note for network in requested for note in _notes(network, frameworks)]


def _without_environment(network: Network, frameworks: Collection[str]) -> Problem:
    classes = ", ".join(network.classes.values())
    message = f"{network.path} defines {classes}, and no selected environment has that framework"
    usable = ", ".join(CLASS_NAMES[each] for each in FRAMEWORKS if each in frameworks and each in CLASS_NAMES)
    return Problem(message, hint=f"select an environment with {' or '.join(network.classes)}, or define {usable}")


def _notes(network: Network, frameworks: Collection[str]) -> Iterator[str]:
    for framework, name in network.classes.items():
        if framework not in frameworks:
            yield f"{network.path.name}: {name} is not measured: no selected environment has {framework}"
