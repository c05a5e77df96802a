"""The folder that the imports of a user's file start from, and the name that the file has from there."""

import ast
import keyword
from collections.abc import Iterator
from pathlib import Path

from runner.core.errors import MatrixError, Problem
from runner.matrix.model_file.files import NEVER_TAKEN, imported_modules, module_files
from runner.matrix.model_file.source import PythonSource


def import_root(path: Path, source: PythonSource) -> tuple[Path, str]:
    """Return the folder, and the dotted name of the module.

    It is the folder of the file; above it, the one that holds its package, or that its relative imports lead to; above
    that, up to the working folder, the first that holds a module which the file imports and the lower one lacks.

    Args:
        path: the file.
        source: its content.

    Raises:
        MatrixError: Python cannot import the file by that name, or something else has the name.
    """
    is_package = path.stem == "__init__"
    parts = [] if is_package else [path.stem]
    root, depth = path.parent, _relative_level(source.tree) + (not is_package)
    while (root / "__init__.py").is_file() or len(parts) < depth:
        root = root.absolute()
        parts.insert(0, root.name)
        root = root.parent
    for folder in _up_to_working_folder(root):
        if _holds_more(folder, root, source):
            parts = [*root.absolute().relative_to(folder).parts, *parts]
            root = folder
            break
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            message = f"{part!r} cannot be imported: it is no name of a module"
            raise MatrixError(Problem(message, hint="rename it: letters, digits and underscores"))
    if parts[0] in NEVER_TAKEN:
        message = f"{parts[0]!r} is the name of a module of Python or of a framework, which it would hide"
        raise MatrixError(Problem(message, hint="rename it"))
    return root, ".".join(parts)


def _up_to_working_folder(folder: Path) -> Iterator[Path]:
    """Yield the folders above one, as far as they are in the working folder or are that."""
    working = Path.cwd()
    yield from (each for each in folder.absolute().parents if each.is_relative_to(working))


def _holds_more(folder: Path, root: Path, source: PythonSource) -> bool:
    """Return whether a folder has a module that the file imports, and another folder has not."""
    modules = (module for _, module in imported_modules(source) if module is not None)
    return any(any(module_files(folder, each)) and not any(module_files(root, each)) for each in modules)


def _relative_level(tree: ast.Module) -> int:
    """Return how many folders up the relative imports of a file lead."""
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
