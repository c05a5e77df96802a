"""What a built environment leaves on this machine, for ``clean.remove``."""

from pathlib import Path

from runner.core.model import Leftover, Provisioned

REASON = "a bisect built it"


def leftovers_of(backend: str, ready: Provisioned, cache: Path) -> list[Leftover]:
    """Return an environment and its compiler caches.

    Args:
        backend: ``docker`` or ``venv``.
        ready: an environment that was built.
        cache: the folder of what can be rebuilt.
    """
    if backend == "docker":
        from runner.backends.docker.options import cache_volume

        image = str(ready.facts.get("image") or ready.digest)
        return [_leftover("image", image), _leftover("volume", cache_volume(ready.digest, "cpu"))]
    home = Path(ready.handle).parent.parent
    caches = cache / "caches" / home.name
    return [_leftover("venv", str(home)), *([_leftover("cache", str(caches))] if caches.exists() else [])]


def _leftover(kind: str, name: str) -> Leftover:
    return Leftover(kind=kind, name=name, reason=REASON)
