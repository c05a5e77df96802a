"""The options that the engine is given, and how its answers are read; no engine is needed."""

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
from docker.types import DeviceRequest, Ulimit

from runner.backends import harness_archive
from runner.backends.docker import build_log, cleanup, image_names, options
from runner.backends.docker.client import FOREIGN, talking
from runner.backends.docker.streams import Streams, Wire
from runner.backends.visible_devices import Request
from runner.core.errors import EngineError, ProvisionError
from runner.core.model import Limits

IMAGE = "sha256:" + "0123456789abcdef" * 4
GPU = "GPU-6d3e5f51-0000-0000-0000-000000000000"


def container(device: str = "cpu", gpus: Request = "uuid") -> dict[str, Any]:
    limits = Limits(memory=8 << 30, device=device, run="r1")
    spec = options.Container(name="n", image=IMAGE, python="python3", limits=limits, owner="h:b:1:2", gpus=gpus)
    return spec.options()


def visible(created: dict[str, Any]) -> tuple[str, str]:
    """Return what CUDA shows and what NVIDIA's runtime adds."""
    return created["environment"]["CUDA_VISIBLE_DEVICES"], created["environment"]["NVIDIA_VISIBLE_DEVICES"]


def test_container_gets_its_cache_and_nothing_else() -> None:
    assert container() == {
        "name": "n",
        "image": IMAGE,
        "entrypoint": ["python3", "-I", "-c", harness_archive.BOOTSTRAP],
        "command": [],
        "labels": {"io.matrix-runner.run": "r1", "io.matrix-runner.owner": "h:b:1:2"},
        "environment": {
            "HOME": "/work",
            "USER": "bench",
            "TMPDIR": "/tmp",
            "MATRIX_RUNNER_FOLDERS": "/tmp:/work:/dev/shm",
            "NVIDIA_VISIBLE_DEVICES": "void",
            "CUDA_VISIBLE_DEVICES": "",
        },
        "device_requests": [],
        "volumes": {"matrix-runner-cache-0123456789ab-cpu": {"bind": "/cache", "mode": "rw,nocopy"}},
        "mem_limit": 8 << 30,
        "memswap_limit": 8 << 30,
        "shm_size": 1 << 30,
        "stdin_open": True,
        "auto_remove": True,
        "log_config": {"Type": "none"},
        "network_mode": "none",
        "read_only": True,
        "tmpfs": {
            "/tmp": "rw,exec,nosuid,nodev,size=2147483648,mode=1777",
            "/work": "rw,exec,nosuid,nodev,size=1073741824,mode=0700,uid=1000,gid=1000",
        },
        "working_dir": "/tmp",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "user": "1000:1000",
        "pids_limit": 2048,
        "init": False,
        "stop_signal": "SIGKILL",
        "healthcheck": {"test": ["NONE"]},
        "dns": ["127.0.0.1"],
        "dns_search": ["."],
        "ulimits": [Ulimit(name="core", soft=0, hard=0)],
        "use_config_proxy": False,
    }


def test_container_gets_the_variables_of_its_environment_and_keeps_its_own() -> None:
    spec = options.Container(
        name="n",
        image=IMAGE,
        python="python3",
        limits=Limits(memory=8 << 30),
        owner="h:b:1:2",
        variables={"A": "1 2", "HOME": "/x"},
    )
    environment = spec.options()["environment"]
    assert (environment["A"], environment["HOME"]) == ("1 2", "/work")


def test_volumes_of_the_image_are_in_memory_and_not_in_place_of_ours() -> None:
    limits = Limits(memory=8 << 30, device="cpu", run="r1")
    volumes = ("/data", "/tmp/", "/cache", "/data/")
    spec = options.Container(
        name="n", image=IMAGE, python="python3", limits=limits, owner="h:b:1:2", image_volumes=volumes
    )
    tmpfs = spec.options()["tmpfs"]
    assert tmpfs == {"/data": "rw,exec,nosuid,nodev,size=1073741824,mode=1777", **container()["tmpfs"]}


@pytest.mark.parametrize("volumes", [(), ("/data",), tuple(f"/data/{number}" for number in range(40))])
@pytest.mark.parametrize("memory", [400 << 20, 8 << 30, 1 << 40])
def test_files_cannot_fill_the_memory_of_a_container(memory: int, volumes: tuple[str, ...]) -> None:
    spec = options.Container(
        name="n", image=IMAGE, python="python3", limits=Limits(memory=memory), owner="h:b:1:2", image_volumes=volumes
    ).options()
    sizes = {path: int(re.findall(r"size=(\d+),", text)[0]) for path, text in spec["tmpfs"].items()}
    assert sizes.keys() == {"/tmp", "/work", *volumes}
    assert max(sizes.values()) <= 4 << 30
    assert min(sizes.values()) >= 1 << 20
    assert sum(sizes.values()) + spec["shm_size"] <= 0.625 * memory


def test_container_options_are_the_same_each_time() -> None:
    assert container(GPU) == container(GPU)


def test_container_on_a_gpu_requests_its_uuid() -> None:
    created = container(GPU)
    assert created["device_requests"] == [DeviceRequest(device_ids=[GPU], capabilities=[["gpu"]])]
    assert created["environment"]["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert visible(created) == (GPU, GPU)
    assert list(created["volumes"]) == [f"matrix-runner-cache-0123456789ab-{GPU}"]


def test_container_requests_cdi_device_if_the_engine_lists_it() -> None:
    info = {"DiscoveredDevices": [{"Source": "cdi", "ID": f"nvidia.com/gpu={GPU}"}]}
    assert options.has_cdi(info, GPU)
    assert not options.has_cdi(info, "GPU-other")
    assert not options.has_cdi({"DiscoveredDevices": None}, GPU)
    assert not options.has_cdi(info, f"{GPU},GPU-other")
    assert options.gpu_request(info, GPU, wsl=False) == "cdi"
    assert options.gpu_request(info, "GPU-other", wsl=False) == "uuid"
    created = container(GPU, "cdi")
    assert visible(created) == (GPU, "void")  # or the image's own NVIDIA_VISIBLE_DEVICES=all adds all GPUs
    assert created["device_requests"] == [DeviceRequest(driver="cdi", device_ids=[f"nvidia.com/gpu={GPU}"])]


def test_several_gpus_are_requested_each_and_share_a_cache_volume() -> None:
    several = f"{GPU},GPU-other"
    assert options.device_requests(several, "uuid") == [
        DeviceRequest(device_ids=[GPU, "GPU-other"], capabilities=[["gpu"]])
    ]
    (request,) = options.device_requests(several, "cdi")
    assert request["DeviceIDs"] == [f"nvidia.com/gpu={GPU}", "nvidia.com/gpu=GPU-other"]
    assert re.fullmatch(r"matrix-runner-cache-0{12}-several-[0-9a-f]{8}", options.cache_volume("0" * 64, several))
    assert visible(container(several)) == (several, several)
    assert visible(container(several, "cdi")) == (several, "void")


def test_networks_of_users_have_a_cache_volume_of_their_own() -> None:
    limits = Limits(memory=8 << 30, networks="0123456789ab")
    spec = options.Container(name="n", image=IMAGE, python="python3", limits=limits, owner="h:b:1:2")
    (name,) = spec.options()["volumes"]
    assert name == options.cache_volume(IMAGE, "cpu", "0123456789ab") != options.cache_volume(IMAGE, "cpu")
    assert options.volume_image(name) == options.volume_image(options.cache_volume(IMAGE, "cpu"))


def test_container_of_wsl_requests_all_gpus() -> None:
    """NVIDIA's container toolkit knows no UUID there; CUDA does."""
    info = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}]}
    assert options.gpu_request(info, GPU, wsl=True) == "all"
    created = container(GPU, "all")
    assert created["device_requests"] == [DeviceRequest(count=-1, capabilities=[["gpu"]])]
    assert visible(created) == (GPU, "all")
    assert container("cpu", "all")["device_requests"] == []
    assert visible(container("cpu", "all")) == ("", "void")


def test_container_name_is_valid_and_unique() -> None:
    name = options.container_name("2026-11-20T10:00:00", "torch-1.0")
    assert name.startswith("matrix-runner-2026-11-20T10-00-00-torch-1.0-")
    assert options.container_name("r", "e") != options.container_name("r", "e")


def recipe(**changes: Any) -> options.Recipe:
    parts = {"dockerfile": b"FROM x", "lock": b"numpy==1", "base": "python:3.6-slim", "base_id": "sha256:aa"}
    return options.Recipe(environment="Torch-1.0", **{**parts, **changes})


def test_tag_changes_with_dockerfile_lock_and_base() -> None:
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


def test_build_context_is_dockerfile_and_lock_and_reproducible() -> None:
    data = recipe().context().read()
    assert data == recipe().context().read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == ["Dockerfile", "lock.txt"]


def test_build_labels_unfinished_images_alone_with_their_owner() -> None:
    arguments = recipe().build_options("h:b:1:2:token", "host:/mine")
    assert arguments["buildargs"] == {"BASE": "python:3.6-slim", "LOCK": "lock.txt", "BUILDER": "h:b:1:2:token"}
    assert arguments["labels"] == {
        "io.matrix-runner.owner": "",
        "io.matrix-runner.environment": "Torch-1.0",
        "io.matrix-runner.checkout": "host:/mine",
    }


def test_an_extended_image_depends_on_what_it_adds_and_brings_the_program_that_imports_it() -> None:
    extended = recipe(added=("timm",), program=b"import")
    changed = [recipe(), recipe(added=("tqdm",), program=b"import"), recipe(added=("timm",), program=b"other")]
    assert len({each.tag for each in (extended, *changed)}) == 4
    assert extended.build_options("h:b:1:2:token", "")["buildargs"]["ADDED"] == "timm"
    with tarfile.open(fileobj=extended.context()) as tar:
        assert tar.getnames() == ["Dockerfile", "lock.txt", "added.py"]


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
def test_repository_and_registry_are_parsed_as_the_engine_does(name: str, repository: str, registry: str) -> None:
    assert image_names.repository(name) == repository
    assert image_names.registry(name) == registry


def test_pinned_replaces_the_tag_by_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "pins.toml"
    path.write_text(f'[images]\n"python:3.6-slim" = "sha256:{"0a" * 32}"\n')
    digests = image_names.pins(path)
    assert image_names.pinned("python:3.6-slim", digests) == "python@sha256:" + "0a" * 32
    assert image_names.pinned("python:3.7-slim", digests) == "python:3.7-slim"
    assert image_names.pins(tmp_path / "none.toml") == {}


def test_shipped_pins_are_digests() -> None:
    digests = image_names.pins(Path(__file__).parents[4] / "docker" / "pins.toml")
    assert all(len(digest) == 71 and digest.startswith("sha256:") for digest in digests.values())


def test_by_registry_groups_names_without_repeats() -> None:
    names = ["a/b:1", "ghcr.io/x/y:1", "a/b:1", "python:3"]
    assert image_names.by_registry(names) == {"docker.io": ["a/b:1", "python:3"], "ghcr.io": ["ghcr.io/x/y:1"]}


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


def test_useful_lines_of_a_log_leave_out_progress() -> None:
    assert build_log.useful(LOG.splitlines()) == (
        "Installing collected packages: numpy, torch",
        "ERROR: Could not find a version that satisfies the requirement nothing==1.0",
        "ERROR: No matching distribution found for nothing==1.0",
    )


def test_useful_lines_include_an_error_before_many_lines() -> None:
    kept = build_log.useful(["ERROR: the cause", *(f"  more {number}" for number in range(40))])
    assert len(kept) == build_log.MAX_LINES
    assert kept[0] == "ERROR: the cause"
    assert kept[-1] == "  more 39"


def test_reason_is_the_last_error_and_has_a_hint() -> None:
    assert build_log.reason(LOG.splitlines(), "exit 1") == "ERROR: No matching distribution found for nothing==1.0"
    assert build_log.reason(["hm"], "The command '/bin/sh -c\n x' returned a non-zero code: 7") == (
        "the step ended with exit 7"
    )
    assert build_log.reason(["hm"], "pull access\ndenied") == "pull access denied"
    assert "runner lock" in build_log.hint("THESE PACKAGES DO NOT MATCH THE HASHES FROM")


def test_progress_lines_of_a_build() -> None:
    lines = [line for line in map(build_log.progress_line, LOG.splitlines()) if line]
    assert lines == [
        "step 5/9: RUN python3 -m pip install --require-hashes --no-cache-di...",
        "downloading torch 1.0.0, 591.8 MB",
        "building termcolor from source",
        "installing 2 packages",
    ]


def test_pull_progress_is_the_sum_of_its_layers_by_tenths() -> None:
    progress = build_log.LayerProgress("pulling")
    messages: list[dict[str, Any]] = [
        {"status": "Pulling from library/python"},
        *(
            {"status": "Downloading", "id": "a", "progressDetail": {"current": done * 10**6, "total": 10**8}}
            for done in (1, 5, 30, 31)
        ),
        {"status": "Download complete", "id": "a", "progressDetail": {}},
    ]
    lines = [line for line in map(progress.line, messages) if line]
    assert lines == ["pulling 1 of 100 MB", "pulling 30 of 100 MB", "pulling 100 of 100 MB"]


class Fed(Wire):
    """A wire that returns its pieces one by one, and then times out."""

    pieces: tuple[bytes, ...]

    def settimeout(self, timeout: float | None, /) -> None:
        """Accept what does not make a socket non-blocking."""
        assert timeout is None or timeout > 0

    def recv(self, size: int, /) -> bytes:
        """Return the next piece."""
        if not self.pieces:
            raise TimeoutError
        piece, *rest = self.pieces
        self.pieces = tuple(rest)
        return piece[:size]

    def send(self, data: memoryview, /) -> int:
        """Unused."""
        raise NotImplementedError

    def shutdown(self, how: int, /) -> None:
        """Unused."""

    def close(self) -> None:
        """Unused."""


def fed(*pieces: bytes) -> Streams:
    wire = Fed()
    wire.pieces = pieces
    return Streams(wire)


def everything(streams: Streams) -> bytes:
    return b"".join(iter(lambda: streams.read(5.0), b""))


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def test_streams_are_split_wherever_frames_are_cut() -> None:
    data = frame(1, b"one") + frame(2, b"noise") + frame(1, b"two")
    for cut in range(1, len(data)):
        streams = fed(data[:cut], data[cut:], b"")
        assert everything(streams) == b"onetwo"
        assert streams.words() == "noise"


def test_read_times_out_without_stdout() -> None:
    with pytest.raises(TimeoutError):
        fed(frame(2, b"noise only")).read(0.0)


def test_every_exception_of_the_sdk_becomes_an_engine_error() -> None:
    """A new exception in docker.errors that FOREIGN does not cover fails here."""
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == "docker.errors"]
    assert len(classes) >= 19
    others = [requests.exceptions.ConnectionError, requests.exceptions.ReadTimeout, urllib3.exceptions.ProtocolError]
    missed = [kind.__name__ for kind in (*classes, *others, ConnectionResetError) if not issubclass(kind, FOREIGN)]
    assert missed == []


def test_talking_turns_foreign_errors_into_one_sentence_and_passes_ours() -> None:
    with pytest.raises(EngineError, match=r"^error: no answer: no space left$") as raised, talking("no answer"):
        raise errors.APIError("500 Server Error", explanation="no space\nleft.")
    assert raised.value.exit_code == 4
    with pytest.raises(ProvisionError), talking("no answer"):
        raise ProvisionError("image-build", "ours")
    with pytest.raises(EngineError, match="refused"), talking("no answer"):
        raise urllib.error.URLError("refused")


def test_is_abandoned_only_for_a_dead_process_of_this_host_and_boot() -> None:
    me = cleanup.owner()
    host, boot, _, started = me.split(":")
    assert host == socket.gethostname()
    assert not cleanup.is_abandoned(me)
    assert not cleanup.is_abandoned(f"{me}:token")
    assert cleanup.is_abandoned(f"{host}:{boot}:{os.getpid()}:{int(started) + 1}")
    assert cleanup.is_abandoned(f"{host}:{boot}:{2**22 + 1}:{started}")
    assert not cleanup.is_abandoned(f"other:{boot}:{2**22 + 1}:{started}")
    assert not cleanup.is_abandoned(f"{host}:other:{2**22 + 1}:{started}")
    assert not cleanup.is_abandoned("")
    assert not cleanup.is_abandoned("a label of somebody else")
