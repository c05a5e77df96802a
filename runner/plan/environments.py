"""Environments of the matrix as a backend is asked to make them, and what that will cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.core.errors import Problem, RunnerError
from runner.core.model import Device, Skip, Spec, Survey
from runner.core.units import disk_size
from runner.matrix import Environment, Matrix

SPARE = 1 << 30  # bytes that stay free after everything is made


def specs(
    matrix: Matrix, names: Sequence[str], device: Device, folder: Path
) -> tuple[tuple[Spec, ...], Mapping[str, Skip]]:
    """Return what is to be made for a device, and the environments that have no build for it.

    Args:
        matrix: the checked matrix.
        names: environment ids.
        device: ``cpu`` or ``cuda``.
        folder: what the locks' paths are relative to.
    """
    specs_of_device: list[Spec] = []
    skips: dict[str, Skip] = {}
    for name in names:
        environment: Environment = matrix.environments[name]
        variant = environment.variant(device)
        if variant is None:
            code = "needs-gpu" if device == "cpu" else "framework-lacks"
            skips[name] = Skip(code, f"matrix.yaml declares no {device} build of it")
            continue
        lock = (folder / variant.lock).resolve() if variant.lock else None
        specs_of_device.append(
            Spec(
                environment=name,
                framework=environment.framework,
                release=environment.release,
                python=None if variant.image else environment.python,
                image=variant.image,
                base=variant.base,
                lock=lock if lock and lock.exists() else None,
                download=variant.download_bytes or 0,
                disk=variant.disk_bytes or 0,
            )
        )
    return tuple(specs_of_device), skips


def announce(specs: Sequence[Spec], survey: Survey) -> str | None:
    """Return what will be fetched and what room it takes, in a sentence; None where nothing has to be made.

    Raises:
        RunnerError: there is not enough room.
    """
    new = [spec for spec in specs if spec.environment not in survey.cached and spec.environment not in survey.skips]
    if not new:
        return None
    disk = sum(spec.disk for spec in new)
    names = ", ".join(spec.environment for spec in new)
    if survey.free and disk + SPARE > survey.free:
        hint = "select fewer environments, or make room"
        message = f"{names} need {disk_size(disk)} of disk, {disk_size(survey.free)} are free"
        raise RunnerError(Problem(message, hint=hint))
    download = disk_size(sum(spec.download for spec in new))
    unknown = [spec.environment for spec in new if not spec.download]
    more = f", and what {', '.join(unknown)} take" if unknown else ""
    room = f", {disk_size(survey.free)} are free" if survey.free else ""
    return f"to be made: {names}; downloads about {download}{more}, needs about {disk_size(disk)} of disk{room}"
