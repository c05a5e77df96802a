"""Environments that follow a package, and the locks that nights use for them instead of those of the matrix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.backends.lock_file import read_lock
from runner.core.errors import ProvisionError
from runner.core.model import Device, Spec
from runner.matrix import Matrix
from runner.matrix.environments import package_name
from runner.plan.specs import specs, with_locks
from runner.releases import kept
from runner.releases.lock_requests import LockRequest, lock_name, lock_request


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """An environment that follows a package.

    Attributes:
        environment: its id.
        folder: the folder of its locks below ``reports/locks``.
        package: the normalized name of the package.
        request: what is resolved: the requirements, with that of the package as in ``follow``.
        matrix_lock: the lock that the matrix names; None if there is none yet.
        lock: the lock that the night would use without a new release; None if there is none yet.
    """

    environment: str
    folder: str
    package: str
    request: LockRequest
    matrix_lock: Path | None
    lock: Path | None

    @property
    def release(self) -> str:
        """The version of the package in the lock; empty without one that can be read."""
        return release_in(self.lock, self.package)


def release_in(lock: Path | None, package: str) -> str:
    """Return the version of a package in a lock; empty if there is none."""
    try:
        packages = read_lock(lock)[1].packages if lock else ()
    except ProvisionError:
        return ""
    return next((each.version for each in packages if each.key == package), "")


def followed_environments(
    matrix: Matrix, names: Sequence[str], device: Device, folder: Path, reports: Path
) -> tuple[Followed, ...]:
    """Return those of some environments that follow a package on a device, with the locks that nights use.

    Args:
        matrix: the checked matrix.
        names: ids of environments.
        device: ``cpu`` or ``cuda``.
        folder: that of the matrix file.
        reports: the folder that holds the runs.

    Raises:
        RunnerError: the file of the current releases is damaged.
    """
    followed = []
    for name in dict.fromkeys(map(matrix.image_of, names)):
        environment = matrix.environments[name]
        key, variant = next(iter(environment.variants_for(device).items()), ("", None))
        key = key if environment.variants else "cpu"  # as in all_variants, which lock_request reads
        if variant is None or variant.follow is None:
            continue
        request = lock_request(folder, name, environment, key)
        if request is None:
            continue
        package, locks = package_name(variant.follow), lock_name(name, environment, key)
        matrix_lock = request.out if request.named and request.out.is_file() else None
        lock = kept.current_lock(reports, locks, matrix_lock) or matrix_lock
        requirements = tuple(variant.follow if package_name(each) == package else each for each in request.requirements)
        request = replace(request, requirements=requirements, versions=lock, upgrade=package)
        followed.append(
            Followed(
                environment=name, folder=locks, package=package, request=request, matrix_lock=matrix_lock, lock=lock
            )
        )
    return tuple(followed)


def current_locks(followed: Sequence[Followed]) -> dict[str, Path]:
    """Return environment -> the lock that the night uses instead of the matrix's."""
    return {each.environment: each.lock for each in followed if each.lock and each.lock != each.matrix_lock}


def current_specs(matrix: Matrix, folder: Path, reports: Path) -> tuple[Spec, ...]:
    """Return what nights build instead of what the matrix's locks say, on any device; see ``followed_environments``."""
    followed_specs: list[Spec] = []
    for device in ("cpu", "cuda"):
        locks = current_locks(followed_environments(matrix, list(matrix.environments), device, folder, reports))
        followed_specs += with_locks(specs(matrix, list(locks), device, folder)[0], locks)
    return tuple(dict.fromkeys(followed_specs))
