"""The images that the registry of a team has: which of them a project names, how they get there, and what goes wrong.

``images.toml`` of a project names the image of each environment by its digest, which is a digest of all of its bytes.
``runner build --push`` writes it. Every host that has the file pulls these images instead of building its own.
"""

import os
from collections.abc import Mapping
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from docker.errors import APIError

from runner.backends import Say
from runner.backends.docker import build_log
from runner.backends.docker.build import SILENT_SECONDS, cancellable, pull, stop_if_cancelled
from runner.backends.docker.client import FOREIGN, Conversations, connect, sentence
from runner.backends.docker.image_names import image_table, is_pinned_image, repository
from runner.backends.docker.options import Recipe
from runner.backends.docker.refusals import refusal
from runner.backends.docker.watch import PULL_SHARE
from runner.core.errors import EngineError, Problem, ProvisionError, UsageError, file_problem
from runner.core.files import write_whole
from runner.core.locks import changing
from runner.core.outages import is_passing_error
from runner.core.paths import cache_folder
from runner.core.text import REASON_LENGTH, printable

HEADER = """\
# The images that `runner build --push` has pushed: what an image was built from = the image. Hosts that have this file
# pull these images instead of building their own. A line that nobody needs any more can be removed.

[images]
"""


class TeamImages:
    """The images that ``images.toml`` names; those of the repository that the matrix names are used.

    The file lies beside the matrix, and an engine reads without a limit what a registry answers. So who can write the
    file cannot lead engines to another registry than the matrix does.
    """

    def __init__(self, path: Path, registry: str | None) -> None:
        """Read the file; without it, there are no images.

        Args:
            path: the file.
            registry: the repository that the matrix names as ``registry``; with None, nothing is pulled.

        Raises:
            UsageError: the file cannot be read, is not TOML, or names something else than ``repository@digest``.
        """
        self._path, self._registry = path, registry
        name = sha256(os.fsencode(path.absolute())).hexdigest()[:12]
        self._lock = cache_folder(os.environ) / f"images-{name}.lock"  # a folder of a project gets no further file
        self._images = self._read()

    def _read(self) -> dict[str, str]:
        hint = "restore it, or remove it: hosts then build their images, and `runner build --push` writes it anew"
        images = image_table(self._path, hint)
        for name, image in images.items():
            if not is_pinned_image(image):
                wrong = printable(name, REASON_LENGTH)
                message = f"{self._path} gives {wrong!r} something that is not repository@sha256:..."
                raise UsageError(Problem(message, hint=hint))
        return images

    def image(self, recipe: Recipe, architecture: str) -> str | None:
        """Return the image of a recipe for an architecture, ``repository@digest``; None if the file names none."""
        image = self._images.get(recipe.registry_tag(architecture))
        return image if image is not None and repository(image) == self._registry else None

    def why_none(self, recipe: Recipe, architecture: str) -> str:
        """Return why no image of the file is used for a recipe; empty where the file names none."""
        if image := self._images.get(recipe.registry_tag(architecture)):
            its = f"the registry of the matrix is {self._registry}" if self._registry else "the matrix has no registry"
            return f"images.toml names {repository(image)}, and {its}"
        others = self.other_architectures(recipe)
        return f"images.toml has an image for {', '.join(others)}, and this engine is {architecture}" if others else ""

    def other_architectures(self, recipe: Recipe) -> tuple[str, ...]:
        """Return the architectures that the registry has an image of a recipe for."""
        start = recipe.registry_tag("")
        return tuple(sorted(name.removeprefix(start) for name in self._images if name.startswith(start)))

    def add(self, recipe: Recipe, architecture: str, image: str) -> None:
        """Name the image of a recipe in the file, which keeps what others have added since it was read.

        Raises:
            ProvisionError: the file cannot be written.
            RunnerError: another process changes it, and does not end.
        """
        with changing(self._path, self._lock):
            self._images = {**self._read(), recipe.registry_tag(architecture): image}
            lines = (f'"{name}" = "{value}"\n' for name, value in sorted(self._images.items()))
            try:
                write_whole(self._path, HEADER + "".join(lines))
            except OSError as error:
                problem = file_problem(error, self._path)
                raise ProvisionError("image-push", problem, passing=is_passing_error(error)) from error


def pull_checked(conversations: Conversations, image: str, architecture: str, say: Say) -> str:
    """Pull an image of the team's registry; return its id.

    Raises:
        ProvisionError: it cannot be pulled, or is for another architecture; the problem says what to do.
        EngineError: the engine stopped answering.
        InterruptedRunError: the pull was cancelled.
    """
    try:
        pulled = pull(conversations, image, say)
    except ProvisionError as error:
        refused = refusal(image, error.log)
        raise ProvisionError("image-pull", refused.problem, log=error.log, passing=refused.passing) from error
    with closing(connect()) as client:
        its_architecture = architecture_of(dict(client.api.inspect_image(pulled)))  # type: ignore[no-untyped-call]
    if its_architecture != architecture:
        message = f"{image} is for {its_architecture}, and this engine is {architecture}"
        raise ProvisionError("image-pull", Problem(message, hint="`runner build --push` on such a host adds an image"))
    return pulled


def architecture_of(details: Mapping[str, object]) -> str:
    """Return the architecture of an image, ``amd64`` or ``arm64``, from the engine's details of it."""
    return str(details.get("Architecture", ""))


def push(conversations: Conversations, image: str, name: str, say: Say) -> str:
    """Push an image; return the digest that the registry has it under.

    Args:
        conversations: can be cancelled.
        image: its id.
        name: repository and tag. The engine has that name only while this runs.
        say: shows progress.

    Raises:
        ProvisionError: the registry does not take it.
        EngineError: the engine stopped answering.
        InterruptedRunError: the push was cancelled; the registry keeps the layers that have arrived.
    """
    target, _, tag = name.rpartition(":")
    progress, digest = build_log.LayerProgress("pushing"), ""
    with cancellable(conversations, PULL_SHARE) as (client, memory):
        say(f"pushing {name}")
        client.api.timeout = SILENT_SECONDS
        try:
            client.api.tag(image, target, tag)
            for message in client.api.push(target, tag=tag, stream=True, decode=True):
                if "error" in message:
                    raise _push_failed(name, str(message["error"]))
                digest = str((message.get("aux") or {}).get("Digest") or digest)
                if (line := progress.line(message)) is not None:
                    say(line)
        except FOREIGN as error:
            if not memory.excess and not isinstance(error, APIError):
                raise
            raise _push_failed(name, memory.excess or sentence(error)) from error
        finally:
            _remove_name(name)
        stop_if_cancelled(conversations)
    if memory.excess:
        raise _push_failed(name, memory.excess)
    if not digest:
        raise _push_failed(name, "the engine ended the push without a digest")
    return digest


def _push_failed(name: str, message: str) -> ProvisionError:
    refused = refusal(name, message)
    problem = Problem(f"cannot push {name}: {refused.problem.message}", hint=refused.problem.hint)
    return ProvisionError("image-push", problem, log=printable(message), passing=refused.passing)


def _remove_name(name: str) -> None:
    """Remove a name of an image, over a new connection: that of a push that was cancelled is closed."""
    with suppress(EngineError, *FOREIGN), closing(connect()) as client:
        client.api.remove_image(name, noprune=True)
