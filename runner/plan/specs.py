"""List what a backend has to build for a plan, and say what that costs in downloads and disk space."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from runner.core.errors import Problem, RunnerError
from runner.core.model import Device, Skip, Spec, Survey
from runner.core.units import disk_size
from runner.matrix import Environment, Matrix, Variant
from runner.matrix.environments import package_name

SPARE_DISK_BYTES = 1 << 30  # stay free after everything is built
OLDEST_PYTHON = (3, 5)
"""The oldest Python that the harness runs on."""


def specs(
    matrix: Matrix, names: Sequence[str], device: Device, folder: Path
) -> tuple[tuple[Spec, ...], Mapping[str, Skip]]:
    """Return what to build for a device, and the environments that have no build for it with the reason.

    Environments that differ in their variables alone share what is built.

    Args:
        matrix: the checked matrix.
        names: environment ids.
        device: ``cpu`` or ``cuda``.
        folder: the folder that the paths of locks are relative to. A lock that does not exist is None in the result.
    """
    specs_of_device: list[Spec] = []
    skips: dict[str, Skip] = {}
    for name in dict.fromkeys(map(matrix.image_of, names)):
        environment: Environment = matrix.environments[name]
        variant = environment.variant(device)
        if variant is None:
            skips[name] = _no_variant(matrix, environment, device)
            continue
        if environment.python and tuple(map(int, environment.python.split("."))) < OLDEST_PYTHON:
            oldest = ".".join(map(str, OLDEST_PYTHON))
            reason = f"it has Python {environment.python}, and the harness needs Python {oldest} or newer"
            skips[name] = Skip("framework-lacks", reason)
            continue
        specs_of_device.append(_spec(matrix, name, variant, folder))
    return tuple(specs_of_device), of_all(matrix, names, skips)


def of_all(matrix: Matrix, names: Sequence[str], skips: Mapping[str, Skip]) -> Mapping[str, Skip]:
    """Return the reasons why environments cannot be made for all environments that have their images."""
    return {name: skips[matrix.image_of(name)] for name in names if matrix.image_of(name) in skips}


def _no_variant(matrix: Matrix, environment: Environment, device: Device) -> Skip:
    """Return why an environment has no build for a device: neither has what it extends, or that is an image.

    Or it has one for another architecture.
    """
    if device in environment.of_x86_64:
        return Skip(
            "image-unavailable",
            f"its build for {device} exists only for x86_64, and the machine is {environment.architecture}: "
            "add `aarch64:` to it in matrix.yaml",
        )
    code = "needs-gpu" if device == "cpu" else "framework-lacks"
    base = matrix.environments.get(environment.extends or "")
    if base is not None and base.variant(device) is not None:
        return Skip(code, f"{environment.extends} is an image on {device}, and no packages can be added to an image")
    return Skip(code, f"matrix.yaml has no variant for {device}")


def all_specs(matrix: Matrix, folder: Path) -> tuple[Spec, ...]:
    """Return everything that any machine would build: each variant of each environment; see ``specs``."""
    return tuple(
        _spec(matrix, name, variant, folder)
        for name, environment in matrix.environments.items()
        if matrix.image_of(name) == name
        for variant in environment.all_variants().values()
    )


def _spec(matrix: Matrix, name: str, variant: Variant, folder: Path) -> Spec:
    environment: Environment = matrix.environments[name]
    below = _extended(matrix, environment, variant, folder)
    lock = (folder / variant.lock).resolve() if variant.lock else None
    return Spec(
        environment=name,
        framework=environment.framework,
        release=environment.release,
        python=None if variant.image else environment.python,
        image=variant.image,
        base=variant.base,
        lock=lock if lock and lock.is_file() else None,
        download=variant.download_bytes or 0,
        disk=variant.disk_bytes or 0,
        note=environment.note or "",
        extends=below,
        added=tuple(map(package_name, environment.add)) if below else (),
        is_locked_when_named=variant.is_locked_when_named,
    )


def _extended(matrix: Matrix, environment: Environment, variant: Variant, folder: Path) -> Spec | None:
    """Return the build that a variant of an environment adds packages to; None where it has no lock.

    It is the variant with the same CUDA and the same base image.
    """
    base = matrix.environments.get(environment.extends or "")
    if base is None or not environment.add:
        return None
    for each in base.all_variants().values():
        if (each.image, each.base, each.cuda) == (None, variant.base, variant.cuda):
            spec = _spec(matrix, environment.extends or "", each, folder)
            return spec if spec.lock is not None else None
    return None


def announce(specs: Sequence[Spec], survey: Survey) -> str | None:
    """Return a sentence on what will be built or pulled and what it takes; None if everything is there.

    Raises:
        RunnerError: the disk has less room than the builds and ``SPARE_DISK_BYTES`` need.
    """
    new = [spec for spec in specs if spec.environment not in survey.cached and spec.environment not in survey.skips]
    if not new:
        return None
    disk = sum(spec.disk for spec in new)
    if survey.free and disk + SPARE_DISK_BYTES > survey.free:
        names = ", ".join(spec.environment for spec in new)
        message = f"not enough disk space for {names}: they need {disk_size(disk)}, {disk_size(survey.free)} are free"
        hint = f"select fewer environments, or free disk space; {disk_size(SPARE_DISK_BYTES)} have to stay free"
        raise RunnerError(Problem(message, hint=hint))
    unknown = [spec.environment for spec in new if not spec.download]
    more = f", and what {', '.join(unknown)} may download, which neither lock nor index says" if unknown else ""
    room = f" ({disk_size(survey.free)} are free)" if survey.free else ""
    if len(unknown) == len(new):
        return f"{_verbs(new, survey)}{room}"
    download = disk_size(sum(spec.download for spec in new))
    return f"{_verbs(new, survey)}: downloads about {download}, needs about {disk_size(disk)} of disk{more}{room}"


def _verbs(new: Sequence[Spec], survey: Survey) -> str:
    """Return what is pulled from the team's registry, and what is built; an image of the matrix counts as built."""
    pulled = ", ".join(spec.environment for spec in new if spec.environment in survey.pulled)
    built = ", ".join(spec.environment for spec in new if spec.environment not in survey.pulled)
    return " and ".join([f"pulling {pulled}"] * bool(pulled) + [f"building {built}"] * bool(built))


def with_interpreters(specs: Sequence[Spec], interpreters: Mapping[str, str]) -> tuple[Spec, ...]:
    """Return what to build, but for the environments that are interpreters as they are.

    Args:
        specs: what to build.
        interpreters: environment -> the path of its interpreter, or the program in its image.
    """
    return tuple(replace(spec, interpreter=interpreters.get(spec.environment, "")) for spec in specs)


def with_locks(specs: Sequence[Spec], locks: Mapping[str, Path]) -> tuple[Spec, ...]:
    """Return what to build, with other locks for some environments; a lock that does not exist is left out.

    Args:
        specs: what to build.
        locks: environment -> its lock.
    """
    return tuple(
        replace(spec, lock=lock.absolute()) if (lock := locks.get(spec.environment)) and lock.is_file() else spec
        for spec in specs
    )
