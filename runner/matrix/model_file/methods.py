"""Whether the methods of a class can be called as the program calls them, read without running the file."""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from runner.core.errors import Problem
from runner.core.model.cells import is_own_phase
from runner.matrix.model_file.classes import Definitions, Function, ModelClass
from runner.matrix.model_file.source import PythonSource, statements

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "forward": (),
    "train": (),
    "outputs": (),
    "loss": (),
    "state": (),
    "load_state": ("arrays",),
}
"""Method -> what the program gives it, by position; see ``harness.adapters.user_model``."""
OUTPUTS = "_outputs"
"""Ends the name of a method that gives what is compared of a phase of the file, as ``outputs`` does of ``forward``."""
HARMLESS = frozenset(
    {"no_grad", "inference_mode", "enable_grad", "function", "jit", "compile", "override", "typechecked"}
)
"""Decorators that take what the method takes; others may give it arguments."""


def method_problems(model: ModelClass, definitions: Definitions, source: PythonSource) -> Iterator[Problem]:
    """Yield a problem for each method that does not take what the program gives it.

    Args:
        model: the class of a framework.
        definitions: those of its file.
        source: the file.
    """
    if not isinstance(model.node, ast.ClassDef):
        return
    named = [phase for phase in definitions.timed if is_own_phase(phase)]
    without_arguments = dict.fromkeys((*definitions.timed, *(phase + OUTPUTS for phase in named)), ())
    for name, given in {**without_arguments, **ARGUMENTS}.items():
        method = method_of(definitions, model.node, name)
        if method is None or (name == "loss" and "train" not in model.methods):
            continue
        needed, called = needed_parameters(method), f"def {name}({', '.join(('self', *given))})"
        if len(needed) > len(given):
            message = f"{model.name}.{name}() needs the parameter {needed[len(given)]!r}, and is called without it"
            hint = f"write `{called}`, and keep the data on the object: self.x = ..."
            if name not in definitions.timed:
                hint = f"rename it: a method of this name is called as `{called}`"
            yield source.problem(method, message, hint)
        elif len(given) > largest_count(method):
            missing = f"{given[0]}, and is called with them" if given else "self, and is called on an object"
            yield source.problem(method, f"{model.name}.{name}() takes no {missing}", f"write `{called}`")


def method_of(definitions: Definitions, node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """Return a method as it is defined in the file; None where another one, or a value, may be called in its place."""
    for member in definitions.family(node, set()):
        if not isinstance(member, ast.ClassDef) or name in _names_set(member):
            return None
        for statement in reversed(list(statements(member.body))):
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                return statement if all(map(_is_harmless, statement.decorator_list)) else None
    return None


@lru_cache(64)
def _names_set(node: ast.ClassDef) -> frozenset[str]:
    """Return the attributes that anything in a class sets, and the names that its body binds to values."""
    attributes = {
        inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
    }
    names = {
        inner.id
        for statement in statements(node.body)
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for inner in ast.walk(statement)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }
    return frozenset(attributes | names)


def _is_harmless(decorator: ast.expr) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(node, "attr", getattr(node, "id", "")) in HARMLESS


def needed_parameters(node: Function, *, bound: bool = True) -> list[str]:
    """Return the parameters without a default, those by name last; of a method, ``bound``, without ``self``."""
    arguments = node.args
    positional = [parameter.arg for parameter in [*arguments.posonlyargs, *arguments.args]]
    required = positional[: len(positional) - len(arguments.defaults)]
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [*required[int(bound) :], *(parameter.arg for parameter, default in by_name if default is None)]


def largest_count(node: Function, *, bound: bool = True) -> float:
    """Return how many arguments are taken by position; of a method, ``bound``, beside ``self``."""
    arguments = node.args
    return float("inf") if arguments.vararg else len([*arguments.posonlyargs, *arguments.args]) - int(bound)
