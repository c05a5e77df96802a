"""What ``runner lock`` resolves for the environments of a matrix, and where it may write the locks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import get_args

from runner.backends.lock_file import LOCK_BYTES, read_lock
from runner.core.architectures import USUAL, Architecture
from runner.core.errors import Problem
from runner.core.files import read_bounded
from runner.matrix import Environment, Matrix, load, position, select_environments
from runner.matrix.lock_paths import lock_mistake

OWN_HEADER = "# made by `runner lock "
FOR = "# for "
"""Begins the line of a lock that names its architecture; a lock without it is for x86_64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRequest:
    """What to resolve and where to write it.

    Attributes:
        name: the environment, ``torch-2.x``; the header and errors name it.
        variant: the variant, ``cuda-12.6``; errors name it.
        requirements: as pip reads them, ``torch==1.12.1``, ``numpy<2``.
        python: minor version that the packages are for, ``3.6``; it need not be installed.
        index: a public package index in addition to PyPI; the lock names it, so that pip uses it, too.
        find_links: a folder of wheels that replaces ``index``; the lock never names it.
        out: the lock file; ``named`` is whether the matrix names it.
        architecture: of the target; wheels of other architectures are ignored, but their hashes are kept.
        versions: a lock whose versions are kept where they fit, but for the package ``upgrade``; None, or a path where
            no file is, keeps none.
        upgrade: the package that is resolved to its newest version although ``versions`` has it.
        extends: the environment whose lock ``versions`` is, which the lock then names; empty if it extends none.
        as_of: the day whose packages are taken, which the lock then names; None takes those of today.
        exact: those of the requirements that were named on the command line; they are taken from any day.
        overrides: those of ``exact`` that count instead of what other packages require of theirs; the lock names them.
    """

    name: str
    requirements: tuple[str, ...]
    python: str
    out: Path
    variant: str = ""
    index: str | None = None
    find_links: str | None = None
    named: bool = True
    architecture: Architecture = USUAL
    versions: Path | None = None
    upgrade: str = ""
    extends: str = ""
    as_of: date | None = None
    exact: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def platform(self) -> str:
        """What uv calls the target."""
        return f"{self.architecture}-manylinux_2_28"


def lock_requests(path: Path, names: Sequence[str], find_links: str | None = None) -> list[LockRequest]:
    """Return what to resolve for each variant of the named environments that has requirements.

    For other architectures than x86_64, it is what the matrix names a lock for. An environment that extends another
    comes last, and keeps the versions in the lock of the other where they fit.
    """
    of_architectures = [load(path, networks=False, architecture=each) for each in get_args(Architecture)]
    matrix = of_architectures[0]
    folder_of_wheels = str(Path(find_links).resolve()) if find_links and "://" not in find_links else find_links
    requests = []
    chosen = dict.fromkeys(map(matrix.image_of, select_environments(matrix, names)))
    for name in sorted(chosen, key=lambda name: bool(matrix.environments[name].extends)):
        for each in of_architectures:
            for key in each.environments[name].all_variants():
                request = request_of(path.parent, each, name, key)
                if request is not None and (request.named or request.architecture == USUAL):
                    requests.append(replace(request, find_links=folder_of_wheels or request.find_links))
    return requests


def request_of(folder: Path, matrix: Matrix, name: str, key: str) -> LockRequest | None:
    """Return what to resolve for a variant of an environment, with the versions of one that it extends; see below."""
    environment = matrix.environments[name]
    request = lock_request(folder, name, environment, key)
    base = matrix.environments.get(environment.extends or "")
    if request is None or base is None:
        return request
    below = base.all_variants().get(key)
    lock = below.lock if below is not None else None
    return replace(request, versions=folder / lock if lock else None, extends=environment.extends or "")


def lock_request(folder: Path, name: str, environment: Environment, key: str) -> LockRequest | None:
    """Return what to resolve for a variant of an environment; None if it has no requirements.

    Args:
        folder: that of the matrix file.
        name: the environment's id.
        environment: its entry.
        key: the variant, one of ``environment.all_variants()``.
    """
    variant = environment.all_variants()[key]
    if not variant.requirements or environment.python is None:
        return None
    lock_file = variant.lock or f"docker/locks/{lock_name(name, environment, key)}.txt"
    return LockRequest(
        name=name,
        variant=key if environment.variants else "",
        requirements=variant.requirements,
        python=environment.python,
        out=folder / lock_file,
        index=variant.index,
        find_links=variant.find_links,
        named=variant.lock is not None,
        architecture=environment.architecture,
    )


def kept_versions(request: LockRequest) -> str:
    """Return the line of a lock that says which versions of an extended environment it was to keep; empty without one.

    Raises:
        ProvisionError: the lock of the extended environment cannot be read.
    """
    if not request.extends or request.versions is None or not request.versions.is_file():
        return ""
    _, lock = read_lock(request.versions)
    versions = "\n".join(sorted(f"{package.key}=={package.version}; {package.marker}" for package in lock.packages))
    return f"# keeps versions {hashlib.sha256(versions.encode()).hexdigest()[:16]} of {request.extends}"


def lock_name(name: str, environment: Environment, key: str) -> str:
    """Return what files call a variant of an environment: ``torch-2.x-cpu``, or ``torch-1.0`` without variants."""
    return f"{name}-{key}" if environment.variants else name


def target_problem(matrix: Path, request: LockRequest) -> Problem | None:
    """Return why a lock cannot be written, with the place of its name in the matrix; None if it can."""
    out = request.out
    message, hint = lock_mistake(matrix.parent, str(out.relative_to(matrix.parent)))
    if not message and not out.parent.is_dir():
        message, hint = f"cannot be written: there is no folder {out.parent}", f"mkdir -p {out.parent}"
    elif not message and out.is_symlink():
        message, hint = "is a link, which would be replaced", f"remove it, or name {out.resolve()}"
    elif not message and out.exists() and not _is_lock(out):
        message, hint = "is a file that `runner lock` did not write", "remove it, or name another file"
    if not message:
        return None
    where = position(matrix, place_of(request))
    return Problem(f"the lock {out} {message}", where, hint)


def place_of(request: LockRequest) -> tuple[str, ...]:
    """Return the keys that lead to the name of a lock in the matrix."""
    variant = ("variants", request.variant) if request.variant else ()
    architecture = () if request.architecture == USUAL else (request.architecture,)
    return ("environments", request.name, *variant, *architecture, "lock")


def of_architecture(request: LockRequest) -> str:
    """Return the line of a lock that says what it is for; empty for x86_64."""
    return "" if request.architecture == USUAL else f"{FOR}{request.architecture}"


def _is_lock(path: Path) -> bool:
    """Return True if a file is empty, or one that this program wrote."""
    try:
        content = read_bounded(path, LOCK_BYTES)
    except OSError:
        return False
    return not content or content.startswith(OWN_HEADER.encode())
