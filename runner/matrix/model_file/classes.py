"""The classes of a model file, as far as they can be read without running it: parameters and methods."""

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.core.errors import Problem
from runner.matrix.model_file.files import Folder
from runner.matrix.model_file.source import PythonSource, assigned, statements

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
    """

    names: Mapping[str, bool]
    takes_any: bool = False

    def takes(self, name: str) -> bool:
        """Return whether the parameter can be given by name."""
        return self.takes_any or name in self.names


UNKNOWN = Signature({}, takes_any=True)


@dataclass(frozen=True, slots=True)
class ModelClass:
    """What is known of the class of a framework.

    Attributes:
        framework: the framework.
        name: its name in the model file.
        signature: of its constructor, or of the function.
        methods: those of ``METHODS``, and of the file's own phases, that it has; all of them where that is not known.
        node: its definition; None where it is not known.
    """

    framework: str
    name: str
    signature: Signature
    methods: tuple[str, ...]
    node: Definition | None


class Definitions:
    """The classes and functions at the top level of a model file; what it imports is not looked into."""

    def __init__(self, folder: Folder, phases: Sequence[str] = ()) -> None:
        """Collect what each name is bound to first: its definition, else its value or import, but not None.

        Args:
            folder: of the model file.
            phases: the methods that the file names as phases.
        """
        self.timed = (*METHODS, *phases)
        pairs = [pair for statement in statements(folder.entry.tree.body) for pair in _bound(statement)]
        values = [(name, node) for name, node in pairs if not (isinstance(node, ast.Constant) and node.value is None)]
        definitions = [(name, node) for name, node in values if isinstance(node, Definition)]
        self.bound = dict([*reversed(values), *reversed(definitions)])  # the last pair of a name counts
        self.from_folder = {node for node in self.bound.values() if folder.holds(node)}

    def find(self, name: str) -> ast.AST | None:
        """Return what a name is bound to, through aliases; None where it is not bound."""
        node, met = self.bound.get(name), {name}
        while isinstance(node, ast.Name) and node.id not in met:
            met.add(node.id)
            node = self.bound.get(node.id, node)
        return node

    def model_class(self, framework: str, name: str) -> ModelClass | None:
        """Return the class or function of a framework by its name; None where there is no such."""
        node = self.find(name)
        if isinstance(node, ast.ClassDef):
            return self._of_class(framework, name, node)
        if isinstance(node, Function):
            return ModelClass(framework, name, signature(node), self.timed, node)
        return None if node is None else ModelClass(framework, name, UNKNOWN, self.timed, None)

    def _of_class(self, framework: str, name: str, node: ast.ClassDef) -> ModelClass:
        """Return what is known of a class: all methods where a base class of another file of the network may have them.

        A base class of a framework is taken to have none, for ``nn.Module.train`` is no step, unless nothing is seen.
        """
        family = list(self.family(node, set()))
        members = {member for each in family if isinstance(each, ast.ClassDef) for member in member_names(each)}
        methods = tuple(method for method in self.timed if method in members)
        is_open = not methods and (None in family or bool(node.decorator_list))
        if is_open or any(member in self.from_folder for member in family):
            methods = self.timed
        return ModelClass(framework, name, constructor(family), methods, node)

    def family(self, node: ast.ClassDef, met: set[ast.AST]) -> Iterator[ast.AST | None]:
        """Yield a class and its base classes, depth first; what is no class of the file as its import, or None."""
        met.add(node)
        yield node
        for base in node.bases:
            definition = self.find(base.id) if isinstance(base, ast.Name) else None
            if isinstance(definition, ast.ClassDef) and definition not in met:
                yield from self.family(definition, met)
            elif not (isinstance(base, ast.Name) and base.id == "object"):
                yield definition if definition in self.from_folder else None


def constructor(family: Sequence[ast.AST | None]) -> Signature:
    """Return the signature of the first constructor of a class and its base classes."""
    for member in family:
        if not isinstance(member, ast.ClassDef):
            return UNKNOWN
        for statement in statements(member.body):
            if isinstance(statement, Function) and statement.name == "__init__":
                return signature(statement, bound=True)
        if member.decorator_list:
            return UNKNOWN
    return Signature({})


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield (name, definition, value or import) for each name that a statement binds."""
    if isinstance(statement, Definition):
        yield statement.name, statement
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name, statement) for alias in statement.names)
    else:
        yield from assigned(statement)


def member_names(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names in the body of a class, and the attributes that its methods set on ``self``."""
    for statement in statements(node.body):
        yield from (name for name, _ in _bound(statement))
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and _is_self(inner.value):
            yield inner.attr


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


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


def model_problems(
    model: ModelClass, source: PythonSource, cases: Mapping[str, Mapping[str, object]], given: Sequence[str]
) -> Iterator[Problem]:
    """Yield what is wrong with a class: it has no method, or a parameter that no case, or not every case, gives.

    Args:
        model: the class of a framework.
        source: the model file.
        cases: name -> sizes.
        given: what the program gives.
    """
    if not model.methods and isinstance(model.node, ast.ClassDef):
        names = list(member_names(model.node))
        close = [(name, method) for method in METHODS for name in difflib.get_close_matches(method, names, 1, 0.75)]
        hint = "add `def forward(self)`, which returns the outputs, or `def train(self)`, which returns the loss"
        if close:
            hint = f"rename {close[0][0]}() to {close[0][1]}()"
        yield source.problem(model.node, f"{model.name} has neither forward() nor train()", hint)
    for name, has_default in model.signature.names.items():
        lacking = [case for case, sizes in cases.items() if name not in sizes]
        if has_default or name in given or not lacking:
            continue
        every = len(lacking) == len(cases)
        case = "no case gives it" if every else f"the case {lacking[0]!r} does not give it"
        hint = f"add {name!r} to the case in CASES, or give the parameter a default"
        if name == "weights":
            case, hint = "the file has no function weights", "add `def weights(random)`, which returns name -> array"
        elif name == "variant":
            case, hint = (
                "VARIANTS gives none",
                f'add VARIANTS = {{"{model.framework}": ["eager"]}}, the names of its variants',
            )
        yield source.problem(model.node, f"{model.name} needs the parameter {name!r}, and {case}", hint)
