"""The modules that a model file needs of its environment, and what of the user's folder does not travel to it.

Only imports that run whenever the class of a framework is built count: those at the top of the file and of the modules
that travel with it, and those within that class. An import in another function, in ``if`` or in ``try`` may never run.
"""

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from runner.matrix.model_file.classes import ModelClass
from runner.matrix.model_file.files import NEVER_TAKEN, Folder, module_files, statement_modules
from runner.matrix.model_file.source import PythonSource

OF_OLDER_PYTHON = frozenset(
    {
        "asynchat",
        "asyncore",
        "cgi",
        "cgitb",
        "chunk",
        "crypt",
        "distutils",
        "imghdr",
        "imp",
        "lib2to3",
        "mailcap",
        "nntplib",
        "pipes",
        "smtpd",
        "sndhdr",
        "telnetlib",
    }
)
"""Modules of Python that the one which runs this program may not have any more: the environment's may be older."""
OF_INSTALLERS = frozenset({"pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack"})
"""Modules that an environment may have although its lock does not name them."""
LISTED_FOLDERS = 200
"""Of the entries of a folder, those that are looked into for a module."""
USUAL_FOLDERS = ("src", "lib", "python")


@dataclass(frozen=True, slots=True)
class NeededModule:
    """A module that an environment has to have.

    Attributes:
        name: its first part, ``torchvision`` of ``torchvision.models``.
        file: what imports it, among the files of the network.
        line: of the import, from 1.
        framework: the framework whose class imports it; empty where every class needs it.
        other_path: where the user has a module of this name that does not travel, ``src/mypkg``; empty without one.
    """

    name: str
    file: str
    line: int
    framework: str = ""
    other_path: str = ""


@dataclass(frozen=True, slots=True)
class Imports:
    """What the imports of a model file say.

    Attributes:
        modules: each module that an environment has to have, once for all classes or for each framework.
        hidden: the files beside the model file that it imports, and that do not travel because of their names.
    """

    modules: tuple[NeededModule, ...] = ()
    hidden: tuple[str, ...] = ()


def imports(folder: Folder, models: Sequence[ModelClass]) -> Imports:
    """Return what the imports of a model file say.

    Args:
        folder: its files, all read.
        models: its classes.
    """
    by_name: dict[tuple[str, str], NeededModule] = {}
    hidden: dict[str, None] = {}
    for source, node, framework in _needed(folder, models):
        for module in _modules(source, node)[:1]:
            name = module.partition(".")[0]
            if name in NEVER_TAKEN:
                hidden.update(dict.fromkeys(_hiding(folder, name)))
            if not _is_installed(folder, source, node, name) or (name, "") in by_name:
                continue
            other_path = "" if name in NEVER_TAKEN else _other_path(folder.path, name)
            needed = NeededModule(name, source.name, node.lineno, framework, other_path)
            by_name.setdefault((name, framework), needed)
    return Imports(tuple(by_name.values()), tuple(hidden))


def _needed(folder: Folder, models: Sequence[ModelClass]) -> Iterator[tuple[PythonSource, ast.stmt, str]]:
    """Yield (file, import, framework) of what runs when a class is built, what every class needs first."""
    waiting, met = [folder.entry], {folder.entry.name}
    while waiting:
        source = waiting.pop(0)
        for node in _always(source.tree.body):
            yield source, node, ""
            names = (name for module in _modules(source, node) for name in module_files(folder.path, module))
            for name in names:
                if name in folder.sources and name not in met:
                    met.add(name)
                    waiting.append(folder.sources[name])
    for model in models:
        methods = model.node.body if isinstance(model.node, ast.ClassDef) else []
        bodies = (method.body for method in methods if isinstance(method, ast.FunctionDef))
        yield from ((folder.entry, node, model.framework) for body in bodies for node in _always(body))


def _always(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the imports that run whenever a body does; those in ``if`` and ``try`` may be left out or fail."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from _single(statement)
        elif isinstance(statement, (ast.With, ast.ClassDef)):
            yield from _always(statement.body)


def _single(statement: ast.Import | ast.ImportFrom) -> Iterator[ast.stmt]:
    """Yield a statement, or one for each module of ``import a, b``."""
    if isinstance(statement, ast.ImportFrom):
        yield statement
        return
    yield from (ast.copy_location(ast.Import([alias]), statement) for alias in statement.names)


def _modules(source: PythonSource, node: ast.stmt) -> list[str]:
    return [module for module in statement_modules(node, source.name.split("/")[:-1]) if module]


def _is_installed(folder: Folder, source: PythonSource, node: ast.stmt, name: str) -> bool:
    """Return whether a module comes from the environment: not with Python, its installers, or the user's files."""
    of_python = name in sys.stdlib_module_names or name in OF_OLDER_PYTHON or name in OF_INSTALLERS
    if of_python or name == "__future__" or (isinstance(node, ast.ImportFrom) and node.level):
        return False
    travels = any(any(module_files(folder.path, module)) for module in _modules(source, node))
    return not travels and (name in NEVER_TAKEN or not os.path.isdir(folder.path / name))  # noqa: PTH112  as in files


def _hiding(folder: Folder, name: str) -> Iterator[str]:
    """Yield the file of a module beside the model file, but for the model file itself."""
    for file in (f"{name}.py", f"{name}/__init__.py"):
        if file != folder.entry.name and os.path.isfile(folder.path / file):  # noqa: PTH113  as in files
            yield file


def _other_path(folder: Path, name: str) -> str:
    """Return where a module lies one folder below or above that of the model file, relative to it; empty if nowhere."""
    try:
        with os.scandir(folder) as listed:
            entries = sorted(entry.name for entry in islice(listed, LISTED_FOLDERS) if entry.is_dir())
    except OSError:
        entries = []
    below = [
        entry for entry in entries if not entry.startswith((".", "__")) and not (folder / entry / "pyvenv.cfg").exists()
    ]
    below.sort(key=lambda entry: entry not in USUAL_FOLDERS)
    for parent in (*below, ".."):
        if os.path.isfile(folder / parent / name / "__init__.py"):  # noqa: PTH113
            return f"{parent}/{name}"
        if os.path.isfile(folder / parent / f"{name}.py"):  # noqa: PTH113
            return f"{parent}/{name}.py"
    return ""
