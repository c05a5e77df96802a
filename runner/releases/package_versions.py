"""Environments that differ in the version of one package next to their framework."""

from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runner.core.model import Device
from runner.matrix.environments import package_name
from runner.releases.candidates import ReleaseCandidate, changed, identifier, package_of


def lock_of(template: ReleaseCandidate, device: Device, folder: Path, locks: Mapping[str, Path]) -> Path | None:
    """Return the lock of an environment; None without one.

    Args:
        template: the environment.
        device: which of its variants counts.
        folder: what the paths of locks are relative to.
        locks: environment -> its lock, of those that the matrix file has no lock for.
    """
    variant = template.environment.variant(device)
    of_file = folder / variant.lock if variant and variant.lock else None
    return locks.get(template.name) or of_file


def with_package(
    template: ReleaseCandidate, package: str, version: str, device: Device, lock: Path | None
) -> ReleaseCandidate:
    """Return an environment with another version of a package, not yet locked; the package may be new to it.

    The framework keeps its version, and the other packages keep those of the template's lock where they fit.

    Args:
        template: an environment of the matrix, whose release is exact, or of a release that was named.
        package: its name on the index.
        version: of the package; it counts also where another package requires another one.
        device: which variant of the template is used.
        lock: that of the template; None without one.
    """
    variant, release = template.environment.variant(device), template.release
    assert variant is not None
    framework = package_of(variant, template.environment.framework)
    is_pinned = any(each.operator == "==" for each in framework.specifier) or "*" in release
    first = str(framework) if is_pinned else f"{framework.name}=={release}"
    replaced = {canonicalize_name(framework.name), canonicalize_name(package)}
    others = [text for text in variant.requirements if package_name(text) not in replaced]
    pin = str(Requirement(f"{package}=={version}"))
    return ReleaseCandidate(
        name=identifier(f"{template.name}-{package}-{version}"),
        release=version,
        source="index",
        environment=changed(template.environment, device, {"requirements": (first, *others, pin)}, release),
        template=template.name,
        exact=(*template.exact, pin),
        versions=lock,
    )
