"""Check the patterns of workloads and presets: one that matches nothing is a mistake of the file."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache

import yaml

from runner.catalog.cases import CASES, PHASES
from runner.core.errors import Problem
from runner.harness.adapters import implementations
from runner.matrix.fields import FRAMEWORKS
from runner.matrix.models import Matrix
from runner.matrix.yaml_tree import Path, Tree

Names = Callable[[str], Sequence[str]]
"""Returns the names that a pattern is compared with."""


def pattern_problems(tree: Tree, matrix: Matrix) -> Iterator[Problem]:
    """Yield a problem for each pattern of cases, environments or implementations that matches nothing."""
    for path, pattern, label, names in _patterns(matrix):
        known = names(pattern)
        if not any(fnmatchcase(name, pattern) for name in known):
            yield Problem(
                f"no {label} matches {pattern!r}", tree.source.node(node_at(tree, path)), nearest_name(pattern, known)
            )


def _patterns(matrix: Matrix) -> Iterator[tuple[Path, str, str, Names]]:
    """Yield (path, pattern without ``!``, what it is a pattern of, names) for each pattern."""
    for workload, choice in matrix.workloads.items():
        cases = [case["name"] for case in CASES.values() if case["workload"] == workload]
        for index, pattern in enumerate(choice.cases):
            yield (
                ("workloads", workload, "cases", index),
                pattern.removeprefix("!"),
                f"case of {workload}",
                _always(cases),
            )
    for name, preset in matrix.presets.items():
        for number, selector in enumerate(preset.select):
            fields: tuple[tuple[str, Sequence[str], str, Names], ...] = (
                ("cases", selector.cases, "case", _case_names),
                ("environments", selector.environments, "environment", _always(list(matrix.environments))),
                ("implementations", selector.implementations, "implementation", _always(_implementation_names())),
            )
            for key, patterns, label, names in fields:
                for index, pattern in enumerate(patterns):
                    path = ("presets", name, "select", number, key, index)
                    yield path, pattern.removeprefix("!"), label, names


def _always(names: Sequence[str]) -> Names:
    return lambda _pattern: names


def _case_names(pattern: str) -> Sequence[str]:
    """Return the names that a pattern of cases is compared with: phases of cases if it has three parts, else cases."""
    return _phases_of_cases() if pattern.count("/") > 1 else list(CASES)


@cache
def _phases_of_cases() -> tuple[str, ...]:
    return tuple(f"{case_id}/{phase}" for case_id, case in CASES.items() for phase in case.get("phases", PHASES))


@cache
def _implementation_names() -> tuple[str, ...]:
    slugs = (implementation.slug for framework in FRAMEWORKS for implementation in implementations(framework))
    return tuple(dict.fromkeys(slugs))


def node_at(tree: Tree, path: Path) -> yaml.Node:
    """Return the node at a path, or the nearest one above it: a selector may be written as a bare text."""
    while path not in tree.values:
        path = path[:-1]
    return tree.values[path]


def nearest_name(pattern: str, known: Sequence[str]) -> str:
    """Return a hint with the known name that is nearest to a pattern, or with the command that lists them all."""
    close = difflib.get_close_matches(pattern[:100], known, 1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "`runner plan --format json` lists all of them"
