"""Where the builds are that are no releases yet: nightly builds by their day, and release candidates."""

from collections.abc import Mapping
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runner.core.model import Device
from runner.matrix import Variant
from runner.matrix.select import release_key

Kind = Literal["release", "candidate", "nightly"]

DEFAULT = "default"
"""Stands for the default package index, with its pre-releases; see ``index.versions``."""
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "tensorflow-cpu": ("tf-nightly-cpu", "tf-nightly"),
    "tensorflow": ("tf-nightly",),
}
"""Package -> the names of its nightly builds on the same index, the first choice first."""
INDEXES: Mapping[str, str] = {
    "torch": "https://download.pytorch.org/whl/nightly/{}",
    "jax": "https://us-python.pkg.dev/ml-oss-artifacts-published/jax/simple/",
}
"""Framework -> the index of its nightly builds; PyTorch has one for each of ``cpu``, ``cu126``, ...

https://pytorch.org/get-started/locally/, https://docs.jax.dev/en/latest/installation.html#jax-nightly-installation.
"""
CANDIDATE_INDEXES: Mapping[str, str] = {"torch": "https://download.pytorch.org/whl/test/{}"}
"""Framework -> the index of its release candidates, where they are not on the default one."""
FRAMEWORKS = ("torch", "tensorflow", "jax")
"""Those whose nightly builds have the day in their version: ``2.11.0.dev20261101``."""


def kind_of(version: str) -> Kind:
    """Return what a version is.

    >>> kind_of("2.9.1"), kind_of("2.22.0rc0"), kind_of("2.11.0.dev20261101")
    ('release', 'candidate', 'nightly')
    """
    key = release_key(version)
    if key is None or not key.is_prerelease:
        return "release"
    return "nightly" if key.is_devrelease else "candidate"


def day_of(version: str) -> str:
    """Return the day of a nightly build, ``20261101``; empty for another version.

    >>> day_of("2.11.0.dev20261101+cpu"), day_of("2.11.0")
    ('20261101', '')
    """
    key = release_key(version)
    return f"{key.dev}"[:8] if key is not None and key.is_devrelease else ""


def packages_of(pin: Requirement, kind: Kind) -> tuple[Requirement, ...]:
    """Return the requirements that name builds of a kind, with the extras of the one that names the releases."""
    names = PACKAGES.get(canonicalize_name(pin.name), ()) if kind == "nightly" else ()
    extras = f"[{','.join(sorted(pin.extras))}]" if pin.extras else ""
    return tuple(Requirement(f"{name}{extras}") for name in names) or (pin,)


def index_of(framework: str, variant: Variant, device: Device, kind: Kind) -> str:
    """Return the index that has the builds of a kind; empty for that of the releases."""
    addresses = {"nightly": INDEXES, "candidate": CANDIDATE_INDEXES, "release": {}}[kind]
    cuda = (variant.cuda or "").replace(".", "") if device == "cuda" else ""
    return addresses.get(framework, "").format(f"cu{cuda}" if cuda else "cpu")
