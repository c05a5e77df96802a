"""The test of a network that a search measures, where the user names the network in place of the test."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from runner.core.errors import Problem, UsageError
from runner.core.machine import capacity
from runner.core.model.cells import without_environment
from runner.matrix import Matrix, load
from runner.matrix.wrapper import parse_model
from runner.matrix.wrapper.named_model import LIBRARIES
from runner.plan.verdicts import selected_cells
from runner.releases.index import versions
from runner.releases.named import parse_named
from runner.releases.named_environments import ReleaseFinder
from runner.session.networks import with_models
from runner.session.options import Options
from runner.session.plan_request import plan_request

PRECISION = "fp32"
"""The precision of a search by the name of a network; another one is part of the name of a test."""
SHOWN = 4
"""The tests that a message lists."""


def with_named_model(options: Options) -> Options:
    """Return options in which a network that is named in place of a test is one of ``--model``.

    >>> with_named_model(Options(selectors=["nets.py:UNet"])).model
    ['nets.py:UNet']
    """
    text = next(iter(options.selectors or ()), "")
    library = text.partition(":")[0]
    if ".py" not in text and library not in LIBRARIES:
        return options
    return replace(options, selectors=None, model=[*(options.model or ()), text])


def cell_of_model(options: Options, ends: Sequence[str], environment: str = "") -> str:
    """Return the only test in fp32 of the network of ``--model``, and of ``--phase``, without an environment.

    Args:
        options: with one ``--model`` and no selector.
        ends: environments, releases or versions; they decide the framework.
        environment: the one next to which a package varies; a release such as ``numpy==2.2.6`` stands for its own.

    Raises:
        MatrixError: the file has mistakes.
        UsageError: there are several networks or tests, or the framework cannot be told or has no class in the file.
    """
    matrix, _ = with_models(load(options.matrix_file), options)
    text = (options.model or [""])[0]
    workload = parse_model(text).workload
    if (named := parse_named(environment)) and environment not in matrix.environments:
        finder = ReleaseFinder(matrix=matrix, folder=options.matrix_file.parent, device="cpu", versions=versions)
        made = next(finder.possible(named)).environment
        matrix = matrix.with_environments({**matrix.environments, named.id: made}, {}, {})
    framework = framework_of(matrix, (*filter(None, [environment]), *ends), workload)
    environments = [name for name, each in matrix.environments.items() if each.framework == framework]
    if framework not in matrix.networks[workload].classes:
        has = " and ".join(matrix.networks[workload].classes)
        raise UsageError(Problem(f"{text} has no class for {framework}", hint=f"name ends of {has}"))
    if not environments:
        raise UsageError(
            without_template(framework, [end if parse_named(end) else f"{framework}=={end}" for end in ends])
        )
    return only_cell(options, matrix, environments)


def only_cell(options: Options, matrix: Matrix, environments: Sequence[str]) -> str:
    """Return the only test in fp32 of the network of ``--model``, and of ``--phase``, without an environment.

    Args:
        options: with one ``--model`` and no selector.
        matrix: has the network.
        environments: those of its framework.

    Raises:
        UsageError: there are several networks or tests, or none of the phase.
    """
    text, *others = options.model or [""]
    if others:
        hint = "name the test, implementation/workload/case/phase/precision, or leave one --model out"
        raise UsageError(Problem("one test is measured, and --model names several networks", hint=hint))
    workload = parse_model(text).workload
    selection = replace(options, selectors=[*environments], workload=[workload])
    request = plan_request(selection, matrix, "venv", ("cpu", ()), capacity())
    in_fp32 = (cell for cell in selected_cells(matrix, request) if cell.precision == PRECISION)
    cells = tuple(dict.fromkeys(without_environment(cell.id) for cell in in_fp32))
    if not cells:
        hint = f"it has the phases {', '.join(matrix.networks[workload].phases)}"
        raise UsageError(Problem(f"{text} has no test of the phase {', '.join(options.phase or ())}", hint=hint))
    if len(cells) > 1:
        raise UsageError(_several(text, cells))
    return cells[0]


def environment_of_model(options: Options, axis: str) -> str:
    """Return the only environment of the matrix for the network of ``--model``, next to which a package varies.

    Raises:
        UsageError: there is none, or there are several.
    """
    workload = parse_model((options.model or [""])[0]).workload
    matrix, _ = with_models(load(options.matrix_file), options)
    classes = matrix.networks[workload].classes
    names = [name for name, each in matrix.environments.items() if each.framework in classes]
    if len(names) == 1:
        return names[0]
    framework = next(iter(classes), "numpy")
    message = f"the matrix has {len(names) or 'no'} environments of {' and '.join(classes)}, and {axis} varies in one"
    hint = f"name it with both ends, such as --good {framework}==VERSION,{axis}==VERSION"
    raise UsageError(Problem(message, hint=hint))


def _several(text: str, cells: Sequence[str]) -> Problem:
    """Return the problem of a network with several tests, and the shortest way to name one."""
    more = f" and {len(cells) - SHOWN} others" if len(cells) > SHOWN else ""
    hint = f"name one as the CELL, and the file by --model: {', '.join(cells[:SHOWN])}{more}"
    phases = [cell.split("/")[-2] for cell in cells]
    if len(set(phases)) == len(cells):
        hint = "choose one: " + " or ".join(f"--phase {phase}" for phase in phases)
    return Problem(f"{text} has {len(cells)} tests, and one is measured", hint=hint)


def without_template(framework: str, ends: Sequence[str]) -> Problem:
    """Return the problem of releases, such as ``jax==0.8.1``, of a framework that the matrix lacks."""
    message = f"the matrix has no environment of {framework}, and those between the ends are made like one"
    command = shlex.join(["runner", "init", *ends])
    hint = f"`{command} --model FILE`, in another folder, writes a matrix file of both: search with it"
    return Problem(message, hint=hint)


def framework_of(matrix: Matrix, ends: Sequence[str], workload: str) -> str:
    """Return the framework of the first end that tells it, else the only one that the network has.

    Args:
        matrix: the checked matrix, with its networks.
        ends: environments, releases such as ``torch==2.9.1``, or versions, which tell nothing.
        workload: of the test.

    Raises:
        UsageError: neither tells it.
    """
    for name in ends:
        if name in matrix.environments:
            return matrix.environments[name].framework
        if (named := parse_named(name)) is not None:
            return named.framework
    network = matrix.networks.get(workload)
    if network is not None and len(network.classes) == 1:
        return next(iter(network.classes))
    hint = "name an environment of the matrix for at least one end, or a test with its environment"
    raise UsageError(Problem(f"neither {ends[0]!r} nor {ends[1]!r} is in the matrix", hint=hint))
