"""Check the names of workloads, and read the model files of those that are networks of the user."""

import difflib
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from runner.catalog.cases import WORKLOADS
from runner.core.errors import MatrixError, Problem
from runner.matrix.lock_paths import path_mistake
from runner.matrix.model_file import LONGEST_NAME, NETWORK_NAME, Network, read_network
from runner.matrix.models import Matrix
from runner.matrix.patterns import node_at
from runner.matrix.yaml_tree import Path as TreePath
from runner.matrix.yaml_tree import Tree, abbreviated

INSIDE = "name a file below the folder of the matrix file, such as models/my_network.py"


def name_problems(tree: Tree, intended: Container[TreePath]) -> Iterator[Problem]:
    """Yield a problem for each workload that is neither of the program nor a network with a ``file``.

    Args:
        tree: where everything is written.
        intended: the paths that misspelt keys probably stand for.
    """
    written = tree.data.get("workloads")
    for name, value in written.items() if isinstance(written, dict) else ():
        path: TreePath = ("workloads", name)
        has_file = (isinstance(value, dict) and "file" in value) or (*path, "file") in intended
        if name in WORKLOADS:
            if has_file:
                where = tree.source.node(tree.keys.get((*path, "file"), tree.keys[path]))
                yield Problem(f"{name} is a workload of the program, so it takes no file", where, "rename the workload")
        elif not has_file:
            close = difflib.get_close_matches(name[:100], WORKLOADS, 1)
            known = f"known: {', '.join(WORKLOADS)}; a network of yours needs file: and its model file"
            hint = f"did you mean {close[0]!r}?" if close else known
            yield Problem(f"unknown workload {abbreviated(name)}", tree.source.node(tree.keys[path]), hint)
        elif len(name) > LONGEST_NAME or not NETWORK_NAME.fullmatch(name):
            hint = f"small letters, then digits and dashes, at most {LONGEST_NAME}, such as my-network"
            message = f"{abbreviated(name)} cannot name a workload"
            yield Problem(message, tree.source.node(tree.keys[path]), hint)


def read_networks(tree: Tree, matrix: Matrix, folder: Path) -> tuple[Mapping[str, Network], list[Problem]]:
    """Return workload -> the network of its model file, and what is wrong with the files.

    Args:
        tree: where everything is written.
        matrix: the checked matrix.
        folder: the folder of the matrix file, which model files have to stay below.
    """
    networks: dict[str, Network] = {}
    problems: list[Problem] = []
    for name, choice in matrix.workloads.items():
        if choice.file is None or name in WORKLOADS:
            continue
        where = tree.source.node(node_at(tree, ("workloads", name, "file")))
        message, hint = path_mistake(folder, choice.file, INSIDE)
        path = folder / choice.file
        if message:
            problems.append(Problem(f"the model file {choice.file} {message}", where, hint))
        elif not path.exists():
            problems.append(Problem(f"there is no {path}", where, INSIDE))
        else:
            try:
                networks[name] = read_network(path)
            except MatrixError as error:
                problems += error.problems
    return networks, problems
