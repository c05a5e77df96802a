"""A class or a function of a user's file, read without running it: its kind, and whether it can be called."""

import ast
import difflib
from collections.abc import Mapping

from runner.core.errors import MatrixError, Problem, UsageError
from runner.matrix.model_file.classes import (
    CLASS_NAMES,
    UNKNOWN,
    Definitions,
    Function,
    constructor,
    member_names,
    signature,
)
from runner.matrix.model_file.files import Folder
from runner.matrix.model_file.methods import largest_count, method_of, needed_parameters
from runner.matrix.model_file.source import PythonSource
from runner.matrix.model_file.wrapping import imported_framework
from runner.matrix.wrapper.class_kinds import FRAMEWORK_KINDS, base_names, class_kind
from runner.matrix.wrapper.import_root import import_root
from runner.matrix.wrapper.named_model import NamedModel
from runner.matrix.wrapper.subject import Kind, Subject

TORCH_EXAMPLE, KERAS_EXAMPLE, ANY_EXAMPLE = (
    f"give an example of its shape, and repeat the option for further inputs: --input {shape}"
    for shape in ("1x3x64x64", "1x64x64x3", "8x128")
)
FUNCTIONS: Mapping[str, Kind] = {
    "torch": "torch_function",
    "tensorflow": "tensorflow_function",
    "keras": "tensorflow_function",
    "jax": "jax_function",
    "numpy": "numpy_function",
}
"""Framework -> the kind of a function of its arrays."""
FACTORY = "add a function without parameters that returns it, and name that function"
SHOWN_NAMES = 8


def file_subject(model: NamedModel, inputs: int) -> Subject:
    """Return what the wrapper of a class or a function is written for.

    Args:
        model: names it, and its file.
        inputs: how many examples there are.

    Raises:
        MatrixError: the file cannot be read, or has no such name; or a call that the wrapper makes lacks an argument.
        UsageError: it is the class of a model file.
    """
    assert model.path is not None
    if model.name in CLASS_NAMES.values():
        message = f"{model.name} is the class of a model file, which needs no wrapper"
        raise UsageError(Problem(message, hint=f"write --model {model.path}"))
    return _Reader(model, inputs).subject()


class _Reader:
    """Reads what one name of a file is bound to; each mistake ends it."""

    def __init__(self, model: NamedModel, inputs: int) -> None:
        """Read the file."""
        assert model.path is not None
        self.model, self.name, self.inputs, self.path = model, model.name, inputs, model.path
        folder = Folder(self.path)
        self.source: PythonSource = folder.entry
        self.definitions = Definitions(folder)
        self.framework = imported_framework(self.source.tree)

    def subject(self) -> Subject:
        """Return what the wrapper is written for."""
        node = self.definitions.find(self.name)
        if node is None:
            raise self._mistake(None, f"{self.path.name} has no {self.name!r}", self._names())
        kind = self._kind(node)
        if kind.endswith("_function"):
            build, taken = self._function(node), None
        else:
            build, taken = self._built(node), self._forward_inputs(node, kind)
        root, module = import_root(self.path, self.source)
        return Subject(kind, f"{self.name} of {module}", f"from {module} import {self.name}", build, root, taken)

    def _mistake(self, node: ast.AST | None, message: str, hint: str) -> MatrixError:
        return MatrixError(self.source.problem(node, message, hint))

    def _kind(self, node: ast.AST) -> Kind:
        """Return the kind of what the name is bound to."""
        if isinstance(node, ast.ClassDef):
            kind = class_kind(self.definitions, node, self.framework)
            if kind is None:
                shown = "an nn.Module, a LightningModule or a keras.Model"
                hint = FACTORY if self.framework else "import its framework in the file: `import torch`, for example"
                raise self._mistake(node, f"no base class of {self.name} shows that it is {shown}", hint)
            return kind
        function, network = FUNCTIONS.get(self.framework or ""), FRAMEWORK_KINDS.get(self.framework or "")
        if function is None:
            message = f"no import of {self.path.name} shows the framework of {self.name}"
            raise self._mistake(node, message, f"import one in it: {', '.join(FUNCTIONS)}")
        if network is None:
            return function  # no framework's object is built by a function in JAX and NumPy, as far as is seen
        if isinstance(node, Function):
            needs_arrays = self.model.call is None and needed_parameters(node, bound=False)
            return function if needs_arrays else network
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return network
        message = f"{self.name} is an object that exists once, and each measurement builds a network of its own"
        raise self._mistake(node, message, FACTORY)

    def _function(self, node: ast.AST) -> str:
        """Return the name of a function of arrays; raise MatrixError unless it can be called with the examples."""
        if self.model.call is not None:
            message = f"{self.name} is a function of arrays, which --input gives"
            raise self._mistake(node, message, f"write --model {self.path}:{self.name}")
        if isinstance(node, Function):
            self._check_inputs(node, self.name, ANY_EXAMPLE, bound=False)
        return self.name

    def _built(self, node: ast.AST) -> str:
        """Return the call that builds a network; raise MatrixError if it lacks an argument, or has one too many."""
        call = self.model.call
        arguments = [call.arguments] if call and call.arguments else []
        if isinstance(node, ast.ClassDef):
            taken = constructor(list(self.definitions.family(node, set())))
        else:
            taken = signature(node) if isinstance(node, Function) else UNKNOWN
        for name in call.names if call else ():
            if not taken.takes(name):
                close = difflib.get_close_matches(name, taken.names, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(taken.names) or 'none'}"
                raise self._mistake(node, f"{self.name} has no parameter {name!r}", hint)
        given = {*list(taken.names)[: call.positional], *call.names} if call else set()
        lacking = [name for name, has_default in taken.names.items() if not has_default and name not in given]
        if lacking:
            example = ", ".join([*arguments, *(f"{name}=..." for name in lacking)])
            hint = f"give it a value: --model '{self.path}:{self.name}({example})'"
            raise self._mistake(node, f"{self.name} needs the parameter {lacking[0]!r}", hint)
        return f"{self.name}({', '.join(arguments)})"

    def _forward_inputs(self, node: ast.AST, kind: Kind) -> int | None:
        """Return how many inputs the forward pass of a LightningModule takes; None where it has none, and of others.

        Raises:
            MatrixError: there is no forward pass, or it cannot be called with the examples.
        """
        method = method_of(self.definitions, node, "forward") if isinstance(node, ast.ClassDef) else None
        if kind == "torch_module" and method is not None:
            self._check_inputs(method, f"{self.name}.forward()", TORCH_EXAMPLE, bound=True)
        elif not self.inputs:
            example = KERAS_EXAMPLE if kind == "keras_model" else TORCH_EXAMPLE
            raise self._mistake(node, f"{self.name} is called with an example of its input, and none is given", example)
        elif kind == "torch_module" and isinstance(node, ast.ClassDef) and self._lacks_forward(node):
            raise self._mistake(node, f"{self.name} has no forward()", "add `def forward(self, x)`")
        if kind != "lightning_module" or method is None:
            return None
        return min(max(1, len(needed_parameters(method))), self.inputs)

    def _lacks_forward(self, node: ast.ClassDef) -> bool:
        """Return whether neither a class nor a base class of it can have a forward pass."""
        members = [each for each in self.definitions.family(node, set()) if isinstance(each, ast.ClassDef)]
        names = {name for member in members for name in member_names(member)}
        return "forward" not in names and set(base_names(self.definitions, node)) == {"torch.nn.Module"}

    def _check_inputs(self, node: Function, label: str, example: str, *, bound: bool) -> None:
        """Raise MatrixError unless a function can be called with the examples."""
        needed, largest = needed_parameters(node, bound=bound), largest_count(node, bound=bound)
        if len(needed) > self.inputs:
            given = f", and --input gives {self.inputs} of {len(needed)}" if self.inputs else ""
            raise self._mistake(node, f"{label} needs the parameter {needed[self.inputs]!r}{given}", example)
        if largest < self.inputs:
            message = f"{label} takes {largest:.0f} arguments, and --input gives {self.inputs}"
            raise self._mistake(node, message, "leave an --input out")

    def _names(self) -> str:
        """Return what may be named instead."""
        names = [name for name, node in self.definitions.bound.items() if isinstance(node, (ast.ClassDef, Function))]
        close = difflib.get_close_matches(self.name, names, 1)
        if close:
            return f"did you mean {close[0]!r}?"
        shown = ", ".join(list(reversed(names))[:SHOWN_NAMES])
        return f"it has {shown}" if names else "name a class or a function that the file has"
