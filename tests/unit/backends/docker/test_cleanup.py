"""Sweeping what killed runners left, on an engine that refuses some of it; an engine in memory answers."""

from typing import Any

from docker.errors import APIError

from runner.backends.docker import cleanup
from runner.backends.docker.options import OWNER

HOST, BOOT, _, _ = cleanup.owner().split(":")
DEAD = f"{HOST}:{BOOT}:4194305:1"


class Response:
    """What the SDK keeps of an answer: its status code."""

    status_code = 500


class Engine:
    """An engine with two containers and two images of a dead runner; it cannot remove the first of each."""

    def __init__(self) -> None:
        """Start with nothing removed."""
        self.api = self
        self.removed: list[str] = []

    def containers(self, **_filters: Any) -> list[dict[str, Any]]:
        """Return both, and one of a living runner."""
        owners = {"stuck": DEAD, "dead": DEAD, "alive": cleanup.owner()}
        return [{"Id": name, "Names": [f"/{name}"], "Labels": {OWNER: label}} for name, label in owners.items()]

    def images(self, **_filters: Any) -> list[dict[str, Any]]:
        """Return both."""
        return [{"Id": f"sha256:{name}", "Labels": {OWNER: DEAD}} for name in ("stuck-image", "image")]

    def remove_container(self, name: str, *, force: bool, v: bool) -> None:
        """Remove one of them, with its volumes."""
        assert force
        assert v
        self.remove_image(name)

    def wait(self, name: str, **_condition: Any) -> None:
        """Return when one of them is gone."""
        assert name in self.removed

    def remove_image(self, name: str) -> None:
        """Remove one of them."""
        if "stuck" in name:
            raise APIError("device or resource busy", response=Response())  # type: ignore[arg-type]
        self.removed.append(name)


def test_what_the_engine_cannot_remove_does_not_end_the_sweep() -> None:
    engine: Any = Engine()
    assert cleanup.remove_abandoned(engine) == ("dead", "image")
    assert engine.removed == ["dead", "sha256:image"]
