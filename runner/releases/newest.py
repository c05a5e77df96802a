"""The newest releases of a framework that the index has for the Python of the newest environment of the matrix."""

from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from runner.core.errors import NothingSelectedError, Problem
from runner.core.model import Device
from runner.matrix import Matrix
from runner.releases.candidates import PACKAGES, of_matrix, package_of, templates, version_key
from runner.releases.index import Lister
from runner.releases.named_environments import USUAL_PYTHON


def newest_minors(matrix: Matrix, framework: str, device: Device, folder: Path, versions: Lister) -> tuple[str, ...]:
    """Return the newest release of a framework, and before it the newest one of the minor version before.

    Args:
        matrix: the checked matrix.
        framework: the framework.
        device: ``cpu`` or ``cuda``.
        folder: what the paths of the matrix's locks are relative to.
        versions: lists the versions of a package.

    Raises:
        NothingSelectedError: the index lists no release.
        ProvisionError: the index does not answer.
    """
    known = templates([*of_matrix(matrix, framework, device, folder)], device)
    newest = max(known, key=lambda each: version_key(each.release), default=None)  # type: ignore[arg-type,return-value]
    package, python = PACKAGES[framework][0], USUAL_PYTHON
    if newest is not None and (variant := newest.environment.variant(device)) is not None:
        package = canonicalize_name(package_of(variant, framework).name)
        python = newest.environment.python or python
    listed, reason = versions(package, python, "")
    by_minor: dict[tuple[int, ...], Version] = {}
    for version in sorted(map(Version, listed)):
        if not version.is_prerelease:
            by_minor[version.release[:2]] = version
    if not by_minor:
        raise NothingSelectedError(Problem(f"the index lists no release of {framework}: {reason or 'none'}"))
    return tuple(f"{framework}=={version.public}" for version in [*by_minor.values()][-2:])
