"""Images whose interpreter is a program that attacks the runner over the protocol, beside an image that measures."""

import functools
import io
import json
import os
import secrets
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import docker
import pytest
from docker.errors import APIError

from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.cleanup import owner
from runner.backends.docker.options import RUN, cache_volume
from runner.core.model import Limits, Provisioned
from runner.measure.session import Session
from tests.integration.conftest import Runner

pytestmark = pytest.mark.docker

HOSTILE = Path(__file__).parent / "data" / "hostile.py"
BASE = "python:3.11-slim"
MIB = 1 << 20
DEADLINE = 4.0  # seconds for the answer, instead of the 330 of a run
PATIENCE = 60.0  # for one that comes, on a busy machine
SLACK = 60.0  # to notice, and to kill the container
RUNNER_BYTES = 300 * MIB  # that a server may make the runner take

INSIDE = {
    "exits before reading": "crash",
    "exits after reading": "crash",
    "never reads": "timeout",
    "deaf": "timeout",
    "yes": "crash",
    "no status": "crash",
    "status is a list": "crash",
    "facts are a number": "crash",
    "no newline": "crash",
    "never a newline": "crash",
    "numbers": "crash",
    "long log": "crash",
    "escapes": "crash",
    "escapes on stderr": "crash",
    "stderr": "crash",
    "stderr for ever": "timeout",
    "heartbeats": "timeout crash",
    "frames": "crash timeout",
    "nested": "crash",
    "bytes": "crash",
}
"""Mode of the image -> the classes that its failure may have."""


@pytest.fixture(scope="module")
def image(docker_engine: str) -> Iterator[Callable[[str], str]]:
    """Return the name of the image of a mode."""
    assert docker_engine
    repository = f"hostile-{secrets.token_hex(4)}"
    with closing(docker.from_env()) as client:

        def commit(container: str, tag: str, *changes: str) -> str:
            client.api.commit(container, repository, tag, changes=list(changes))
            client.api.remove_container(container)
            return f"{repository}:{tag}"

        first = client.api.create_container(BASE, ["true"])["Id"]
        client.api.put_archive(first, "/", _programs())
        base = commit(first, "base")

        @functools.cache
        def of_mode(mode: str) -> str:
            container = client.api.create_container(base, ["true"])["Id"]
            return commit(container, mode.replace(" ", "-"), f'ENV MODE="{mode}"')

        yield of_mode
        for name in (tag for image in client.images.list(repository) for tag in image.tags):
            with suppress(APIError):
                client.api.remove_volume(cache_volume(str(client.images.get(name).id), "cpu"))
            client.api.remove_image(name, force=True)


def _programs() -> bytes:
    """Return a tar archive of the hostile program, and of the interpreter that starts it whatever it is asked."""
    programs = {
        "hostile.py": HOSTILE.read_bytes(),
        "usr/local/bin/python": b"#!/bin/sh\nexec /usr/local/bin/python3.11 -I /hostile.py\n",
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in programs.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def peak() -> int:
    """Return the most resident bytes of this process since the last ``reset_peak``."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def reset_peak() -> int:
    """Start to count the peak anew (proc(5), clear_refs); return the resident bytes now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


@pytest.mark.parametrize("mode", INSIDE)
def test_hostile_image_fails_with_its_class_in_time_and_in_bounded_memory(
    mode: str, image: Callable[[str], str]
) -> None:
    run = f"test-{os.getpid()}-{time.monotonic_ns()}"
    with closing(docker.from_env()) as client:
        handle = str(client.images.get(image(mode)).id)
        facts = {"interpreter": "python"}
        ready = Provisioned(
            environment="hostile", framework="numpy", handle=handle, digest=handle, seconds=0, cached=True, facts=facts
        )
        deadline = DEADLINE if "timeout" in INSIDE[mode] else PATIENCE
        before, begin = reset_peak(), time.monotonic()
        session = Session(DockerChannel(ready, Limits(memory=512 * MIB, run=run), owner()), "hostile#1")
        try:
            reply = session.ask({"op": "hello", "timeout": deadline}, deadline, silence=deadline)
        finally:
            session.close()
        reason, log = reply["reason"], reply.get("log", "")
        assert reply["class"] in INSIDE[mode].split(), reason
        assert time.monotonic() - begin < deadline + SLACK
        assert peak() - before < RUNNER_BYTES
        assert reason.isprintable(), reason
        assert len(reason) <= 700
        assert len(log) <= MIB
        assert not set(log) & set("\x1b\x07\r\x9b\u202e\0")
        left = client.api.containers(all=True, filters={"label": f"{RUN}={run}"})
        assert left == []


QUICK = ("exits before reading", "exits after reading", "yes", "no status", "escapes", "escapes on stderr")


def test_good_environment_beside_hostile_ones_is_measured(runner: Runner, image: Callable[[str], str]) -> None:
    bad = {f"bad-{number}": image(mode) for number, mode in enumerate(QUICK)}
    hostile = "\n".join(f'  {name}: {{framework: numpy, release: "1", image: "{tag}"}}' for name, tag in bad.items())
    (runner.folder / "matrix.yaml").write_text(
        f"""\
version: 1
environments:
  good: {{framework: numpy, release: "2.4.6", python: "3.11", lock: docker/locks/numpy.txt}}
{hostile}
workloads:
  rnn-step: {{cases: [rnn-b32-h128]}}
measure: {{controls: false}}
presets:
  tiny: {{select: [rnn-step/rnn-b32-h128], rounds: 1, max_rounds: 1, seconds: 0.05}}
"""
    )
    done = runner("run", "--preset", "tiny", "--backend", "docker", "--device", "cpu")
    assert done.returncode == 1, done.stderr
    records = runner.records()
    good = [record for record in records if record["cell"].partition("/")[0] == "good"]
    assert good
    assert {record["status"] for record in good} == {"ok"}, json.dumps(good)[:2000]
    assert {record["cell"].partition("/")[0] for record in records} == {"good", *bad}
    for text in (done.stdout, done.stderr):
        assert text.replace("\n", "").isprintable()
