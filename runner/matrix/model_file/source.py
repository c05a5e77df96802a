"""A Python file that is read without running it: its syntax tree, and places in its text."""

import ast
import importlib.util
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from runner.core.errors import MatrixError, Problem, Where
from runner.core.text import printable
from runner.matrix.yaml_source import SourceText

MAX_SOURCE_BYTES = 1 << 20
"""The largest Python file: its syntax tree takes some 100 times as much memory."""
_YAML_LINE_ENDS = {0x85: " ", 0x2028: " ", 0x2029: " "}
"""Characters that end a line in YAML, and do not in Python."""


@dataclass(frozen=True, slots=True)
class PythonSource:
    """A Python file.

    Attributes:
        name: its name among the files of the network, with ``/``.
        places: its text, and places in it.
        tree: its syntax tree.
    """

    name: str
    places: SourceText
    tree: ast.Module

    def where(self, node: ast.AST | None) -> Where:
        """Return the place of a node, of a definition that of its name; of None the start of the file."""
        line, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        start = self._column(line, getattr(node, "col_offset", 0))
        stop = self._column(line, getattr(node, "end_col_offset", 0)) if line == end else len(self._line(line))
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            start = max(start, self._line(line).find(f" {node.name}", start) + 1)
            stop = start + len(node.name)
        return self.places.where(line - 1, start, stop - start)

    def problem(self, node: ast.AST | None, message: str, hint: str | None = None) -> Problem:
        """Return a problem at a node."""
        return Problem(message, self.where(node), hint)

    def _line(self, number: int) -> str:
        lines = self.places.lines
        return lines[number - 1] if number <= len(lines) else ""

    def _column(self, line: int, offset: int) -> int:
        """Return the column of an offset in bytes of UTF-8, both from 0."""
        return len(self._line(line).encode()[:offset].decode(errors="replace"))


def parse_source(content: bytes, name: str, path: str) -> PythonSource:
    """Return a Python file from its bytes; the encoding is what Python would take.

    Args:
        content: the bytes.
        name: its name among the files of the network.
        path: what messages call it.

    Raises:
        MatrixError: it is no Python file.
    """
    try:
        text = importlib.util.decode_source(content)
    except (ValueError, LookupError, SyntaxError) as error:  # an encoding may raise any UnicodeError
        message = f"{path} is not text that Python reads: {printable(str(error), 200)}"
        raise MatrixError(Problem(message, Where(path, 1, 1), "save it as UTF-8")) from error
    places = SourceText(path, text.translate(_YAML_LINE_ENDS))
    version = "{}.{}".format(*sys.version_info)
    hint = f"it is read by Python {version}: `python{version} -m py_compile {path}` shows the same"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an escape that a string does not have
            tree = ast.parse(text)
    except SyntaxError as error:
        line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
        where = places.where(line - 1, column - 1, (error.end_offset or 0) - column)
        raise MatrixError(Problem(f"this is not Python: {error.msg}", where, hint)) from error
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL; brackets nested too deep
        message = f"{path} cannot be read: it is nested too deep, or has a NUL character"
        raise MatrixError(Problem(message, Where(path, 1, 1), hint)) from error
    return PythonSource(name, places, tree)


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, those within ``if``, ``try`` and ``with`` among them."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from statements(statement.body)
            for handler in getattr(statement, "handlers", ()):
                yield from statements(handler.body)
            yield from statements(getattr(statement, "orelse", ()))
            yield from statements(getattr(statement, "finalbody", ()))


def assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) for each name that an assignment gives a value."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from ((target.id, statement.value) for target in targets if isinstance(target, ast.Name))
