"""The docker backend against a real engine: isolation, clean-up and failures."""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import APIError, NotFound

from runner.backends import harness_archive
from runner.backends.docker.backend import DockerBackend, reachable
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.claims import forget_uses, uses_of
from runner.backends.docker.cleanup import owner, unneeded_images_and_volumes
from runner.backends.docker.options import OWNER, RUN, USE, cache_volume, short_id
from runner.core.errors import EngineError, GpuError, InterruptedRunError, ProvisionError
from runner.core.model import Limits, Provisioned, Spec
from runner.harness import cases
from runner.harness.verify import __main__ as packed_truth
from runner.measure.session import Session
from tests.integration.conftest import leftovers
from tests.support.cases import TINY

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).parent / "data" / "probe.py"
BASE = "python:3.11-slim"
SPEC = Spec(environment="numpy", framework="numpy", release="2.*", base=BASE, lock=ROOT / "docker/locks/numpy.txt")
MIB = 1 << 20
GONE_SECONDS = 50.0
"""Less than the minute after which what a test has started ends by itself."""


@pytest.fixture(scope="module")
def client(docker_engine: str) -> Iterator[docker.DockerClient]:
    """The engine, seen from outside the backend."""
    assert docker_engine
    engine = docker.from_env()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def backend(docker_engine: str) -> DockerBackend:
    """The backend with the shipped Dockerfiles."""
    assert docker_engine
    return DockerBackend(ROOT / "docker")


@pytest.fixture(scope="module")
def ready(backend: DockerBackend) -> Provisioned:
    """The NumPy environment."""
    return backend.provision(SPEC, lambda _line: None)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A harness whose server runs the Python it is sent."""
    folder = tmp_path_factory.mktemp("probe") / "harness"
    shutil.copytree(harness_archive.FOLDER, folder)
    (folder / "server.py").rename(folder / "shipped.py")
    shutil.copy(PROBE, folder / "server.py")
    return harness_archive.pack(folder)


@pytest.fixture
def run() -> str:
    """A unique run id."""
    return f"test-{os.getpid()}-{time.monotonic_ns()}"


@pytest.fixture
def inside(ready: Provisioned, probe: bytes, run: str) -> Iterator[Callable[[str], Any]]:
    """Run Python in a container of 256 MiB; returns the value of ``result``, None if the server ended."""
    channel = DockerChannel(ready, Limits(memory=256 * MIB, run=run), owner(), probe)
    yield lambda source: run_python(channel, source)
    channel.close()


def run_python(channel: DockerChannel, source: str) -> Any:
    channel.send(json.dumps(textwrap.dedent(source)).encode() + b"\n", 60)
    line = channel.receive(60)
    return None if line is None else json.loads(line)


def containers(client: docker.DockerClient, run: str) -> list[str]:
    return [container["Names"][0] for container in client.api.containers(all=True, filters={"label": f"{RUN}={run}"})]


def wait_until(true: Callable[[], bool], seconds: float = GONE_SECONDS) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_server_in_a_container_measures(backend: DockerBackend, ready: Provisioned, run: str) -> None:
    session = Session(backend.open(ready, Limits(memory=2 << 30, run=run)), "numpy#1")
    try:
        hello = session.hello("numpy", 1, "cpu", 60)
        assert hello["status"] == "ok", hello
        reply = session.measure(request(backend.cache(ready)), truth)
        assert reply["status"] == "ok", reply
        assert len(reply["seconds"]) >= 3
        assert reply["loss_error"] < 1e-6
    finally:
        session.close()


def request(cache: str) -> dict[str, Any]:
    from runner.harness.adapters import implementations

    slug = implementations("numpy")[0].slug
    common = {"phase": "train", "device": "cpu", "precision": "fp32", "seconds": 0.05, "timeout": 20.0, "memory": None}
    of_cell = {"key": cases.key(TINY), "case": TINY, "framework": "numpy", "implementation": slug, "cache": cache}
    return {**common, **of_cell}


def truth() -> dict[str, Any]:
    return packed_truth.main(TINY)


def test_close_removes_the_container_and_may_be_repeated(
    client: docker.DockerClient, backend: DockerBackend, ready: Provisioned, run: str
) -> None:
    channel = backend.open(ready, Limits(memory=256 * MIB, run=run))
    assert len(containers(client, run)) == 1
    channel.close()
    assert containers(client, run) == []
    channel.close()
    with pytest.raises(BrokenPipeError):
        channel.send(b"{}\n", 10)


def test_failed_start_leaves_no_container(
    client: docker.DockerClient, backend: DockerBackend, ready: Provisioned, run: str
) -> None:
    missing = secrets.token_hex(32)  # other sessions may use the engine, too
    with pytest.raises(EngineError, match="No such image"):
        backend.open(replace(ready, handle=f"sha256:{missing}"), Limits(memory=256 * MIB, run=run))
    with pytest.raises(EngineError, match="memory"):
        backend.open(ready, Limits(memory=1, run=run))
    assert containers(client, run) == []
    assert client.volumes.list(filters={"name": cache_volume(missing[:12], "cpu")}) == []


def test_image_without_its_interpreter_is_an_error_that_names_it_and_leaves_no_container(
    client: docker.DockerClient, backend: DockerBackend, ready: Provisioned, run: str
) -> None:
    broken = replace(ready, facts={"interpreter": "no-such-python"})
    with pytest.raises(EngineError, match="no-such-python"):
        backend.open(broken, Limits(memory=256 * MIB, run=run))
    assert containers(client, run) == []


def test_missing_gpu_is_a_gpu_error_and_leaves_no_container(
    client: docker.DockerClient, backend: DockerBackend, ready: Provisioned, run: str
) -> None:
    device = "GPU-00000000-0000-0000-0000-000000000000"
    with pytest.raises(GpuError, match="the engine gives no GPU"):
        backend.open(ready, Limits(memory=256 * MIB, run=run, device=device))
    assert containers(client, run) == []
    with suppress(APIError):
        client.api.remove_volume(cache_volume(ready.handle, device))


RUNNER = """
import signal, sys, time
from pathlib import Path
from runner.backends.docker.backend import DockerBackend, reachable
from runner.core.model import Limits, Provisioned

def ask_to_end(*_):
    raise SystemExit(130)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started with it ignored
if {handled!r} == "yes":
    signal.signal(signal.SIGTERM, ask_to_end)
backend = DockerBackend(Path({folder!r}))
ready = Provisioned(environment="numpy", framework="numpy", handle={handle!r}, digest="", seconds=0, cached=True)
channel = backend.open(ready, Limits(memory=256 << 20, run={run!r}))
try:
    print("open", flush=True)
    time.sleep(60)
finally:
    channel.close()
"""


@pytest.mark.parametrize(
    ("number", "handled"),
    [(signal.SIGKILL, "no"), (signal.SIGTERM, "yes"), (signal.SIGTERM, "no"), (signal.SIGINT, "no")],
)
def test_killed_runner_leaves_no_container(
    number: signal.Signals, handled: str, client: docker.DockerClient, ready: Provisioned, run: str
) -> None:
    source = RUNNER.format(handled=handled, folder=str(ROOT / "docker"), handle=ready.handle, run=run)
    neighbour = client.containers.run(
        BASE, ["sleep", "600"], detach=True, auto_remove=True, network_mode="none", init=True
    )
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"open\n"
        assert len(containers(client, run)) == 1
        runner.send_signal(number)
        runner.wait()
    assert wait_until(lambda: containers(client, run) == [])
    neighbour.reload()
    assert neighbour.status == "running"
    neighbour.remove(force=True)


def test_child_that_exceeds_its_memory_is_killed_and_the_server_survives(inside: Callable[[str], Any]) -> None:
    result = inside(
        """
        from harness import script_stack
        from harness.supervisor import ChildSupervisor, Forked
        def work(_):
            yield from ()
            return {"size": len(bytearray(1 << 30))}
        try:
            child = ChildSupervisor(work, OUT, SOURCE)
        except Forked as forked:
            script_stack.run(forked.steps)
        result = child.wait_for_result(60.0, None, lambda: None, None)
        """
    )
    assert (result["status"], result["class"]) == ("failed", "oom"), result
    assert inside("result = 'alive'") == "alive"


def test_server_that_exceeds_its_memory_ends_as_oom(ready: Provisioned, probe: bytes, run: str) -> None:
    channel = DockerChannel(ready, Limits(memory=128 * MIB, run=run), owner(), probe)
    try:
        assert run_python(channel, "result = len(bytearray(1 << 30))") is None
        kind, sentence = channel.ending()
        assert (kind, "out of memory" in sentence) == ("oom", True), sentence
    finally:
        channel.close()


def test_ending_of_a_server_has_its_last_output(ready: Provisioned, probe: bytes, run: str) -> None:
    channel = DockerChannel(ready, Limits(memory=256 * MIB, run=run), owner(), probe)
    try:
        assert (
            run_python(channel, "import os, sys; sys.stderr.write('so long\\n'); sys.stderr.flush(); os._exit(9)")
            is None
        )
        kind, sentence = channel.ending()
        assert kind == "crash"
        assert sentence.endswith("exit 9; last words: so long")
    finally:
        channel.close()


class Relay(threading.Thread):
    """A TCP port that leads to the engine's socket, until it is cut."""

    def __init__(self) -> None:
        """Start taking connections."""
        super().__init__(daemon=True)
        self.port = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.port.getsockname()[1]}"
        self.ends: list[socket.socket] = []
        self.start()

    def run(self) -> None:
        """Take connections."""
        with suppress(OSError):
            while True:
                near, _ = self.port.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect("/var/run/docker.sock")
                self.ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, source: socket.socket, sink: socket.socket) -> None:
        """Pass on what comes, and the end of it."""
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Break every connection and take no more."""
        for end in (self.port, *self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def test_engine_that_disconnects_is_an_engine_error(
    client: docker.DockerClient, ready: Provisioned, probe: bytes, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/var/run/docker.sock").exists():
        pytest.skip("the engine is not behind a socket of this machine")
    relay = Relay()
    monkeypatch.setenv("DOCKER_HOST", relay.address)
    channel = DockerChannel(ready, Limits(memory=256 * MIB, run=run), owner(), probe)
    assert run_python(channel, "result = 'y' * 1000000") == "y" * 1_000_000
    relay.cut()
    assert channel.receive(10) is None
    assert channel.ending()[0] == "engine"
    with pytest.raises(BrokenPipeError):
        channel.send(b"0" * (64 << 20), 60)  # more than any buffer between takes
    with pytest.raises(EngineError, match="cannot remove the container"):
        channel.close()
    assert wait_until(lambda: containers(client, run) == [])  # the end of its stdin ended the server
    assert reachable() is None
    with pytest.raises(EngineError, match="no container engine answers") as raised:
        DockerBackend(ROOT / "docker")
    assert raised.value.problems[0].hint is not None


def test_lines_of_megabytes_pass_both_ways(inside: Callable[[str], Any]) -> None:
    assert inside(f"result = len({'x' * 5_000_000!r})") == 5_000_000
    assert inside("import sys; sys.stderr.write('noise\\n' * 100000); result = 'y' * 5000000") == "y" * 5_000_000


def test_receive_times_out_and_can_be_repeated(ready: Provisioned, probe: bytes, run: str) -> None:
    channel = DockerChannel(ready, Limits(memory=256 * MIB, run=run), owner(), probe)
    try:
        with pytest.raises(TimeoutError):
            channel.receive(0.2)
        assert run_python(channel, "result = 1") == 1
    finally:
        channel.close()


def test_second_provision_is_cached(backend: DockerBackend, ready: Provisioned) -> None:
    assert backend.survey([SPEC]).cached == {"numpy"}
    again = backend.provision(SPEC, pytest.fail)
    assert (again.handle, again.cached) == (ready.handle, True)
    assert again.seconds < 60
    assert again.facts["pin"] == "unpinned"


def test_pulled_image_can_write_its_cache(
    client: docker.DockerClient, backend: DockerBackend, probe: bytes, run: str
) -> None:
    spec = Spec(environment="pulled", framework="numpy", release="1", image=BASE)
    assert backend.survey([spec]).cached == {"pulled"}
    pulled = backend.provision(spec, pytest.fail)
    channel = DockerChannel(pulled, Limits(memory=256 * MIB, run=run, networks=run), owner(), probe)
    try:
        assert run_python(channel, f"path = {backend.cache(pulled)!r} + '/x'; open(path, 'w').close(); result = 1") == 1
    finally:
        channel.close()
        client.api.remove_volume(cache_volume(pulled.handle, "cpu", run))


FILL = """
import time
with open("/cache/compilers/filler", "wb") as handle:
    for _ in range({mebibytes}):
        handle.write(bytes(1 << 20))
time.sleep({seconds})
result = "written"
"""


def test_server_that_fills_its_cache_is_ended_and_loses_it(
    client: docker.DockerClient, ready: Provisioned, probe: bytes, run: str
) -> None:
    limits = Limits(memory=256 * MIB, run=run, networks=run)
    channel = DockerChannel(ready, limits, owner(), probe, cache_bytes=50 * MIB)
    try:
        assert run_python(channel, FILL.format(mebibytes=400, seconds=500)) is None  # not later than run_python waits
        kind, sentence = channel.ending()
        assert kind == "crash"
        (held,) = re.findall(r"its cache holds (\d+) MB, more than the 52 MB that it may hold", sentence)
        assert 52 < int(held) < 430  # it may still be writing
    finally:
        with pytest.raises(EngineError, match="removed the cache volume"):
            channel.close()
    assert containers(client, run) == []
    with pytest.raises(NotFound):
        client.api.inspect_volume(cache_volume(ready.handle, "cpu", run))


def test_cache_that_is_too_large_in_the_end_is_removed(
    client: docker.DockerClient, ready: Provisioned, probe: bytes, run: str
) -> None:
    limits = Limits(memory=256 * MIB, run=run, networks=run)
    channel = DockerChannel(ready, limits, owner(), probe, cache_bytes=5 * MIB)
    assert run_python(channel, FILL.format(mebibytes=20, seconds=0)) == "written"
    with pytest.raises(EngineError, match="removed the cache volume"):
        channel.close()
    with pytest.raises(NotFound):
        client.api.inspect_volume(cache_volume(ready.handle, "cpu", run))
    assert containers(client, run) == []


def test_survey_skips_unavailable_images_with_a_reason(backend: DockerBackend) -> None:
    nowhere = "localhost:1/no/such"
    lock = ROOT / "docker/locks/numpy.txt"
    survey = backend.survey(
        [
            Spec(environment="image", framework="torch", release="1", image=f"{nowhere}:1"),
            Spec(environment="other", framework="torch", release="1", image=f"{nowhere}:2"),
            Spec(environment="base", framework="numpy", release="1", base=f"{nowhere}:3", lock=lock),
            Spec(environment="unlocked", framework="numpy", release="1", base=BASE),
            Spec(environment="lost-lock", framework="numpy", release="1", base=BASE, lock=Path("/no/such/lock.txt")),
            Spec(environment="family", framework="no-such", release="1", base=BASE, lock=lock),
        ]
    )
    assert {skip.code for skip in survey.skips.values()} == {"image-unavailable"}
    reasons = {name: skip.reason for name, skip in survey.skips.items()}
    for name, image in (("image", f"{nowhere}:1"), ("other", f"{nowhere}:2"), ("base", f"{nowhere}:3")):
        assert reasons[name].startswith(f"{image} is not on this engine and cannot be pulled (")
        assert "docker load" in reasons[name]
    assert "runner lock unlocked" in reasons["unlocked"]
    assert "runner lock lost-lock" in reasons["lost-lock"]
    assert "no-such.Dockerfile" in reasons["family"]
    assert not survey.cached


def made(folder: Path, instructions: str) -> tuple[DockerBackend, Spec]:
    """Return a backend that builds these instructions on the base, labelled as the shipped Dockerfiles are."""
    head = 'ARG BASE\nFROM ${BASE}\nARG BUILDER=""\nLABEL io.matrix-runner.owner="${BUILDER}"\n'
    head += "ARG LOCK\nCOPY ${LOCK} /lock\n"
    (folder / "numpy.Dockerfile").write_text(head + instructions)
    (folder / "lock.txt").write_text(f"# {time.time_ns()}\n")
    lock = folder / "lock.txt"
    return DockerBackend(folder), Spec(environment="made", framework="numpy", release="1", base=BASE, lock=lock)


def test_failed_build_has_a_reason_and_leaves_nothing(client: docker.DockerClient, tmp_path: Path) -> None:
    error = "ERROR: No matching distribution result for p"
    noise = f"for i in $(seq 100); do echo Collecting p$i; done; echo '{error}'; exit 1"
    backend, spec = made(tmp_path, f"RUN touch /a\nRUN {noise}\n")
    lines: list[str] = []
    with pytest.raises(ProvisionError, match="No matching distribution result for p") as raised:
        backend.provision(spec, lines.append)
    assert raised.value.code == "image-build"
    assert "ERROR: No matching distribution result for p" in raised.value.log
    assert "Collecting" not in raised.value.log
    assert raised.value.log.splitlines()[-1] == "the step ended with exit 1"
    assert 1 <= len(raised.value.log.splitlines()) <= 15
    assert any(line.startswith("step 7/") for line in lines)
    assert leftovers(client, os.getpid()) == []


def test_build_uses_the_proxies_and_no_image_keeps_them(
    client: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies = {"default": {"httpProxy": "http://alice:SECRETSECRET@192.0.2.1:3128", "noProxy": "localhost"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    backend, spec = made(tmp_path, 'RUN test "${HTTP_PROXY#*ETSECRET@}" = 192.0.2.1:3128\nRUN touch /a\n')
    lines: list[str] = []
    image = backend.provision(spec, lines.append)
    try:
        history = client.images.get(image.handle).history()
        layers = [entry["Id"] for entry in history if entry["Id"] != "<missing>"]
        configurations = [client.images.get(layer).attrs for layer in layers]
        assert len(layers) > 5  # the images of the steps, too
        assert "SECRETSECRET" not in json.dumps([history, configurations, lines, dict(image.facts)])
    finally:
        client.api.remove_image(image.handle)


SIX = "six==1.16.0 --hash=sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254\n"


def extended(folder: Path, text: str) -> tuple[DockerBackend, Spec]:
    """Return a backend that builds an environment with six on another one, by the text of its Dockerfile."""
    _, below = made(folder, "RUN cp /lock /usr/local/share/lock.txt\n")
    (folder / "extended.Dockerfile").write_text(text)
    lock = folder / "extended.txt"
    lock.write_text(SIX)
    spec = replace(below, environment="made-extended", lock=lock, extends=below, added=("six",))
    return DockerBackend(folder, notes_uses=True), spec


def test_an_extended_environment_is_built_on_the_image_of_the_other(
    client: docker.DockerClient, tmp_path: Path
) -> None:
    shipped = (ROOT / "docker" / "extended.Dockerfile").read_text()
    backend, spec = extended(tmp_path, shipped)
    assert spec.extends is not None
    image = backend.provision(spec, lambda _line: None)
    below = backend.provision(spec.extends, lambda _line: None)
    try:
        assert below.cached
        assert backend.survey([spec]).cached == {"made-extended"}
        layers = [client.images.get(each.handle).attrs["RootFS"]["Layers"] for each in (below, image)]
        assert layers[1][: len(layers[0])] == layers[0]
        command = ["-c", "import six; print(open('/usr/local/share/lock.txt').read())"]
        assert client.containers.run(image.handle, command, entrypoint="python3", remove=True).decode() == f"{SIX}\n"
        assert client.images.get(image.handle).labels["io.matrix-runner.checkout"].endswith(f":{tmp_path.parent}")
        noted = uses_of(client.api.volumes(filters={"label": USE})["Volumes"])
        assert all(len(noted[short_id(each.handle)]) == 1 for each in (below, image))
    finally:
        for each in (image, below):
            client.api.remove_image(each.handle)
            forget_uses(client, each.handle)


def test_what_was_added_and_cannot_be_imported_fails_the_build(client: docker.DockerClient, tmp_path: Path) -> None:
    breaking = "RUN echo 'raise OSError(7)' > $(python3 -c 'import six; print(six.__file__)')\n# The last step."
    shipped = (ROOT / "docker" / "extended.Dockerfile").read_text()
    assert shipped.count("# The last step.") == 1
    backend, spec = extended(tmp_path, shipped.replace("# The last step.", breaking))
    try:
        with pytest.raises(ProvisionError, match="the package six does not work here: import six: OSError: 7"):
            backend.provision(spec, lambda _line: None)
        assert leftovers(client, os.getpid()) == []
    finally:
        for tag in backend.tags([spec.extends] if spec.extends else [])["made"]:
            client.api.remove_image(str(tag))


def test_invalid_dockerfile_is_a_failed_build(tmp_path: Path) -> None:
    backend, spec = made(tmp_path, "RUNN x\n")
    with pytest.raises(ProvisionError, match=r"(?i)unknown instruction"):
        backend.provision(spec, lambda _line: None)


def test_cancelled_build_ends_soon_and_leaves_nothing(client: docker.DockerClient, tmp_path: Path) -> None:
    backend, spec = made(tmp_path, "RUN touch /a\nRUN sleep 500\n")
    sleeping, ended = threading.Event(), []

    def say(line: str) -> None:
        if "sleep 500" in line:
            sleeping.set()

    def provision() -> None:
        try:
            backend.provision(spec, say)
        except InterruptedRunError as error:
            ended.append(error)

    thread = threading.Thread(target=provision)
    thread.start()
    assert sleeping.wait(60)
    assert wait_until(lambda: bool(leftovers(client, os.getpid())))
    backend.cancel()
    thread.join(60)
    assert not thread.is_alive()
    assert len(ended) == 1
    assert leftovers(client, os.getpid()) == []
    with pytest.raises(InterruptedRunError):
        backend.provision(spec, say)


BUILDER = """
import socket
socket.gethostname = lambda: {host!r}
from pathlib import Path
from runner.backends.docker.backend import DockerBackend, reachable
from runner.core.model import Spec
spec = Spec(environment="made", framework="numpy", release="1", base={base!r}, lock=Path({lock!r}))
DockerBackend(Path({folder!r})).provision(spec, lambda line: print(line, flush=True))
"""


@pytest.mark.usefixtures("another_host")
def test_remove_abandoned_removes_the_build_of_a_killed_runner(client: docker.DockerClient, tmp_path: Path) -> None:
    """On a host of its own: runs of other tests remove what killed runners of their host have left."""
    backend, spec = made(tmp_path, "RUN touch /a\nRUN sleep 100\n")
    source = BUILDER.format(host=socket.gethostname(), base=BASE, lock=str(spec.lock), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", source], cwd=ROOT, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        while b"sleep 100" not in (line := runner.stdout.readline()):
            assert line
        assert wait_until(lambda: bool(leftovers(client, runner.pid)))
        backend.remove_abandoned()  # its owner is alive
        assert leftovers(client, runner.pid)
        runner.kill()
        runner.wait()

    def listed_by_clean() -> set[str]:
        images = unneeded_images_and_volumes(client, {"made": {None}}, everything=False)
        return {left.name for left in images if left.reason.startswith("unfinished")}

    images = [item["Id"] for item in client.api.images(filters={"label": OWNER, "dangling": True})]
    unfinished = {image for image in images if image in leftovers(client, runner.pid)}
    assert unfinished
    assert wait_until(lambda: unfinished <= listed_by_clean())  # its container is gone, too
    assert wait_until(lambda: bool(backend.remove_abandoned()))
    assert wait_until(lambda: leftovers(client, runner.pid) == [])


@pytest.mark.usefixtures("another_host")
def test_remove_abandoned_removes_only_what_belongs_to_dead_processes(
    client: docker.DockerClient, backend: DockerBackend
) -> None:
    with subprocess.Popen(["sleep", "60"]) as live:
        me = owner()
        host, boot, pid, started = me.split(":")
        start = Path(f"/proc/{live.pid}/stat").read_text().rpartition(")")[2].split()[19]
        labels = {
            "mine": {OWNER: me},
            "another-runner": {OWNER: f"{host}:{boot}:{live.pid}:{start}"},
            "another-host": {OWNER: f"elsewhere:{boot}:4194305:1"},
            "another-boot": {OWNER: f"{host}:another:4194305:1"},
            "no-label": {},
            "not-ours": {OWNER: "a colleague's"},
            "dead": {OWNER: f"{host}:{boot}:4194305:1"},
            "number-reused": {OWNER: f"{host}:{boot}:{pid}:{int(started) - 1}"},
        }
        prefix = f"matrix-runner-test-{os.getpid()}-"
        made = {
            name: client.containers.create(BASE, name=prefix + name, labels=label) for name, label in labels.items()
        }
        try:
            removed = backend.remove_abandoned()
            assert {name.removeprefix(prefix) for name in removed if name.startswith(prefix)} == {
                "dead",
                "number-reused",
            }
            remaining = {container.name for container in client.containers.list(all=True, ignore_removed=True)}
            assert {prefix + name for name in labels} & remaining == {
                prefix + n for n in labels if n not in {"dead", "number-reused"}
            }
        finally:
            live.kill()
            for container in made.values():
                with suppress(APIError):
                    container.remove(force=True)
