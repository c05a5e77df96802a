"""How the image of an environment gets onto the engine: from the team's registry, by a pull, or by a build."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import docker

from runner.backends import Say, uses
from runner.backends.docker.build import build, image_id, pull
from runner.backends.docker.client import Conversations
from runner.backends.docker.image_names import familiar
from runner.backends.docker.recipes import Recipes
from runner.backends.docker.refusals import refusal
from runner.backends.docker.registry import TeamImages, pull_checked, push
from runner.backends.docker.survey import digest_of, unavailable
from runner.core.errors import ProvisionError
from runner.core.model import Spec
from runner.core.model.provisioning import ImageState

CACHED = "cached"
NO_PUSH = frozenset({"http", "certificate", "login", "unreachable"})
"""Kinds of refusals after which a push cannot work: nothing is built for it. See ``refusals.REFUSALS``."""


class ReadyImage(NamedTuple):
    """An image on the engine.

    Attributes:
        id: of the image.
        how: ``CACHED`` if it was there before, else what was done: ``built``, ``pulled``, ``built and pushed``.
        team_image: its name in the team's registry, if it is the image that ``images.toml`` names; else empty.
        not_pulled: why it is not that image; empty if it is, or none is named.
    """

    id: str
    how: str
    team_image: str = ""
    not_pulled: str = ""


class Images:
    """The images of a project's environments on one engine."""

    def __init__(
        self, folder: Path, conversations: Conversations, architecture: str, owner: str, registry: str | None = None
    ) -> None:
        """Read the project's files.

        Args:
            folder: holds the Dockerfiles, ``pins.toml`` and ``images.toml``.
            conversations: for builds, pulls and pushes.
            architecture: of the engine, ``amd64``.
            owner: the process that builds, see ``cleanup.owner``.
            registry: the repository whose images are pulled; None pulls none of ``images.toml``.

        Raises:
            UsageError: a file cannot be used, or names an image of another repository.
        """
        self.recipes = Recipes(folder)
        self.team_images = TeamImages(folder / "images.toml", registry)
        self.repository: str | None = None
        """Where each image is pushed that is made ready, unless it is there; None pushes none."""
        self._conversations = conversations
        self._architecture = architecture
        self._owner = owner
        self._checkout = uses.label(folder.parent)
        self._builds: dict[str, threading.Lock] = {}  # by tag: an extended environment may need what is being built
        self._adding = threading.Lock()

    def team_image(self, spec: Spec) -> str | None:
        """Return the image that ``images.toml`` names for an environment; raises ProvisionError as ``Recipes`` does."""
        return None if spec.image else self.team_images.image(self.recipes.named(spec), self._architecture)

    def on_engine(self, client: docker.DockerClient, spec: Spec) -> str | None:
        """Return the id of the image that an environment needs; None if something has to be fetched or built for it.

        An image that ``images.toml`` names counts only if the engine has it or cannot pull it; see
        ``survey_team_images``.
        """
        team_image = self.team_image(spec)
        here = None if team_image is None else image_id(client, team_image)
        return here or self._built(client, spec)

    def _built(self, client: docker.DockerClient, spec: Spec) -> str | None:
        """Return the id of the image that was built for an environment, or that the matrix names; None without one."""
        source_id = image_id(client, self.recipes.source(spec))
        if spec.image is not None:
            return source_id
        recipe = self.recipes.recipe(spec, source_id)
        return None if recipe is None else image_id(client, recipe.tag)

    def names(self, client: docker.DockerClient, spec: Spec) -> set[str | None]:
        """Return the names of an environment's images, built here or pulled; None for one that is unknown."""
        try:
            recipe = self.recipes.recipe(spec, image_id(client, self.recipes.source(spec)))
            team_image = self.team_image(spec)
        except ProvisionError:
            return {None}
        return {recipe.tag if recipe else None, *([familiar(team_image)] if team_image else [])}

    def survey_team_images(
        self, client: docker.DockerClient, specs: Sequence[Spec]
    ) -> tuple[Mapping[str, ImageState], frozenset[str]]:
        """Ask for the images that ``images.toml`` names and the engine lacks; nothing is fetched.

        Returns:
            Each of these images with its state, and the environments whose image can be pulled.
        """
        absent: dict[str, str] = {}
        for spec in specs:
            with suppress(ProvisionError):  # whoever makes the environment says what is wrong with it
                image = None if self.recipes.unmakeable(spec) else self.team_image(spec)
                if image is not None and image_id(client, image) is None:
                    absent[spec.environment] = image
        refusals = {name: refusal(name, text).problem for name, text in unavailable(list(absent.values())).items()}
        states = {name: ImageState("registry") for name in absent.values()}
        states |= {
            name: ImageState("unavailable", problem.message, problem.hint or "") for name, problem in refusals.items()
        }
        return states, frozenset(environment for environment, name in absent.items() if name not in refusals)

    def ready(self, client: docker.DockerClient, spec: Spec, say: Say) -> ReadyImage:
        """Return the image of an environment that can be made: the team's, or else one that is or was built here.

        Raises:
            ProvisionError: it cannot be pulled, built or pushed.
            EngineError: the engine stopped answering.
            InterruptedRunError: it was cancelled.
        """
        if spec.image is not None:
            here = self._built(client, spec)
            return ReadyImage(here, CACHED) if here else ReadyImage(self._base(client, spec, say), "pulled")
        if self.repository is not None:
            return self._published(client, spec, self.repository, say)
        team_image, not_pulled = self.team_image(spec), ""
        if team_image is not None:
            if here := image_id(client, team_image):
                return ReadyImage(here, CACHED, team_image)
            try:
                pulled = pull_checked(self._conversations, team_image, self._architecture, say)
                return ReadyImage(pulled, "pulled", team_image)
            except ProvisionError as error:
                not_pulled = "; ".join(filter(None, (error.problems[0].message, error.problems[0].hint)))
        else:
            not_pulled = self.team_images.why_none(self.recipes.named(spec), self._architecture)
        if here := self._built(client, spec):
            return ReadyImage(here, CACHED, not_pulled=not_pulled)
        return ReadyImage(self._build(client, spec, say), "built", not_pulled=not_pulled)

    def _base(self, client: docker.DockerClient, spec: Spec, say: Say) -> str:
        """Return the id of the image that an environment is or is built on; it is pulled if the engine lacks it."""
        source = self.recipes.source(spec)
        return image_id(client, source) or pull(self._conversations, source, say)

    def _build(self, client: docker.DockerClient, spec: Spec, say: Say) -> str:
        recipe = self.recipes.recipe(spec, self._base(client, spec, say))
        assert recipe is not None  # its base is known
        with self._adding:
            only_one = self._builds.setdefault(recipe.tag, threading.Lock())
        with only_one:
            if here := image_id(client, recipe.tag):
                return here
            if (below := spec.extends) is not None:
                self._prepare_below(client, below, recipe.base, say)
            return build(self._conversations, recipe, self._owner, self._checkout, say)

    def _prepare_below(self, client: docker.DockerClient, below: Spec, tag: str, say: Say) -> None:
        """Have the image that an extended environment is built on, under the name that its recipe has for it."""
        if image_id(client, tag) is not None:
            return
        say(f"{below.environment} first, which it extends")
        if self.repository is None:
            image = self.ready(client, below, say).id
        else:  # it is no image that is pushed
            image = self.on_engine(client, below) or self._build(client, below, say)
        if image_id(client, tag) is None:  # it is the team's
            name, _, digits = tag.partition(":")
            client.api.tag(image, name, digits)

    def _published(self, client: docker.DockerClient, spec: Spec, repository: str, say: Say) -> ReadyImage:
        """Return the image of an environment in a repository; it is built and pushed if the repository lacks it."""
        base_id = image_id(client, self.recipes.source(spec))
        recipe = self.recipes.recipe(spec, base_id) or self.recipes.recipe(spec, self._base(client, spec, say))
        assert recipe is not None  # its base is known
        name, how = f"{repository}:{recipe.registry_tag(self._architecture)}", "pulled"
        digest, message = digest_of(name)
        if not digest:
            refused = refusal(name, message)
            if refused.kind in NO_PUSH:
                raise ProvisionError("image-push", refused.problem, passing=refused.passing)
            built = self._built(client, spec)
            how = "pushed" if built else "built and pushed"
            digest = push(self._conversations, built or self._build(client, spec, say), name, say)
        team_image = f"{repository}@{digest}"
        here = image_id(client, team_image)
        image = here or pull_checked(self._conversations, team_image, self._architecture, say)
        self.team_images.add(self.recipes.named(spec), self._architecture, team_image)
        return ReadyImage(image, CACHED if here and how == "pulled" else how, team_image)
