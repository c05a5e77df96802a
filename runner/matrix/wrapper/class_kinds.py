"""Which kind of network a class of a user's file is, read from its base classes without running the file."""

import ast
import sys
from collections.abc import Iterator

from runner.matrix.model_file.classes import Definitions, member_names
from runner.matrix.model_file.wrapping import PACKAGES
from runner.matrix.wrapper.subject import Kind

KERAS = frozenset({"keras", "tensorflow", "tf_keras"})
KERAS_MODELS = frozenset({"Model", "Sequential", "Functional"})
LIGHTNING_METHODS = frozenset({"training_step", "configure_optimizers"})
FRAMEWORK_KINDS: dict[str, Kind] = {"torch": "torch_module", "tensorflow": "keras_model", "keras": "keras_model"}
"""Framework -> what a class or a function builds that shows nothing else."""
DEPTH = 10  # of names that stand for each other


def class_kind(definitions: Definitions, node: ast.ClassDef, framework: str | None) -> Kind | None:
    """Return the kind of a class; None where its base classes do not show one.

    A base class of another file, or of a package that is no framework, counts as one of the framework of the file.

    Args:
        definitions: those of the file.
        node: the class.
        framework: what the file imports.
    """
    bases = list(base_names(definitions, node))
    for base in bases:
        package, last = base.partition(".")[0], base.rpartition(".")[2]
        if last == "LightningModule":
            return "lightning_module"
        if base.startswith("torch.nn."):
            return "torch_module"
        if package in KERAS and last in KERAS_MODELS:
            return "keras_model"
    if not any(_is_unknown(base) for base in bases):
        return None
    if framework == "torch" and set(member_names(node)) >= LIGHTNING_METHODS:
        return "lightning_module"
    return FRAMEWORK_KINDS.get(framework or "")


def _is_unknown(base: str) -> bool:
    """Return whether a base class is of another file, or of a package that may derive it from a framework's class."""
    package = base.partition(".")[0]
    return package not in PACKAGES and package not in sys.stdlib_module_names and "." in base


def base_names(definitions: Definitions, node: ast.ClassDef) -> Iterator[str]:
    """Yield the dotted names of the base classes that are not of the file, of its base classes in the file, too."""
    for member in definitions.family(node, set()):
        for base in member.bases if isinstance(member, ast.ClassDef) else ():
            definition = definitions.find(base.id) if isinstance(base, ast.Name) else None
            if not isinstance(definition, ast.ClassDef):
                yield dotted_name(definitions, base)


def dotted_name(definitions: Definitions, node: ast.AST | None, depth: int = DEPTH) -> str:
    """Return what an expression names, by the imports of its file: ``torch.nn.Module`` of ``nn.Module``."""
    if not depth:
        return ""
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(definitions, node.value, depth - 1)}.{node.attr}"
    if not isinstance(node, ast.Name):
        return ""
    bound = definitions.bound.get(node.id)
    if isinstance(bound, (ast.Attribute, ast.Name)):
        return dotted_name(definitions, bound, depth - 1)
    if isinstance(bound, (ast.Import, ast.ImportFrom)):
        imported = next(alias.name for alias in bound.names if (alias.asname or alias.name) == node.id)
        return f"{bound.module or ''}.{imported}" if isinstance(bound, ast.ImportFrom) else imported
    return node.id
