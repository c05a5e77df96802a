"""Check the locks that a matrix names: regular files below the folder of the matrix file."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from runner.core.errors import Problem
from runner.matrix.models import Matrix
from runner.matrix.patterns import node_at
from runner.matrix.sources import Source
from runner.matrix.yaml_tree import Path as TreePath
from runner.matrix.yaml_tree import Tree

INSIDE = "name a file below the folder of the matrix file, such as docker/locks/torch-2.5.txt"


def lock_problems(tree: Tree, matrix: Matrix, folder: Path) -> Iterator[Problem]:
    """Yield a problem for each lock that exists and is refused, with its place; one that does not exist is none.

    Args:
        tree: where everything is written.
        matrix: the checked matrix.
        folder: the folder of the matrix file.
    """
    for path, lock in _locks(matrix):
        message, hint = lock_mistake(folder, lock)
        if message:
            yield Problem(f"the lock {lock} {message}", tree.source.node(node_at(tree, path)), hint)


def _locks(matrix: Matrix) -> Iterator[tuple[TreePath, str]]:
    """Yield the place and the path of each lock."""
    for name, environment in matrix.environments.items():
        places: list[tuple[TreePath, Source]] = [(("environments", name), environment)]
        places += [(("environments", name, "variants", key), each) for key, each in environment.variants.items()]
        for path, source in places:
            if source.lock:
                yield (*path, "lock"), source.lock
            if source.aarch64 is not None and source.aarch64.lock:
                yield (*path, "aarch64", "lock"), source.aarch64.lock


def lock_mistake(folder: Path, lock: str) -> tuple[str, str]:
    """Return why a lock is refused, and a hint, see ``path_mistake``."""
    return path_mistake(folder, lock, INSIDE)


def path_mistake(folder: Path, name: str, hint: str) -> tuple[str, str]:
    """Return why a file that the matrix names is refused, to follow its name, and a hint; both are empty if it is not.

    Args:
        folder: the folder that the path is relative to and has to stay below, where links lead, too.
        name: the path of the file; a file that does not exist is not refused.
        hint: what to write instead.
    """
    path, inside = folder / name, Path(os.path.realpath(folder))
    target = Path(os.path.realpath(path))  # Path.resolve raises RuntimeError where links form a circle
    if not target.is_relative_to(inside):
        return f"is outside of {inside}", hint
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "", ""
    except OSError as error:  # a part of the path is a file, or links form a circle
        return f"cannot be read: {error.strerror}", hint
    if not stat.S_ISREG(mode):
        return "is a folder" if stat.S_ISDIR(mode) else "is not a regular file", hint
    if not os.access(path, os.R_OK):
        return "cannot be read: permission denied", f"chmod u+r {path}"
    return "", ""
