"""What is asked of a container engine, and what is made of its answers; no engine is needed."""

import inspect
import io
import os
import re
import socket
import tarfile
import urllib.error
from pathlib import Path
from typing import Any

import pytest
import requests.exceptions
import urllib3.exceptions
from docker import errors
from docker.types import DeviceRequest

from runner.backends import harness_archive
from runner.backends.docker import build_log, cleanup
from runner.backends.docker import options as asked
from runner.backends.docker.channel import Streams, Wire
from runner.backends.docker.client import FOREIGN, talking
from runner.core.errors import EngineError, ProvisionError
from runner.core.model import Limits

IMAGE = "sha256:" + "0123456789abcdef" * 4
GPU = "GPU-6d3e5f51-0000-0000-0000-000000000000"


def container(device: str = "cpu", *, cdi: bool = False) -> dict[str, Any]:
    limits = Limits(memory=8 << 30, device=device, run="r1")
    made = asked.Container(name="n", image=IMAGE, python="python3", limits=limits, owner="h:b:1:2", cdi=cdi)
    return made.options()


def test_a_container_is_asked_for_with_nothing_but_its_cache() -> None:
    assert container() == {
        "name": "n",
        "image": IMAGE,
        "entrypoint": ["python3", "-I", "-c", harness_archive.BOOTSTRAP],
        "command": [],
        "labels": {"io.matrix-runner.run": "r1", "io.matrix-runner.owner": "h:b:1:2"},
        "environment": {"HOME": "/work", "USER": "bench", "TMPDIR": "/tmp", "NVIDIA_VISIBLE_DEVICES": "void"},
        "device_requests": [],
        "volumes": {"matrix-runner-cache-0123456789ab-cpu": {"bind": "/cache", "mode": "rw"}},
        "mem_limit": 8 << 30,
        "memswap_limit": 8 << 30,
        "shm_size": 1 << 30,
        "stdin_open": True,
        "auto_remove": True,
        "log_config": {"Type": "none"},
        "network_mode": "none",
        "read_only": True,
        "tmpfs": {
            "/tmp": "rw,exec,nosuid,nodev,size=4g,mode=1777",
            "/work": "rw,exec,nosuid,nodev,size=1g,mode=0700,uid=1000,gid=1000",
        },
        "working_dir": "/tmp",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "user": "1000:1000",
        "pids_limit": 2048,
        "init": True,
    }


def test_asking_twice_gives_the_same() -> None:
    assert container(GPU) == container(GPU)


def test_one_gpu_is_asked_for_by_its_uuid() -> None:
    options = container(GPU)
    assert options["device_requests"] == [DeviceRequest(device_ids=[GPU], capabilities=[["gpu"]])]
    assert options["environment"]["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert "NVIDIA_VISIBLE_DEVICES" not in options["environment"]
    assert list(options["volumes"]) == [f"matrix-runner-cache-0123456789ab-{GPU}"]


def test_cdi_is_used_where_the_engine_lists_the_gpu() -> None:
    info = {"DiscoveredDevices": [{"Source": "cdi", "ID": f"nvidia.com/gpu={GPU}"}]}
    assert asked.has_cdi(info, GPU)
    assert not asked.has_cdi(info, "GPU-other")
    assert not asked.has_cdi({"DiscoveredDevices": None}, GPU)
    assert not asked.has_cdi(info, f"{GPU},GPU-other")
    request = container(GPU, cdi=True)["device_requests"]
    assert request == [DeviceRequest(driver="cdi", device_ids=[f"nvidia.com/gpu={GPU}"])]


def test_gpus_that_compute_together_are_asked_for_one_by_one_and_share_a_short_name() -> None:
    several = f"{GPU},GPU-other"
    assert asked.device_requests(several, cdi=False) == [
        DeviceRequest(device_ids=[GPU, "GPU-other"], capabilities=[["gpu"]])
    ]
    (request,) = asked.device_requests(several, cdi=True)
    assert request["DeviceIDs"] == [f"nvidia.com/gpu={GPU}", "nvidia.com/gpu=GPU-other"]
    assert re.fullmatch(r"matrix-runner-cache-0{12}-several-[0-9a-f]{8}", asked.cache_volume("0" * 64, several))
    assert container(several)["environment"]["CUDA_VISIBLE_DEVICES"] == several
    assert "CUDA_VISIBLE_DEVICES" not in container(GPU)["environment"]


def test_a_containers_name_is_one_the_engine_takes() -> None:
    name = asked.container_name("2026-11-20T10:00:00", "torch-1.0")
    assert name.startswith("matrix-runner-2026-11-20T10-00-00-torch-1.0-")
    assert asked.container_name("r", "e") != asked.container_name("r", "e")


def recipe(**changes: Any) -> asked.Recipe:
    parts = {"dockerfile": b"FROM x", "lock": b"numpy==1", "base": "python:3.6-slim", "base_id": "sha256:aa"}
    return asked.Recipe(environment="Torch-1.0", **{**parts, **changes})


def test_a_tag_names_the_environment_and_changes_with_what_the_image_is_made_of() -> None:
    tags = [
        recipe().tag,
        recipe(dockerfile=b"FROM y").tag,
        recipe(lock=b"numpy==2").tag,
        recipe(base_id="sha256:bb").tag,
        recipe(dockerfile=b"FROM xn", lock=b"umpy==1").tag,
    ]
    assert tags[0] == "matrix-runner/torch-1.0:88d052ecdb49"
    assert len(set(tags)) == len(tags)
    assert recipe(base="python@sha256:aa").tag == tags[0]


def test_the_context_is_the_dockerfile_and_the_lock_and_the_same_each_time() -> None:
    data = recipe().context().read()
    assert data == recipe().context().read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == ["Dockerfile", "lock.txt"]


def test_an_unfinished_image_has_an_owner_and_a_finished_one_has_none() -> None:
    options = recipe().build_options("h:b:1:2:token")
    assert options["buildargs"] == {"BASE": "python:3.6-slim", "LOCK": "lock.txt", "BUILDER": "h:b:1:2:token"}
    assert options["labels"] == {"io.matrix-runner.owner": "", "io.matrix-runner.environment": "Torch-1.0"}


@pytest.mark.parametrize(
    ("name", "repository", "registry"),
    [
        ("python:3.6-slim", "python", "docker.io"),
        ("pytorch/pytorch:0.4_cuda9_cudnn7", "pytorch/pytorch", "docker.io"),
        ("nvcr.io/nvidia/pytorch:24.01-py3", "nvcr.io/nvidia/pytorch", "nvcr.io"),
        ("localhost:5000/x", "localhost:5000/x", "localhost:5000"),
        ("localhost/x:1", "localhost/x", "localhost"),
        ("python@sha256:aa", "python", "docker.io"),
    ],
)
def test_image_names_are_read_as_the_engine_reads_them(name: str, repository: str, registry: str) -> None:
    assert asked.repository(name) == repository
    assert asked.registry(name) == registry


def test_a_pin_takes_the_place_of_the_tag(tmp_path: Path) -> None:
    path = tmp_path / "pins.toml"
    path.write_text('[images]\n"python:3.6-slim" = "sha256:aa"\n')
    digests = asked.pins(path)
    assert asked.pinned("python:3.6-slim", digests) == "python@sha256:aa"
    assert asked.pinned("python:3.7-slim", digests) == "python:3.7-slim"
    assert asked.pins(tmp_path / "none.toml") == {}


def test_the_shipped_pins_are_digests() -> None:
    digests = asked.pins(Path(__file__).parents[3] / "docker" / "pins.toml")
    assert all(len(digest) == 71 and digest.startswith("sha256:") for digest in digests.values())


def test_registries_are_grouped_and_names_asked_once() -> None:
    names = ["a/b:1", "ghcr.io/x/y:1", "a/b:1", "python:3"]
    assert asked.by_registry(names) == {"docker.io": ["a/b:1", "python:3"], "ghcr.io": ["ghcr.io/x/y:1"]}


LOG = """\
Step 5/9 : RUN python3 -m pip install --require-hashes --no-cache-dir --progress-bar off -r /usr/local/share/lock.txt
 ---> Running in 0123456789ab
Looking in links: /usr/local/share/wheels
Collecting torch==1.0.0
  Downloading torch-1.0.0-cp36-cp36m-manylinux1_x86_64.whl (591.8 MB)
  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)
     ━━━━━━━━━━━━━━━━━━━━━━━━ 591.8/591.8 MB 10 MB/s

  Building wheel for termcolor (setup.py): started
  Building wheel for termcolor (setup.py): finished with status 'done'
Installing collected packages: numpy, torch
\x1b[91mERROR: Could not find a version that satisfies the requirement nothing==1.0
ERROR: No matching distribution found for nothing==1.0
\x1b[0m
Removing intermediate container 0123456789ab"""


def test_only_the_useful_lines_of_a_log_are_kept() -> None:
    assert build_log.useful(LOG.splitlines()) == (
        "Installing collected packages: numpy, torch",
        "ERROR: Could not find a version that satisfies the requirement nothing==1.0",
        "ERROR: No matching distribution found for nothing==1.0",
    )


def test_an_error_before_many_lines_is_kept_too() -> None:
    kept = build_log.useful(["ERROR: the cause", *(f"  more {number}" for number in range(40))])
    assert len(kept) == build_log.KEPT
    assert kept[0] == "ERROR: the cause"
    assert kept[-1] == "  more 39"


def test_the_reason_is_the_last_error_and_brings_its_hint() -> None:
    assert build_log.reason(LOG.splitlines(), "exit 1") == "ERROR: No matching distribution found for nothing==1.0"
    assert build_log.reason(["hm"], "The command '/bin/sh -c\n x' returned a non-zero code: 7") == (
        "the step ended with exit 7"
    )
    assert build_log.reason(["hm"], "pull access\ndenied") == "pull access denied"
    assert "runner lock" in build_log.hint("THESE PACKAGES DO NOT MATCH THE HASHES FROM")


def test_progress_is_short() -> None:
    said = [line for line in map(build_log.worth_saying, LOG.splitlines()) if line]
    assert said == [
        "step 5/9: RUN python3 -m pip install --require-hashes --no-cache-di...",
        "downloading torch 1.0.0, 591.8 MB",
        "building termcolor from source",
        "installing 2 packages",
    ]


def test_a_pull_tells_the_sum_of_its_layers_by_tenths() -> None:
    pull = build_log.Pull()
    messages: list[dict[str, Any]] = [
        {"status": "Pulling from library/python"},
        *(
            {"status": "Downloading", "id": "a", "progressDetail": {"current": done * 10**6, "total": 10**8}}
            for done in (1, 5, 30, 31)
        ),
        {"status": "Download complete", "id": "a", "progressDetail": {}},
    ]
    said = [line for line in map(pull.worth_saying, messages) if line]
    assert said == ["pulling 1 of 100 MB", "pulling 30 of 100 MB", "pulling 100 of 100 MB"]


class Fed(Wire):
    """A wire that gives what it was fed, a piece at a time, and then is silent."""

    pieces: tuple[bytes, ...]

    def settimeout(self, timeout: float | None, /) -> None:
        """Take what a socket would take without becoming non-blocking."""
        assert timeout is None or timeout > 0

    def recv(self, size: int, /) -> bytes:
        """Return the next piece, all of it."""
        if not self.pieces:
            raise TimeoutError
        piece, *rest = self.pieces
        self.pieces = tuple(rest)
        return piece[:size]

    def send(self, data: memoryview, /) -> int:
        """Not asked for."""
        raise NotImplementedError

    def shutdown(self, how: int, /) -> None:
        """Not asked for."""

    def close(self) -> None:
        """Not asked for."""


def fed(*pieces: bytes) -> Streams:
    wire = Fed()
    wire.pieces = pieces
    return Streams(wire)


def everything(streams: Streams) -> bytes:
    return b"".join(iter(lambda: streams.read(0.0), b""))


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def test_streams_are_taken_apart_wherever_they_are_cut() -> None:
    whole = frame(1, b"one") + frame(2, b"noise") + frame(1, b"two")
    for cut in range(1, len(whole)):
        streams = fed(whole[:cut], whole[cut:], b"")
        assert everything(streams) == b"onetwo"
        assert bytes(streams.stderr) == b"noise"


def test_silence_is_a_time_out() -> None:
    with pytest.raises(TimeoutError):
        fed(frame(2, b"noise only")).read(0.0)


def test_every_exception_of_the_sdk_becomes_an_engine_error() -> None:
    """A new exception in docker.errors that FOREIGN does not cover fails here."""
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == "docker.errors"]
    assert len(classes) >= 19
    others = [requests.exceptions.ConnectionError, requests.exceptions.ReadTimeout, urllib3.exceptions.ProtocolError]
    missed = [kind.__name__ for kind in (*classes, *others, ConnectionResetError) if not issubclass(kind, FOREIGN)]
    assert missed == []


def test_foreign_errors_are_told_in_one_sentence_and_ours_pass() -> None:
    with pytest.raises(EngineError, match=r"^error: no answer: no space left$") as raised, talking("no answer"):
        raise errors.APIError("500 Server Error", explanation="no space\nleft.")
    assert raised.value.exit_code == 4
    with pytest.raises(ProvisionError), talking("no answer"):
        raise ProvisionError("image-build", "ours")
    with pytest.raises(EngineError, match="refused"), talking("no answer"):
        raise urllib.error.URLError("refused")


def test_an_owner_is_abandoned_only_when_it_was_here_and_is_gone() -> None:
    me = cleanup.owner()
    host, boot, _, started = me.split(":")
    assert host == socket.gethostname()
    assert not cleanup.abandoned(me)
    assert not cleanup.abandoned(f"{me}:token")
    assert cleanup.abandoned(f"{host}:{boot}:{os.getpid()}:{int(started) + 1}")
    assert cleanup.abandoned(f"{host}:{boot}:{2**22 + 1}:{started}")
    assert not cleanup.abandoned(f"other:{boot}:{2**22 + 1}:{started}")
    assert not cleanup.abandoned(f"{host}:other:{2**22 + 1}:{started}")
    assert not cleanup.abandoned("")
    assert not cleanup.abandoned("a label of somebody else")
