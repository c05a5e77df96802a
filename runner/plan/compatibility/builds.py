"""Find the known facts of the build that an environment of the matrix holds, and the target that it runs on."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from runner.catalog.hardware.builds import Build, builds
from runner.catalog.hardware.facts import base_image, toolkit
from runner.catalog.hardware.versions import same_series, version_numbers
from runner.core.model import Gpu
from runner.matrix import Environment, Variant
from runner.matrix.select import release_key
from runner.plan.compatibility.rules import BuildTarget

_PINNED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s,;]+)")
CPU = "cpu"


def target_of(environment: Environment, variant: Variant, gpu: Gpu, backend: str, glibc: str | None) -> BuildTarget:
    """Return the GPU, the image and the versions that an environment's CUDA build would run with.

    Args:
        environment: the environment.
        variant: its CUDA variant, which names a CUDA version.
        gpu: the GPU with its driver.
        backend: ``docker`` or ``venv``.
        glibc: the version of the machine's C library, for a venv; None if unknown.
    """
    assert variant.cuda is not None
    in_image = variant.image is not None or backend == "docker"
    return BuildTarget(
        gpu=gpu,
        cuda=variant.cuda,
        cudnn=variant.cudnn,
        python=None if variant.image else environment.python,
        image=(variant.image or variant.base) if in_image else None,
        glibc=None if in_image else glibc,
    )


def build_of(environment: Environment, variant: Variant) -> Build | None:
    """Return the known facts of the build in an environment's CUDA variant; None if nothing is known.

    A build is found by the pinned package, or else by framework and release, and by the CUDA version. A release that
    is not in the table is assumed to hold the same code as the nearest one for the same CUDA version; its ``status``
    and ``note`` say so.
    """
    package, version = _pinned(variant.requirements) or (None, environment.release)
    framework = next((build.framework for build in builds() if build.package == package), environment.framework)
    cuda = variant.cuda or ""
    build = _matching(package, framework, version, cuda) or _neighbour(framework, version, cuda)
    if build is not None and build.compiles:
        known = toolkit(cuda)
        build = replace(build, cuda=cuda, sass=known.sass) if known else None
    image = base_image(variant.image) if variant.image else None
    if build is None or image is None or not (image.sass or image.ptx):
        return build
    source = f"{build.source}; {image.source}"
    return replace(build, sass=build.sass + image.sass, ptx=build.ptx + image.ptx, source=source)


@cache
def _packages() -> frozenset[str]:
    return frozenset(build.package for build in builds())


def _pinned(requirements: Sequence[str]) -> tuple[str, str] | None:
    """Return the name and the release of the pinned package that holds GPU code; None if none is pinned."""
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
    """Return the nearest older build of a framework for the same CUDA, else the nearest newer, as if of ``version``."""
    same = [
        build
        for build in builds()
        if build.framework == framework and build.variant != CPU and same_series(build.cuda or cuda, cuda)
    ]
    older = [build for build in same if version_numbers(build.release) <= version_numbers(version)]
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
        note=f"assumed to be the same as in {known.release}",
        status=f"assumed to be the same as {known.release}",
        unverified=frozenset({"sass", "ptx"}),
    )


def _release(build: Build) -> tuple[float, ...]:
    return version_numbers(build.release)
