"""Images made or fetched, with progress; a broken-off build leaves nothing on the engine."""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound

from runner.backends import Say
from runner.backends.docker import build_log
from runner.backends.docker.cleanup import clear
from runner.backends.docker.client import FOREIGN, Conversations, connect, sentence, talking
from runner.backends.docker.options import Recipe, repository
from runner.core.errors import EngineError, InterruptedRunError, Problem, ProvisionError

_CLEARING = 3.0


def image_id(client: docker.DockerClient, name: str) -> str | None:
    """Return the id of a local image, None where there is none of that name."""
    found = inspect(client, name)
    return None if found is None else str(found["Id"])


def inspect(client: docker.DockerClient, name: str) -> dict[str, Any] | None:
    """Return what the engine knows of a local image, None where there is none of that name."""
    try:
        return dict(client.api.inspect_image(name))  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None


def build(conversations: Conversations, recipe: Recipe, owner: str, say: Say) -> str:
    """Build an image; return its id.

    Raises:
        ProvisionError: class ``image-build``, with the log's last useful lines.
        EngineError: the engine stopped answering.
        InterruptedRunError: it was cancelled; nothing of it is left.
    """
    builder = f"{owner}:{secrets.token_hex(4)}"
    try:
        with _cancellable(conversations) as client:
            try:
                said = _follow_build(client, recipe, builder, say)
            except APIError as error:  # the engine could not even read the Dockerfile
                raise _build_failed(recipe, (), sentence(error)) from error
            _stop_if_cancelled(conversations)
            return _named(client, recipe, said)
    except BaseException:
        _clear(builder)
        raise


def _follow_build(client: docker.DockerClient, recipe: Recipe, builder: str, say: Say) -> Sequence[str]:
    """Return what was said; raises ProvisionError where the engine reports an error."""
    lines: list[str] = []
    for message in client.api.build(**recipe.build_options(builder)):
        if "error" in message:
            raise _build_failed(recipe, lines, str(message["error"]))
        for line in _lines(message):
            lines.append(line)
            _tell(say, build_log.worth_saying(line))
    return lines


def _named(client: docker.DockerClient, recipe: Recipe, lines: Sequence[str]) -> str:
    """Return the id of the image that a build has named."""
    found = image_id(client, recipe.tag)
    if found is None:
        raise _build_failed(recipe, lines, "the engine ended the build without an image")
    return found


def pull(conversations: Conversations, name: str, say: Say) -> str:
    """Fetch an image; return its id.

    Raises:
        ProvisionError: class ``image-pull``.
        EngineError: the engine stopped answering.
        InterruptedRunError: it was cancelled.
    """
    progress = build_log.Pull()
    with _cancellable(conversations) as client:
        say(f"pulling {name}")
        tag = None if "@" in name or repository(name) != name else "latest"
        try:
            for message in client.api.pull(name, tag=tag, stream=True, decode=True):
                if "error" in message:
                    raise _pull_failed(name, str(message["error"]))
                _tell(say, progress.worth_saying(message))
        except APIError as error:
            raise _pull_failed(name, sentence(error)) from error
        _stop_if_cancelled(conversations)
        found = image_id(client, name)
    if found is None:
        raise _pull_failed(name, "the engine ended the pull without an image")
    return found


def _pull_failed(name: str, said: str) -> ProvisionError:
    """Return the error of an image that could not be fetched."""
    hint = f"run `docker pull {name}` where a registry answers, then `docker save` there and `docker load` here"
    return ProvisionError("image-pull", Problem(f"cannot pull {name!r}: {said}", hint=hint), log=said)


def _build_failed(recipe: Recipe, lines: Sequence[str], said: str) -> ProvisionError:
    message = f"cannot build {recipe.environment!r}: {build_log.reason(lines, said)}"
    log = "\n".join(build_log.useful([*lines, build_log.step_end(said)]))
    return ProvisionError("image-build", Problem(message, hint=build_log.hint(log)), log=log)


@contextmanager
def _cancellable(conversations: Conversations) -> Iterator[docker.DockerClient]:
    """Lend a client; what breaks because it was cancelled is told as such."""
    _stop_if_cancelled(conversations)
    try:
        with conversations.client() as client, talking("the container engine stopped answering"):
            yield client
    except (ProvisionError, EngineError) as error:
        _stop_if_cancelled(conversations, error)
        raise


def _stop_if_cancelled(conversations: Conversations, cause: BaseException | None = None) -> None:
    if conversations.cancelled:
        raise InterruptedRunError("provisioning was cancelled") from cause


def _clear(builder: str) -> None:
    """Remove a failed build's remains by a connection of its own; what cannot be removed now is swept later."""
    try:
        with closing(connect()) as client:
            clear(client, builder, _CLEARING)
    except (EngineError, *FOREIGN):  # the build's own failure is the news
        return


def _lines(message: dict[str, Any]) -> Iterable[str]:
    """Return the lines of a message; the classic builder sends a whole line, or several, at a time."""
    return str(message.get("stream") or message.get("status") or "").splitlines()


def _tell(say: Say, line: str | None) -> None:
    if line is not None:
        say(line)
