"""The zip archive of ``runner/harness`` that is sent to a server, and the version of its measuring code."""

import ast
import functools
import hashlib
import io
import zipfile
from pathlib import Path

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
        for path in sorted(folder.rglob("*.py")):
            entry = zipfile.ZipInfo(f"harness/{path.relative_to(folder).as_posix()}")  # its date is 1 January 1980
            archive.writestr(entry, without_docstrings(path.read_text("utf-8")), zipfile.ZIP_DEFLATED)
    return _with_length(out.getvalue())


def without_docstrings(source: str) -> str:
    """Return a module with empty docstrings, in which every line keeps its number."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            begin, end = first.lineno - 1, first.end_lineno or first.lineno
            if not lines[begin][: first.col_offset].strip():
                lines[begin:end] = [" " * first.col_offset + '""', *[""] * (end - begin - 1)]
    return "\n".join(lines)


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


@functools.cache
def code_hash(paths: tuple[Path, ...]) -> str:
    """Return 12 hexadecimal digits of the hash of the code in ``paths``.

    The hash ignores what cannot change a measurement: comments, docstrings, layout, the names of the files, which file
    has which definition, and the imports between them.
    """
    statements = [ast.dump(node) for path in paths for node in _code(ast.parse(path.read_text("utf-8"))).body]
    return hashlib.sha256("\n".join(sorted(statements)).encode()).hexdigest()[:12]


def _code(tree: ast.Module) -> ast.Module:
    """Return a module without docstrings and relative imports."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [line for line in body if not (isinstance(line, ast.ImportFrom) and line.level)]
            if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body.pop(0)
    return tree
