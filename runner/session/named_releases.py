"""Releases that the command line names join the matrix, with the locks that are kept for them in the cache.

So have environments of the matrix for which it names no lock, see ``releases.first_locks``.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from runner.core.architectures import USUAL, Architecture
from runner.core.errors import NothingSelectedError, Problem, ProvisionError, UsageError
from runner.core.model import Device, Skip
from runner.core.paths import cache_folder
from runner.core.text import REASON_LENGTH, printable
from runner.gpu.selection import choose_devices
from runner.matrix import Matrix, load
from runner.releases import index
from runner.releases.candidates import PACKAGES, ReleaseCandidate
from runner.releases.excluded import without_excluded
from runner.releases.first_locks import first_lock_of
from runner.releases.index import Lister
from runner.releases.named import NamedRelease, parse_named, refuse_taken, split_selector
from runner.releases.named_environments import ReleaseFinder
from runner.releases.release_files import has_wheel, pythons_of
from runner.releases.release_locks import FOLDER, KeptLocks
from runner.session.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedReleases:
    """What named releases make of a matrix.

    Attributes:
        matrix: with an environment for each.
        options: the selectors have the ids of these.
        locks: id -> the lock of an environment, or of a build of it, that the matrix file does not have.
        unresolved: id -> why an environment is not available on the architecture of the matrix; none on x86_64.
        notes: sentences that the user should read first.
    """

    matrix: Matrix
    options: Options
    locks: Mapping[str, Path] = field(default_factory=dict)
    unresolved: Mapping[str, Skip] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_named_releases(
    matrix: Matrix,
    options: Options,
    device: Device,
    folder: Path,
    versions: Lister | None = None,
    received: Path | None = None,
) -> NamedReleases:
    """Return the matrix with the releases that selectors name, each locked.

    A release keeps the lock that it was first given, so that it is the same environment on another day, until
    ``--upgrade`` renews it. On other architectures than x86_64, a release that has wheels only for x86_64 is
    not an error: the plan skips it.

    Args:
        matrix: the checked matrix.
        options: what was typed; selectors may be ``torch==2.9.1``, or ``torch==2.9.1@env:TF32=0/nn-lstm/*``.
        device: ``cpu`` or ``cuda``.
        folder: keeps the locks.
        versions: lists the versions of a package; None asks the index.
        received: a folder with locks that count instead of the kept ones; None for none.

    Raises:
        UsageError: ``--upgrade`` without such a release.
        NothingSelectedError: there is no such release.
        UsageError: the matrix has another environment of that name.
        ProvisionError: the index does not answer, or the release cannot be resolved.
    """
    finder = ReleaseFinder(
        matrix=matrix,
        folder=options.matrix_file.parent,
        device=device,
        versions=versions or partial(index.versions, architecture=matrix.architecture),
        pythons=partial(pythons_of, architecture=matrix.architecture),
        has_wheel=partial(has_wheel, architecture=matrix.architecture),
    )
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
        candidate = next(iter(has_lock), None) or _candidate_of(finder, named)
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
        added = [*pool.map(partial(_added, locks, matrix.architecture, renew=options.upgrade), made.values())]
    new = {name: candidate.environment for name, candidate in made.items() if name not in matrix.environments}
    if new:
        matrix = matrix.with_environments({**matrix.environments, **new}, {}, {})
    unresolved = {name: each for name, each in zip(made, added, strict=True) if isinstance(each, Skip)}
    return NamedReleases(
        matrix=matrix,
        options=replace(options, selectors=words or None),
        locks={name: locks.path(candidate) for name, candidate in made.items() if name not in unresolved},
        unresolved=unresolved,
        notes=tuple(note for each in added if not isinstance(each, Skip) for note in each),
    )


def _candidate_of(finder: ReleaseFinder, named: NamedRelease) -> ReleaseCandidate:
    """Return the environment of a release; on other architectures, also one that has wheels only for x86_64."""
    try:
        return finder.find(named)
    except NothingSelectedError:
        first = None if finder.matrix.architecture == USUAL else next(finder.possible(named), None)
        if first is None or not pythons_of(PACKAGES[named.framework][0], named.version, architecture=USUAL):
            raise
        return first


def _added(
    locks: KeptLocks, architecture: Architecture, candidate: ReleaseCandidate, *, renew: bool
) -> list[str] | Skip:
    """Make the lock of a release; return what there is to say about it, or why it is left out on this architecture.

    Raises ProvisionError as ``KeptLocks.add``: on x86_64, and for an outage.
    """
    try:
        return locks.add(candidate, renew=renew)
    except ProvisionError as error:
        if architecture == USUAL or error.passing:
            raise
        reason = " ".join(error.problems[0].message.split())
        return Skip("image-unavailable", printable(f"on {architecture}: {reason}", REASON_LENGTH))


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
