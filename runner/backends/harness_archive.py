"""The zip archive of ``runner/harness`` that is sent to a server, and the version of its measuring code."""

import ast
import functools
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runner.harness.program_file import ARCHIVE

FOLDER = Path(__file__).parent.parent / "harness"
ADDED = FOLDER / "added.py"
"""The program that imports what an environment adds to another, as the last step of building it."""

# Runs in the environment: reads a length and a zip archive from stdin, imports from it, serves the rest of stdin.
BOOTSTRAP = (
    "import os,sys,tempfile;"
    "s=sys.stdin.buffer;"
    f"p=os.path.join(tempfile.mkdtemp(),{ARCHIVE!r});"
    "f=open(p,'wb');n=int(s.readline());"
    "[f.write(s.read(min(65536,n-k))) for k in range(0,n,65536)];f.close();"  # in small pieces, see harness.model.blob
    "sys.path.insert(0,p);"
    "from harness.server import main;"
    "main(s)"
)


@functools.cache
def pack(folder: Path = FOLDER) -> bytes:
    """Return the bytes that a new server reads from stdin: the length of the archive, a newline, the archive.

    The bytes do not depend on the time, which a zip archive cannot hold before 1980: a machine may start in 1970. They
    fit into the buffers of a socket and a pipe, so that sending them to a server that never reads does not block.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for module in modules(tuple(sorted(folder.rglob("*.py")))):
            entry = zipfile.ZipInfo(f"harness/{module.path.relative_to(folder).as_posix()}")  # dated 1 January 1980
            archive.writestr(entry, module.lean, zipfile.ZIP_DEFLATED)
    return _with_length(out.getvalue())


class Module(NamedTuple):
    """What is made of the text of a module, which is parsed once: that takes most of the time.

    Attributes:
        path: its file.
        lean: the text without docstrings, in which every line keeps its number.
        statements: the statements of the module as ``ast.dump`` writes them, without docstrings and relative imports.
    """

    path: Path
    lean: str
    statements: tuple[str, ...]


_PARSING = threading.Lock()
"""Held while modules are parsed. Two threads that parse at the same time fail in Python 3.11: python/cpython#106905."""


def modules(paths: tuple[Path, ...]) -> tuple[Module, ...]:
    """Return what is made of the texts of modules; each is parsed once, also where several threads ask."""
    with _PARSING:
        return _modules(paths)


@functools.cache
def _modules(paths: tuple[Path, ...]) -> tuple[Module, ...]:
    return tuple(_module(path) for path in paths)


def _module(path: Path) -> Module:
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    lean = _without_docstrings(source, tree)
    return Module(path, lean, tuple(ast.dump(node) for node in _code(tree).body))


def without_docstrings(source: str) -> str:
    """Return a module with empty docstrings, in which every line keeps its number."""
    return _without_docstrings(source, ast.parse(source))


def _without_docstrings(source: str, tree: ast.Module) -> str:
    lines = source.split("\n")
    for body in _bodies(tree):
        first = body[0] if body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            begin, end = first.lineno - 1, first.end_lineno or first.lineno
            if not lines[begin][: first.col_offset].strip():
                lines[begin:end] = [" " * first.col_offset + '""', *[""] * (end - begin - 1)]
    return "\n".join(lines)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the body of a module and of each statement in it that has one; expressions have none with docstrings."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(node, name, None)
        if isinstance(below, list):
            if name == "body":
                yield below
            for each in below:
                yield from _bodies(each)


def pack_program(source: str) -> bytes:
    """Return the bytes that a new server reads from stdin to run another program than the harness, and to end."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in (("__init__", ""), ("server", f"{source}\n\ndef main(stream):\n    pass\n")):
            archive.writestr(zipfile.ZipInfo(f"harness/{name}.py"), text)
    return _with_length(out.getvalue())


def _with_length(data: bytes) -> bytes:
    return f"{len(data)}\n".encode("ascii") + data


def version(folder: Path = FOLDER) -> str:
    """Return 12 hexadecimal digits that change with the measuring code, not with its comments or docstrings."""
    return code_hash(tuple(sorted(folder.rglob("*.py"))))


def code_hash(paths: tuple[Path, ...]) -> str:
    """Return 12 hexadecimal digits of the hash of the code in ``paths``.

    The hash ignores what cannot change a measurement: comments, docstrings, layout, the names of the files, which file
    has which definition, and the imports between them.
    """
    statements = [statement for module in modules(paths) for statement in module.statements]
    return hashlib.sha256("\n".join(sorted(statements)).encode()).hexdigest()[:12]


def _code(tree: ast.Module) -> ast.Module:
    """Return a module without docstrings and relative imports."""
    for body in _bodies(tree):
        body[:] = [line for line in body if not (isinstance(line, ast.ImportFrom) and line.level)]
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body.pop(0)
    return tree
