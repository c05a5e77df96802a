"""Releases that the command line names join the matrix, with the locks that are kept for them in the cache.

So have environments of the matrix for which it names no lock, see ``releases.first_locks``.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from runner.core.errors import Problem, UsageError
from runner.core.model import Device
from runner.core.paths import cache_folder
from runner.gpu.selection import choose_devices
from runner.matrix import Matrix, load
from runner.releases import index
from runner.releases.candidates import ReleaseCandidate
from runner.releases.excluded import without_excluded
from runner.releases.first_locks import first_lock_of
from runner.releases.index import Lister
from runner.releases.named import parse_named, refuse_taken, split_selector
from runner.releases.named_environments import ReleaseFinder
from runner.releases.release_locks import FOLDER, KeptLocks
from runner.session.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedReleases:
    """What named releases make of a matrix.

    Attributes:
        matrix: with an environment for each.
        options: the selectors have the ids of these.
        locks: id -> the lock of an environment, or of a build of it, that the matrix file does not have.
        notes: sentences that the user should read first.
    """

    matrix: Matrix
    options: Options
    locks: Mapping[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_named_releases(
    matrix: Matrix,
    options: Options,
    device: Device,
    folder: Path,
    versions: Lister = index.versions,
    received: Path | None = None,
) -> NamedReleases:
    """Return the matrix with the releases that selectors name, each locked.

    A release keeps the lock that it was first given, so that it is the same environment on another day, until
    ``--upgrade`` renews it.

    Args:
        matrix: the checked matrix.
        options: what was typed; selectors may be ``torch==2.9.1``, or ``torch==2.9.1@env:TF32=0/nn-lstm/*``.
        device: ``cpu`` or ``cuda``.
        folder: keeps the locks.
        versions: lists the versions of a package.
        received: a folder with locks that count instead of the kept ones; None for none.

    Raises:
        UsageError: ``--upgrade`` without such a release.
        NothingSelectedError: there is no such release.
        UsageError: the matrix has another environment of that name.
        ProvisionError: the index does not answer, or the release cannot be resolved.
    """
    finder = ReleaseFinder(matrix=matrix, folder=options.matrix_file.parent, device=device, versions=versions)
    locks = KeptLocks(folder=folder, device=device, received=received)
    made, words = dict[str, ReleaseCandidate](), list[str]()
    for selector in without_excluded(matrix, options.selectors or ()):
        mark, name, rest = split_selector(selector)
        named = None if mark else parse_named(name)
        if named is None:
            words.append(selector)
            made |= _without_lock(matrix, "" if mark else name, device)
            continue
        has_lock = () if options.upgrade else filter(locks.has, finder.possible(locks.dated(named)))
        candidate = next(iter(has_lock), None) or finder.find(named)
        if candidate.source == "matrix":
            made |= _without_lock(matrix, "" if mark else candidate.name, device)
        elif candidate.name not in made:
            refuse_taken(matrix, named, device)
            made[candidate.name] = candidate
        words.append(f"{candidate.name}{rest}")
    if options.upgrade and not made:
        hint = "`runner lock` renews the locks of the matrix file"
        raise UsageError(Problem("--upgrade renews the locks of releases such as torch==2.9.1: name one", hint=hint))
    with ThreadPoolExecutor() as pool:  # what takes the time is uv
        notes = [*pool.map(partial(locks.add, renew=options.upgrade), made.values())]
    new = {name: candidate.environment for name, candidate in made.items() if name not in matrix.environments}
    if new:
        matrix = matrix.with_environments({**matrix.environments, **new}, {}, {})
    return NamedReleases(
        matrix=matrix,
        options=replace(options, selectors=words or None),
        locks={name: locks.path(candidate) for name, candidate in made.items()},
        notes=tuple(note for each in notes for note in each),
    )


def _without_lock(matrix: Matrix, name: str, device: Device) -> dict[str, ReleaseCandidate]:
    """Return an environment of the matrix by its id where its lock is made when it is named, else nothing."""
    first = first_lock_of(matrix, name, device)
    return {} if first is None else {first.name: first}


def locked_again(matrix_file: Path, selectors: Sequence[str]) -> tuple[str, ...]:
    """Make the locks of named releases again, for the device that a run here would take; return what there is to say.

    Raises as ``with_named_releases``.
    """
    options = Options(matrix=matrix_file, selectors=[*selectors], upgrade=True)
    notes: list[str] = []
    device, _ = choose_devices(None, notes.append)
    folder = cache_folder(os.environ) / FOLDER
    return (*notes, *with_named_releases(load(matrix_file), options, device, folder).notes)
