"""What an image of somebody else holds: its Python says so, in a container like those that measure."""

import re
import time
from contextlib import closing

from runner.backends import Installed, harness_archive
from runner.backends.docker.build import inspect
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.client import connect, talking
from runner.backends.docker.options import GIB
from runner.backends.installed import PROBE, PROBE_SECONDS, answer_of, framework_names, no_framework
from runner.core.errors import EngineError, Problem, ProvisionError, UsageError
from runner.core.model import Limits, Provisioned
from runner.core.text import REASON_LENGTH, printable

MEMORY = 4 * GIB
"""Of the container: importing a framework takes up to about 1 GiB."""
PROGRAMS = ("python3", "python")
"""What a Python is called in images; some have one of these names alone."""
MISSING = re.compile("not found|no such file", re.IGNORECASE)
"""How an engine refuses a program that an image does not have."""
OTHER = "another image with image:NAME"


def probe(image: str, environment: str, framework: str | None, owner: str) -> Installed:
    """Return what an image on the engine holds, with the name of its Python.

    Args:
        image: its name, with its tag.
        environment: the id that it is measured under.
        framework: what to measure; None for the first that can be imported.
        owner: the process that the container belongs to, see ``cleanup.owner``.

    Raises:
        UsageError: the engine has no such image, or the image has no Python or no framework.
        EngineError: the engine stopped answering.
    """
    names = framework_names(framework)
    with closing(connect()) as client, talking("the container engine stopped answering"):
        try:
            details = inspect(client, image)
        except ProvisionError as error:
            raise UsageError(*error.problems) from error
    if details is None:
        hint = f"it is measured as it is, and not pulled: `docker pull {image}`"
        raise UsageError(Problem(f"this engine has no image {printable(image, REASON_LENGTH)}", hint=hint))
    refusals: list[EngineError] = []
    for python in PROGRAMS:
        ready = Provisioned(
            environment=environment,
            framework="",
            handle=str(details["Id"]),
            digest=str(details["Id"]),
            seconds=0.0,
            cached=True,
            facts={"interpreter": python},
        )
        try:
            return _answer(ready, names, python, image, owner)
        except EngineError as error:
            if not MISSING.search(error.problems[0].message):
                raise
            refusals.append(error)
    message = f"{image} has no {' and no '.join(PROGRAMS)}: {refusals[0].problems[0].message}"
    raise UsageError(Problem(message, hint=f"name {OTHER}")) from refusals[0]


def _answer(ready: Provisioned, names: list[str], python: str, image: str, owner: str) -> Installed:
    """Return the answer of an image's Python; raises EngineError where it cannot be started."""
    program = harness_archive.pack_program(f"import sys\nsys.argv[1:] = {names!r}\n{PROBE}")
    limits = Limits(memory=MEMORY, run="probe")
    with closing(DockerChannel(ready, limits, owner, program)) as channel:
        end = time.monotonic() + PROBE_SECONDS
        while (seconds := end - time.monotonic()) > 0:
            try:
                line = channel.receive(seconds)
            except (TimeoutError, ValueError):  # nothing, or a line without an end
                break
            if line is None:
                raise no_framework(image, names, channel.words(), OTHER)
            if answer := answer_of(line.decode("utf-8", "replace").strip(), names, python, image):
                return answer
    what = f"did not say within {PROBE_SECONDS:g} s which frameworks it has"
    raise UsageError(Problem(f"{image} {what}", hint=f"name {OTHER}"))
