"""The ends of a search in which a package varies: ``numpy==2.2.6,numba==0.65.0``, or ``0.65.0``."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from packaging.utils import canonicalize_name

from runner.core.bounds import MAX_SHOWN
from runner.core.errors import Problem, UsageError
from runner.core.text import printable
from runner.releases.named import NamedRelease, parse_named

AXES = ("release", "nightly", "cuda", "cudnn")
"""The axes with a name of their own; any other one is a package."""
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,60}[A-Za-z0-9])?")


class PackageEnds(NamedTuple):
    """What varies, and between which versions.

    Attributes:
        axis: one of ``AXES``, or the name of a package as indexes compare it.
        good: the first end, of a package its version; ``bad`` the last.
        environment: next to which it varies: of the matrix, or a release such as ``numpy==2.2.6``; empty without one.
    """

    axis: str
    good: str
    bad: str
    environment: str


def package_ends(typed: PackageEnds) -> PackageEnds:
    """Return what varies: a package where the ends are releases that differ in it alone; other ends as they are.

    >>> package_ends(PackageEnds("release", "numpy==2.2.6,numba==0.65.0", "numpy==2.2.6,numba==0.66.0", ""))
    PackageEnds(axis='numba', good='0.65.0', bad='0.66.0', environment='numpy==2.2.6')
    >>> package_ends(PackageEnds("Numba", "numba==0.65.0", "0.66.0", "numpy"))
    PackageEnds(axis='numba', good='0.65.0', bad='0.66.0', environment='numpy')

    Raises:
        UsageError: the axis is no name of a package, or the ends differ in several packages.
    """
    axis = typed.axis if typed.axis in AXES else _package(typed.axis)
    good, bad = parse_named(typed.good), parse_named(typed.bad)
    if good is not None and bad is not None and good.packages and not good.day and _bare(good) == _bare(bad):
        return _of_releases(axis, good, bad)
    if axis in AXES:
        return typed._replace(axis=axis)
    return PackageEnds(axis, _version(typed.good, axis), _version(typed.bad, axis), typed.environment)


def _of_releases(axis: str, good: NamedRelease, bad: NamedRelease) -> PackageEnds:
    """Return what varies between two equal releases with packages."""
    old, new = (_versions(named.packages) for named in (good, bad))
    varying = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    if len(varying) != 1 or varying[0] not in old or varying[0] not in new or axis not in ("release", varying[0]):
        shown = " and ".join(varying) or "nothing"
        message = f"the ends differ in {shown}" + (f", and the axis is {axis}" if axis != "release" else "")
        hint = "name ends that differ in one package, such as numpy==2.2.6,numba==0.65.0 and numpy==2.2.6,numba==0.66.0"
        raise UsageError(Problem(message, hint=hint))
    (name,) = varying
    others = [text for text in good.packages if canonicalize_name(text.partition("==")[0]) != name]
    python = f"@py{good.python}" if good.python else ""
    environment = ",".join([f"{good.framework}=={good.version}", *others]) + python
    return PackageEnds(name, old[name], new[name], environment)


def _bare(named: NamedRelease) -> tuple[str, ...]:
    """Return what names a release without its packages."""
    return named.framework, named.version, named.python


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Return package -> version of requirements with exact versions."""
    parts = (text.partition("==") for text in packages)
    return {str(canonicalize_name(name)): version for name, _, version in parts}


def _version(end: str, package: str) -> str:
    """Return the version of an end, without the name of the package in front."""
    name, _, version = end.partition("==")
    return version if version and canonicalize_name(name) == package else end


def _package(axis: str) -> str:
    """Return the name of a package as indexes compare it; raises UsageError where an axis is none."""
    if not _PACKAGE.fullmatch(axis):
        message = f"{printable(axis, MAX_SHOWN)!r} is no axis"
        raise UsageError(Problem(message, hint=f"choose {', '.join(AXES)}, or the name of a package"))
    return str(canonicalize_name(axis))
