"""Check the patterns and selectors of workloads and presets: one that matches nothing is a mistake of the file."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache

import yaml

from runner.catalog.cases import PHASES
from runner.core.errors import Problem
from runner.harness.adapters import implementations
from runner.matrix.fields import FRAMEWORKS, Framework
from runner.matrix.models import Matrix, Preset, Selector
from runner.matrix.select import fits, fits_some_phase
from runner.matrix.yaml_tree import Path, Tree

Names = Callable[[str], Sequence[str]]
"""Returns the names that a pattern is compared with."""
MOST_NAMES = 12
"""How many names a hint lists."""


def pattern_problems(tree: Tree, matrix: Matrix) -> Iterator[Problem]:
    """Yield a problem for each pattern that matches nothing, else for each preset that selects nothing.

    What matches is decided by the matrix and the catalog alone, not by what this machine can build or run.
    """
    problems = []
    for path, pattern, label, names in _patterns(matrix):
        known = names(pattern)
        if not any(fnmatchcase(name, pattern) for name in known):
            problems.append(
                Problem(
                    f"no {label} matches {pattern!r}",
                    tree.source.node(node_at(tree, path)),
                    nearest_name(pattern, known),
                )
            )
    yield from problems or _preset_problems(tree, matrix)


def _preset_problems(tree: Tree, matrix: Matrix) -> Iterator[Problem]:
    """Yield a problem for each preset that selects no cell of the matrix, although each of its patterns matches."""
    for name, preset in matrix.presets.items():
        if matrix.environments and not any(_selects(matrix, preset, selector) for selector in preset.select):
            where = tree.source.node(node_at(tree, ("presets", name, "select")))
            hint = "name workloads, phases, precisions and environments that this matrix lists"
            yield Problem(f"the preset {name} selects no test", where, hint)


def _selects(matrix: Matrix, preset: Preset, selector: Selector) -> bool:
    """Return True if a selector selects a case, a phase and a precision that the matrix lists, in an environment."""
    slugs = {
        slug
        for name, environment in matrix.environments.items()
        if fits(selector.environments, name)
        for slug in implementation_names(matrix, environment.framework)
    }
    if not any(fits(selector.implementations, slug) for slug in slugs):
        return False
    for case_id, case in matrix.cases.items():
        choice = matrix.workloads.get(case["workload"])
        if choice is None or not set(selector.precisions or choice.precisions) & set(choice.precisions):
            continue
        listed = selector.phases or preset.phases or matrix.phases_of(case["workload"])
        phases = [phase for phase in case.get("phases", PHASES) if phase in listed]
        if fits_some_phase(selector.cases, case_id, phases):
            return True
    return False


def _patterns(matrix: Matrix) -> Iterator[tuple[Path, str, str, Names]]:
    """Yield (path, pattern without ``!``, what it is a pattern of, names) for each pattern, and for each phase."""
    for path, phases in _written_phases(matrix):
        yield from (((*path, index), phase, "phase", _always(matrix.phase_names)) for index, phase in enumerate(phases))
    yield from _patterns_of_workloads(matrix)
    yield from _patterns_of_presets(matrix)


def _patterns_of_workloads(matrix: Matrix) -> Iterator[tuple[Path, str, str, Names]]:
    for workload, choice in matrix.workloads.items():
        cases = [case["name"] for case in matrix.cases.values() if case["workload"] == workload]
        for index, pattern in enumerate(choice.cases):
            yield (
                ("workloads", workload, "cases", index),
                pattern.removeprefix("!"),
                f"case of {workload}",
                _always(cases),
            )


def _patterns_of_presets(matrix: Matrix) -> Iterator[tuple[Path, str, str, Names]]:
    case_names, phase_names = list(matrix.cases), _phases_of_cases(matrix)
    slugs = list(dict.fromkeys(slug for framework in FRAMEWORKS for slug in implementation_names(matrix, framework)))

    def compared(pattern: str) -> Sequence[str]:
        """Return what a pattern of cases is compared with: phases of cases if it has three parts, else cases."""
        return phase_names if pattern.count("/") > 1 else case_names

    for name, preset in matrix.presets.items():
        for number, selector in enumerate(preset.select):
            fields: tuple[tuple[str, Sequence[str], str, Names], ...] = (
                ("cases", selector.cases, "case", compared),
                ("environments", selector.environments, "environment", _always(list(matrix.environments))),
                ("implementations", selector.implementations, "implementation", _always(slugs)),
            )
            for key, patterns, label, names in fields:
                for index, pattern in enumerate(patterns):
                    path = ("presets", name, "select", number, key, index)
                    yield path, pattern.removeprefix("!"), label, names


def _written_phases(matrix: Matrix) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield (path, phases) of each list of phases."""
    for workload, choice in matrix.workloads.items():
        yield ("workloads", workload, "phases"), choice.phases
    for name, preset in matrix.presets.items():
        yield ("presets", name, "phases"), preset.phases or ()
        for number, selector in enumerate(preset.select):
            yield ("presets", name, "select", number, "phases"), selector.phases or ()


def _always(names: Sequence[str]) -> Names:
    return lambda _pattern: names


def _phases_of_cases(matrix: Matrix) -> tuple[str, ...]:
    cases = matrix.cases.items()
    return tuple(f"{case_id}/{phase}" for case_id, case in cases for phase in case.get("phases", PHASES))


def implementation_names(matrix: Matrix, framework: Framework) -> tuple[str, ...]:
    """Return the implementations of a framework, and the variants of the networks of a matrix, each once."""
    of_networks = (variant.name for each in matrix.networks.values() for variant in each.variants.get(framework, ()))
    return tuple(dict.fromkeys((*_slugs(framework), *of_networks)))


@cache
def _slugs(framework: Framework) -> tuple[str, ...]:
    return tuple(implementation.slug for implementation in implementations(framework))


def node_at(tree: Tree, path: Path) -> yaml.Node:
    """Return the node at a path, or the nearest one above it: a selector may be written as a bare text."""
    while path not in tree.values:
        path = path[:-1]
    return tree.values[path]


def nearest_name(pattern: str, known: Sequence[str]) -> str:
    """Return a hint with the known name that is nearest to a pattern, or with the first of them all."""
    close = difflib.get_close_matches(pattern[:100], known, 1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    names = list(dict.fromkeys(known))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"there are {', '.join(names[:MOST_NAMES])}{more}"
