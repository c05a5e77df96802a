"""The environments of a matrix, for `runner list environments`: which release each has, and whether it runs here."""

from collections.abc import Iterator
from pathlib import Path

from runner.analysis.releases import framework_name
from runner.core.model import SKIP_MEANINGS, Skip, Spec
from runner.matrix import Matrix
from runner.matrix.environments import package_name
from runner.plan.specs import specs
from runner.releases.followed import release_in
from runner.session.context import Context
from runner.session.listed_context import setup_for_list


def environment_rows(file: Path) -> Iterator[tuple[str, ...]]:
    """Yield id, release, Python, whether it is built, and whether it runs here, of each environment.

    Args:
        file: the matrix file.

    Raises:
        MatrixError: it is not valid.
    """
    context, _ = setup_for_list(file)
    matrix, request = context.matrix, context.request
    complete, incomplete = specs(matrix, request.environments, request.device, context.settings.matrix)
    survey = context.backend.survey(complete)
    by_name = {spec.environment: spec for spec in complete}
    for name in request.environments:
        image = matrix.image_of(name)
        spec = by_name.get(image)
        skip = incomplete.get(image) or survey.skips.get(image)
        state = "built" if image in survey.cached else "to be pulled" if image in survey.pulled else "not built"
        python = f"Python {spec.python}" if spec and spec.python else ""
        release = _release(context, matrix, name, None if spec is None else spec.lock)
        yield name, release, python, "" if skip else state, _whether(skip, spec)


def _whether(skip: Skip | None, spec: Spec | None) -> str:
    """Return whether an environment runs here, and what it needs if not."""
    if skip is None:
        return "runs here"
    if spec is not None and spec.is_locked_when_named and spec.lock is None:
        return "runs here where it is named, which makes its lock"
    return f"not here: {SKIP_MEANINGS.get(skip.code, skip.code).replace('need ', 'needs ', 1)}"


def _release(context: Context, matrix: Matrix, name: str, lock: Path | None) -> str:
    """Return framework and release of an environment: that of its lock where the matrix has ``2.*``."""
    environment, release = matrix.environments[name], ""
    if "*" in environment.release:
        variant = environment.variant(context.request.device)
        packages = map(package_name, (variant or environment).requirements)
        release = next(filter(None, (release_in(lock, package) for package in packages)), "").partition("+")[0]
    added = f" with {', '.join(environment.add)}" if environment.add else ""
    return f"{framework_name(environment.framework)} {release or environment.release}{added}"
