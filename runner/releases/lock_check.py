"""Check without a network that locks fit the matrix: what they were resolved from, and for which Python."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runner.backends.docker.image_names import pins
from runner.backends.lock_file import LockFile, read_lock
from runner.core.architectures import USUAL, Architecture
from runner.core.errors import MatrixError, Problem, ProvisionError
from runner.core.model import Device
from runner.matrix import Matrix, load, position
from runner.releases.image_pins import PINS, images
from runner.releases.lock_requests import (
    FOR,
    OWN_HEADER,
    LockRequest,
    kept_versions,
    lock_requests,
    place_of,
    request_of,
)

_HEADER = re.compile(re.escape(OWN_HEADER) + r"[^`]*` from: (.*), Python ([0-9.]+), \d{4}-\d{2}-\d{2}")


def check_locks(path: Path, names: Sequence[str]) -> int:
    """Check the locks of the named environments, all of them without a name; return how many there are.

    A lock's header names the requirements and the Python that it was resolved from, and its index has a line. Those
    have to be what the matrix says now, and the locked versions have to satisfy the requirements. The lock of an
    environment that extends another has to be made with the versions that the other's lock has now. Whether newer
    versions exist is not checked: that takes a network.

    Args:
        path: the matrix file.
        names: selectors of environments.

    Raises:
        MatrixError: the matrix is not valid.
        ProvisionError: locks are missing, refused or do not fit; all of them are named.
    """
    requests = [request for request in lock_requests(path, names) if request.named]
    problems = [problem for request in requests for problem in _problems(path, request)]
    if problems:
        raise ProvisionError("lock", *dict.fromkeys(problems))
    return len(requests)


def refuse_old_locks(path: Path, matrix: Matrix, names: Iterable[str], device: Device) -> None:
    """Refuse environments whose locks were made from something else than what the matrix requires now.

    A lock that is missing, that cannot be read, or that does not say what it was made from, is none of these.

    Args:
        path: the matrix file.
        matrix: what is in it, and what the command line added.
        names: ids of environments.
        device: whose variants count.

    Raises:
        MatrixError: some do not fit; the error has each with its place in the matrix file.
    """
    problems: list[Problem] = []
    for name in dict.fromkeys(map(matrix.image_of, names)):
        environment = matrix.environments[name]
        key = next(iter(environment.variants_for(device)), "")
        key = key if environment.variants or not key else "cpu"  # as in all_variants, which request_of reads
        request = request_of(path.parent, matrix, name, key) if key else None
        if request is None or not request.named or not request.out.is_file():
            continue
        with suppress(ProvisionError):  # the plan says why it cannot be read
            lock = read_lock(request.out)[1]
            if lock.header and _HEADER.fullmatch(lock.header[0]):
                problems += _problems(path, request)
    if problems:
        raise MatrixError(*problems)


def check_pins(path: Path, *, complete: bool) -> tuple[str, ...]:
    """Return the images of a matrix that have no pin in ``docker/pins.toml``.

    Args:
        path: the matrix file.
        complete: whether an image without a pin is a problem.

    Raises:
        UsageError: the pins cannot be read.
        ProvisionError: an image has no pin, or a pin is for an image that the matrix does not name.
    """
    names = images(load(path, networks=False, architecture=USUAL))
    digests = pins(path.parent / PINS)
    unpinned = tuple(name for name in names if name not in digests)
    hint = "`runner lock --images` asks the registries, and removes what is not needed"
    problems = [
        Problem(f"{PINS} pins {name}, which the matrix does not use", hint=hint) for name in set(digests) - set(names)
    ]
    problems += [Problem(f"{name} has no pin in {PINS}", hint=hint) for name in unpinned] if complete else []
    if problems:
        raise ProvisionError("lock", *problems)
    return unpinned


def _problems(matrix: Path, request: LockRequest) -> Iterator[Problem]:
    """Yield what is wrong with a lock, with the place of its name in the matrix or the line of the lock."""
    try:
        messages = list(mismatches(read_lock(request.out)[1], request)) if request.out.is_file() else ["is missing"]
    except ProvisionError as error:
        yield from error.problems
        return
    for message in messages:
        where = position(matrix, place_of(request))
        yield Problem(f"the lock {request.out} {message}", where, f"`runner lock {request.name}` writes it")


def mismatches(lock: LockFile, request: LockRequest) -> Iterator[str]:
    """Yield where a lock differs from what its environment requires, to follow the name of the lock."""
    yield from _mismatches_of_header(lock, request)
    expected = (request.index,) if request.index else ()
    if lock.indexes != expected:
        yield f"names {', '.join(lock.indexes) or 'no index'}, and the matrix {request.index or 'no index'}"
    versions = {package.key: package.version for package in lock.packages}
    for requirement in map(Requirement, request.requirements):
        version = versions.get(canonicalize_name(requirement.name))
        if requirement.marker is not None and not requirement.marker.evaluate(_target(request)):
            continue
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            locked = f"{requirement.name} {version}" if version else f"no {requirement.name}"
            yield f"has {locked}, and the matrix requires {requirement}"


def requirements_of(lock: LockFile) -> tuple[str, ...]:
    """Return the requirements that a lock says it was made from; empty where it does not say so."""
    match = _HEADER.fullmatch(lock.header[0]) if lock.header else None
    return tuple(match[1].split(", ")) if match else ()


def is_of_release(path: Path, request: LockRequest) -> bool:
    """Return whether a file is a lock that has the release of a request, which is its first requirement.

    A lock that was cut off or replaced is none. What else was asked for may have been left out, see ``lock_release``.
    """
    required = Requirement(request.requirements[0])
    try:
        packages = read_lock(path)[1].packages
    except ProvisionError:
        return False
    name = canonicalize_name(required.name)
    return any(each.key == name and required.specifier.contains(each.version, prereleases=True) for each in packages)


def _mismatches_of_header(lock: LockFile, request: LockRequest) -> Iterator[str]:
    """Yield where what a lock was made from differs from what its environment requires now."""
    match = _HEADER.fullmatch(lock.header[0]) if lock.header else None
    if match is None:
        yield "does not say what it was made from"
    else:
        required = ", ".join(request.requirements)
        if match[1] != required:
            yield f"was made from {match[1]}, and the matrix requires {required}"
        if match[2] != request.python:
            yield f"was made for Python {match[2]}, and the matrix has {request.python}"
    made_for = next((each for each in get_args(Architecture) if f"{FOR}{each}" in lock.header), USUAL)
    if made_for != request.architecture:
        yield f"is for {made_for}, but the matrix requires it for {request.architecture}"
    kept = kept_versions(request)
    if kept and kept not in lock.header:
        yield f"was made before the lock of {request.extends} got its versions, which it is to keep"


def _target(request: LockRequest) -> dict[str, str]:
    """Return the values of the markers of PEP 508 in an environment: Python on Linux."""
    return {
        "python_version": request.python,
        "python_full_version": f"{request.python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": request.architecture,
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
