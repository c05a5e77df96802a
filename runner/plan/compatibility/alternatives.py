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
    every = {
        one: release(environment.release)
        for one, environment in matrix.environments.items()
        if environment.framework == framework
    }
    return _nearest(every, every[name], [one for one in every if one in able])


def nearest_build(build: Build, setting: Setting) -> Build | None:
    """Return the known build of the same framework that runs there and whose release is nearest; None of none.

    Whoever adds it chooses its interpreter and its image, so these are not asked about.
    """
    every = {one: release(one.release) for one in builds() if one.framework == build.framework and one.cuda}
    return _nearest(every, release(build.release), [one for one in every if _runs(one, setting)])


def _runs(build: Build, setting: Setting) -> bool:
    own = replace(setting, cuda=build.cuda, cudnn=build.cudnn, python=None, image=None, glibc=None)
    found = judge(build, own)
    return (found.word == "runs" or found.meant) and by_cudnn(own) is None


def _nearest(every: Mapping[T, tuple[float, ...]], wanted: tuple[float, ...], able: Iterable[T]) -> T | None:
    """Return the one that is able and the fewest releases away from the wanted one; of two, the newer."""
    order = {one: place for place, one in enumerate(sorted({*every.values(), wanted}))}
    return min(able, key=lambda one: (abs(order[every[one]] - order[wanted]), -order[every[one]]), default=None)
