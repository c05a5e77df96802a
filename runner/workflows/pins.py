"""Pins: the digests that the names of a matrix's images stand for, so that two machines measure in the same image."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from runner.backends.docker.survey import digests
from runner.core.errors import Problem, ProvisionError
from runner.core.files import write_whole
from runner.core.model import Device
from runner.matrix import Matrix, load

DEVICES: tuple[Device, ...] = ("cpu", "cuda")
TABLE = re.compile(r"^\s*\[images\]", re.MULTILINE)


def images(matrix: Matrix) -> tuple[str, ...]:
    """Return the names of all images that a matrix builds on or uses as they are, each once, in order."""
    found: list[str] = []
    for environment in matrix.environments.values():
        for variant in filter(None, map(environment.variant, DEVICES)):
            found += filter(None, [variant.image or variant.base])
    return tuple(dict.fromkeys(found))


def renew(path: Path) -> Iterator[str]:
    """Ask the registries about every image of a matrix and write ``docker/pins.toml`` beside it; yield a line for each.

    What no registry gives keeps the pin it has. A name that the matrix has no more loses it.

    Raises:
        EngineError: no engine answers.
        ProvisionError: some image has no pin now; what could be pinned is written.
    """
    file = path.parent / "docker" / "pins.toml"
    text = file.read_text("utf-8") if file.is_file() else ""
    before: Mapping[str, str] = tomllib.loads(text).get("images", {})
    names = images(load(path))
    found, refused = digests(names)
    pinned = {name: found.get(name) or before[name] for name in names if name in found or name in before}
    head = re.split(TABLE, text, maxsplit=1)[0] + "[images]\n"
    lines = [f'"{name}" = "{digest}"\n' for name, digest in sorted(pinned.items())]
    if pinned != before:
        file.parent.mkdir(exist_ok=True)
        write_whole(file, head + "".join(lines))
    for name in names:
        yield f"{name}: {_said(before.get(name), pinned.get(name), refused.get(name))}"
    yield from (f"{name}: the matrix has it no more" for name in before if name not in names)
    lost = [name for name in names if name not in pinned]
    if lost:
        hint = "run it where the registries answer; an image without a pin is used as the engine resolves its name"
        raise ProvisionError("image-pull", Problem(f"{len(lost)} of {len(names)} images have no pin", hint=hint))


def _said(before: str | None, now: str | None, refused: str | None) -> str:
    """Return what became of a pin, and why no registry was of help."""
    if refused:
        return f"{'as it was' if now else 'no pin'} ({refused})"
    return "as it was" if now == before else f"{now}" if before is None else f"{now}, was {before}"
