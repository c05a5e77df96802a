"""The cache volume of a server: whose it is, and how large it may become."""

import io
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, NotFound

from runner.backends.docker.client import FOREIGN
from runner.backends.docker.image_names import BUILT, familiar
from runner.backends.docker.options import CACHE, CACHE_BYTES, CACHE_FOLDER, USER
from runner.core.units import disk_size

_DISK_SHARE = 2  # a server may fill one part in so many of what is free on the disk
_CHECK_SECONDS = 1.0
_ARCHIVE_BYTES = 3 * tarfile.BLOCKSIZE
"""Of a tar archive with one folder: its entry, and two blocks of zeros. Podman stops reading there, and refuses an
archive that goes on, as tarfile's do, unless all of it arrives at once."""
_COUNTING = "disk usage operation is already running"
"""How an engine refuses a second client (https://github.com/moby/moby, ``daemon/disk_usage.go``)."""
_USAGE_ATTEMPTS, _USAGE_PAUSE = 75, 0.2  # seconds between attempts
_MADE_MEANWHILE = "file exists"
"""How an engine refuses a folder that it makes for another container of the volume at the same moment."""
_FOLDER_ATTEMPTS = 5
_CHECKS = 4  # of the volume, while as much of the disk is filled again as a server may


def create_volume(client: docker.DockerClient, volume: str, environment: str) -> None:
    """Create a cache volume, unless it exists."""
    try:
        client.api.inspect_volume(volume)
    except NotFound:
        client.api.create_volume(volume, labels={CACHE: environment})


def create_folder(client: docker.DockerClient, container: str) -> None:
    """Create the folder of the compiler caches in the volume of a container that has not started, owned by USER.

    The engine does it, as it extracts a tar archive there. So no program of the image runs as root, and a volume whose
    first runner was killed is as good as any other. Variants of an environment share a volume, and their servers start
    at the same time: where the engine refuses the folder because it is making it for the other server, the request is
    repeated.

    Raises:
        APIError: the engine refuses.
    """
    entry = tarfile.TarInfo(CACHE_FOLDER.name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    entry.uid, entry.gid = USER
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(entry)
    for attempt in range(1, _FOLDER_ATTEMPTS + 1):
        try:
            client.api.put_archive(container, str(CACHE_FOLDER.parent), out.getvalue()[:_ARCHIVE_BYTES])
        except APIError as error:
            if _MADE_MEANWHILE not in str(error.explanation) or attempt == _FOLDER_ATTEMPTS:
                raise
        else:
            return


def storage_folder(client: docker.DockerClient) -> Path | None:
    """Return the folder where the engine keeps images and volumes, None if that is not a folder of this machine."""
    root = Path(str(client.info().get("DockerRootDir") or ""))
    local = "localhost" in str(client.api.base_url) and root.is_absolute() and root.is_dir()
    return root if local else None


def disk_usage(client: docker.DockerClient, wait: Callable[[float], object] = time.sleep) -> dict[str, Any]:
    """Return what ``docker system df`` shows: the sizes of all images, containers and volumes.

    An engine counts for one client at a time, and refuses the others: they try again for some seconds.

    Args:
        client: the engine.
        wait: waits for some seconds.

    Raises:
        APIError: the engine refuses for another reason, or still counts for another client.
    """
    for _ in range(_USAGE_ATTEMPTS - 1):
        try:
            usage: dict[str, Any] = _as_of_docker(client, client.df())
        except APIError as error:
            if _COUNTING not in (error.explanation or ""):
                raise
            wait(_USAGE_PAUSE)
        else:
            return usage
    return _as_of_docker(client, dict(client.df()))


def _as_of_docker(client: docker.DockerClient, usage: dict[str, Any]) -> dict[str, Any]:
    """Return an engine's usage as Docker describes it.

    Podman lists images without the repository of their names, together with the layers of builds, and volumes without
    their labels.
    """
    if all(str(image["Id"]).startswith("sha256:") for image in usage.get("Images") or []):
        return usage
    volumes = {volume["Name"]: volume["Labels"] for volume in client.api.volumes()["Volumes"] or []}
    return {
        **usage,
        "Images": [_image_as_of_docker(image) for image in client.api.images()],
        "Volumes": [{**volume, "Labels": volumes.get(volume["Name"])} for volume in usage["Volumes"] or []],
    }


def _image_as_of_docker(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image with familiar names; Podman gives what it built a digest, too, as if a registry had it."""
    tags, digests = ([familiar(name) for name in image[key] or []] for key in ("RepoTags", "RepoDigests"))
    return {**image, "RepoTags": tags, "RepoDigests": [name for name in digests if not name.startswith(BUILT)]}


def volume_bytes(client: docker.DockerClient, volume: str) -> int | None:
    """Return the size of a volume in bytes, 0 if there is none of the name; None if the engine does not say."""
    try:
        volumes = disk_usage(client).get("Volumes") or []
    except APIError:
        return None
    for entry in volumes:
        if entry["Name"] == volume:
            size = (entry.get("UsageData") or {}).get("Size")
            return size if isinstance(size, int) and size >= 0 else None
    return 0


class CacheGuard:
    """Keeps the cache volume of one server below its limit.

    To say the size of a volume, an engine walks over the files of all of them, which would disturb a measurement. So
    while the server runs, the guard watches the free space of the engine's disk, and asks the engine only if too much
    of that is gone.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        volume: str,
        limit: int = CACHE_BYTES,
        free: Callable[[], int | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember the free space of the engine's disk.

        Args:
            client: the engine.
            volume: its name.
            limit: bytes that it may hold.
            free: returns the free bytes of the engine's disk, None if that is unknown; by default those of this
                machine, if the engine is on it.
            clock: returns seconds.
        """
        self._client, self._volume, self._limit = client, volume, limit
        folder = storage_folder(client) if free is None else None
        self._free = free or (lambda: _free_bytes(folder))
        free_bytes = self._free() or 0
        growth = min(limit, free_bytes // _DISK_SHARE)
        self._allowed = min(limit, (volume_bytes(client, volume) or 0) + growth) if 0 < growth < limit else limit
        self._check_below = free_bytes - growth
        self._check_step = growth // _CHECKS
        self._clock = clock
        self._checked = clock()
        self.excess = ""

    def exceeded(self) -> bool:
        """Return True as soon as the volume is known to be too large; ``excess`` then says so in a sentence."""
        now = self._clock()
        if self.excess or now - self._checked < _CHECK_SECONDS:
            return bool(self.excess)
        self._checked = now
        free = self._free()
        if free is not None and free < self._check_below and self._measure(self._allowed):
            self._check_below = free - self._check_step  # others have filled the disk, if the volume is small
        return bool(self.excess)

    def _measure(self, limit: int) -> bool:
        """Ask the engine whether the volume is too large; return False if it does not say."""
        size = None
        with suppress(*FOREIGN):
            size = volume_bytes(self._client, self._volume)
        if size is not None and size > limit:
            self.excess = f"its cache holds {disk_size(size)}, more than the {disk_size(limit)} that it may hold"
        return size is not None

    def close(self) -> str:
        """Remove the volume if it is too large; its container has to be gone. Return a sentence if it was removed."""
        if not self.excess:
            self._measure(self._limit)
        if not self.excess:
            return ""
        try:
            self._client.api.remove_volume(self._volume)
        except APIError as error:
            if error.status_code not in {404, 409}:  # 404: gone; 409: a twin's container uses it
                raise
            return ""
        return f"removed the cache volume {self._volume!r}: {self.excess}"


def _free_bytes(folder: Path | None) -> int | None:
    with suppress(OSError):
        return shutil.disk_usage(folder).free if folder is not None else None
    return None
