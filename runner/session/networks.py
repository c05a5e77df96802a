"""The networks that ``--model`` names: they join the workloads of the matrix."""

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import get_args

from runner.catalog.cases import WORKLOADS
from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model import Plan, Precision, Request
from runner.core.model.cells import is_own_phase
from runner.matrix import FRAMEWORKS, Matrix
from runner.matrix.cell_globs import PARTS
from runner.matrix.model_file import CLASS_NAMES, Network
from runner.matrix.model_file.variants import NetworkVariant
from runner.matrix.models import Preset, Selector, WorkloadChoice
from runner.matrix.wrapper import NamedModel, parse_model, read_model
from runner.session.options import Options

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def with_models(matrix: Matrix, options: Options, cells: Sequence[str] = ()) -> tuple[Matrix, list[str] | None]:
    """Return the matrix with the networks of ``--model``, and the names of the selected workloads.

    They alone are selected; with ``--workload`` or ``--preset`` they are selected besides. Their phases are those of
    their methods, and those that selectors of cells, or ``cells``, name, such as ``compile``.

    Args:
        matrix: the checked matrix.
        options: what the user typed.
        cells: ids of cells, without their environment.

    Raises:
        MatrixError: a model file, or the file of a class or a function, has mistakes.
        UsageError: nothing is named so, or it cannot name a workload, or another workload has its name; or an input is
            given that no network takes.
    """
    models = [parse_model(text) for text in options.model or ()]
    if options.input and not any(model.is_wrapped for model in models):
        message = "--input gives an example to --model FILE:NAME, and no --model names a class or a function"
        raise UsageError(Problem(message, hint="a model file makes its own inputs: leave --input out"))
    if not models:
        return matrix, options.workload
    networks: dict[str, Network] = {}
    choices = dict(matrix.workloads)
    for model in models:
        name, network = model.workload, read_model(model, options.input or ())
        known = networks.get(name) or matrix.networks.get(name)
        if name in WORKLOADS or (known is not None and known.path.resolve() != network.path.resolve()):
            raise UsageError(_name_taken(model, name, known))
        networks[name] = network
        if name not in choices:
            choices[name] = _choice(network, (*(options.selectors or ()), *(f"*/{cell}" for cell in cells)))
    presets = dict(matrix.presets)
    if options.preset in presets:
        presets[options.preset] = _with_cases(presets[options.preset], networks)
    selected = None if options.preset and not options.workload else [*(options.workload or ()), *networks]
    return matrix.with_networks(networks, workloads=choices, presets=presets), selected


def _choice(network: Network, selectors: Sequence[str]) -> WorkloadChoice:
    """Return what is measured of a network that no matrix lists."""
    variants = {variant.name for of in network.variants.values() for variant in of}
    words = {word for selector in selectors if "/" in selector for word in _phase_words(selector, variants)}
    named = [phase for phase in network.phases if phase in words and phase not in network.timed]
    if not named:
        return WorkloadChoice()
    return WorkloadChoice(phases=tuple(phase for phase in network.phases if phase in (*network.timed, *named)))


def _phase_words(selector: str, variants: Collection[str]) -> Iterator[str]:
    """Yield the parts of a selector of cells that may be a phase; ``variants`` are the implementations of a network."""
    parts = selector.split("/")
    if len(parts) == len(PARTS):  # no * reaches beyond a slash
        yield parts[PARTS.index("phase")]
        return
    for index, word in enumerate(parts):
        if not (PARTS[index : index + 1] == ("implementation",) and word in variants):
            yield word


def _name_taken(model: NamedModel, name: str, known: Network | None) -> Problem:
    """Return the problem of a network whose workload has the name of another one, or of one of the program."""
    where = "a workload of the program" if known is None else f"the file {known.path}"
    if known is not None and known.is_wrapped:
        where = str(known.path)
    hint = f"give it another name: --model {shlex.quote(f'{name}-2={model.text}')}"
    return Problem(f"{model.text}: the name {name!r} is taken by {where}", hint=hint)


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
            own_phases=tuple(filter(is_own_phase, spec["phases"])),
            variants={name: tuple(map(NetworkVariant.of, of)) for name, of in spec.get("variants", {}).items()},
        )
        choices[name] = WorkloadChoice(phases=networks[name].phases, precisions=PRECISIONS)
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
    if network.is_wrapped:
        message = f"{network.path} needs {' or '.join(network.classes)}, and no selected environment has that framework"
        return Problem(message, hint=f"select an environment with {' or '.join(network.classes)}")
    message = f"{network.path} defines {classes}, and no selected environment has that framework"
    usable = ", ".join(CLASS_NAMES[each] for each in FRAMEWORKS if each in frameworks and each in CLASS_NAMES)
    return Problem(message, hint=f"select an environment with {' or '.join(network.classes)}, or define {usable}")


def _notes(network: Network, frameworks: Collection[str]) -> Iterator[str]:
    if network.is_wrapped and any(framework in frameworks for framework in network.classes):
        return  # a wrapper has one class, by two names in TensorFlow and Keras
    for framework, name in network.classes.items():
        if framework not in frameworks:
            yield f"{network.path.name}: {name} is not measured: no selected environment has {framework}"
