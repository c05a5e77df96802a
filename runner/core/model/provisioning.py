"""Environments in three states: requested of a backend, found by its survey, and ready to start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runner.core.model.cells import Skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a backend needs to make one environment for one device.

    Attributes:
        environment: id in matrix.yaml.
        python: ``3.6``; None where an image has its own.
        image: an image to pull, or None to build from ``base`` and ``lock``.
        lock: absolute path of a requirements file with hashes; None where there is none yet.
        download: bytes to fetch the first time; 0 where unknown.
        disk: bytes it takes on the disk; 0 where unknown.
        note: the remark of matrix.yaml; empty without one.
        extends: what the environment is made from that this one adds packages to; None where it extends none.
        added: the normalized names of the packages that it adds.
        interpreter: what is started as it is, and was not made for this: the path of an interpreter of this machine, or
            the program in ``image``; empty for all that is built, or that the matrix names.
        is_locked_when_named: the matrix names no lock, and one is made and kept where a selector names the environment.
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
    note: str = ""
    extends: "Spec | None" = None
    added: tuple[str, ...] = ()
    interpreter: str = ""
    is_locked_when_named: bool = False

    @property
    def missing_lock(self) -> str:
        """Say that there is no lock, what to do, and what the matrix remarks."""
        remark = f"; {self.note}" if self.note else ""
        if self.is_locked_when_named:
            return f"no lock yet: it is made where the environment is named: `runner plan {self.environment}`{remark}"
        return f"no lock yet: run `runner lock {self.environment}` where its package index answers{remark}"


@dataclass(frozen=True, slots=True)
class ImageState:
    """Where the image is that an environment is made from.

    Attributes:
        kind: ``here`` on the engine, in its ``registry``, or ``unavailable``.
        reason: why it is unavailable, in a sentence; else empty.
        fix: what to do about that; else empty.
        passing: whether an outage makes it unavailable.
    """

    kind: Literal["here", "registry", "unavailable"]
    reason: str = ""
    fix: str = ""
    passing: bool = False

    def __str__(self) -> str:
        """Return the kind, or the reason and the fix of an image that is unavailable."""
        return f"{self.reason}; {self.fix}" if self.kind == "unavailable" else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a backend finds out without fetching anything.

    Attributes:
        skips: environments that this backend cannot make here, with the reason.
        cached: environments that are made already.
        pulled: environments that the team's registry has an image of, which this engine has not.
        free: free bytes where new environments would go; 0 where that is unknown.
        images: image name -> its state, for the images that new environments are made from.
    """

    skips: Mapping[str, Skip] = field(default_factory=dict)
    cached: frozenset[str] = frozenset()
    pulled: frozenset[str] = frozenset()
    free: int = 0
    images: Mapping[str, ImageState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """An environment that is ready to start.

    Attributes:
        handle: an image id (docker) or the path of an interpreter (venv, host).
        digest: identifies the content in records: the image id, or the hash of the lock and the interpreter.
        seconds: how long provisioning took.
        cached: it was made before; nothing was built or fetched.
        how: what was done if it was not: ``built``, ``pulled``, or ``built and pushed``.
        facts: what the records say of it.
        lock: the content of the lock that it was installed from; empty for an image and an installed interpreter.
        variables: name -> value, set before an interpreter starts; their backend's own variables count besides.
    """

    environment: str
    framework: str
    handle: str
    digest: str
    seconds: float
    cached: bool
    how: str = "built"
    facts: Mapping[str, Any] = field(default_factory=dict)
    lock: bytes = field(default=b"", repr=False)
    variables: Mapping[str, str] = field(default_factory=dict)
