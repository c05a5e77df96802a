"""Remove what environments leave on this machine: images, volumes and containers, virtual environments and caches."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from runner.backends.venv import READY
from runner.core.model import Leftover, Provisioned

ON_ENGINE = ("container", "image", "volume")


def remove(leftovers: Sequence[Leftover]) -> tuple[tuple[Leftover, str], ...]:
    """Remove leftovers; return those that could not be removed, each with the reason."""
    kept: list[tuple[Leftover, str]] = []
    on_engine = [leftover for leftover in leftovers if leftover.kind in ON_ENGINE]
    if on_engine:
        kept += _remove_from_engine(on_engine)
    for leftover in leftovers:
        if leftover.kind not in ON_ENGINE:
            try:
                _remove_path(Path(leftover.name))
            except OSError as error:
                kept.append((leftover, str(error)))
    return tuple(kept)


def leftovers_of(backend: str, ready: Provisioned, cache: Path, reason: str) -> list[Leftover]:
    """Return an environment and its compiler caches.

    Args:
        backend: ``docker`` or ``venv``.
        ready: an environment that was built.
        cache: the folder of what can be rebuilt.
        reason: why it can go.
    """
    home = Path(ready.handle).parent.parent
    names = [("venv", str(home))]
    if backend == "docker":
        from runner.backends.docker.options import cache_volume

        names = [
            ("image", str(ready.facts.get("image") or ready.digest)),
            ("volume", cache_volume(ready.digest, "cpu")),
        ]
    elif (caches := cache / "caches" / home.name).exists():
        names += [("cache", str(caches))]
    return [Leftover(kind=kind, name=name, reason=reason) for kind, name in names]


def _remove_from_engine(leftovers: Sequence[Leftover]) -> Iterator[tuple[Leftover, str]]:
    from runner.backends.docker.cleanup import remove_leftover
    from runner.backends.docker.client import FOREIGN, connect, sentence

    with closing(connect()) as client:
        for leftover in leftovers:
            try:
                remove_leftover(client, leftover)
            except FOREIGN as error:
                yield leftover, sentence(error)


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        (path / READY).unlink(missing_ok=True)  # first: a partly removed venv must not pass for a complete one
        shutil.rmtree(path)
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    else:
        path.unlink(missing_ok=True)
