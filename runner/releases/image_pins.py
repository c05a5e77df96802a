"""Pins: the digests of a matrix's images, so that two machines measure in the same image."""

import re
from collections.abc import Iterator
from pathlib import Path

from runner.backends.docker.image_names import MAX_PINS
from runner.backends.docker.image_names import pins as read_pins
from runner.core.architectures import USUAL
from runner.core.errors import Problem, ProvisionError
from runner.core.files import read_bounded, write_whole
from runner.matrix import Matrix, load

PINS = Path("docker", "pins.toml")  # relative to the folder of the matrix file
TABLE = re.compile(r"^\s*\[images\]", re.MULTILINE)


def images(matrix: Matrix) -> tuple[str, ...]:
    """Return the names of all images that a matrix builds on or runs unchanged, each once, in order."""
    names: list[str] = []
    for environment in matrix.environments.values():
        for variant in environment.all_variants().values():
            names += filter(None, [build.image or build.base for build in variant.builds])
    return tuple(dict.fromkeys(names))


def renew(path: Path) -> Iterator[str]:
    """Ask the registries about every image of a matrix and write ``docker/pins.toml`` beside it; yield a line for each.

    An image that no registry has keeps its pin. A name that the matrix no longer uses loses it.

    Raises:
        EngineError: no engine answers.
        UsageError: the pins of before cannot be read.
        ProvisionError: an image has no pin; the other pins are written.
    """
    from runner.backends.docker.survey import digests

    names = images(load(path, networks=False, architecture=USUAL))
    file = path.parent / PINS
    before = read_pins(file)
    text = read_bounded(file, MAX_PINS).decode() if file.is_file() else ""
    resolved, refused = digests(names)
    pinned = {name: resolved.get(name) or before[name] for name in names if name in resolved or name in before}
    head = re.split(TABLE, text, maxsplit=1)[0] + "[images]\n"
    lines = [f'"{name}" = "{digest}"\n' for name, digest in sorted(pinned.items())]
    if pinned != before:
        file.parent.mkdir(exist_ok=True)
        write_whole(file, head + "".join(lines))
    for name in names:
        yield f"{name}: {_outcome(before.get(name), pinned.get(name), refused.get(name))}"
    yield from (f"{name}: removed: the matrix does not use it" for name in before if name not in names)
    unpinned = [name for name in names if name not in pinned]
    if unpinned:
        hint = "run it where the registries answer; the engine resolves the name of an image without a pin"
        raise ProvisionError("image-pull", Problem(f"{len(unpinned)} of {len(names)} images have no pin", hint=hint))


def _outcome(before: str | None, now: str | None, refused: str | None) -> str:
    """Return whether a pin changed, and why its registry did not answer."""
    if refused:
        return f"{'unchanged' if now else 'no pin'} ({refused})"
    return "unchanged" if now == before else f"{now}" if before is None else f"{now}, was {before}"
