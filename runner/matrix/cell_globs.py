"""Globs over cell ids: whether one can match a cell at all, and which of its parts is the mistake."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import get_args

from runner.catalog.cases import PHASES, WORKLOADS
from runner.catalog.published import PHASE_SUFFIX
from runner.core.errors import NothingSelectedError, Problem
from runner.core.model import Precision
from runner.matrix.models import Matrix
from runner.matrix.patterns import implementation_names, nearest_name
from runner.matrix.select import split_selectors

PARTS = ("environment", "implementation", "workload", "case", "phase", "precision")
"""The parts of a cell id, in order."""

_PARTS_OF_THE_PREVIOUS = ("implementation", "case", "phase")
"""Parts whose names depend on the part before: implementations on the environment, cases on the workload, ..."""

Names = tuple[Sequence[str], ...]
"""The names that match the first parts of a glob: environments, then implementations, ..."""


def refuse_impossible(matrix: Matrix, selectors: Sequence[str]) -> None:
    """Raise NothingSelectedError if some selector is a glob over cell ids that matches no possible cell.

    Args:
        matrix: with an environment for the first part of each glob.
        selectors: those of cells that begin with ``!`` may exclude nothing, and those of environments do not count.
    """
    globs = [glob for glob in split_selectors(selectors)[1] if not glob.startswith("!")]
    problems = [Problem(message, hint=hint) for message, hint in (mistake(matrix, glob) for glob in globs) if message]
    if problems:
        raise NothingSelectedError(*problems)


def mistake(matrix: Matrix, glob: str) -> tuple[str, str]:
    """Return the message and the hint for a glob that matches no possible cell; both are empty for any other.

    Possible cells combine the environments of the matrix with all implementations of their frameworks, all cases of
    the catalog and of the user's networks, the phases of these cases in either protocol, and all precisions.
    """
    if _matches_a_cell(matrix, re.sub(r"\*+", "*", glob), ()):
        return "", ""
    return _explanation(matrix, glob)


def _matches_a_cell(matrix: Matrix, glob: str, matched: Names) -> bool:
    """Return True if the rest of a glob matches the parts of a cell id that follow the matched ones."""
    names = _names(matrix, matched)
    if len(matched) == len(PARTS) - 1:
        return any(fnmatchcase(name, glob) for name in names)
    for part, rest in _splits(glob):
        matches = [name for name in names if fnmatchcase(name, part)]
        if matches and _matches_a_cell(matrix, rest, (*matched, matches)):
            return True
    return False


def _splits(glob: str) -> Iterator[tuple[str, str]]:
    """Yield each way to split a glob into that of one part of an id and that of the rest; a * reaches beyond a slash.

    >>> list(_splits("a*/b"))
    [('a*', 'b'), ('a*', '*/b')]
    """
    head, slash, tail = glob.partition("/")
    if slash:
        yield head, tail
    for index, character in enumerate(head):
        if character == "*":
            yield head[: index + 1], glob[index:]


def _names(matrix: Matrix, matched: Names) -> Sequence[str]:
    """Return what the part of a cell id can be that follows the matched parts."""
    part = PARTS[len(matched)]
    if part == "environment":
        return list(matrix.environments)
    if part == "implementation":
        frameworks = dict.fromkeys(matrix.environments[name].framework for name in matched[0])
        return [slug for framework in frameworks for slug in implementation_names(matrix, framework)]
    if part == "workload":
        return [*WORKLOADS, *matrix.networks]
    if part == "case":
        return [case["name"] for case in matrix.cases.values() if case["workload"] in matched[2]]
    if part == "phase":
        cases = (matrix.cases.get(f"{workload}/{name}", {}) for workload in matched[2] for name in matched[3])
        phases = dict.fromkeys(phase for case in cases for phase in case.get("phases", PHASES))
        return [*phases, *(f"{phase}{PHASE_SUFFIX}" for phase in phases)]
    return get_args(Precision)


def _explanation(matrix: Matrix, glob: str) -> tuple[str, str]:
    """Return the message and the hint for a glob that matches no cell; they name the first part that is unknown."""
    parts = glob.split("/")
    if len(parts) > len(PARTS) or (len(parts) < len(PARTS) and "*" not in glob):
        message = f"{glob!r} has {len(parts)} of the {len(PARTS)} parts of a test id"
        return message, f"write {'/'.join(PARTS)}; a * also matches several parts"
    matched: Names = ()
    for index, (part, label) in enumerate(zip(parts, PARTS, strict=False)):
        names = _names(matrix, matched)
        matches = [name for name in names if fnmatchcase(name, part)]
        if not matches:
            depends = label in _PARTS_OF_THE_PREVIOUS and parts[index - 1] != "*"
            of_what = f" of {parts[index - 1]}" if depends else ""
            return f"no {label}{of_what} matches {part!r}", nearest_name(part, names)
        matched = (*matched, matches)
        if "*" in part and len(parts) < len(PARTS):
            break  # the * may match several parts, so what follows it can be any part
    every: Names = ()
    for _ in PARTS:
        every = (*every, _names(matrix, every))
    known = [name for names in every for name in names]
    for word in parts:
        if word not in known and not set(word) & set("*?["):
            return f"no part of a test id matches {word!r}", nearest_name(word, known)
    return f"no test id matches {glob!r}", f"write {'/'.join(PARTS)}; a * also matches several parts"
