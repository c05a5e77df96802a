"""The plain values of a model file: ``CASES``, ``TOLERANCE`` and ``FILES``."""

import ast
import difflib
import keyword
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from runner.core.errors import Problem
from runner.core.model import Precision
from runner.matrix.model_file.source import PythonSource, assigned, statements

GIVEN = ("random", "device", "precision", "weights")
"""What the program gives a class besides the sizes of the case."""
VARIANT = "variant"
"""What the program gives a class that has variants."""
VARIANTS = "VARIANTS"
CASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
"""Names of cases are parts of the names of files."""
_SURROGATE = re.compile("[\ud800-\udfff]")  # no file can hold one, so the stored plan would be another
LARGEST_NUMBER = 1 << 53  # beyond, JSON readers may round
WRITE_OUT = "write the value out: the file is read without running it"
PRECISIONS = get_args(Precision)


class Literals:
    """Reads the values; the mistakes go to ``problems``."""

    def __init__(self, source: PythonSource) -> None:
        """Find the assignments at the top level of a model file; the last one of each name counts."""
        self.source = source
        self.problems: list[Problem] = []
        self.values = {name: value for each in statements(source.tree.body) for name, value in assigned(each)}

    def cases(self) -> dict[str, dict[str, Any]]:
        """Return name -> sizes of each case; one case ``default`` without sizes where there is no ``CASES``."""
        node = self.values.get("CASES")
        if node is None:
            return {"default": {}}
        cases: dict[str, dict[str, Any]] = {}
        example = 'CASES = {"small": {"width": 64}}'
        for name_node, name, sizes in self.items(node, "CASES", example):
            if not CASE_NAME.fullmatch(name):
                hint = 'use letters, digits, dots, dashes and underscores, at most 40, such as "small"'
                self.report(name_node, f"{name[:60]!r} cannot name a case", hint)
            of_case: dict[str, Any] = {}
            for size_node, size, value in self.items(sizes, f"the case {name!r}", example, empty=True):
                self._check_size_name(size_node, size)
                of_case[size] = self._size(value, size)
            cases[name] = of_case
        return cases

    def size_node(self, case: str, size: str) -> ast.expr | None:
        """Return where the name of a size of a case is written; None where there is no such."""
        of_case = _value(self.values.get("CASES"), case)
        pairs = zip(of_case.keys, of_case.values, strict=True) if isinstance(of_case, ast.Dict) else ()
        return next((key for key, _ in pairs if isinstance(key, ast.Constant) and key.value == size), None)

    def tolerance(self) -> Mapping[str, float] | None:
        """Return precision -> the largest relative error, ``*`` for every precision; None where there is none."""
        node = self.values.get("TOLERANCE")
        if node is None:
            return None
        if not isinstance(node, ast.Dict):
            return {"*": self._error(node)}
        tolerance = {}
        for name_node, name, value in self.items(node, "TOLERANCE", 'TOLERANCE = {"fp32": 1e-5}'):
            if name not in PRECISIONS:
                close = difflib.get_close_matches(name[:100], PRECISIONS, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(PRECISIONS)}"
                self.report(name_node, f"there is no precision {name[:60]!r}", hint)
            tolerance[name] = self._error(value)
        return tolerance

    def patterns(self) -> list[tuple[str, ast.expr]]:
        """Return the patterns of data files, each with the node where it is written."""
        node = self.values.get("FILES")
        if node is None:
            return []
        if not isinstance(node, (ast.List, ast.Tuple)):
            self.report(node, "FILES must be a list of patterns", 'FILES = ["vocabulary.json"]')
            return []
        patterns = []
        for item in node.elts:
            value = self.literal(item)
            if isinstance(value, str) and value.isprintable():
                patterns.append((value, item))
            elif value is not None:
                self.report(item, "a pattern of FILES must be text", 'FILES = ["vocabulary.json"]')
        return patterns

    def report(self, node: ast.AST, message: str, hint: str) -> None:
        """Add a mistake to the problems."""
        self.problems.append(self.source.problem(node, message, hint))

    def items(
        self, node: ast.expr, label: str, example: str, *, empty: bool = False
    ) -> Iterator[tuple[ast.expr, str, ast.expr]]:
        """Yield (node of the key, key, node of the value) of a dictionary whose keys are texts, each key once."""
        if not isinstance(node, ast.Dict):
            self.literal(node)
            self.report(node, f"{label} must be a dictionary in braces", example)
            return
        if not node.keys and not empty:
            self.report(node, f"{label} is empty", example)
        seen: set[str] = set()
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                self.report(value, f"{label} takes in another dictionary", WRITE_OUT)
            elif not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                self.report(key, f"a key of {label} must be text in quotes", example)
            elif key.value in seen:
                self.report(key, f"{label} has {key.value[:60]!r} twice", "remove one of them, or rename it")
            else:
                seen.add(key.value)
                yield key, key.value, value

    def literal(self, node: ast.expr) -> Any:  # noqa: ANN401 - whatever is written
        """Return a plain value; None, and a problem, where it is none."""
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            self.report(_culprit(node), "this is not a plain value", WRITE_OUT)
            return None

    def _check_size_name(self, node: ast.expr, name: str) -> None:
        if name in GIVEN or (name == VARIANT and VARIANTS in self.values):
            self.report(node, f"{name!r} is given by the program, so no case can have it", "rename the size")
        elif not name.isidentifier() or keyword.iskeyword(name):
            self.report(node, f"{name[:60]!r} cannot name a parameter", "use letters, digits and underscores")

    def _size(self, node: ast.expr, name: str) -> Any:  # noqa: ANN401 - a number, a text, a boolean, or a list
        value = self.literal(node)
        if value is not None and not _is_size(value):
            allowed = "a size is a number, a text, True or False, or a list of them"
            self.report(node, f"the size {name[:60]!r} cannot be this", allowed)
        elif isinstance(node, ast.Constant) and node.value is None:
            self.report(
                node, f"the size {name[:60]!r} cannot be None", "leave the size out, and give its parameter a default"
            )
        return _as_json(value)

    def _error(self, node: ast.expr) -> float:
        value = self.literal(node)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1:
            return float(value)
        if value is not None:
            message = "TOLERANCE must be a relative error from 0 to below 1, or one for each precision"
            self.report(node, message, "TOLERANCE = 1e-5")
        return 0.0


def _is_size(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_size, value))
    if isinstance(value, int):
        return abs(value) <= LARGEST_NUMBER
    if isinstance(value, str):
        return _SURROGATE.search(value) is None
    return isinstance(value, float) and math.isfinite(value)


def _as_json(value: Any) -> Any:  # noqa: ANN401 - a size
    return [_as_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def _value(node: ast.expr | None, name: str) -> ast.expr | None:
    """Return the value of a key of a dictionary; None where there is none."""
    pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    return next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == name), None)


def _culprit(node: ast.AST) -> ast.AST:
    """Return the innermost part of a value that is not plain."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and isinstance(node, (ast.Dict, ast.List, ast.Tuple, ast.Set)):
            try:
                ast.literal_eval(child)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                return _culprit(child)
    return node
