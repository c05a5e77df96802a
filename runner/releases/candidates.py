"""Releases that can be measured: environments of the matrix, and releases of the index that are made from these.

``index`` lists the versions of a package. ``made_from`` turns an environment of the matrix and a requirement into the
environment of another release, and ``lock_request_of`` says what to lock for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runner.core.errors import Problem, UsageError
from runner.core.model import Device
from runner.matrix import Environment, Matrix, Variant
from runner.matrix.environments import package_name
from runner.matrix.select import release_key
from runner.releases.followed import release_in
from runner.releases.lock_requests import LockRequest, lock_request

Source = Literal["matrix", "index"]

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
    "keras": ("keras",),
    "theano": ("theano",),
    "jax": ("jax",),
    "numpy": ("numpy",),
}
"""Framework -> the packages that a requirement may name it by; the first one where a matrix lists no requirements."""

COMPANIONS: Mapping[str, tuple[str, ...]] = {"jax": ("jaxlib",)}
"""Package -> those of which each of its releases needs an equal or earlier version, whatever the template pins.

https://docs.jax.dev/en/latest/jep/9419-jax-versioning.html: jaxlib is at most as new as jax. Up to 0.4.29, jax did
not even require it by itself.
"""

_FRAMEWORK_PACKAGES = frozenset(
    name for names in (*PACKAGES.values(), *COMPANIONS.values()) for name in map(canonicalize_name, names)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCandidate:
    """A release that can be measured.

    Attributes:
        name: the id of its environment.
        release: its version on the axis: of the framework, of CUDA or of a package.
        source: whether the matrix has it, or it is made from a template.
        environment: how it is built; a candidate of the index has no lock until it is locked.
        template: the environment of the matrix that it is made from; empty for one of the matrix.
        exact: its requirements that were named with it, whose versions are never given up.
        versions: a lock whose versions its own lock keeps where they fit; None for those of the time of its release.
    """

    name: str
    release: str
    source: Source
    environment: Environment
    template: str = ""
    exact: tuple[str, ...] = ()
    versions: Path | None = None


def version_key(release: str) -> tuple[int, ...] | object:
    """Return what releases are ordered by.

    Raises:
        UsageError: it is not a version.
    """
    key = release_key(release)
    if key is None:
        raise UsageError(Problem(f"{release!r} is not a version", hint="write a release such as 1.4.0"))
    return key


def package_of(variant: Variant, framework: str) -> Requirement:
    """Return the requirement that names the framework, or its usual package where the matrix lists none."""
    names = PACKAGES.get(framework, ())
    for text in variant.requirements:
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) in names:
            return requirement
    return Requirement(names[0] if names else framework)


def exact_release(environment: Environment, device: Device, folder: Path) -> str:
    """Return the version of the framework in an environment: what the matrix says, or its lock where that floats.

    Args:
        environment: of the matrix.
        device: which of its variants counts.
        folder: what the paths of locks are relative to.
    """
    variant = environment.variant(device)
    if "*" not in environment.release or variant is None or not variant.lock:
        return environment.release
    package = canonicalize_name(package_of(variant, environment.framework).name)
    return release_in(folder / variant.lock, package) or environment.release


def of_matrix(matrix: Matrix, framework: str, device: Device, folder: Path) -> Iterator[ReleaseCandidate]:
    """Yield the environments of a framework that have a build for a device, in the order of the file."""
    for name, environment in matrix.environments.items():
        if environment.framework == framework and environment.variant(device) is not None:
            release = exact_release(environment, device, folder)
            if release_key(release) is not None:
                yield ReleaseCandidate(name=name, release=release, source="matrix", environment=environment)


def templates(candidates: Sequence[ReleaseCandidate], device: Device) -> tuple[ReleaseCandidate, ...]:
    """Return the candidates that others can be made from: those with a Python and packages, and not an image."""
    return tuple(
        candidate
        for candidate in candidates
        if candidate.environment.python is not None
        and (variant := candidate.environment.variant(device)) is not None
        and variant.image is None
    )


def made_from(
    template: ReleaseCandidate,
    pin: Requirement,
    version: str,
    device: Device,
    index: str = "",
    packages: Sequence[str] = (),
) -> ReleaseCandidate:
    """Return a release of the index as a candidate: the template with another version of the framework, not yet locked.

    Args:
        template: an environment of the matrix.
        pin: the package of the framework, with its extras.
        version: the version of it.
        device: which variant of the template is used.
        index: an index that replaces the template's; empty for that.
        packages: requirements beside those of the template.
    """
    variant = template.environment.variant(device)
    assert variant is not None
    companions = COMPANIONS.get(_key(pin), ())
    dropped = {_key(pin), _key(package_of(variant, template.environment.framework)), *companions}
    others = [text for text in variant.requirements if canonicalize_name(Requirement(text).name) not in dropped]
    extras = f"[{','.join(sorted(pin.extras))}]" if pin.extras else ""
    limits = (f"{name}<={version}" for name in companions)
    changes = {
        "requirements": (f"{pin.name}{extras}=={version}", *limits, *others, *packages),
        "index": index or variant.index,
    }
    return ReleaseCandidate(
        name=identifier(f"{template.environment.framework}-{version}"),
        release=version,
        source="index",
        environment=changed(template.environment, device, changes, version),
        template=template.name,
    )


def changed(environment: Environment, device: Device, changes: Mapping[str, object], release: str) -> Environment:
    """Return an environment of another release, without a lock, whose variant for a device has changed keys."""
    changes = {"lock": None, "follow": None, **changes}
    update: dict[str, object] = {"release": release, "extends": None, "add": ()}  # its requirements have all packages
    variant = environment.variant(device)
    if environment.variants and variant is not None:
        update["variants"] = {device: variant.model_copy(update=changes)}
    else:
        update |= changes
    return environment.model_copy(update=update)


def lacking_packages(ends: Sequence[ReleaseCandidate], other: ReleaseCandidate, device: Device) -> tuple[str, ...]:
    """Return the packages of the ends of a search that another environment of the matrix lacks, as requirements.

    They are what an end adds to another environment, and what all ends require, without frameworks and exact versions.

    Args:
        ends: the environments of the matrix that are ends.
        other: the environment.
        device: which variants count.
    """
    required = [_requirements(end, device) for end in ends]
    names = [{package_name(text) for text in texts} for texts in required]
    shared = set[str]().union(*names).intersection(*names)
    lacking = {*shared, *(package_name(text) for end in ends for text in end.environment.add)}
    lacking -= {*_FRAMEWORK_PACKAGES, *(package_name(text) for text in _requirements(other, device))}
    texts = {package_name(text): without_pin(text) for text in reversed([text for each in required for text in each])}
    return tuple(texts[name] for name in sorted(lacking) if name in texts)


def _requirements(candidate: ReleaseCandidate, device: Device) -> tuple[str, ...]:
    variant = candidate.environment.variant(device)
    return () if variant is None else variant.requirements


def without_pin(text: str) -> str:
    """Return a requirement without its exact version.

    >>> without_pin("optax==0.2.8"), without_pin("numpy<2")
    ('optax', 'numpy<2')
    """
    requirement = Requirement(text)
    return requirement.name if any(each.operator == "==" for each in requirement.specifier) else text


def lock_request_of(candidate: ReleaseCandidate, device: Device, out: Path) -> LockRequest:
    """Return what to resolve for a candidate of the index, and where to write its lock."""
    environment = candidate.environment
    request = lock_request(out.parent, candidate.name, environment, device if environment.variants else "cpu")
    assert request is not None  # it is made from a template, which has packages and a Python
    return replace(request, out=out, variant="", exact=candidate.exact, versions=candidate.versions)


def in_between(
    candidates: Sequence[ReleaseCandidate], good: ReleaseCandidate, bad: ReleaseCandidate
) -> tuple[ReleaseCandidate, ...]:
    """Return both ends and the candidates between them, each release once, from the good end to the bad one.

    Raises:
        UsageError: the ends are the same release.
    """
    first, last = version_key(good.release), version_key(bad.release)
    if first == last:
        hint = "name two releases, or two versions on the axis"
        raise UsageError(Problem(f"{good.name} and {bad.name} have the same version, {good.release}", hint=hint))
    low, high = sorted((first, last))  # type: ignore[type-var]  # versions of PEP 440
    by_key: dict[object, ReleaseCandidate] = {}
    for candidate in candidates:
        key = version_key(candidate.release)
        if low < key < high:  # type: ignore[operator]
            by_key.setdefault(key, candidate)
    inner = [by_key[key] for key in sorted(by_key, reverse=first == high)]  # type: ignore[type-var]
    return (good, *inner, bad)


def _key(requirement: Requirement) -> str:
    return canonicalize_name(requirement.name)


def identifier(text: str) -> str:
    """Return a text as an id of an environment: small letters and digits, with dots and dashes in between."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
