"""The classes of a model file, as far as they can be read without running it: parameters and methods."""

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.core.errors import Problem
from runner.matrix.model_file.files import Folder, absolute_module, module_files
from runner.matrix.model_file.literals import GIVEN
from runner.matrix.model_file.source import Source, statements

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
MAX_STEPS = 50  # base classes, aliases and imports that are followed
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
    source: Source
    node: Definition | None


class Definitions:
    """Finds what a name stands for, in the files of a network."""

    def __init__(self, folder: Folder) -> None:
        """Look into the Python files of a folder."""
        self.folder = folder
        self.steps = 0

    def binding(self, source: Source, name: str) -> tuple[Source, Definition | None] | None:
        """Return what a name at the top level of a file stands for: its file and definition.

        The definition is None where the name is bound to something that cannot be read. The result is None where the
        name is not bound, or to None alone.
        """
        unknown = False
        for statement in statements(source.tree.body):
            if isinstance(statement, Definition) and statement.name == name:
                return source, statement
            value = _assigned(statement, name)
            if isinstance(value, ast.Name):
                found_there = self._followed(source, value.id)
                if found_there is not None and found_there[1] is not None:
                    return found_there
            unknown = unknown or (value is not None and not (isinstance(value, ast.Constant) and value.value is None))
            if isinstance(statement, ast.ImportFrom):
                imported = self._imported(source, statement, name)
                if imported is not None and imported[1] is not None:
                    return imported
                unknown = unknown or imported is not None
            elif isinstance(statement, ast.Import):
                unknown = unknown or any((alias.asname or alias.name) == name for alias in statement.names)
        return (source, None) if unknown else None

    def _followed(self, source: Source, name: str) -> tuple[Source, Definition | None] | None:
        self.steps += 1
        return self.binding(source, name) if self.steps < MAX_STEPS else (source, None)

    def _imported(
        self, source: Source, statement: ast.ImportFrom, name: str
    ) -> tuple[Source, Definition | None] | None:
        """Return what a name stands for that a statement imports; None where it imports no such name."""
        names = {alias.asname or alias.name: alias.name for alias in statement.names}
        original = names.get(name, name if "*" in names else None)
        module = absolute_module(statement, source.name.split("/")[:-1])
        if original is None or module is None:
            return None
        files = list(module_files(self.folder.path, module))
        there = self.folder.sources.get(files[-1]) if files else None
        if there is None:
            return (source, None) if "*" not in names else None
        return self._followed(there, original)

    def model_class(self, name: str) -> ModelClass | None:
        """Return the class or function of a name in the model file; None where there is no such."""
        self.steps = 0
        binding = self.binding(self.folder.entry, name)
        if binding is None:
            return None
        source, node = binding
        if node is None:
            return ModelClass(name, UNKNOWN, METHODS, source, None)
        if isinstance(node, ast.ClassDef):
            return ModelClass(name, self._constructor(source, node), self._methods(source, node), source, node)
        return ModelClass(name, signature(node), self._methods_of_returned(source, node), source, node)

    def _family(self, source: Source, node: ast.ClassDef) -> Iterator[tuple[Source, ast.ClassDef] | None]:
        """Yield a class and its base classes, depth first; None for each that is not in the files."""
        yield source, node
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id == "object":
                continue
            binding = self._followed(source, base.id) if isinstance(base, ast.Name) else None
            if binding is not None and isinstance(binding[1], ast.ClassDef):
                yield from self._family(binding[0], binding[1])
            else:
                yield None

    def _constructor(self, source: Source, node: ast.ClassDef) -> Signature:
        for member in self._family(source, node):
            if member is None:
                return UNKNOWN
            for statement in statements(member[1].body):
                if isinstance(statement, Function) and statement.name == "__init__":
                    return signature(statement, bound=True)
            if member[1].decorator_list:
                return UNKNOWN
        return Signature({})

    def _methods(self, source: Source, node: ast.ClassDef) -> tuple[str, ...]:
        """Return the methods that a class has; all of them where none is seen and a base class is not in the files."""
        family = list(self._family(source, node))
        members = {name for member in family if member is not None for name in member_names(member[1])}
        seen = tuple(name for name in METHODS if name in members)
        return METHODS if not seen and (None in family or node.decorator_list) else seen

    def _methods_of_returned(self, source: Source, function: Function) -> tuple[str, ...]:
        """Return the methods of the class whose object a function returns; all of them where that is not known."""
        local = {node.name: node for node in ast.walk(function) if isinstance(node, ast.ClassDef)}
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        methods: set[str] = set()
        for value in returned:
            name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
            binding = (source, local[name]) if name in local else self._followed(source, name) if name else None
            if binding is not None and isinstance(binding[1], ast.ClassDef):
                methods.update(self._methods(binding[0], binding[1]))
        return tuple(name for name in METHODS if name in methods) or METHODS


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return the value that a statement assigns to a name; None where it assigns none."""
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return getattr(statement, "value", None) if name in names else None


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
