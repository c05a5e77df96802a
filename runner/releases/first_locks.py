"""Environments for which the matrix names no lock: one is made where a selector names the environment, and kept.

The packages of such an environment are on an index that not every machine reaches, so that one lock does not fit all
of them. The next command with the same environment uses the lock that was kept.
"""

from runner.core.model import Device
from runner.matrix import Environment, Matrix
from runner.releases.candidates import ReleaseCandidate


def first_lock_of(matrix: Matrix, name: str, device: Device) -> ReleaseCandidate | None:
    """Return what the lock of an environment of the matrix is made for, where the matrix names none; else None.

    Args:
        matrix: the checked matrix.
        name: an id, or another part of a selector.
        device: ``cpu`` or ``cuda``.
    """
    if name not in matrix.environments or name in matrix.as_is:
        return None
    name = matrix.image_of(name)
    environment = matrix.environments[name]
    if not _is_locked_when_named(environment, device):
        return None
    return ReleaseCandidate(
        name=name, release=environment.release, source="index", environment=environment, template=name
    )


def _is_locked_when_named(environment: Environment, device: Device) -> bool:
    variant = environment.variant(device)
    is_only_build = not environment.variants or device in environment.variants
    return variant is not None and variant.is_locked_when_named and is_only_build and environment.python is not None
