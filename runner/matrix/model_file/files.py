"""Which files travel with a model file: the modules beside it that it imports, and its data files."""

import ast
import os
import string
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from runner.core import units
from runner.core.errors import MatrixError, Problem, file_problem
from runner.core.files import read_bounded
from runner.matrix.model_file.source import MAX_SOURCE_BYTES, PythonSource, parse_source

MAX_BYTES = 16 << 20
"""All files together: they are sent to each server, 4/3 as long in base64."""
MAX_FILES = 1000
MAX_MARKS = 500_000
"""Words and signs of all Python files, about 2.5 MB of usual code. A syntax tree takes up to 1.8 KB for each (1 MiB of
``a;`` on Python 3.11; ``a,`` 1.4 KB, ``a<`` 0.8 KB, ``a and`` 0.3 KB), so that all of them take at most 0.9 GB."""
PARTS_OF_WORDS = (string.ascii_letters + string.digits + "_").encode() + bytes(range(128, 256))
FRAMEWORK_PACKAGES = frozenset({"torch", "tensorflow", "keras", "jax", "jaxlib", "theano", "lasagne", "numpy"})
NEVER_TAKEN = FRAMEWORK_PACKAGES | sys.stdlib_module_names
"""Modules of these names beside a model file do not travel: they would hide those of Python and of the environment."""


IMPORTING = frozenset({"import_module", "__import__"})
"""Functions that import the module that they are given."""


class FileMistakeError(Exception):
    """What is wrong with a file that travels: a message and a hint."""


class Folder:
    """Collects the files of one network; the mistakes go to ``problems``.

    Attributes:
        path: the folder of the model file.
        files: name with ``/`` -> content.
        sources: name -> each Python file that is imported, the model file first.
        problems: what is wrong with the files.
    """

    def __init__(self, entry: Path, content: bytes | None = None) -> None:
        """Read the model file and the modules that it imports.

        Args:
            entry: the model file.
            content: its bytes, where it is not stored.

        Raises:
            MatrixError: the model file cannot be read, is too large, or is not Python.
        """
        self.path = entry.parent
        self.files: dict[str, bytes] = {}
        self.sources: dict[str, PythonSource] = {}
        self.problems: list[Problem] = []
        self._marks = 0
        try:
            self.entry = self._add_source(entry.name, content)
        except FileMistakeError as mistake:
            message, hint = mistake.args
            raise MatrixError(Problem(message, hint=hint)) from mistake
        waiting = [self.entry]
        try:
            while waiting:
                waiting += self._add_imports(waiting.pop())
        except FileMistakeError as mistake:  # whatever else it imports is not read
            self.problems.append(self.entry.problem(None, *mistake.args))

    def _add_source(self, name: str, content: bytes | None = None) -> PythonSource:
        """Read a Python file.

        Raises:
            MatrixError: it cannot be read, is too large, or is not Python.
            FileMistakeError: it is too large together with the files that were read before.
        """
        path = self.path / name
        try:
            content = read_bounded(path, MAX_SOURCE_BYTES) if content is None else content
        except FileNotFoundError:
            raise MatrixError(Problem(f"there is no {path}", hint="name a model file, or its folder")) from None
        except OSError as error:
            raise MatrixError(file_problem(error, path, "read")) from error
        self._count(content)
        source = parse_source(content, name, str(path))
        self.files[name], self.sources[name] = content, source
        return source

    def _count(self, content: bytes) -> None:
        """Count a Python file before it is parsed; raises FileMistakeError where it is too much."""
        hint = "import less, or install what it imports in the environments"
        if len(self.files) >= MAX_FILES:
            raise FileMistakeError(f"it imports more than {MAX_FILES:,} files of its folder", hint)
        self.check_size(hint, len(content))
        self._marks += len(b" ".join(content.split()).translate(None, PARTS_OF_WORDS))
        if self._marks > MAX_MARKS:
            raise FileMistakeError(f"its Python files have more than {MAX_MARKS:,} words and signs", hint)

    def _add_imports(self, source: PythonSource) -> list[PythonSource]:
        """Read the modules that a file imports and that were not read before; return them."""
        added = []
        for node, module in imported_modules(source):
            if module is None:
                hint = "the folder of the model file is no package: `import layers`, or `from layers import Block`"
                self.problems.append(source.problem(node, "this relative import leads out of the folder", hint))
                continue
            for name in module_files(self.path, module):
                if name in self.sources:
                    continue
                if not self._is_inside(name):
                    message = f"{name} leads outside of the folder of the model file"
                    self.problems.append(source.problem(node, message, "copy it into the folder"))
                    break
                try:
                    added.append(self._add_source(name))
                except MatrixError as error:
                    self.problems += error.problems
                    return added
        return added

    def holds(self, node: ast.AST) -> bool:
        """Return whether a node is an import in the model file of a module of the folder."""
        module = absolute_module(node, ()) if isinstance(node, ast.ImportFrom) else None
        return module is not None and any(module_files(self.path, module))

    def _is_inside(self, name: str) -> bool:
        inside = Path(os.path.realpath(self.path))
        return Path(os.path.realpath(self.path / name)).is_relative_to(inside)

    def add_data(self, patterns: Sequence[tuple[str, ast.expr]]) -> None:
        """Read the data files that match patterns, each with the node where it is written."""
        for pattern, node in patterns:
            try:
                self._add_matches(pattern)
            except FileMistakeError as mistake:
                self.problems.append(self.entry.problem(node, *mistake.args))

    def _add_matches(self, pattern: str) -> None:
        """Read the files that match a pattern; raises FileMistakeError."""
        inside = "name files below the folder of the model file, such as 'vocabulary.json' or 'data/*.npy'"
        if not pattern.strip("/.") or pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
            raise FileMistakeError(f"{pattern!r} leads outside of the folder of the model file", inside)
        try:
            paths = sorted(islice(self.path.glob(pattern), 10 * MAX_FILES))
        except (ValueError, NotImplementedError, OSError) as error:
            raise FileMistakeError(f"{pattern!r} is not a pattern of files: {error}", inside) from error
        matches = [path for path in paths if not path.is_dir() and "__pycache__" not in path.parts]
        if not matches:
            hint = f"'{pattern.rstrip('/')}/*' names the files of a folder" if paths else inside
            raise FileMistakeError(f"no file matches {pattern!r}", hint)
        if len(matches) + len(self.files) > MAX_FILES:
            raise FileMistakeError(f"{pattern!r} matches {len(matches):,} files; {MAX_FILES:,} are allowed", inside)
        for path in matches:
            self._add_data_file(path)

    def _add_data_file(self, path: Path) -> None:
        name = path.relative_to(self.path).as_posix()
        if name in self.files:
            return
        if not name.isprintable():
            raise FileMistakeError(f"the name of the file {name!r} has characters that cannot be printed", "rename it")
        if not self._is_inside(name):
            raise FileMistakeError(f"{name} leads outside of the folder of the model file", "copy it into the folder")
        try:
            self.files[name] = read_bounded(path, MAX_BYTES)
        except OSError as error:
            hint = f"at most {units.memory(MAX_BYTES)} travel"
            raise FileMistakeError(f"{name} cannot be read: {error.strerror}", hint) from error
        self.check_size()

    def check_size(self, hint: str = "use a part of the data, or draw it in the class", extra: int = 0) -> None:
        """Raise FileMistakeError where the files, and extra bytes, are too large together."""
        total = sum(map(len, self.files.values())) + extra
        if total > MAX_BYTES:
            message = f"the files of the network have {units.memory(total)} or more together; "
            raise FileMistakeError(f"{message}{units.memory(MAX_BYTES)} are allowed", hint)


def imported_modules(source: PythonSource) -> Iterator[tuple[ast.AST, str | None]]:
    """Yield (statement, dotted name) of each module that a file may import; None for one outside of the folder.

    A name that is imported from a module may be a module itself, so it is yielded, too. Imports within functions count.
    """
    package = source.name.split("/")[:-1]
    for node in ast.walk(source.tree):
        yield from ((node, name) for name in statement_modules(node, package))


def statement_modules(node: ast.AST, package: Sequence[str]) -> Iterator[str | None]:
    """Yield the dotted names of what a node of a file may import; None for what is outside of the folder.

    ``importlib.import_module("zoo.small")`` is an import, too, where the name is written out.

    Args:
        node: any node of the file.
        package: the packages of the file, outermost first.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = absolute_module(node, package)
        yield module
        if module is not None:
            yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names if alias.name != "*")
    elif isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        function, name = node.func, node.args[0].value
        if getattr(function, "attr", getattr(function, "id", "")) in IMPORTING and isinstance(name, str):
            yield from [name] if name and not name.startswith(".") else []


def absolute_module(node: ast.ImportFrom, package: Sequence[str]) -> str | None:
    """Return the dotted name of what a statement imports from, seen from the folder; None if that is outside of it.

    Args:
        node: ``from MODULE import NAMES``.
        package: the packages of the file with the statement, outermost first.
    """
    if node.level > len(package):
        return None
    parents = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*parents, *filter(None, [node.module])])


def module_files(folder: Path, module: str) -> Iterator[str]:
    """Yield the names of the files that the import of a module runs, packages first; none for one of another folder."""
    parts = module.split(".")
    if not parts[0] or parts[0] in NEVER_TAKEN:
        return
    for count in range(1, len(parts) + 1):
        base = "/".join(parts[:count])
        if os.path.isfile(folder / base / "__init__.py"):  # noqa: PTH113  Path.is_file raises for a name that is too long
            yield f"{base}/__init__.py"
        elif os.path.isfile(folder / f"{base}.py"):  # noqa: PTH113
            yield f"{base}.py"
            return
        elif not os.path.isdir(folder / base):  # noqa: PTH112
            return
