"""Environments as they once were: what a run was measured in, where it is still here, though the matrix moved on."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from runner.backends import Backend
from runner.backends.venv import READY, VenvBackend
from runner.core.model import Provisioned

DIGITS = 12  # of a digest in the name of a venv's folder


def former(backend: Backend, name: str, digest: str, facts: Mapping[str, Any]) -> Provisioned | None:
    """Return an environment as it was when it had a digest; None where that is no longer here.

    Nothing is fetched or made. The host backend keeps nothing of what its interpreter held before.

    Args:
        backend: the one that made it.
        name: the environment.
        digest: what pinned its content; empty where that is not known.
        facts: what the run recorded of it.

    Raises:
        EngineError: the engine stopped answering.
    """
    if not digest:
        return None
    handle = {"docker": _image, "venv": _venv}.get(backend.name, _nothing)(backend, name, digest)
    if handle is None:
        return None
    return Provisioned(
        environment=name,
        framework=str(facts.get("framework", "")),
        handle=handle,
        digest=digest,
        seconds=0.0,
        cached=True,
        facts=facts,
    )


def _image(_backend: Backend, _name: str, digest: str) -> str | None:
    from runner.backends.docker.build import image_id
    from runner.backends.docker.client import connect, talking

    with closing(connect()) as client, talking("the container engine stopped answering"):
        return image_id(client, digest)


def _venv(backend: Backend, name: str, digest: str) -> str | None:
    assert isinstance(backend, VenvBackend)
    home = backend.folder / f"{name}-{digest.removeprefix('sha256:')[:DIGITS]}"
    return str(home / "bin" / "python") if (home / READY).exists() else None


def _nothing(_backend: Backend, _name: str, _digest: str) -> str | None:
    return None
