"""Reading ``matrix.yaml``: all its mistakes at once, each with its place and one thing to do about it."""

from pathlib import Path as FilePath

from pydantic import ValidationError

from runner.core.errors import MatrixError, Problem
from runner.matrix.errors import explain, meant_keys
from runner.matrix.exclusions import exclusion_problems
from runner.matrix.models import Matrix, broken_rules
from runner.matrix.patterns import pattern_problems
from runner.matrix.yaml_source import compose, decode
from runner.matrix.yaml_tree import Path, Tree, Unread, read, written_as


def load(path: FilePath) -> Matrix:
    """Read and check a matrix file.

    Raises:
        MatrixError: the file cannot be read, or is not a valid matrix; it holds every mistake, in the file's order.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise MatrixError(Problem(f"there is no {path}", hint="name the matrix with --matrix FILE")) from None
    except IsADirectoryError:
        raise MatrixError(Problem(f"{path} is a directory", hint="name a file with --matrix FILE")) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        message = f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        raise MatrixError(Problem(message, hint="name another with --matrix FILE")) from error
    return parse(content, str(path))


def parse(content: bytes, name: str) -> Matrix:
    """Check the content of a matrix file; ``name`` is what messages call it.

    Raises:
        MatrixError: it is not a valid matrix; it holds every mistake, in the file's order.
    """
    source = decode(content, name)
    tree = read(source, compose(source))
    if not isinstance(tree.data, dict):
        raise MatrixError(*(tree.problems or [_no_mapping(tree)]))
    problems = tree.problems
    meant: set[Path] = set()
    matrix: Matrix | None = None
    try:
        matrix = Matrix.model_validate(tree.data)
    except ValidationError as error:
        problems += explain(tree, error)
        meant = meant_keys(error.errors(include_url=False))
    problems += _rule_problems(tree, meant)
    if matrix is not None:
        problems += [*pattern_problems(tree, matrix), *exclusion_problems(tree, matrix)]
    if matrix is None or problems:
        raise MatrixError(*_ordered(problems))
    return matrix


def _no_mapping(tree: Tree) -> Problem:
    root = tree.values[()]
    content = "a date" if isinstance(tree.data, Unread) else written_as(tree.data, root)
    hint = "start with 'version: 1' and 'environments:'"
    return Problem(f"the matrix must be a mapping, and YAML read {content}", tree.source.node(root), hint)


def _rule_problems(tree: Tree, meant: set[Path]) -> list[Problem]:
    """Return the rules between keys that do not hold, also where pydantic stopped before them."""
    environments = tree.data.get("environments")
    if not isinstance(environments, dict):
        return []
    problems = []
    for name, written in environments.items():
        path: Path = ("environments", name)
        if not isinstance(written, dict) or path in tree.incomplete:
            continue
        misspelt = {str(key): True for *parent, key in meant if tuple(parent) == path}
        for rule in broken_rules(misspelt | written):
            node = tree.keys.get((*path, rule.at or ""), tree.keys[path])
            problems.append(Problem(f"{name} {rule.message}", tree.source.node(node), rule.hint))
    return problems


def _ordered(problems: list[Problem]) -> list[Problem]:
    """Return the problems by line and column, each once: an alias shows its anchor's mistakes again."""
    positions = [
        (problem.where.line, problem.where.column, problem) for problem in dict.fromkeys(problems) if problem.where
    ]
    return [problem for _, _, problem in sorted(positions, key=lambda entry: entry[:2])]
