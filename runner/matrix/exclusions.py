"""Check the selectors of ``exclude``: a glob that matches no possible cell id is a mistake of the file."""

from collections.abc import Iterator

from runner.core.errors import Problem
from runner.matrix.cell_globs import mistake
from runner.matrix.models import Matrix
from runner.matrix.patterns import node_at
from runner.matrix.yaml_tree import Tree


def exclusion_problems(tree: Tree, matrix: Matrix) -> Iterator[Problem]:
    """Yield a problem, with its line and column, for each selector of ``exclude`` that no cell can match."""
    for index, rule in enumerate(matrix.exclude):
        message, hint = mistake(matrix, rule.select)
        if message:
            yield Problem(message, tree.source.node(node_at(tree, ("exclude", index, "select"))), hint)
