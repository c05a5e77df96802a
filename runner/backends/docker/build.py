"""Build and pull images, with progress; a build that fails or is cancelled leaves nothing on the engine."""

import re
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound

from runner.backends import Say
from runner.backends.docker import build_log
from runner.backends.docker.cleanup import remove_build
from runner.backends.docker.client import FOREIGN, Conversations, connect, sentence, talking
from runner.backends.docker.image_names import is_image_name, repository
from runner.backends.docker.options import Recipe
from runner.backends.docker.refusals import refusal
from runner.backends.docker.watch import BUILD_SHARE, MEMORY_SIGN, PULL_SHARE, MemoryWatch
from runner.core.errors import EngineError, InterruptedRunError, Problem, ProvisionError
from runner.core.outages import is_outage
from runner.core.text import REASON_LENGTH, printable

NAME_HINT = "correct the name in the matrix, and try it with `docker image inspect`"
NOTHING_LISTED = re.compile(r"\(from versions: (?:none)?\)")
"""What pip prints if it found no version of a package. A lock names versions that exist: the index is not reached."""
SILENT_SECONDS = 300
"""A pull or a push without any progress ends after this time.

Docker 20.10 was silent for 0.64 s at most while it pulled an image of 617 MB, with the registry on the same machine,
whose two cores were busy.
"""
_ENGINE_SECONDS = 3.0  # the engine has to remove the remains of a failed build


def image_id(client: docker.DockerClient, name: str) -> str | None:
    """Return the id of an image, None if the engine has none of that name; raises as ``inspect`` does."""
    details = inspect(client, name)
    return None if details is None else str(details["Id"])


def inspect(client: docker.DockerClient, name: str) -> dict[str, Any] | None:
    """Return the engine's details of an image, None if it has none of that name.

    Raises:
        ProvisionError: the engine answers, and refuses this name. Its class is ``image-pull``.
    """
    if not is_image_name(name):
        message = f"{name[:REASON_LENGTH]!r} is not the name of an image"
        raise ProvisionError("image-pull", Problem(message, hint=NAME_HINT))
    try:
        return dict(client.api.inspect_image(name))  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None
    except APIError as error:
        message = f"the engine refuses the image {name!r}: {sentence(error)}"
        raise ProvisionError("image-pull", Problem(message, hint=NAME_HINT)) from error


def build(conversations: Conversations, recipe: Recipe, owner: str, checkout: str, say: Say) -> str:
    """Build an image; return its id.

    Args:
        conversations: with the engine.
        recipe: what to build.
        owner: the process that builds, see ``cleanup.owner``.
        checkout: whose image it is, see ``uses.label``.
        say: shows the progress.

    Raises:
        ProvisionError: class ``image-build``, with the log's last useful lines.
        EngineError: the engine stopped answering.
        InterruptedRunError: the build was cancelled.
    """
    builder = f"{owner}:{secrets.token_hex(4)}"
    try:
        with cancellable(conversations, BUILD_SHARE) as (client, memory):
            try:
                messages = client.api.build(**recipe.build_options(builder, checkout))
                lines = _follow_build(messages, recipe, say)
            except FOREIGN as error:
                stop_if_cancelled(conversations, error)
                if not memory.excess and not isinstance(error, APIError):
                    raise
                # An APIError: the engine could not even read the Dockerfile.
                raise _build_failed(recipe, (), _excess("build", memory) or sentence(error)) from error
            stop_if_cancelled(conversations)
            return _built_image(client, recipe, lines, memory)
    except BaseException:
        _remove_remains(builder)
        raise


def _follow_build(messages: Iterable[dict[str, Any]], recipe: Recipe, say: Say) -> Iterable[str]:
    """Return the last lines of a build's log; raises ProvisionError if the engine reports an error."""
    lines: deque[str] = deque(maxlen=build_log.KEPT_LINES)
    for message in messages:
        if "error" in message:
            raise _build_failed(recipe, lines, str(message["error"]))
        for line in map(build_log.plain, _lines(message)):
            lines.append(line)
            _report(say, build_log.progress_line(line))
    return lines


def _built_image(client: docker.DockerClient, recipe: Recipe, lines: Iterable[str], memory: MemoryWatch) -> str:
    """Return the id of the image that a build has made; a build that was hung up ends as if it were complete."""
    if memory.excess:
        raise _build_failed(recipe, lines, _excess("build", memory))
    image = image_id(client, recipe.tag)
    if image is None:
        raise _build_failed(recipe, lines, "the engine ended the build without an image")
    return image


def pull(conversations: Conversations, name: str, say: Say) -> str:
    """Pull an image; return its id.

    Raises:
        ProvisionError: class ``image-pull``.
        EngineError: the engine stopped answering.
        InterruptedRunError: the pull was cancelled.
    """
    progress = build_log.LayerProgress("pulling")
    with cancellable(conversations, PULL_SHARE, silent=SILENT_SECONDS) as (client, memory):
        say(f"pulling {name}")
        tag = None if "@" in name or repository(name) != name else "latest"
        try:
            for message in client.api.pull(name, tag=tag, stream=True, decode=True):
                if "error" in message:
                    raise _pull_failed(name, str(message["error"]))
                _report(say, progress.line(message))
        except FOREIGN as error:
            stop_if_cancelled(conversations, error)
            if not isinstance(error, APIError) and not memory.excess and not _is_silence(error):
                raise
            raise _pull_failed(name, _why(memory, error)) from error
        stop_if_cancelled(conversations)
        if memory.excess:
            raise _pull_failed(name, _why(memory))
        image = image_id(client, name)
    if image is None:
        raise _pull_failed(name, "the engine ended the pull without an image")
    return image


def _is_silence(error: BaseException) -> bool:
    """Return whether an engine that waits for a registry has said nothing for too long."""
    return "timed out" in str(error).lower()


def _excess(action: str, memory: MemoryWatch) -> str:
    """Return that a request was hung up because it took too much memory; empty if it did not."""
    return f"the {action} was ended: {memory.excess}" if memory.excess else ""


def _why(memory: MemoryWatch, error: BaseException | None = None) -> str:
    """Return why a pull was hung up, or the message of the engine that refused it."""
    if memory.excess:
        return _excess("pull", memory)
    if isinstance(error, APIError):
        return sentence(error)
    return f"no answer within {SILENT_SECONDS:g} s: the registry is silent, or sends something without an end"


def _pull_failed(name: str, message: str) -> ProvisionError:
    hint = f"run `docker pull {name}` where the registry answers, then `docker save` there and `docker load` here"
    why = refusal(name, message)
    message = printable(message, REASON_LENGTH)
    problem = Problem(f"cannot pull {name!r}: {message}", hint=why.problem.hint if why.kind == "memory" else hint)
    return ProvisionError("image-pull", problem, log=message, passing=why.passing)


def _build_failed(recipe: Recipe, lines: Iterable[str], message: str) -> ProvisionError:
    lines = list(lines)
    log = "\n".join(build_log.useful([*lines, build_log.step_end(message)]))
    reason = f"cannot build {recipe.environment!r}: {build_log.reason(lines, message)}"
    passing = is_outage(log) or NOTHING_LISTED.search(log) is not None or MEMORY_SIGN in message
    return ProvisionError("image-build", Problem(reason, hint=build_log.hint(log)), log=log, passing=passing)


@contextmanager
def cancellable(
    conversations: Conversations, share: float, silent: float | None = None
) -> Iterator[tuple[docker.DockerClient, MemoryWatch]]:
    """Yield a client, and what watches the memory of the engine; if that is too much, the client is hung up.

    An error that the cancelling caused becomes an InterruptedRunError.

    Args:
        conversations: with the engine.
        share: of the free memory, see ``watch.PULL_SHARE``.
        silent: seconds that the engine may say nothing; None without a limit.
    """
    stop_if_cancelled(conversations)
    try:
        with (
            conversations.open(silent) as conversation,
            MemoryWatch(conversation.hang_up, share, conversation.memory) as memory,
            talking("the container engine stopped answering"),
        ):
            stop_if_cancelled(conversations)  # it may have been cancelled before this one was open
            yield conversation.client, memory
    except (ProvisionError, EngineError) as error:
        stop_if_cancelled(conversations, error)
        raise


def stop_if_cancelled(conversations: Conversations, cause: BaseException | None = None) -> None:
    """Raise InterruptedRunError if the conversations were cancelled."""
    if conversations.cancelled:
        raise InterruptedRunError("provisioning was cancelled") from cause


def _remove_remains(builder: str) -> None:
    """Remove the remains of a failed build, over a new connection; a later run removes what cannot be removed now."""
    try:
        with closing(connect()) as client:
            remove_build(client, builder, _ENGINE_SECONDS)
    except (EngineError, *FOREIGN):  # the failure of the build is reported
        return


def _lines(message: dict[str, Any]) -> Iterable[str]:
    """Return the lines of a message; the classic builder sends one line or several at a time."""
    return str(message.get("stream") or message.get("status") or "").splitlines()


def _report(say: Say, line: str | None) -> None:
    if line is not None:
        say(line)
