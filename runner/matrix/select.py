"""Find the environments and cells that selectors name: ids, globs, ranges of releases, frameworks and cell globs."""

import difflib
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache

from packaging.version import Version

from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model.cells import environment_of, without_environment
from runner.matrix.fields import FRAMEWORK_ALIASES, FRAMEWORKS
from runner.matrix.models import Matrix

_CELL_PARTS = 6
LONGEST_SHOWN = 200
"""Characters of a selector in a message; a cell has at most about as many."""
_RANGE = re.compile(r"([A-Za-z][A-Za-z0-9]*)\s*([<>=!~].*)")
_BOUND = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([0-9][0-9A-Za-z._+*-]*)\s*")
_OPERATORS: Mapping[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def select_environments(matrix: Matrix, selectors: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the environments that the selectors name, in the file's order.

    Args:
        matrix: the matrix to select from.
        selectors: ids, globs (``torch-*``), ranges (``torch>=1.0,<2``), ``framework:tf``, or globs over cell ids, of
            which the first part counts. A ``!`` in front excludes what a selector names. Without a selector that
            includes, all environments are included.

    Raises:
        NothingSelectedError: a selector names no environment, or no environment remains.
        UsageError: a range cannot be read.
    """
    included = [selector for selector in selectors if not selector.startswith("!")]
    chosen = (
        {name for selector in included for name in environments_named(matrix, selector)}
        if included
        else set(matrix.environments)
    )
    for selector in selectors:
        if selector.startswith("!"):
            named = environments_named(matrix, selector[1:])
            chosen -= set() if "/" in selector else named
    if not chosen:
        raise none_remains(selectors)
    return tuple(name for name in matrix.environments if matrix.follows.get(name, name) in chosen)


def none_remains(selectors: Sequence[str]) -> NothingSelectedError:
    """Return the error of selectors that exclude all that they include."""
    message = f"no environment remains of {' '.join(selectors)}"
    return NothingSelectedError(Problem(message, hint="remove a selector that begins with !"))


def split_selectors(selectors: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the selectors of environments, and the cell globs: those with a ``/``, extended to match entire cell ids.

    A glob keeps its ``!``.
    """
    environments = tuple(selector for selector in selectors if "/" not in selector)
    return environments, tuple(_cell_glob(selector) for selector in selectors if "/" in selector)


def choose_cells(matrix: Matrix, selectors: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that takes a cell id and returns True if the selectors name the cell.

    Environment selectors and cell globs add up: ``torch-1.0 torch-2.x/nn-lstm/*`` selects all cells of the first
    environment and some of the second.

    Raises:
        NothingSelectedError: a selector names no environment, or no environment remains.
        UsageError: a range cannot be read.
    """
    environments, globs = split_selectors(selectors)
    included = [glob for glob in globs if not glob.startswith("!")]
    excluded = [glob[1:] for glob in globs if glob.startswith("!")]
    allowed = set(select_environments(matrix, selectors))
    only_globs = bool(included) and all(selector.startswith("!") for selector in environments)
    all_of = set() if only_globs else set(select_environments(matrix, environments))

    def chosen(cell: str) -> bool:
        name = environment_of(cell)
        followed = f"{matrix.follows.get(name, name)}/{without_environment(cell)}"
        named = name in all_of or any(fnmatchcase(followed, glob) for glob in included)
        return named and name in allowed and not any(fnmatchcase(followed, glob) for glob in excluded)

    return chosen


def fits(patterns: Sequence[str], text: str) -> bool:
    """Return True if a text matches a pattern, and none of the patterns with ``!`` in front.

    Without a pattern that includes, every text is included: ``["!a*"]`` fits all texts that do not begin with a.

    >>> fits([], "x"), fits(["a*"], "ab"), fits(["!a*"], "ab"), fits(["*", "!ab"], "ab")
    (True, True, False, False)
    """
    return _is_included(tuple(patterns), text, text)


def fits_phase(patterns: Sequence[str], case_id: str, phase: str) -> bool:
    """Return True if patterns of ``workload/case`` or ``workload/case/phase`` fit a phase of a case, see ``fits``."""
    names_phases = any(pattern.count("/") > 1 for pattern in patterns)
    return _is_included(tuple(patterns), case_id, f"{case_id}/{phase}" if names_phases else case_id)


def fits_some_phase(patterns: Sequence[str], case_id: str, phases: Sequence[str]) -> bool:
    """Return True if patterns fit one of some phases of a case, see ``fits_phase``."""
    return _fits_some(tuple(patterns), case_id, tuple(phases))


@lru_cache(1 << 16)
def _fits_some(patterns: tuple[str, ...], case_id: str, phases: tuple[str, ...]) -> bool:
    names_phases = any(pattern.count("/") > 1 for pattern in patterns)
    return any(fits_phase(patterns, case_id, phase) for phase in (phases if names_phases else phases[:1]))


@lru_cache(1 << 16)
def _is_included(patterns: tuple[str, ...], short: str, long: str) -> bool:
    """Return True if patterns fit a text: those of three parts and more its long form, and others its short one."""
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]

    def matches(pattern: str) -> bool:
        return fnmatchcase(long if pattern.count("/") > 1 else short, pattern)

    return (not included or any(map(matches, included))) and not any(map(matches, excluded))


@cache
def release_key(release: str) -> Version | None:
    """Return what releases are ordered by: the version of PEP 440 without its local part; None if it is not a version.

    ``0.1.12_2``, a post-release in the notation of early PyTorch, equals ``0.1.12.post2``. ``2.*`` follows every
    ``2.x`` and precedes ``3``.

    >>> release_key("1.0rc1") < release_key("1.0") == release_key("1.0.0+cu90") < release_key("1.0.post1")
    True
    """
    text = release.partition("+")[0]
    if text.endswith(".*"):
        text = text.removesuffix("*") + str(sys.maxsize)
    try:
        return Version(re.sub(r"_([0-9]+)$", r".post\1", text))
    except ValueError:  # InvalidVersion, or a number of more digits than int() takes
        return None


def _cell_glob(glob: str) -> str:
    if glob.count("/") >= _CELL_PARTS - 1 or glob.endswith("*"):
        return glob
    return f"{glob}*" if glob.endswith("/") else f"{glob}/*"


def environments_named(matrix: Matrix, selector: str) -> set[str]:
    """Return the ids that a selector names; variants that follow other environments are left out.

    Raises:
        NothingSelectedError: it names no environment.
        UsageError: it is a range that cannot be read.
    """
    if "/" not in selector and (match := _RANGE.fullmatch(selector)):
        is_framework = _framework(match[1]) in FRAMEWORKS
        named = _in_range(matrix, selector, match[1], match[2]) if is_framework else set()
    elif selector.startswith("framework:"):
        framework = _framework(selector.removeprefix("framework:"))
        named = {name for name, environment in matrix.environments.items() if environment.framework == framework}
    else:
        glob = selector.partition("/")[0]
        named = {name for name in matrix.environments if fnmatchcase(name, glob)}
    if not named:
        raise NothingSelectedError(Problem(f"{_shown(selector)} names no environment", hint=_hint(matrix, selector)))
    return named


def _framework(word: str) -> str:
    """Return the name of a framework from its name or alias, in any case."""
    return FRAMEWORK_ALIASES.get(word.lower(), word.lower())


def _in_range(matrix: Matrix, selector: str, framework: str, bounds: str) -> set[str]:
    tests = [_bound_test(selector, text) for text in bounds.split(",")]
    return {
        name
        for name, environment in matrix.environments.items()
        if environment.framework == _framework(framework)
        and (key := release_key(environment.release)) is not None
        and all(test(key) for test in tests)
    }


def _bound_test(selector: str, text: str) -> Callable[[Version], bool]:
    """Return the test that one bound such as ``>=1.0`` stands for.

    Bounds compare versions by their order alone. The specifiers of PEP 440 leave out pre-releases and post-releases,
    but ``torch>0.1.12`` has to select 0.1.12_2.

    Raises:
        UsageError: the bound cannot be read.
    """
    match = _BOUND.fullmatch(text)
    limit = release_key(match[2]) if match else None
    if match is None or limit is None:
        message = f"cannot read {_shown(text.strip())} in the range {_shown(selector)}"
        raise UsageError(Problem(message, hint="write a range such as 'torch>=1.0,<2'"))
    if match[2].endswith(".*") and match[1] in ("==", "!="):
        series = limit.release[:-1]
        return lambda key: (_padded(key.release, len(series)) == series) == (match[1] == "==")
    compare = _OPERATORS[match[1]]
    return lambda key: compare(key, limit)


def _shown(text: str) -> str:
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")


def _padded(numbers: tuple[int, ...], length: int) -> tuple[int, ...]:
    return (*numbers, *[0] * length)[:length]


def _hint(matrix: Matrix, selector: str) -> str:
    word = selector.partition("/")[0]
    framework = re.split("[<>=!~]", word.removeprefix("framework:"))[0]
    if framework == word and _framework(word) in FRAMEWORKS:
        return f"for all of its releases write framework:{word}"
    if framework != word and _framework(framework) not in FRAMEWORKS:
        of_matrix = {environment.framework for environment in matrix.environments.values()}
        known = sorted({*FRAMEWORKS} if "==" in word else of_matrix)  # a release needs no environment of the matrix
        names = [*known, *(alias for alias, of in FRAMEWORK_ALIASES.items() if of in known)]
        near = difflib.get_close_matches(framework.lower(), names, 1)
        return _did_you_mean([selector.replace(framework, each, 1) for each in near], "frameworks", known)
    close: list[str] = []
    if framework == word:
        releases = [name for name in matrix.environments if name.partition("-")[0] == word.partition("-")[0]]
        close = [
            each
            for names in (releases, matrix.environments)
            for each in difflib.get_close_matches(word[:100], names, 1)
        ]
    return _did_you_mean(close, "environments", matrix.environments)


def _did_you_mean(close: list[str], kind: str, known: Iterable[str]) -> str:
    return f"did you mean {close[0]!r}?" if close else f"{kind}: {', '.join(known)}"
