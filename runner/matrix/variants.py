"""Variants of environments that a command names: other variables, or other numbers of threads, of the same image."""

import re
from collections.abc import Iterable, Mapping, Sequence

from runner.core.errors import Problem, UsageError
from runner.core.model.variant_ids import THREADS, VARIABLES, decoded, is_variant, split_variant, variant_name
from runner.core.text import without_credentials
from runner.core.units import MAX_COUNT
from runner.core.variables import is_name, refusal
from runner.matrix.fields import LONGEST_TEXT
from runner.matrix.models import Matrix
from runner.matrix.select import environments_named

LONGEST_VARIANT = 120
"""Characters of a variant's id: cells and files are named by it, and a file name has at most 255 bytes."""
_COUNT = re.compile("[1-9][0-9]{0,5}", re.ASCII)


def read_variables(assignments: Iterable[str]) -> dict[str, str]:
    """Return name -> value of variables that are written as ``NAME=VALUE``.

    Raises:
        UsageError: one is not written so, is given twice, or has a name or a value that no environment may have.
    """
    variables: dict[str, str] = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not is_name(name):
            hint = "write NAME=VALUE, such as OMP_WAIT_POLICY=passive"
            raise UsageError(Problem(f"{assignment!r} is no variable with its value", hint=hint))
        if name in variables:
            raise UsageError(Problem(f"the variable {name} is given twice", hint="keep one of the two"))
        if reason := refusal(name):
            raise UsageError(Problem(f"{name} cannot be set for an environment: {reason}"))
        if without_credentials(value) != value:
            hint = "write the address without it: records hold all values"
            raise UsageError(Problem(f"{name} has a user or a password in an address", hint=hint))
        if not value.isprintable() or len(value) > LONGEST_TEXT:
            message = f"the value of {name} has a control character, or more than {LONGEST_TEXT} characters"
            raise UsageError(Problem(message, hint="write it in one line"))
        variables[name] = value
    return variables


def read_threads(text: str, option: str) -> tuple[int, ...]:
    """Return thread counts with commas between them, such as ``1,2,4``.

    Args:
        text: as it was typed.
        option: what it was typed behind, for messages.

    Raises:
        UsageError: it is none, or a count is given twice.
    """
    words = text.split(",")
    counts = tuple(int(word) for word in words if _COUNT.fullmatch(word) and int(word) <= MAX_COUNT)
    if len(counts) != len(words):
        raise UsageError(Problem(f"{option}{text} is no number of threads", hint=f"write {option}4"))
    if len(set(counts)) != len(counts):
        raise UsageError(Problem(f"{option}{text} has a number twice", hint="keep one of the two"))
    return counts


def with_variables(matrix: Matrix, variables: Mapping[str, str]) -> Matrix:
    """Return the matrix with variables in all environments; they replace those of the same names."""
    if not variables:
        return matrix
    changed = {
        name: environment.model_copy(update={"env": {**environment.env, **variables}})
        for name, environment in matrix.environments.items()
    }
    return matrix.with_environments(changed, {}, {})


def with_variants(matrix: Matrix, selectors: Sequence[str]) -> tuple[Matrix, list[str]]:
    """Return the matrix with the variants that selectors name, and the selectors with the ids of these.

    Args:
        matrix: the checked matrix.
        selectors: as they were typed; ``torch-2.x@env:A=1``, or ``torch-*@threads:4/nn-lstm/*``.

    Raises:
        NothingSelectedError: a selector names no environment.
        UsageError: a variable or a thread count is wrong, or an id would be too long.
    """
    words: list[str] = []
    for selector in selectors:
        mark, rest = ("!", selector[1:]) if selector.startswith("!") else ("", selector)
        name, slash, cells = rest.partition("/")
        if not is_variant(name):
            words.append(selector)
            continue
        named, text, count = split_variant(name)
        variables = _typed_variables(text, selector)
        threads = read_threads(count, THREADS) if THREADS in name else (0,)
        if len(threads) > 1:
            hint = f"name a variant for each: {', '.join(f'{named}{THREADS}{each}' for each in threads)}"
            raise UsageError(Problem(f"{selector!r} has several thread counts", hint=hint))
        matches = environments_named(matrix, named)
        bases = [each for each in matrix.environments if each in matches and not is_variant(each)]
        matrix = _added(matrix, bases, variables, threads[0])
        words += [f"{mark}{variant_name(base, variables, threads[0])}{slash}{cells}" for base in bases]
    return matrix, words


def canonical(name: str) -> str:
    """Return the id of a variant as records have it, from one that may be typed in other words.

    Raises:
        UsageError: a variable or a thread count is wrong.
    """
    environment, text, count = split_variant(name)
    (threads,) = read_threads(count, THREADS)[:1] if THREADS in name else (0,)
    return variant_name(environment, _typed_variables(text, name), threads)


def _typed_variables(text: str, selector: str) -> dict[str, str]:
    """Return the variables of a selector, whose values may be percent-encoded."""
    if not text and VARIABLES not in selector:
        return {}
    parts = (each.partition("=") for each in text.split(","))
    return read_variables((f"{name}{separator}{decoded(value)}" for name, separator, value in parts))


def with_thread_counts(matrix: Matrix, counts: Sequence[int]) -> Matrix:
    """Return the matrix with a variant of each environment for each count but the first, which is that of the run."""
    follows: dict[str, str] = {}
    threads: dict[str, int] = {}
    environments = {}
    for name, environment in matrix.environments.items():
        environments[name] = environment
        if THREADS in name:
            continue
        for count in counts[1:]:
            variant = _checked(f"{name}{THREADS}{count}")
            environments[variant], threads[variant], follows[variant] = environment, count, name
    return matrix.with_environments(environments, threads, follows)


def _added(matrix: Matrix, bases: Sequence[str], variables: Mapping[str, str], threads: int) -> Matrix:
    """Return the matrix with a variant of each of some environments, behind the variants that it has already."""
    environments = dict(matrix.environments)
    of_variants: dict[str, int] = {}
    for base in bases:
        variant = _checked(variant_name(base, variables, threads))
        together = {**environments[base].env, **variables}
        if variant in environments:
            continue
        changed = environments[base].model_copy(update={"env": together})
        behind = max(index for index, name in enumerate(environments) if split_variant(name)[0] == base)
        items = list(environments.items())
        environments = dict([*items[: behind + 1], (variant, changed), *items[behind + 1 :]])
        of_variants |= {variant: threads} if threads else {}
    return matrix.with_environments(environments, of_variants, {})


def _checked(variant: str) -> str:
    """Return the id of a variant; raises UsageError if it is too long to be a part of file names."""
    if len(variant) > LONGEST_VARIANT:
        message = f"the name {variant[:40]}... would have {len(variant)} characters, and may have {LONGEST_VARIANT}"
        hint = "write an environment with extends: and env: into the matrix file, under a short name"
        raise UsageError(Problem(message, hint=hint))
    return variant
