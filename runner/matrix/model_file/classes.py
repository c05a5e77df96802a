"""The classes of a model file, as far as they can be read without running it: parameters and methods."""

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.core.errors import Problem
from runner.matrix.model_file.files import Folder
from runner.matrix.model_file.literals import GIVEN
from runner.matrix.model_file.source import PythonSource, statements

CLASS_NAMES: Mapping[str, str] = {
    "torch": "TorchModel",
    "tensorflow": "TensorFlowModel",
    "keras": "KerasModel",
    "jax": "JaxModel",
    "theano": "TheanoModel",
    "numpy": "NumpyModel",
}
"""Framework -> the name of its class in a model file."""
METHODS = ("forward", "train")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a class or function.

    Attributes:
        names: those that can be given by name; the value says whether it has a default.
        takes_any: it has ``**``, or is not known, so that it takes whatever is given.
        known: it was read; else nothing is a mistake.
    """

    names: Mapping[str, bool]
    takes_any: bool = False
    known: bool = True

    def takes(self, name: str) -> bool:
        """Return whether the parameter can be given by name."""
        return self.takes_any or name in self.names


UNKNOWN = Signature({}, takes_any=True, known=False)


@dataclass(frozen=True, slots=True)
class ModelClass:
    """What is known of the class of a framework.

    Attributes:
        name: its name in the model file.
        signature: of its constructor, or of the function.
        methods: those of ``METHODS`` that it has; all of them where that is not known.
        source: the file that defines it.
        node: its definition; None where it is not known.
    """

    name: str
    signature: Signature
    methods: tuple[str, ...]
    source: PythonSource
    node: Definition | None


class Definitions:
    """Finds the classes and functions at the top level of a model file; what it imports is not looked into."""

    def __init__(self, folder: Folder) -> None:
        """Collect what each name is bound to: definitions, values and imports, but not None."""
        self.source = folder.entry
        self.bound: dict[str, list[ast.AST]] = {}
        for statement in statements(self.source.tree.body):
            for name, node in _bound(statement):
                if not (isinstance(node, ast.Constant) and node.value is None):
                    self.bound.setdefault(name, []).append(node)
        self.own = {node for nodes in self.bound.values() for node in nodes if folder.holds(node)}

    def find(self, name: str) -> ast.AST | None:
        """Return the definition of a name; another node where that cannot be read, None where it is not bound."""
        waiting, met, unread = [name], {""}, None
        while waiting:
            name = waiting.pop(0)
            nodes = self.bound.get(name, []) if name not in met else []
            met.add(name)
            for node in nodes:
                if isinstance(node, Definition):
                    return node
                unread = unread or node
            waiting += [node.id for node in nodes if isinstance(node, ast.Name)]
        return unread

    def model_class(self, name: str) -> ModelClass | None:
        """Return the class or function of a name; None where there is no such."""
        node = self.find(name)
        if node is None:
            return None
        if isinstance(node, ast.ClassDef):
            return ModelClass(name, self._constructor(node), self._methods(node), self.source, node)
        if isinstance(node, Function):
            return ModelClass(name, signature(node), self._methods_of_returned(node), self.source, node)
        return ModelClass(name, UNKNOWN, METHODS, self.source, None)

    def _family(self, node: ast.ClassDef, met: set[ast.AST]) -> Iterator[ast.AST | None]:
        """Yield a class and its base classes, depth first; what is no class of the file as its import, or None."""
        met.add(node)
        yield node
        for base in node.bases:
            found = self.find(base.id) if isinstance(base, ast.Name) else None
            if isinstance(found, ast.ClassDef) and found not in met:
                yield from self._family(found, met)
            elif not (isinstance(base, ast.Name) and base.id == "object"):
                yield found if found in self.own else None

    def _constructor(self, node: ast.ClassDef) -> Signature:
        for member in self._family(node, set()):
            if not isinstance(member, ast.ClassDef):
                return UNKNOWN
            for statement in statements(member.body):
                if isinstance(statement, Function) and statement.name == "__init__":
                    return signature(statement, bound=True)
            if member.decorator_list:
                return UNKNOWN
        return Signature({})

    def _methods(self, node: ast.ClassDef) -> tuple[str, ...]:
        """Return the methods of a class: all of them where a base class of another file of the network may have them.

        A base class of a framework is taken to have none, for ``nn.Module.train`` is no step, unless nothing is seen.
        """
        family = list(self._family(node, set()))
        members = {name for member in family if isinstance(member, ast.ClassDef) for name in member_names(member)}
        seen = tuple(name for name in METHODS if name in members)
        if any(member in self.own for member in family):
            return METHODS
        return METHODS if not seen and (None in family or node.decorator_list) else seen

    def _methods_of_returned(self, function: Function) -> tuple[str, ...]:
        """Return the methods of the class whose object a function returns; all of them where that is not known."""
        local = {node.name: node for node in ast.walk(function) if isinstance(node, ast.ClassDef)}
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        calls = [value.func for value in returned if isinstance(value, ast.Call)]
        classes = [local.get(call.id) or self.find(call.id) for call in calls if isinstance(call, ast.Name)]
        methods = {name for each in classes if isinstance(each, ast.ClassDef) for name in self._methods(each)}
        return tuple(name for name in METHODS if name in methods) or METHODS


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield (name, definition, value or import) for each name that a statement binds."""
    if isinstance(statement, Definition):
        yield statement.name, statement
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from ((target.id, statement.value) for target in targets if isinstance(target, ast.Name))
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name, statement) for alias in statement.names)


def member_names(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names in the body of a class, and the attributes that its methods set on ``self``."""
    for statement in statements(node.body):
        if isinstance(statement, Definition):
            yield statement.name
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Attribute) or not isinstance(inner.ctx, ast.Store):
            continue
        if isinstance(inner.value, ast.Name) and inner.value.id == "self":
            yield inner.attr


def signature(node: Function, *, bound: bool = False) -> Signature:
    """Return the parameters of a function; of a method, ``bound``, without ``self``."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    without_default = len(positional) - len(arguments.defaults)
    names = {parameter.arg: index >= without_default for index, parameter in enumerate(positional)}
    if bound and positional:
        del names[positional[0].arg]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    names.update({parameter.arg: default is not None for parameter, default in pairs})
    return Signature(names, takes_any=arguments.kwarg is not None)


def method_problem(model: ModelClass) -> Problem | None:
    """Return the problem of a class that has neither ``forward`` nor ``train``, nor a base class that may have them."""
    if model.methods or not isinstance(model.node, ast.ClassDef):
        return None
    names = list(member_names(model.node))
    close = [(name, method) for method in METHODS for name in difflib.get_close_matches(method, names, 1, 0.75)]
    hint = "add `def forward(self)`, which returns the outputs, or `def train(self)`, which returns the loss"
    if close:
        hint = f"rename {close[0][0]}() to {close[0][1]}()"
    return model.source.problem(model.node, f"{model.name} has neither forward() nor train()", hint)


def parameter_problems(
    model: ModelClass, cases: Mapping[str, Mapping[str, object]], given: Sequence[str] = GIVEN
) -> Iterator[Problem]:
    """Yield a problem for each parameter without a default that no case, or not every case, gives.

    Args:
        model: the class of a framework.
        cases: name -> sizes.
        given: what the program gives.
    """
    for name, has_default in model.signature.names.items():
        lacking = [case for case, sizes in cases.items() if name not in sizes]
        if has_default or name in given or not lacking:
            continue
        every = len(lacking) == len(cases)
        case = "no case gives it" if every else f"the case {lacking[0]!r} does not give it"
        hint = f"add {name!r} to the case in CASES, or give the parameter a default"
        if name == "weights":
            case, hint = "the file has no function weights", "add `def weights(random)`, which returns name -> array"
        yield model.source.problem(model.node, f"{model.name} needs the parameter {name!r}, and {case}", hint)
