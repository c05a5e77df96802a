"""Environments: as a backend is asked for them, as it finds them, and as they are ready to start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.core.model.cells import Skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """An environment as one backend is asked to make it, for one device.

    Attributes:
        environment: id in matrix.yaml.
        python: ``3.6``; None where an image brings its own.
        image: an image to pull, or None to build from ``base`` and ``lock``.
        lock: absolute path of a requirements file with hashes; None where none was made yet.
        download: bytes to fetch for a first provisioning; 0 where unknown. ``disk`` likewise what it takes.
    """

    environment: str
    framework: str
    release: str
    python: str | None = None
    image: str | None = None
    base: str | None = None
    lock: Path | None = None
    download: int = 0
    disk: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a backend finds before anything is fetched.

    Attributes:
        skips: environments that cannot be had here, with the reason.
        cached: environments for which nothing has to be made.
        free: bytes of room where the new ones would go.
        images: what a new one is made from, by name: where it is, ``here`` or ``registry``, or why it cannot be had.
    """

    skips: Mapping[str, Skip] = field(default_factory=dict)
    cached: frozenset[str] = frozenset()
    free: int = 0
    images: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """An environment that is ready to start: a digest to record, and what its backend needs to start it.

    Attributes:
        handle: an image id (docker) or the path of an interpreter (venv, host).
        digest: what pins the content: the image id, or the hash of the lock and the interpreter.
        seconds: what provisioning took; ``cached`` says that nothing had to be made.
    """

    environment: str
    framework: str
    handle: str
    digest: str
    seconds: float
    cached: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
