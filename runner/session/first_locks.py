"""Locks of environments for which the matrix names none: made where a selector names the environment, and kept.

The packages of such an environment are on an index that not every machine reaches, so that one lock does not fit all
of them. The next command with the same environment uses the lock that was kept.
"""

from collections.abc import Sequence
from pathlib import Path

from runner.core.model import Device
from runner.matrix import Environment, Matrix
from runner.releases.candidates import ReleaseCandidate
from runner.releases.named import split_selector
from runner.releases.release_locks import FOLDER, KeptLocks


def first_locks(
    matrix: Matrix, selectors: Sequence[str], device: Device, cache: Path
) -> tuple[dict[str, Path], list[str]]:
    """Return environment -> its kept lock, of those that selectors name by their ids, and what there is to say.

    Args:
        matrix: the checked matrix.
        selectors: what was typed.
        device: ``cpu`` or ``cuda``.
        cache: the folder that keeps locks.

    Raises:
        ProvisionError: an index does not answer, or the requirements cannot be resolved.
    """
    kept = KeptLocks(folder=cache / FOLDER, device=device)
    locks, notes = dict[str, Path](), list[str]()
    named = [name for mark, name, _ in map(split_selector, selectors) if not mark and name in matrix.environments]
    for name in dict.fromkeys(map(matrix.image_of, named)):
        environment = matrix.environments[name]
        if not _is_locked_when_named(environment, device):
            continue
        candidate = ReleaseCandidate(
            name=name, release=environment.release, source="index", environment=environment, template=name
        )
        if not kept.has(candidate):
            *reasons, _ = kept.add(candidate)  # the last note names the template
            notes += [*reasons, f"{name}: locked in {kept.path(candidate)}"]
        locks[name] = kept.path(candidate)
    return locks, notes


def _is_locked_when_named(environment: Environment, device: Device) -> bool:
    variant = environment.variant(device)
    is_only_build = not environment.variants or device in environment.variants
    return variant is not None and variant.is_locked_when_named and is_only_build and environment.python is not None
