"""What to write where a file has no class of a framework: how to wrap the network or the script that it has instead."""

import ast
from collections.abc import Iterator

from runner.core.errors import Problem
from runner.matrix.model_file.classes import CLASS_NAMES, Definitions, member_names
from runner.matrix.model_file.source import PythonSource

BASES = frozenset({"Module", "Model", "Layer", "LightningModule", "Sequential"})
"""Names of the classes of frameworks that networks are derived from."""
PACKAGES = {
    "torch": "torch",
    "pytorch_lightning": "torch",
    "lightning": "torch",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "flax": "jax",
    "jax": "jax",
    "theano": "theano",
    "lasagne": "theano",
    "numpy": "numpy",
}
"""Package -> the framework that a file measures if it imports it; the first one that is imported counts."""
NAMED = frozenset({"torch", "tensorflow", "keras"})
"""Frameworks whose networks need no class of their own, see ``runner.matrix.wrapper``."""
METHODS = (
    "`def forward(self)`, which returns the outputs, or `def train(self)`, which makes a step and returns the loss"
)


def no_class(source: PythonSource, definitions: Definitions) -> Problem:
    """Return the problem of a file without a class of a framework; its hint names the class to write."""
    message = f"{source.name} has no class of a framework"
    framework = imported_framework(source.tree)
    candidate = _own_class(definitions)
    if framework is None:
        names = ", ".join(CLASS_NAMES.values())
        hint = (
            f"define one of {names}"
            if candidate is None
            else f"rename {candidate.name} to the one of its framework: {names}"
        )
        return source.problem(candidate, message, hint)
    wrapper = f"`class {CLASS_NAMES[framework]}:`"
    network = next((node for node in definitions.bound.values() if _is_network(node)), None)
    if isinstance(network, ast.ClassDef):
        build = f"`def __init__(self, random, device)` makes a {network.name} and the data, drawn from `random`"
        hint = f"add {wrapper}, whose {build}; give it {METHODS}"
        if framework in NAMED:
            hint = f"name it and the shape of its input: --model {source.name}:{network.name} --input SHAPE; or {hint}"
        return source.problem(network, message, hint)
    if candidate is not None:
        hint = f"rename {candidate.name} to {CLASS_NAMES[framework]}, the name by which {framework} is measured, "
        hint += f"and give it `def __init__(self, random, device)` and {METHODS}"
        return source.problem(candidate, message, hint)
    hint = (
        f"put the program into {wrapper}: what runs once into `def __init__(self, random, device)`, and into {METHODS}"
    )
    return source.problem(None, message, f"{hint}, what is timed")


def imported_framework(tree: ast.Module) -> str | None:
    """Return the framework that a file imports; None where it imports none."""
    return next((PACKAGES[name] for name in _imported(tree) if name in PACKAGES), None)


def _own_class(definitions: Definitions) -> ast.ClassDef | None:
    """Return the first class with a method that is timed; else the first class; None where the file has none."""
    classes = [node for node in definitions.bound.values() if isinstance(node, ast.ClassDef)]
    classes.sort(key=lambda node: node.lineno)
    return next((each for each in classes if not {*definitions.timed}.isdisjoint(member_names(each))), None) or next(
        iter(classes), None
    )


def _is_network(node: ast.AST) -> bool:
    if not isinstance(node, ast.ClassDef):
        return False
    return any(getattr(base, "attr", getattr(base, "id", "")) in BASES for base in node.bases)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a file imports, those of NumPy last: most files of other frameworks import it, too."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module.partition(".")[0])
    yield from sorted(names, key=lambda name: name == "numpy")
