"""Read and check a matrix file, and report all its mistakes at once, each with its place and a hint."""

from pathlib import Path as FilePath

from pydantic import ValidationError

from runner.catalog.cases import WORKLOADS
from runner.core.architectures import Architecture, this_architecture
from runner.core.errors import MatrixError, Problem, Where
from runner.core.files import read_bounded
from runner.matrix.environments import broken_rules
from runner.matrix.errors import explain, intended_keys
from runner.matrix.exclusions import exclusion_problems
from runner.matrix.extensions import is_extension, write_out
from runner.matrix.lock_paths import lock_problems
from runner.matrix.models import Matrix
from runner.matrix.nightly import base_problems
from runner.matrix.patterns import node_at, pattern_problems
from runner.matrix.workloads import name_problems, read_networks
from runner.matrix.yaml_source import MAX_BYTES, compose, decode
from runner.matrix.yaml_tree import Path, Tree, Unread, build_tree, kind_of


def load(path: FilePath, *, networks: bool = True, architecture: Architecture | None = None) -> Matrix:
    """Return the matrix in a file, with the builds for an architecture.

    Args:
        path: the file.
        networks: read the model files of the user's networks, too. False leaves those networks without cases.
        architecture: what the builds are for; None is that of this machine.

    Raises:
        MatrixError: the file cannot be read, or is not a valid matrix; the error has every mistake in the file's order.
    """
    try:
        content = read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        raise MatrixError(Problem(f"there is no {path}", hint="name the matrix with --matrix FILE")) from None
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise MatrixError(Problem(message, hint="name another file with --matrix FILE")) from error
    matrix = parse(content, str(path), path.parent, networks=networks)
    return matrix.for_architecture(architecture or this_architecture())


def position(path: FilePath, keys: Path) -> Where:
    """Return where a value of a matrix file stands, or what contains it; the file was loaded before.

    Args:
        path: the matrix file.
        keys: the keys and list indexes that lead to the value.
    """
    source = decode(read_bounded(path, MAX_BYTES), str(path))
    return source.node(node_at(build_tree(source, compose(source)), keys))


def parse(content: bytes, name: str, folder: FilePath | None = None, *, networks: bool = True) -> Matrix:
    """Return the matrix in the content of a file, with the builds for x86_64.

    Args:
        content: the bytes of the file.
        name: what messages call the file.
        folder: the folder of the file, where locks that exist are looked at, and model files are read; None does
            neither.
        networks: read the model files.

    Raises:
        MatrixError: the content is not a valid matrix; the error has every mistake in the file's order.
    """
    source = decode(content, name)
    tree = build_tree(source, compose(source))
    if not isinstance(tree.data, dict):
        raise MatrixError(*(tree.problems or [_not_a_mapping(tree)]))
    data, problems = write_out(tree)
    problems += tree.problems
    intended: set[Path] = set()
    matrix: Matrix | None = None
    try:
        matrix = Matrix.model_validate(data)
    except ValidationError as error:
        problems += explain(tree, error)
        intended = intended_keys(error.errors(include_url=False))
    problems += [*_rule_problems(tree, intended), *name_problems(tree, intended)]
    if matrix is not None:
        if folder is not None and networks:
            read, mistakes = read_networks(tree, matrix, folder)
            matrix, problems = matrix.with_networks(read), problems + mistakes
        problems += [*_selection_problems(tree, matrix), *base_problems(tree, matrix)]
        problems += lock_problems(tree, matrix, folder) if folder is not None else ()
    if matrix is None or problems:
        raise MatrixError(*_ordered(problems, name))
    return matrix


def _selection_problems(tree: Tree, matrix: Matrix) -> list[Problem]:
    """Return the patterns that match nothing; none where the cases of a workload, which may match, are not known."""
    if any(name not in WORKLOADS and name not in matrix.networks for name in matrix.workloads):
        return []
    return [*pattern_problems(tree, matrix), *exclusion_problems(tree, matrix)]


def _not_a_mapping(tree: Tree) -> Problem:
    root = tree.values[()]
    content = "a date" if isinstance(tree.data, Unread) else kind_of(tree.data, root)
    hint = "start with 'version: 1' and 'environments:'"
    return Problem(f"the matrix must be a mapping, and YAML read {content}", tree.source.node(root), hint)


def _rule_problems(tree: Tree, intended: set[Path]) -> list[Problem]:
    """Return the broken rules about the keys of environments.

    pydantic checks these rules only in an environment without other mistakes, so they are checked here. Those of an
    environment that extends another are broken where the other is written.
    """
    environments = tree.data.get("environments")
    if not isinstance(environments, dict):
        return []
    problems = []
    for name, written in environments.items():
        path: Path = ("environments", name)
        if not isinstance(written, dict) or path in tree.incomplete or is_extension(written):
            continue
        misspelt = {str(key): True for *parent, key in intended if tuple(parent) == path}
        for rule in broken_rules(misspelt | written):
            node = tree.keys.get((*path, rule.key or ""), tree.keys[path])
            problems.append(Problem(f"{name} {rule.message}", tree.source.node(node), rule.hint))
    return problems


def _ordered(problems: list[Problem], name: str) -> list[Problem]:
    """Return the problems by line and column, each once: an alias repeats the mistakes of its anchor.

    Those of the matrix are first, and then those of each model file.
    """

    def order(problem: Problem) -> tuple[bool, str, int, int]:
        at = problem.where
        return (False, "", 0, 0) if at is None else (at.file != name, at.file, at.line, at.column)

    return sorted(dict.fromkeys(problems), key=order)
