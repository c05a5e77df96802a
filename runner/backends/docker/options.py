"""The options of images and containers that the engine is given, as values; nothing here touches the machine."""

import hashlib
import io
import posixpath
import re
import secrets
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from docker.types import DeviceRequest, Ulimit

from runner.backends import harness_archive
from runner.backends.visible_devices import Request, in_container
from runner.core.model import Limits, file_name
from runner.harness import leftovers

RUN = "io.matrix-runner.run"
OWNER = "io.matrix-runner.owner"
ENVIRONMENT = "io.matrix-runner.environment"
CHECKOUT = "io.matrix-runner.checkout"
CACHE = "io.matrix-runner.cache"
USE = "io.matrix-runner.use"
GIB = 1 << 30
ALL = -1  # the count of a DeviceRequest for all GPUs
CACHE_FOLDER = PurePosixPath("/cache/compilers")  # in the volume, which belongs to root
OF_NETWORKS = "-networks-"  # in the name of a volume, before what identifies the files
CACHE_BYTES = 16 * GIB  # of one image on one device; CUDA's own cache ends at 4 GiB, see harness.compile_cache
USER = (1000, 1000)  # uid and gid of the server
PIDS = 2048  # includes threads: BLAS starts one for each core, CUDA several for each context


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an image is built from.

    Attributes:
        base: the base image in the Dockerfile, ``python:3.6-slim`` or ``python@sha256:...``.
        base_id: the digest that the base is pinned to, else the id of the local image; the base's name in a recipe
            that counts on every host, see ``Recipes.named``. Of an extended environment it is the tag of the other.
        added: the packages that an extended environment adds; ``program`` imports them as the last step.
    """

    environment: str
    dockerfile: bytes
    lock: bytes
    base: str
    base_id: str
    added: tuple[str, ...] = ()
    program: bytes = b""

    @property
    def tag(self) -> str:
        """The image's name; it depends on the Dockerfile, the lock, the base, and what an extended environment adds."""
        parts = [self.dockerfile, self.lock, self.base_id.encode()]
        parts += [" ".join(self.added).encode(), self.program] if self.added else []
        content = hashlib.sha256(b"\0".join(parts))
        return f"matrix-runner/{self.environment.lower()}:{content.hexdigest()[:12]}"

    def registry_tag(self, architecture: str) -> str:
        """Return the tag in a registry, ``torch-1.0-3f2a9c81d2e4-amd64``; it depends on what ``tag`` depends on."""
        return f"{self.tag.rpartition('/')[2].replace(':', '-')}-{architecture}"

    def context(self) -> io.BytesIO:
        """Return the build context, a tar of the Dockerfile, the lock and the program; the same bytes each time."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, data in (("Dockerfile", self.dockerfile), ("lock.txt", self.lock), ("added.py", self.program)):
                if not data:
                    continue
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))
        out.seek(0)
        return out

    def build_options(self, builder: str, checkout: str) -> dict[str, Any]:
        """Return the arguments of ``APIClient.build``.

        Args:
            builder: labels what is unfinished.
            checkout: labels the image, see ``uses.label``.
        """
        added = {"ADDED": " ".join(self.added)} if self.added else {}
        return {
            "fileobj": self.context(),
            "custom_context": True,
            "tag": self.tag,
            "buildargs": {"BASE": self.base, "LOCK": "lock.txt", "BUILDER": builder, **added},
            "labels": {OWNER: "", ENVIRONMENT: self.environment, CHECKOUT: checkout},
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
        image_volumes: the folders that the image declares as volumes. The engine would store each on its disk,
            without a limit; the container gets an empty tmpfs at each path instead.
        variables: name -> value, those of the environment.
        podman: the engine is Podman, see ``podman_tmpfs``.
    """

    name: str
    image: str
    python: str
    limits: Limits
    owner: str
    gpus: Request = "uuid"
    image_volumes: Collection[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    podman: bool = False

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
            **({"devices": podman_devices(self.limits.device)} if self.gpus == "device" else {}),
            "tmpfs": self._tmpfs(),
            # nocopy: what the image has in that folder stays out of the volume
            "volumes": {
                cache_volume(self.image, self.limits.device, self.limits.networks): {
                    "bind": str(CACHE_FOLDER.parent),
                    "mode": "rw,nocopy",
                }
            },
            "mem_limit": self.limits.memory,
            "memswap_limit": self.limits.memory,
            "shm_size": min(GIB, int(SHM_SHARE * self.limits.memory)),
            "stdin_open": True,
            "auto_remove": True,
            "log_config": {"Type": "none"},
        }

    def _tmpfs(self) -> dict[str, str]:
        """Return the folders in memory: path -> options of the mount."""
        memory = self.limits.memory
        sizes = {path: min(folder.largest, int(folder.share * memory)) for path, folder in TEMPORARY.items()}
        volumes = sorted({posixpath.normpath(path) for path in self.image_volumes} - {str(CACHE_FOLDER.parent), *sizes})
        sizes = {**dict.fromkeys(volumes, min(GIB, int(VOLUMES_SHARE * memory) // max(len(volumes), 1))), **sizes}
        owners = {path: folder.owner for path, folder in TEMPORARY.items()}
        folders = {
            path: f"rw,exec,nosuid,nodev,size={size},{owners.get(path, EVERYBODY)}" for path, size in sizes.items()
        }
        return {path: podman_tmpfs(text) for path, text in folders.items()} if self.podman else folders

    def _environment(self) -> dict[str, str]:
        visible = in_container(self.limits.device, self.gpus)
        folders = {leftovers.FOLDERS_VARIABLE: ":".join((*TEMPORARY, "/dev/shm"))}  # noqa: S108  in the container
        return {**self.variables, "HOME": "/work", "USER": "bench", "TMPDIR": "/tmp", **folders, **visible}  # noqa: S108  in the container


class Temporary(NamedTuple):
    """A folder in the memory of a container.

    Attributes:
        largest: bytes that it can hold.
        share: of the container's memory that it can hold, if that is less.
        owner: whom it belongs to, as options of the mount.
    """

    largest: int
    share: float
    owner: str


EVERYBODY = "mode=1777"
TEMPORARY: Mapping[str, Temporary] = {
    "/tmp": Temporary(4 * GIB, 0.25, EVERYBODY),  # noqa: S108  in the container
    "/work": Temporary(GIB, 0.125, f"mode=0700,uid={USER[0]},gid={USER[1]}"),
}
SHM_SHARE = 0.125  # of the container's memory for /dev/shm
VOLUMES_SHARE = 0.125  # for the volumes of the image together
"""Files stay when the process ends that wrote them. If they could fill the memory, the kernel would kill the server."""
HARDENED: Mapping[str, Any] = {
    "network_mode": "none",
    "read_only": True,
    "working_dir": "/tmp",  # noqa: S108  in the container
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "user": f"{USER[0]}:{USER[1]}",
    "pids_limit": PIDS,
    "init": False,  # it would be a process of the server's user that holds the server's pipes, and opens to each child
    "stop_signal": "SIGKILL",  # others do not end a first process
    "ulimits": [Ulimit(name="core", soft=0, hard=0)],  # a core dump could hold what the framework read
    "healthcheck": {"test": ["NONE"]},  # that of the image would run beside a measurement
    "dns": ["127.0.0.1"],  # or the container's resolv.conf has the name servers of the host's network
    "dns_search": ["."],
    "use_config_proxy": False,  # the proxies of ~/.docker/config.json often hold passwords, and there is no network
}


def podman_tmpfs(options: str) -> str:
    """Return the options of a tmpfs as Podman takes them (https://docs.podman.io, ``podman run --mount``).

    It knows no ids, only ``U`` for the user of the container, and fills a tmpfs from the image unless told not to.

    >>> podman_tmpfs("rw,size=1g,mode=0700,uid=1000,gid=1000")
    'rw,size=1g,mode=0700,U,notmpcopyup'
    """
    kept = [option for option in options.split(",") if not option.startswith(("uid=", "gid="))]
    return ",".join((*kept, *(["U"] if "uid=" in options else []), "notmpcopyup"))


def container_name(run: str, environment: str) -> str:
    """Return a unique name for the container of a server."""
    readable = re.sub(r"[^a-zA-Z0-9_.-]", "-", f"matrix-runner-{run}-{environment}")
    return f"{readable}-{secrets.token_hex(4)}"


def cache_volume(image: str, device: str, networks: str = "") -> str:
    """Return the name of the volume that holds the compiler caches of one image on one device.

    Compilers load code from it, so users' networks get a volume of their own.

    Args:
        image: its id.
        device: ``cpu``, or the UUID of a GPU.
        networks: identifies the files of the networks, see ``Limits.networks``; empty for built-in workloads.
    """
    suffix = f"{OF_NETWORKS}{networks}" if networks else ""
    return f"matrix-runner-cache-{short_id(image)}-{file_name(device)}{suffix}"


def short_id(image: str) -> str:
    """Return the first 12 digits of the id of an image."""
    return image.removeprefix("sha256:")[:12]


def volume_image(volume: str) -> str:
    """Return the first 12 digits of the id of the image that a cache volume belongs to."""
    return volume.removeprefix("matrix-runner-cache-").partition("-")[0]


def gpu_request(info: Mapping[str, Any], device: str, *, wsl: bool, podman: bool = False) -> Request:
    """Return how to ask an engine for GPUs.

    Args:
        info: what the engine says of itself.
        device: ``cpu``, or UUIDs with commas between them.
        wsl: this machine is WSL 2, where NVIDIA's container toolkit only knows all GPUs together, as a CDI device, too.
        podman: the engine is Podman, which ignores a DeviceRequest.
    """
    if podman:
        return "device"
    if wsl:
        return "all"
    return "cdi" if device != "cpu" and has_cdi(info, device) else "uuid"


def device_requests(device: str, request: Request) -> list[DeviceRequest]:
    """Return the request for GPUs, given by their UUIDs with commas between them; no request for ``cpu``."""
    if device == "cpu" or request == "device":
        return []
    names = device.split(",")
    if request == "all":
        return [DeviceRequest(count=ALL, capabilities=[["gpu"]])]
    if request == "cdi":
        return [DeviceRequest(driver="cdi", device_ids=[cdi_name(name) for name in names])]
    return [DeviceRequest(device_ids=names, capabilities=[["gpu"]])]


def podman_devices(device: str) -> list[dict[str, str]]:
    """Return GPUs, given by their UUIDs with commas between them, as Podman takes them; none for ``cpu``."""
    return [] if device == "cpu" else [{"PathOnHost": cdi_name(name)} for name in device.split(",")]


def cdi_name(device: str) -> str:
    """Return the name of a GPU in CDI, the Container Device Interface."""
    return f"nvidia.com/gpu={device}"


def has_cdi(info: Mapping[str, Any], device: str) -> bool:
    """Return True if an engine's ``info`` lists the GPUs as CDI devices; engines before 28.3 list none."""
    names = {entry.get("ID") for entry in info.get("DiscoveredDevices") or []}
    return names >= {cdi_name(name) for name in device.split(",")}
