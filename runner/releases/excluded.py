"""What selectors exclude where they or others name releases: ``torch==2.9.1 numpy==2.3.0 !torch==2.9.1``."""

from collections.abc import Sequence
from pathlib import Path

from runner.matrix import Matrix, load
from runner.matrix.select import none_remains
from runner.releases.named import id_of, parse_named, split_selector, with_id


def without_excluded(matrix: Matrix, selectors: Sequence[str]) -> list[str]:
    """Return selectors whose exclusions name environments, without the releases that they exclude entirely.

    An excluded release is the one of that name that is selected, or of the matrix; where there is none, it is a range:
    all environments of the matrix with that release. So nothing is looked for or locked only to be excluded.

    Raises:
        NothingSelectedError: all that is selected are releases that are excluded.
        UsageError: a release names a package twice.
    """
    parts = [(selector, *split_selector(selector), id_of(selector, matrix)) for selector in selectors]
    selected = {name for _, mark, _, _, name in parts if name and not mark}
    variants = {name for _, mark, _, rest, name in parts if rest.startswith("@") and not mark}
    excluded = {name for _, mark, _, rest, name in parts if mark and not rest}
    needless = (excluded & selected) - variants - {*matrix.environments}
    words = [
        f"!{name}{rest}" if mark and name in {*selected, *matrix.environments} else selector
        for selector, mark, _, rest, name in parts
        if name not in needless
    ]
    if needless and all(word.startswith("!") for word in words):
        raise none_remains(selectors)
    return words


def undeclared(matrix_file: Path, selectors: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the selectors that name releases that a matrix file does not have, and the others, with ids for releases.

    Exclusions that exclude nothing of the others are left out.

    Raises:
        MatrixError: the matrix is not valid.
        NothingSelectedError, UsageError: see ``without_excluded``.
    """
    if not any(map(parse_named, selectors)):
        return [], [*selectors]
    matrix = load(matrix_file, networks=False)
    words = [(selector, with_id(selector, matrix)) for selector in without_excluded(matrix, selectors)]
    named = [
        selector
        for selector, name in words
        if not selector.startswith("!") and selector != name and name not in matrix.environments
    ]
    others = [selector if selector.startswith("!") else name for selector, name in words if selector not in named]
    return named, others if any(not each.startswith("!") for each in others) else []
