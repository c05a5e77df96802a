"""``PHASES`` of a model file: methods of its classes that are timed beside ``forward`` and ``train``."""

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence

from runner.core.errors import Problem
from runner.core.model.cells import OWN_PHASE, PHASE_NAMES
from runner.matrix.model_file.classes import ModelClass, member_names
from runner.matrix.model_file.literals import Literals
from runner.matrix.model_file.methods import ARGUMENTS, OUTPUTS
from runner.matrix.model_file.source import PythonSource

PHASES = "PHASES"
EXAMPLE = 'PHASES = ["prefill", "decode"]'


def read_phases(literals: Literals) -> dict[str, ast.expr]:
    """Return the names of the phases, each with where it is written; mistakes go to the problems of the literals."""
    node = literals.values.get(PHASES)
    if node is None:
        return {}
    if not isinstance(node, (ast.List, ast.Tuple)) or not node.elts:
        literals.report(node, "PHASES must be a list of names of methods", EXAMPLE)
        return {}
    phases: dict[str, ast.expr] = {}
    for item in node.elts:
        name = literals.literal(item)
        refusal = _refusal(name, phases) if isinstance(name, str) else None
        if refusal is not None:
            literals.report(item, *refusal)
        elif isinstance(name, str):
            phases[name] = item
        elif name is not None:
            literals.report(item, "a phase must be the name of a method in quotes", EXAMPLE)
    return phases


def _refusal(name: str, phases: Mapping[str, ast.expr]) -> tuple[str, str] | None:
    """Return (message, hint) of a text that names no new phase; None of one that does."""
    if name in phases:
        return f"PHASES has {name!r} twice", "remove one of them"
    if name in ("forward", "train"):
        return f"{name!r} is a phase of every class that has {name}()", f"remove it: {name}() is timed anyway"
    if name.endswith(OUTPUTS):
        return (
            f"{name!r} gives what is compared of the phase {name[: -len(OUTPUTS)]!r}",
            "rename the phase and its method",
        )
    if name in PHASE_NAMES or name in ARGUMENTS:
        return f"{name!r} has another meaning, so no phase can have the name", "rename the phase and its method"
    if not OWN_PHASE.fullmatch(name):
        hint = "use the name of a method: small letters, digits and underscores, at most 40, not beginning with compile"
        return f"{name[:60]!r} cannot name a phase", hint
    return None


def phase_problems(
    phases: Mapping[str, ast.expr], models: Sequence[ModelClass], source: PythonSource
) -> Iterator[Problem]:
    """Yield a problem for each phase that is a method of no class.

    Args:
        phases: name -> where it is written.
        models: the classes of the file.
        source: the file.
    """
    members = {name for model in models if isinstance(model.node, ast.ClassDef) for name in member_names(model.node)}
    for phase, node in phases.items():
        if models and not any(phase in model.methods for model in models):
            close = difflib.get_close_matches(phase, members, 1, 0.75)
            hint = f"add `def {phase}(self)`, which returns the outputs, to {models[0].name}"
            if close:
                hint = f"rename {close[0]}() to {phase}(), or the phase to {close[0]!r}"
            yield source.problem(node, f"no class has {phase}(), which PHASES names", hint)
