"""Find what runs instead of an environment: the nearest environment of the matrix, and the nearest known build."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from runner.catalog.hardware.builds import Build, builds
from runner.catalog.hardware.versions import version_numbers
from runner.matrix import Matrix
from runner.plan.compatibility.rules import BuildTarget, cudnn_refusal, judge

T = TypeVar("T")


def nearest_environment(matrix: Matrix, name: str, runnable: Collection[str]) -> str | None:
    """Return the runnable environment of the same framework with the nearest release; None if there is none."""
    framework = matrix.environments[name].framework
    releases = {
        candidate: version_numbers(environment.release)
        for candidate, environment in matrix.environments.items()
        if environment.framework == framework
    }
    return _nearest(releases, releases[name], [candidate for candidate in releases if candidate in runnable])


def nearest_build(build: Build, target: BuildTarget) -> Build | None:
    """Return the known build of the same framework that runs on a target and has the nearest release; None if none.

    The interpreter and the image of the target do not count: who adds the build to the matrix chooses them anew.
    """
    releases = {
        candidate: version_numbers(candidate.release)
        for candidate in builds()
        if candidate.framework == build.framework and candidate.cuda
    }
    return _nearest(
        releases, version_numbers(build.release), [candidate for candidate in releases if _runs(candidate, target)]
    )


def _runs(build: Build, target: BuildTarget) -> bool:
    target = replace(target, cuda=build.cuda, cudnn=build.cudnn, python=None, image=None, glibc=None)
    verdict = judge(build, target)
    return (verdict.outcome == "runs" or verdict.made_for_gpu) and cudnn_refusal(target) is None


def _nearest(
    releases: Mapping[T, tuple[float, ...]], requested: tuple[float, ...], candidates: Iterable[T]
) -> T | None:
    """Return the candidate that is the fewest releases away from the requested release; of two, the newer."""
    order = {release: index for index, release in enumerate(sorted({*releases.values(), requested}))}

    def distance(candidate: T) -> tuple[int, int]:
        index = order[releases[candidate]]
        return abs(index - order[requested]), -index

    return min(candidates, key=distance, default=None)
