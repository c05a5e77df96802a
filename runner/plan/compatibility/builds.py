"""From an environment of the matrix to what is known of its build."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from runner.catalog.hardware.facts import Build, base, builds, toolkit
from runner.catalog.hardware.versions import release, same_series
from runner.core.model import Gpu
from runner.matrix import Environment, Variant
from runner.matrix.select import release_key
from runner.plan.compatibility.rules import Setting

_PINNED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s,;]+)")
CPU = "cpu"


def setting(environment: Environment, variant: Variant, gpu: Gpu, backend: str, glibc: str | None) -> Setting:
    """Return what an environment's CUDA build would be put into.

    Args:
        environment: the environment.
        variant: its CUDA variant, which names a CUDA version.
        gpu: the GPU with its driver.
        backend: ``docker`` or ``venv``.
        glibc: the machine's C library, for a venv; None where it is not known.
    """
    assert variant.cuda is not None
    in_image = variant.image is not None or backend == "docker"
    return Setting(
        gpu=gpu,
        cuda=variant.cuda,
        cudnn=variant.cudnn,
        python=None if variant.image else environment.python,
        image=(variant.image or variant.base) if in_image else None,
        glibc=None if in_image else glibc,
    )


def build_of(environment: Environment, variant: Variant) -> Build | None:
    """Return what is known of the build that an environment's CUDA variant holds; None where nothing is.

    It is found by the package that is pinned, else by framework and release, and by the CUDA version. Of a release
    that is not known it is taken to hold what its neighbour for the same CUDA version holds, and says so.
    """
    package, version = _pinned(variant.requirements) or (None, environment.release)
    framework = next((build.framework for build in builds() if build.package == package), environment.framework)
    cuda = variant.cuda or ""
    build = _matching(package, framework, version, cuda) or _neighbour(framework, version, cuda)
    if build is not None and build.compiles:
        known = toolkit(cuda)
        build = replace(build, cuda=cuda, sass=known.sass) if known else None
    image = base(variant.image) if variant.image else None
    if build is None or image is None or not (image.sass or image.ptx):
        return build
    source = f"{build.source}; {image.source}"
    return replace(build, sass=build.sass + image.sass, ptx=build.ptx + image.ptx, source=source)


@cache
def _packages() -> frozenset[str]:
    return frozenset(build.package for build in builds())


def _pinned(requirements: Sequence[str]) -> tuple[str, str] | None:
    """Return the package that holds GPU code and its release, None where none is pinned."""
    for text in requirements:
        match = _PINNED.fullmatch(text.replace(" ", ""))
        if match and match[1].lower() in _packages():
            return match[1].lower(), match[2].partition("+")[0]
    return None


def _matching(package: str | None, framework: str, version: str, cuda: str) -> Build | None:
    key = release_key(version)
    for build in builds():
        named = build.package == package if package else build.framework == framework and build.variant != CPU
        if named and key == release_key(build.release) and same_series(build.cuda or cuda, cuda):
            return build
    return None


def _neighbour(framework: str, version: str, cuda: str) -> Build | None:
    """Return the nearest older build of a framework for the same CUDA, else the nearest newer, as of ``version``."""
    same = [
        build
        for build in builds()
        if build.framework == framework and build.variant != CPU and same_series(build.cuda or cuda, cuda)
    ]
    older = [build for build in same if release(build.release) <= release(version)]
    if not same:
        return None
    known = max(older, key=_release) if older else min(same, key=_release)
    return replace(
        known,
        release=version,
        python=(),
        glibc="",
        fails_from=None,
        unprobed_from=None,
        note=f"taken to be as {known.release}",
        status=f"assumed to be as {known.release}",
        unverified=frozenset({"sass", "ptx"}),
    )


def _release(build: Build) -> tuple[float, ...]:
    return release(build.release)
