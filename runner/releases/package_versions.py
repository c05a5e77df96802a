"""Environments that differ in the version of one package next to their framework."""

from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runner.core.model import Device
from runner.matrix.environments import package_name
from runner.releases.candidates import ReleaseCandidate, changed, exact_release, identifier, package_of


def with_package(
    template: ReleaseCandidate, package: str, version: str, device: Device, folder: Path
) -> ReleaseCandidate:
    """Return an environment with another version of a package, not yet locked; the package may be new to it.

    The framework keeps its version. The other packages keep those of the template's lock where they fit.

    Args:
        template: an environment of the matrix, or of a release that was named.
        package: its name on the index.
        version: of the package; it counts also where another package requires another one.
        device: which variant of the template is used.
        folder: what the paths of locks are relative to.
    """
    variant = template.environment.variant(device)
    assert variant is not None
    framework, release = (
        package_of(variant, template.environment.framework),
        exact_release(template.environment, device, folder),
    )
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
        versions=folder / variant.lock if variant.lock else None,
    )
