"""Environments as images of a container engine, and servers in isolated containers."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Self

import docker
from typing_extensions import override

from runner.backends import Backend, Installed, Resources, Say, uses
from runner.backends.docker import claims
from runner.backends.docker.build import image_id, inspect
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.cleanup import builder, owner, remove_abandoned
from runner.backends.docker.client import Conversations, connect, is_podman, no_engine, reachable, talking
from runner.backends.docker.image_names import UNPINNED
from runner.backends.docker.images import CACHED, Images, ReadyImage
from runner.backends.docker.options import CACHE_FOLDER, USE, short_id
from runner.backends.docker.probe import probe
from runner.backends.docker.survey import engine, free, image_states
from runner.backends.lock_file import read_lock
from runner.core.errors import Problem, ProvisionError
from runner.core.model import Limits, Provisioned, Skip, Spec, Survey

__all__ = ["DockerBackend", "reachable"]

ANSWER_SECONDS = 20.0  # a busy engine is slow to answer, and still there


class DockerBackend(Backend):
    """Builds from ``docker/`` and pulls; see Backend."""

    name = "docker"
    limits_memory = True

    def __init__(self, folder: Path, *, registry: str | None = None, notes_uses: bool = False) -> None:
        """Connect to the engine.

        Args:
            folder: holds the files of the project that ``images.Images`` reads.
            registry: the repository of the team, which alone ``images.toml`` may name; None pulls none of its images.
            notes_uses: note on the engine which images this checkout uses.

        Raises:
            EngineError: no engine answers.
            UsageError: a file of the project cannot be used.
        """
        self._checkout = uses.Checkout(folder.parent)
        self._notes_uses = notes_uses
        self._owner = owner()
        self._conversations = Conversations()
        self._cleaned = False
        self._cleaning = threading.Lock()
        with closing(connect()) as client, talking("no container engine answers"):
            version = client.version()
        self.version, architecture = str(version["Version"]), str(version.get("Arch", ""))
        self._images = Images(folder, self._conversations, architecture, self._owner, registry)

    @classmethod
    def create(cls, resources: Resources) -> Self:
        """See Backend."""
        return cls(resources.dockerfiles, registry=resources.registry, notes_uses=True)

    @classmethod
    def refused_by_auto(cls) -> str:
        """See Backend: it is chosen where an engine answers."""
        return no_engine()

    @override
    def installed(self) -> None:
        """See Backend."""

    @override
    def probe(self, source: str, environment: str, framework: str | None = None) -> Installed:
        self._remove_abandoned_once()
        return probe(source, environment, framework, self._owner)

    @override
    def survey(self, specs: Sequence[Spec]) -> Survey:
        skips: dict[str, Skip] = {}
        cached: set[str] = set()
        sources: dict[str, str] = {}  # environment -> the image that it is made from
        absent: list[str] = []
        recipes = self._images.recipes
        with closing(connect()) as client, talking("the container engine stopped answering"):
            team_images, pulled = self._images.survey_team_images(client, specs)
            for spec in specs:
                try:
                    if (skip := recipes.unmakeable(spec)) is not None:
                        skips[spec.environment] = skip
                    elif spec.environment in pulled:
                        continue
                    elif self._images.on_engine(client, spec) is not None:
                        cached.add(spec.environment)
                    else:
                        name = sources[spec.environment] = recipes.source(spec)
                        absent += [name] if image_id(client, name) is None else []
                except ProvisionError as error:
                    skips[spec.environment] = _skip(error)
            images = image_states(sources.values(), absent)
            for environment, name in sources.items():
                if images[name].kind == "unavailable":
                    skips[environment] = Skip("image-unavailable", str(images[name]), passing=images[name].passing)
            all_images = {**team_images, **images}
            return Survey(skips=skips, cached=frozenset(cached), pulled=pulled, free=free(client), images=all_images)

    def describe(self) -> dict[str, object]:
        """Return the facts about the engine, see ``docker.survey.engine``, and the ``free_bytes`` of its disk."""
        with closing(connect()) as client, talking("the container engine stopped answering"):
            return {**engine(client.info(), podman=is_podman(client)), "free_bytes": free(client)}

    def tags(self, specs: Sequence[Spec]) -> dict[str, set[str | None]]:
        """Return environment -> the names of its images, built here or pulled; None among them if a name is unknown.

        The name of a built image depends on the base image: without a pin for it, the engine has to have the base.
        """
        names: dict[str, set[str | None]] = {}
        with closing(connect()) as client, talking("the container engine stopped answering"):
            for spec in specs:
                if spec.image is None and self._images.recipes.unmakeable(spec) is None:
                    names.setdefault(spec.environment, set()).update(self._images.names(client, spec))
        return names

    def publish_to(self, repository: str) -> None:
        """Push each image that ``provision`` makes ready from now on to a repository, unless it is there."""
        self._images.repository = repository

    @override
    def provision(self, spec: Spec, say: Say) -> Provisioned:
        """See Backend. The first call removes what killed runners left on the engine, see ``docker.cleanup``."""
        begin = time.perf_counter()
        self._remove_abandoned_once()
        if (skip := self._images.recipes.unmakeable(spec)) is not None:
            raise ProvisionError("image-build", Problem(f"cannot build {spec.environment!r}: {skip.reason}"))
        with closing(connect()) as client, talking("the container engine stopped answering"):
            image = self._images.ready(client, spec, say)
            details = inspect(client, image.id) or {}
            self._note_use(client, image.id)
        return Provisioned(
            environment=spec.environment,
            framework=spec.framework,
            handle=image.id,
            digest=image.id,
            seconds=time.perf_counter() - begin,
            cached=image.how == CACHED,
            how=image.how,
            facts=self._facts(spec, image, details),
            lock=read_lock(spec.lock)[0] if spec.lock else b"",
        )

    def _note_use(self, client: docker.DockerClient, image: str) -> None:
        if self._notes_uses:
            claims.note_use(client, image, uses.label(self._checkout.folder), self._checkout.now())

    @override
    def keep(self, ready: Iterable[Provisioned]) -> AbstractContextManager[None]:
        """See Backend. Others may share the engine, and nothing else, with this checkout."""
        return claims.held({environment.handle for environment in ready}, self._owner)

    @override
    def others_need(self, ready: Provisioned) -> tuple[str, ...]:
        with closing(connect()) as client, talking("the container engine stopped answering"):
            volumes = client.api.volumes(filters={"label": USE}).get("Volumes") or ()
            details = inspect(client, ready.handle) or {}
        built_by = builder(details, (details.get("Config") or {}).get("Labels"))
        return self._checkout.need(claims.uses_of(volumes).get(short_id(ready.handle), ()), built_by).others

    def _facts(self, spec: Spec, image: ReadyImage, details: Mapping[str, object]) -> dict[str, object]:
        """Return the facts that records keep of an image: where it is from, and whether that is pinned."""
        name = spec.image or spec.base or ""
        tags, digests = details.get("RepoTags") or [], details.get("RepoDigests") or []
        of_registry = {"team_image": image.team_image, "not_pulled": image.not_pulled}
        return {
            "engine": self.version,
            "image": name if spec.image else (tags[0] if isinstance(tags, list) and tags else ""),
            "base": "" if spec.image else name,
            "pin": UNPINNED if spec.interpreter else self._images.recipes.pin(name),
            "registry_digests": digests,
            "pulled": spec.image is not None,
            "interpreter": spec.interpreter or ("python" if spec.image else "python3"),
            "bytes": details.get("Size", 0),
            **{fact: text for fact, text in of_registry.items() if text},
        }

    @override
    def restore(self, environment: str, digest: str) -> str | None:
        with closing(connect()) as client, talking("the container engine stopped answering"), suppress(ProvisionError):
            image = image_id(client, digest)
            if image is not None:
                self._note_use(client, image)
            return image
        return None  # the engine refuses the digest

    @override
    def cancel(self) -> None:
        self._conversations.cancel()

    @override
    def cache(self, ready: Provisioned) -> str:
        return str(CACHE_FOLDER)

    @override
    def open(self, ready: Provisioned, limits: Limits) -> DockerChannel:
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

    @override
    def answers(self) -> bool:
        """See Backend. An engine that is restarting has time to answer."""
        return reachable(ANSWER_SECONDS) is not None

    @override
    def close(self) -> None:
        """See Backend. There is nothing to close: each call and each channel closes its own client."""


def _skip(error: ProvisionError) -> Skip:
    """Return the reason to skip an environment that the engine or a file makes impossible."""
    problem = error.problems[0]
    reason = "; ".join(filter(None, (problem.message, problem.hint)))
    return Skip("image-unavailable", reason, passing=error.passing)
