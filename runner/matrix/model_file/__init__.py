"""Read a model file, a user's network, without running it: its classes, its cases, and the files that it needs.

``source`` parses Python files, ``files`` collects what travels, ``classes`` finds parameters and methods, ``literals``
reads the plain values, ``variants`` those of ``VARIANTS`` and ``phases`` those of ``PHASES``; ``methods`` says which
methods cannot be called, ``imports`` what the environment has to have, and ``wrapping`` how to wrap another class. The
page ``docs/how-to/measure-your-network.md`` says what a model file is.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.core.errors import MatrixError, Problem, UsageError
from runner.core.model import ModelFiles
from runner.matrix.model_file.classes import CLASS_NAMES, METHODS, Definitions, ModelClass, model_problems
from runner.matrix.model_file.files import FileMistakeError, Folder
from runner.matrix.model_file.imports import Imports, imports
from runner.matrix.model_file.literals import GIVEN, VARIANT, Literals
from runner.matrix.model_file.methods import method_problems
from runner.matrix.model_file.phases import phase_problems, read_phases
from runner.matrix.model_file.variants import NetworkVariant, read_variants, variant_problems
from runner.matrix.model_file.wrapping import no_class

__all__ = ["CLASS_NAMES", "LONGEST_NAME", "NETWORK_NAME", "Network", "network_name", "read_network", "read_wrapper"]

FAMILY = "model"
ENTRY_OF_FOLDER = "model.py"
NETWORK_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9.]+)*")
LONGEST_NAME = 40  # characters; it is a part of the names of files


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A user's network, as its model file describes it.

    Attributes:
        path: the model file, or what ``--model`` named in place of one.
        files: the files that travel to the environments.
        cases: name -> sizes.
        classes: framework -> the name of its class.
        methods: framework -> those of ``forward``, ``train`` and the phases of ``PHASES`` that its class has.
        takes_weights: the frameworks whose class takes ``weights``; none where the file has no such function.
        takes_precision: the frameworks whose class takes ``precision``.
        own_phases: what ``PHASES`` names: methods that are timed beside ``forward`` and ``train``.
        variants: framework -> the ways to run its class; none for a framework whose class has one way.
        tolerance: precision -> the largest relative error, ``*`` for every precision; None takes the defaults.
        imports: what it needs of an environment; nothing where that is not known.
        is_wrapped: the model file is a wrapper that was written for what ``--model`` named.
    """

    path: Path
    files: ModelFiles
    cases: Mapping[str, Mapping[str, Any]]
    classes: Mapping[str, str]
    methods: Mapping[str, tuple[str, ...]]
    takes_weights: tuple[str, ...]
    takes_precision: tuple[str, ...]
    tolerance: Mapping[str, float] | None
    imports: Imports = field(default_factory=Imports)
    is_wrapped: bool = False
    variants: Mapping[str, tuple[NetworkVariant, ...]] = field(default_factory=dict)
    own_phases: tuple[str, ...] = ()

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that its cases can have, in the order of reports."""
        return (
            "compile",
            "compile-warm",
            *(name for name in (*METHODS, *self.own_phases) if any(name in of for of in self.methods.values())),
        )

    @property
    def timed(self) -> tuple[str, ...]:
        """The phases that are measured unless others are chosen."""
        return tuple(phase for phase in self.phases if not phase.startswith("compile"))

    def specs(self, workload: str) -> dict[str, dict[str, Any]]:
        """Return ``workload/case`` -> the case as it is sent to the harness, under the name of a workload."""
        common = {
            "family": FAMILY,
            "seed": 0,
            "phases": list(self.phases),
            "entry": self.files.entry,
            "files": self.files.digest,
            "classes": dict(self.classes),
            "methods": {framework: list(methods) for framework, methods in self.methods.items()},
            "takes_weights": list(self.takes_weights),
            "takes_precision": list(self.takes_precision),
            "tolerance": None if self.tolerance is None else dict(self.tolerance),
            "variants": {framework: [each.as_stored() for each in of] for framework, of in self.variants.items()},
        }
        return {
            f"{workload}/{name}": {"workload": workload, "name": name, "sizes": dict(sizes), **common}
            for name, sizes in self.cases.items()
        }


def read_network(path: Path) -> Network:
    """Return the network in a model file; nothing of the file is run.

    Args:
        path: the file, or a folder with a ``model.py``.

    Raises:
        MatrixError: the file, or a file that it needs, cannot be read or has mistakes; the error has all of them.
    """
    is_folder = os.path.isdir(path)  # noqa: PTH112  Path.is_dir raises for a name that is too long
    entry = path / ENTRY_OF_FOLDER if is_folder else path
    with _readable(entry):
        return _network(Folder(entry), entry)


def read_wrapper(entry: Path, text: str, named: str) -> Network:
    """Return the network of a model file that was written for what ``--model`` named, and is stored nowhere.

    Args:
        entry: where it would be stored; the modules that it imports are looked for beside it.
        text: its content.
        named: the value of ``--model``.

    Raises:
        MatrixError: a file that it needs cannot be read, or has mistakes.
    """
    with _readable(Path(named)):
        return replace(_network(Folder(entry, text.encode()), Path(named)), is_wrapped=True)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise MatrixError where a syntax tree within is nested too deep."""
    try:
        yield
    except RecursionError:
        raise MatrixError(Problem(f"{path} cannot be read: it is nested too deep")) from None


def network_name(path: Path) -> str:
    """Return the name of the workload of a model file: its stem, or that of its folder.

    Args:
        path: a file, or a folder.

    Raises:
        UsageError: no workload can have the name.
    """
    stem = path.resolve().name if os.path.isdir(path) else path.stem  # noqa: PTH112  as in read_network
    name = stem.lower().replace("_", "-").replace(" ", "-")
    if len(name) > LONGEST_NAME or not NETWORK_NAME.fullmatch(name):
        hint = f"rename it: small letters, then digits and dashes, at most {LONGEST_NAME}, such as my_network.py"
        raise UsageError(Problem(f"{stem!r} cannot name a workload", hint=hint))
    return name


def _network(folder: Folder, path: Path) -> Network:
    source, literals = folder.entry, Literals(folder.entry)
    cases, tolerance = literals.cases(), literals.tolerance()
    known = len(literals.problems)
    variants = read_variants(literals)
    are_read = len(literals.problems) == known  # else a class that takes variants is no mistake
    phases = read_phases(literals)
    definitions = Definitions(folder, tuple(phases))
    folder.add_data(literals.patterns())
    problems = [*folder.problems, *literals.problems]
    if not folder.problems:
        try:
            folder.check_size()
        except FileMistakeError as mistake:
            problems.append(source.problem(None, *mistake.args))
    models = [model for framework, name in CLASS_NAMES.items() if (model := definitions.model_class(framework, name))]
    if not models:
        problems.append(no_class(source, definitions))
    has_weights = definitions.find("weights") is not None
    given = tuple(name for name in GIVEN if name != "weights" or has_weights)
    problems += [*variant_problems(variants, models, literals, source), *phase_problems(phases, models, source)]
    for model in models:
        of_variant = (VARIANT,) if model.framework in variants or not are_read else ()
        problems += model_problems(model, source, cases, (*given, *of_variant))
        problems += _size_problems(model, literals, cases)
        problems += method_problems(model, definitions, source)
    if problems:
        raise MatrixError(*_ordered(problems))
    return Network(
        path=path,
        files=ModelFiles.of(source.name, folder.files),
        cases=cases,
        classes={model.framework: model.name for model in models},
        methods={model.framework: model.methods for model in models},
        takes_weights=_takers(models, "weights") if has_weights else (),
        takes_precision=_takers(models, "precision"),
        tolerance=tolerance,
        imports=imports(folder, models),
        variants=variants,
        own_phases=tuple(phases),
    )


def _takers(models: Sequence[ModelClass], name: str) -> tuple[str, ...]:
    return tuple(model.framework for model in models if model.signature.takes(name))


def _size_problems(model: ModelClass, literals: Literals, cases: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield a problem for each size of a case that a class does not take."""
    for case, sizes in cases.items():
        for size in (name for name in sizes if not model.signature.takes(name)):
            hint = f"add the parameter {size!r} to {model.name}, or **sizes"
            message = f"{model.name} has no parameter {size!r}, which the case {case!r} gives"
            yield literals.source.problem(literals.size_node(case, size), message, hint)


def _ordered(problems: list[Problem]) -> list[Problem]:
    """Return the problems by file and position, each once; those without a place first."""

    def position(problem: Problem) -> tuple[str, int, int]:
        at = problem.where
        return ("", 0, 0) if at is None else (at.file, at.line, at.column)

    return sorted(dict.fromkeys(problems), key=position)
