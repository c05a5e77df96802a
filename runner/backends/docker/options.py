"""The options of images and containers that the engine is given, as values; nothing here touches the machine."""

import hashlib
import io
import re
import secrets
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.types import DeviceRequest

from runner.backends import harness_archive
from runner.backends.visible_devices import Request, in_container
from runner.core.errors import Problem, UsageError
from runner.core.files import read_bounded
from runner.core.model import Limits, Spec, file_name
from runner.harness import leftovers

RUN = "io.matrix-runner.run"
OWNER = "io.matrix-runner.owner"
ENVIRONMENT = "io.matrix-runner.environment"
CACHE = "io.matrix-runner.cache"
UNPINNED = "unpinned"
GIB = 1 << 30
ALL = -1  # the count of a DeviceRequest for all GPUs
PINS_BYTES = 1 << 18  # a thousand images take 150 KB
PINS_AGAIN = "remove it: `runner lock --images` writes it again"
PIDS = 2048  # includes threads: BLAS starts one for each core, CUDA several for each context


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an image is built from.

    Attributes:
        base: the base image in the Dockerfile, ``python:3.6-slim`` or ``python@sha256:...``.
        base_id: the digest that the base is pinned to, else the id of the local image.
    """

    environment: str
    dockerfile: bytes
    lock: bytes
    base: str
    base_id: str

    @property
    def tag(self) -> str:
        """The image's name; it depends on the Dockerfile, the lock and the base alone."""
        content = hashlib.sha256(self.dockerfile + b"\0" + self.lock + b"\0" + self.base_id.encode())
        return f"matrix-runner/{self.environment.lower()}:{content.hexdigest()[:12]}"

    def context(self) -> io.BytesIO:
        """Return the build context, a tar of the Dockerfile and the lock; the same bytes each time."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, data in (("Dockerfile", self.dockerfile), ("lock.txt", self.lock)):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))
        out.seek(0)
        return out

    def build_options(self, builder: str) -> dict[str, Any]:
        """Return the arguments of ``APIClient.build``; ``builder`` labels what is unfinished."""
        return {
            "fileobj": self.context(),
            "custom_context": True,
            "tag": self.tag,
            "buildargs": {"BASE": self.base, "LOCK": "lock.txt", "BUILDER": builder},
            "labels": {OWNER: "", ENVIRONMENT: self.environment},
            "rm": True,
            "forcerm": True,
            "decode": True,
            "use_config_proxy": True,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A server's container.

    Attributes:
        name: unique on its engine.
        image: its id.
        python: the interpreter, on the image's PATH.
        owner: the process that it belongs to, see ``cleanup.owner``.
        gpus: how the engine is asked for the GPUs, see ``gpu_request``.
    """

    name: str
    image: str
    python: str
    limits: Limits
    owner: str
    gpus: Request = "uuid"

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``containers.create``."""
        return {
            **HARDENED,
            "name": self.name,
            "image": self.image,
            "entrypoint": [self.python, "-I", "-c", harness_archive.BOOTSTRAP],
            "command": [],
            "labels": {RUN: self.limits.run, OWNER: self.owner},
            "environment": self._environment(),
            "device_requests": device_requests(self.limits.device, self.gpus),
            "volumes": {cache_volume(self.image, self.limits.device): {"bind": "/cache", "mode": "rw"}},
            "mem_limit": self.limits.memory,
            "memswap_limit": self.limits.memory,
            "shm_size": min(self.limits.memory // 4, GIB),
            "stdin_open": True,
            "auto_remove": True,
            "log_config": {"Type": "none"},
        }

    def _environment(self) -> dict[str, str]:
        visible = in_container(self.limits.device, self.gpus)
        folders = {leftovers.FOLDERS_VARIABLE: ":".join((*HARDENED["tmpfs"], "/dev/shm"))}  # noqa: S108  in the container
        return {"HOME": "/work", "USER": "bench", "TMPDIR": "/tmp", **folders, **visible}  # noqa: S108  in the container


HARDENED: Mapping[str, Any] = {
    "network_mode": "none",
    "read_only": True,
    "tmpfs": {
        "/tmp": "rw,exec,nosuid,nodev,size=4g,mode=1777",  # noqa: S108  in the container
        "/work": "rw,exec,nosuid,nodev,size=1g,mode=0700,uid=1000,gid=1000",
    },
    "working_dir": "/tmp",  # noqa: S108  in the container
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "user": "1000:1000",
    "pids_limit": PIDS,
    "init": True,
}


def owner_fix(image: str, volume: str, owner: str) -> dict[str, Any]:
    """Return the options of a container that gives a new cache volume, which belongs to root, to uid 1000."""
    return {
        "image": image,
        "entrypoint": ["chown", "1000:1000", "/cache"],
        "command": [],
        "labels": {OWNER: owner},
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "cap_add": ["CHOWN"],
        "security_opt": ["no-new-privileges"],
        "user": "0:0",
        "volumes": {volume: {"bind": "/cache", "mode": "rw"}},
    }


def container_name(run: str, environment: str) -> str:
    """Return a unique name for the container of a server."""
    readable = re.sub(r"[^a-zA-Z0-9_.-]", "-", f"matrix-runner-{run}-{environment}")
    return f"{readable}-{secrets.token_hex(4)}"


def cache_volume(image: str, device: str) -> str:
    """Return the name of the volume that holds the compiler caches of one image on one device."""
    return f"matrix-runner-cache-{image.removeprefix('sha256:')[:12]}-{file_name(device)}"


def volume_image(volume: str) -> str:
    """Return the first 12 digits of the id of the image that a cache volume belongs to."""
    return volume.removeprefix("matrix-runner-cache-").partition("-")[0]


def gpu_request(info: Mapping[str, Any], device: str, *, wsl: bool) -> Request:
    """Return how to ask an engine for GPUs.

    Args:
        info: what the engine says of itself.
        device: ``cpu``, or UUIDs with commas between them.
        wsl: this machine is WSL 2, where NVIDIA's container toolkit only knows all GPUs together, as a CDI device, too.
    """
    if wsl:
        return "all"
    return "cdi" if device != "cpu" and has_cdi(info, device) else "uuid"


def device_requests(device: str, request: Request) -> list[DeviceRequest]:
    """Return the request for GPUs, given by their UUIDs with commas between them; no request for ``cpu``."""
    if device == "cpu":
        return []
    names = device.split(",")
    if request == "all":
        return [DeviceRequest(count=ALL, capabilities=[["gpu"]])]
    if request == "cdi":
        return [DeviceRequest(driver="cdi", device_ids=[cdi_name(name) for name in names])]
    return [DeviceRequest(device_ids=names, capabilities=[["gpu"]])]


def cdi_name(device: str) -> str:
    """Return the name of a GPU in CDI, the Container Device Interface."""
    return f"nvidia.com/gpu={device}"


def has_cdi(info: Mapping[str, Any], device: str) -> bool:
    """Return True if an engine's ``info`` lists the GPUs as CDI devices; engines before 28.3 list none."""
    names = {entry.get("ID") for entry in info.get("DiscoveredDevices") or []}
    return names >= {cdi_name(name) for name in device.split(",")}


def pins(path: Path) -> dict[str, str]:
    """Return image name -> digest from ``pins.toml``; empty if the file does not exist.

    Raises:
        UsageError: the file cannot be read, or has something else than digests of images.
    """
    try:
        digests = tomllib.loads(read_bounded(path, PINS_BYTES).decode()).get("images", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, or not TOML
        message = f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        raise UsageError(Problem(message, hint=PINS_AGAIN)) from error
    wrong = digests if not isinstance(digests, dict) else [n for n, d in digests.items() if not _is_digest(d)]
    if wrong:
        raise UsageError(Problem(f"{path} does not give a digest for {str(wrong)[:100]!r}", hint=PINS_AGAIN))
    return dict(digests)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("sha256:[a-f0-9]{64}", value) is not None


def pinned(name: str, digests: Mapping[str, str]) -> str:
    """Return ``repository@digest`` if an image name has a pin, else the name."""
    digest = digests.get(name)
    return f"{repository(name)}@{digest}" if digest else name


def repository(name: str) -> str:
    """Return an image's name without its tag or digest."""
    name = name.partition("@")[0]
    head, colon, tag = name.rpartition(":")
    return head if colon and "/" not in tag else name


def registry(name: str) -> str:
    """Return the host of the registry of an image name."""
    first, slash, _ = name.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


def by_registry(names: Sequence[str]) -> dict[str, list[str]]:
    """Group image names by registry, each once, in order."""
    names_by_host: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        names_by_host.setdefault(registry(name), []).append(name)
    return names_by_host


def source_image(spec: Spec, digests: Mapping[str, str]) -> str | None:
    """Return the image to pull for an environment, its own or its base; None if the matrix names neither."""
    name = spec.image or spec.base
    return None if name is None else pinned(name, digests)
