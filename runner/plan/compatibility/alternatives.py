"""What can where something cannot: the nearest environment of the matrix, and the nearest build that is known."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from runner.catalog.hardware.facts import Build, builds
from runner.catalog.hardware.versions import release
from runner.matrix import Matrix
from runner.plan.compatibility.rules import Setting, by_cudnn, judge

T = TypeVar("T")


def nearest_environment(matrix: Matrix, name: str, able: Collection[str]) -> str | None:
    """Return the environment of the same framework whose release is nearest, of those that are able; None of none."""
    framework = matrix.environments[name].framework
    releases = {
        candidate: release(environment.release)
        for candidate, environment in matrix.environments.items()
        if environment.framework == framework
    }
    return _nearest(releases, releases[name], [candidate for candidate in releases if candidate in able])


def nearest_build(build: Build, setting: Setting) -> Build | None:
    """Return the known build of the same framework that runs there and whose release is nearest; None of none.

    Whoever adds it chooses its interpreter and its image, so these are not asked about.
    """
    releases = {
        candidate: release(candidate.release)
        for candidate in builds()
        if candidate.framework == build.framework and candidate.cuda
    }
    return _nearest(
        releases, release(build.release), [candidate for candidate in releases if _runs(candidate, setting)]
    )


def _runs(build: Build, setting: Setting) -> bool:
    target = replace(setting, cuda=build.cuda, cudnn=build.cudnn, python=None, image=None, glibc=None)
    verdict = judge(build, target)
    return (verdict.word == "runs" or verdict.meant) and by_cudnn(target) is None


def _nearest(releases: Mapping[T, tuple[float, ...]], requested: tuple[float, ...], able: Iterable[T]) -> T | None:
    """Return the able candidate that is the fewest releases away from the requested release; of two, the newer."""
    order = {release: index for index, release in enumerate(sorted({*releases.values(), requested}))}

    def distance(candidate: T) -> tuple[int, int]:
        index = order[releases[candidate]]
        return abs(index - order[requested]), -index

    return min(able, key=distance, default=None)
