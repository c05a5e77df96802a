"""Environments as images of a container engine, and servers in isolated containers."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

import docker

from runner.backends import Resources, Say
from runner.backends.docker.build import build, image_id, inspect, pull
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.cleanup import owner, remove_abandoned
from runner.backends.docker.client import Conversations, connect, reachable, talking
from runner.backends.docker.image_names import UNPINNED, pinned, pins, source_image
from runner.backends.docker.options import CACHE_FOLDER, Recipe
from runner.backends.docker.survey import engine, free, image_states
from runner.backends.lock_file import lock_skip, read_lock
from runner.core.errors import Problem, ProvisionError
from runner.core.files import read_bounded
from runner.core.model import Limits, Provisioned, Skip, Spec, Survey

__all__ = ["DockerBackend", "reachable"]

MAX_FILE = 4 << 20  # bytes of a Dockerfile or a lock; the largest lock of this project has 60 KiB
ANSWER_SECONDS = 20.0  # a busy engine is slow to answer, and still there


class DockerBackend:
    """Builds from ``docker/`` and pulls; see Backend."""

    name = "docker"
    limits_memory = True

    def __init__(self, folder: Path) -> None:
        """Connect to the engine; ``folder`` holds a Dockerfile for each framework family, and ``pins.toml``.

        Raises:
            EngineError: no engine answers.
        """
        self._folder = folder
        self._pins = pins(folder / "pins.toml")
        self._owner = owner()
        self._conversations = Conversations()
        self._cleaned = False
        self._cleaning = threading.Lock()
        with closing(connect()) as client, talking("no container engine answers"):
            self.version = str(client.version()["Version"])

    @classmethod
    def create(cls, resources: Resources) -> Self:
        """See Backend."""
        return cls(resources.dockerfiles)

    @classmethod
    def chosen_by_auto(cls) -> bool:
        """See Backend: where an engine answers."""
        return reachable() is not None

    def installed(self) -> None:
        """See Backend."""

    def survey(self, specs: Sequence[Spec]) -> Survey:
        """See Backend."""
        skips: dict[str, Skip] = {}
        cached: set[str] = set()
        sources: dict[str, str] = {}  # environment -> the image that it is made from
        absent: list[str] = []
        with closing(connect()) as client, talking("the container engine stopped answering"):
            for spec in specs:
                try:
                    if (skip := self._unmakeable(spec)) is not None:
                        skips[spec.environment] = skip
                    elif self._cached(client, spec) is not None:
                        cached.add(spec.environment)
                    elif (name := source_image(spec, self._pins)) is not None:
                        absent += [name] if image_id(client, name) is None else []
                        sources[spec.environment] = name
                except ProvisionError as error:
                    skips[spec.environment] = _skip(error)
            images = image_states(sources.values(), absent)
            for environment, name in sources.items():
                if images[name].kind == "unavailable":
                    skips[environment] = Skip("image-unavailable", str(images[name]))
            return Survey(skips=skips, cached=frozenset(cached), free=free(client), images=images)

    def describe(self) -> dict[str, object]:
        """Return the facts about the engine, see ``docker.survey.engine``, and the ``free_bytes`` of its disk."""
        with closing(connect()) as client, talking("the container engine stopped answering"):
            return {**engine(client.info()), "free_bytes": free(client)}

    def tags(self, specs: Sequence[Spec]) -> dict[str, set[str | None]]:
        """Return environment -> the names of its built images; None among them if a name is unknown.

        The name depends on the base image: without a pin for it, the engine has to have the base.
        """
        names: dict[str, set[str | None]] = {}
        with closing(connect()) as client, talking("the container engine stopped answering"):
            for spec in specs:
                if spec.image is None and self._unmakeable(spec) is None:
                    names.setdefault(spec.environment, set()).add(self._tag(client, spec))
        return names

    def _tag(self, client: docker.DockerClient, spec: Spec) -> str | None:
        """Return the name of an environment's built image, None if it is unknown."""
        try:
            base = image_id(client, source_image(spec, self._pins) or "")
            return self._recipe(spec, base or "").tag if base or spec.base in self._pins else None
        except ProvisionError:
            return None

    def _unmakeable(self, spec: Spec) -> Skip | None:
        """Return why an environment cannot be made, None if its lock, base image and Dockerfile are there."""
        if spec.image is not None:
            return None
        if (skip := lock_skip(spec)) is not None:
            return skip
        if spec.base is None or not self._dockerfile(spec).is_file():
            missing = "base image" if spec.base is None else f"Dockerfile {self._dockerfile(spec)}"
            return Skip("image-unavailable", f"{spec.environment} has no {missing} to be built from")
        return None

    def _dockerfile(self, spec: Spec) -> Path:
        return self._folder / f"{spec.framework}.Dockerfile"

    def _recipe(self, spec: Spec, base_id: str) -> Recipe:
        """Return what an image is built from; raises ProvisionError if the lock or the Dockerfile cannot be read."""
        assert spec.lock is not None
        assert spec.base is not None
        return Recipe(
            environment=spec.environment,
            dockerfile=_content(self._dockerfile(spec)),
            lock=read_lock(spec.lock)[0],
            base=pinned(spec.base, self._pins),
            base_id=self._pins.get(spec.base, base_id),
        )

    def _cached(self, client: docker.DockerClient, spec: Spec) -> str | None:
        """Return the id of an environment's image; None if something has to be fetched or built for it."""
        source = source_image(spec, self._pins)
        if source is None:
            return None
        source_id = image_id(client, source)
        if spec.image is not None:
            return source_id
        if source_id is None and spec.base not in self._pins:
            return None
        return image_id(client, self._recipe(spec, source_id or "").tag)

    def provision(self, spec: Spec, say: Say) -> Provisioned:
        """See Backend. The first call removes what killed runners left on the engine, see ``docker.cleanup``."""
        begin = time.perf_counter()
        self._remove_abandoned_once()
        with closing(connect()) as client, talking("the container engine stopped answering"):
            cached = self._cached(client, spec) if self._unmakeable(spec) is None else None
            image = cached or self._make(client, spec, say)
            details = inspect(client, image) or {}
        return Provisioned(
            environment=spec.environment,
            framework=spec.framework,
            handle=image,
            digest=image,
            seconds=time.perf_counter() - begin,
            cached=cached is not None,
            facts=self._facts(spec, details),
            lock=read_lock(spec.lock)[0] if spec.lock else b"",
        )

    def _make(self, client: docker.DockerClient, spec: Spec, say: Say) -> str:
        skip = self._unmakeable(spec)
        source = source_image(spec, self._pins)
        if skip is not None or source is None:
            reason = skip.reason if skip else "it names no image"
            raise ProvisionError("image-build", Problem(f"cannot build {spec.environment!r}: {reason}"))
        base_id = image_id(client, source) or pull(self._conversations, source, say)
        if spec.image is not None:
            return base_id
        return build(self._conversations, self._recipe(spec, base_id), self._owner, say)

    def _facts(self, spec: Spec, details: Mapping[str, object]) -> dict[str, object]:
        """Return the facts that records keep of an image: where it is from, and whether that is pinned."""
        name = spec.image or spec.base or ""
        tags, digests = details.get("RepoTags") or [], details.get("RepoDigests") or []
        return {
            "engine": self.version,
            "image": name if spec.image else (tags[0] if isinstance(tags, list) and tags else ""),
            "base": "" if spec.image else name,
            "pin": self._pins.get(name, UNPINNED),
            "registry_digests": digests,
            "pulled": spec.image is not None,
            "interpreter": "python" if spec.image else "python3",
            "bytes": details.get("Size", 0),
        }

    def restore(self, environment: str, digest: str) -> str | None:  # noqa: ARG002  the digest names the image
        """See Backend."""
        with closing(connect()) as client, talking("the container engine stopped answering"), suppress(ProvisionError):
            return image_id(client, digest)
        return None  # the engine refuses the digest

    def cancel(self) -> None:
        """See Backend."""
        self._conversations.cancel()

    def cache(self, ready: Provisioned) -> str:  # noqa: ARG002  every container has the same
        """See Backend."""
        return str(CACHE_FOLDER)

    def open(self, ready: Provisioned, limits: Limits) -> DockerChannel:
        """See Backend."""
        return DockerChannel(ready, limits, self._owner)

    def remove_abandoned(self) -> tuple[str, ...]:
        """Remove the containers and unfinished images of runners of this host that are gone; return their names."""
        with closing(connect()) as client, talking("cannot look for containers of killed runners"):
            return remove_abandoned(client)

    def _remove_abandoned_once(self) -> None:
        with self._cleaning:
            if not self._cleaned:
                self._cleaned = True
                self.remove_abandoned()

    def answers(self) -> bool:
        """See Backend. An engine that is restarting has time to answer."""
        return reachable(ANSWER_SECONDS) is not None

    def close(self) -> None:
        """See Backend. There is nothing to close: each call and each channel closes its own client."""


def _content(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_FILE)
    except OSError as error:
        raise ProvisionError("image-build", Problem(f"{path} cannot be read: {error.strerror or error}")) from error


def _skip(error: ProvisionError) -> Skip:
    """Return the reason to skip an environment that the engine or a file makes impossible."""
    problem = error.problems[0]
    return Skip("image-unavailable", "; ".join(filter(None, (problem.message, problem.hint))))
