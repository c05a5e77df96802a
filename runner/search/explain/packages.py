"""Which packages differ under the framework of two releases, and how one of them is put under the other."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from packaging.utils import canonicalize_name

from runner.backends.lock_file import AS_OF, read_lock
from runner.core.errors import ProvisionError
from runner.core.model import Device
from runner.matrix import Environment
from runner.matrix.environments import package_name
from runner.releases.candidates import COMPANIONS, PACKAGES
from runner.releases.lock_requests import lock_request
from runner.releases.release_locks import lock_release

_ENTRY = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
_VIA = re.compile(r"^ +# +(?:via )?([A-Za-z0-9][A-Za-z0-9._-]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One of the two releases.

    Attributes:
        name: its id.
        environment: how it is built.
        release: the version of its framework.
        lock: its packages; None where it is an image.
    """

    name: str
    environment: Environment
    release: str
    lock: Path | None


def different_packages(good: End, bad: End, device: Device) -> dict[str, str]:
    """Return package -> its version in ``good``, for each that differs in ``bad`` and that what is measured may use.

    These are the packages that the framework requires, those that the environment names in different versions, and
    what these require. The packages of the framework itself are left out.

    Args:
        good: one release.
        bad: the other.
        device: whose requirements count.
    """
    before, after = locked(good.lock), locked(bad.lock)
    of_framework = {*PACKAGES.get(bad.environment.framework, ())}
    of_framework |= {each for name in of_framework for each in COMPANIONS.get(name, ())}
    different = {name for name in before if after.get(name, before[name]) != before[name]}
    variant = bad.environment.variant(device)
    named = {package_name(text) for text in variant.requirements} if variant else set[str]()
    used = below({*of_framework, *(named & different)}, requirers(bad.lock))
    return {name: version for name, version in before.items() if name in different & used and name not in of_framework}


def locked(path: Path | None) -> dict[str, str]:
    """Return package -> version of a lock; empty if there is no lock, or if it cannot be read."""
    try:
        packages = read_lock(path)[1].packages if path else ()
    except ProvisionError:
        return {}
    return {canonicalize_name(package.name): package.version for package in packages}


def requirers(path: Path | None) -> dict[str, frozenset[str]]:
    """Return package -> the packages that require it, by the comments of a lock; nothing without a lock."""
    try:
        text = read_lock(path)[0].decode() if path else ""
    except ProvisionError:
        return {}
    entries = (entry for entry in _ENTRY.split(text) if "==" in entry.partition("\n")[0])
    return {
        canonicalize_name(entry.partition("==")[0].partition("[")[0]): frozenset(
            map(canonicalize_name, _VIA.findall(entry))
        )
        for entry in entries
    }


def below(roots: Iterable[str], required_by: Mapping[str, frozenset[str]]) -> set[str]:
    """Return some packages and all that they require.

    >>> sorted(below({"jax"}, {"numpy": frozenset({"jax", "ml-dtypes"}), "toolz": frozenset({"chex"})}))
    ['jax', 'numpy']
    """
    reached = set(roots)
    while new := {name for name, of in required_by.items() if of & reached} - reached:
        reached |= new
    return reached


def make_lock(
    name: str, environment: Environment, pins: Sequence[str], device: Device, versions: Path | None, out: Path
) -> None:
    """Write the lock of an environment, which keeps the versions of another lock where they fit.

    Its packages are of the same day. Where there is no solution, other exact versions are given up, and what is pinned
    counts nevertheless.

    Args:
        name: its id.
        environment: its entry.
        pins: the requirements of it that count.
        device: whose variant is locked.
        versions: the other lock.
        out: where the lock goes.

    Raises:
        ProvisionError: there is no solution, or the index does not answer.
    """
    request = lock_request(out.parent, name, environment, device if environment.variants else "cpu")
    assert request is not None  # it has requirements and a Python
    request = replace(request, out=out, variant="", versions=versions, exact=tuple(pins), as_of=day_of(versions))
    out.parent.mkdir(parents=True, exist_ok=True)
    lock_release(request)


def day_of(path: Path | None) -> date | None:
    """Return the day whose packages a lock has; None where it says none."""
    try:
        header = read_lock(path)[1].header if path else ()
    except ProvisionError:
        return None
    days = (line.removeprefix(AS_OF) for line in header if line.startswith(AS_OF))
    return next(map(date.fromisoformat, days), None)


def also_changed(pins: Sequence[str], before: Path | None, after: Path) -> tuple[str, ...]:
    """Return the packages, each with its version, that differ between two locks beside those that are pinned."""
    old, pinned = locked(before), set(map(package_name, pins))
    return tuple(
        f"{name} {version}"
        for name, version in locked(after).items()
        if name not in pinned and old.get(name, version) != version
    )
