"""Check the environments that every night measures with all others: ``nightly: {base: ...}`` and ``--base``."""

from collections.abc import Iterator, Sequence

from runner.core.errors import Problem
from runner.matrix.models import Matrix
from runner.matrix.patterns import nearest_name, node_at
from runner.matrix.yaml_tree import Tree


def base_problems(tree: Tree, matrix: Matrix) -> Iterator[Problem]:
    """Yield a problem for each environment under ``nightly: {base: ...}`` that cannot be a base, with its place."""
    for index, message, hint in base_mistakes(matrix, matrix.nightly.base):
        yield Problem(message, tree.source.node(node_at(tree, ("nightly", "base", index))), hint)


def base_mistakes(matrix: Matrix, names: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (index, message, hint) for each name that cannot be a base.

    A base stays the same from night to night: it has a lock or an image, and follows no package. Each framework has at
    most one.

    Args:
        matrix: the checked matrix.
        names: ids of environments.
    """
    by_framework: dict[str, str] = {}
    for index, name in enumerate(names):
        environment = matrix.environments.get(name)
        if environment is None:
            yield index, f"there is no environment {name!r}", nearest_name(name, list(matrix.environments))
            continue
        variants = environment.all_variants().values()
        first = by_framework.setdefault(environment.framework, name)
        if first != name:
            yield index, f"{first} and {name} are both bases of {environment.framework}", f"remove {name}"
        elif any(variant.follow for variant in variants):
            yield index, f"{name} follows a package, and a base stays the same", "name an environment without follow:"
        elif not any(variant.lock or variant.image for variant in variants):
            yield index, f"{name} has no lock, and a base stays the same", f"add lock: and run `runner lock {name}`"
