"""Who owns a cache volume, and when it is too large; an engine in memory answers."""

import io
import tarfile
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, NotFound

from runner.backends.docker import cache
from runner.backends.docker.cache import CacheGuard, prepare_cache, volume_bytes

MIB = 1 << 20


class Response:
    """What the SDK keeps of an answer: its status code."""

    def __init__(self, code: int) -> None:
        """Take the code."""
        self.status_code = code


def refusal(code: int) -> APIError:
    return APIError("no", response=Response(code))  # type: ignore[arg-type]


class Engine:
    """An engine in memory: its volumes by name with their sizes, and what it was asked to do."""

    def __init__(self, **sizes: int) -> None:
        """Start with volumes."""
        self.sizes = dict(sizes)
        self.created: list[dict[str, Any]] = []
        self.archives: list[tuple[str, str, bytes]] = []
        self.removed: list[str] = []
        self.walks = 0
        self.put_fails = self.walk_fails = False
        self.in_use: set[str] = set()
        self.api, self.containers = self, self

    def inspect_volume(self, name: str) -> None:
        """Raise if there is none."""
        if name not in self.sizes:
            raise NotFound("no such volume")

    def create_volume(self, name: str, labels: dict[str, str]) -> None:
        """Make an empty volume."""
        assert labels == {"io.matrix-runner.cache": "np"}
        self.sizes[name] = 0

    def create(self, **options: Any) -> Any:
        """Make a container; there is no way to start it."""
        self.created.append(options)
        return SimpleNamespace(id="helper")

    def put_archive(self, container: str, folder: str, data: bytes) -> bool:
        """Take an archive."""
        if self.put_fails:
            raise refusal(500)
        self.archives.append((container, folder, data))
        return True

    def remove_container(self, container: str, *, force: bool) -> None:
        """Remove a container."""
        assert force
        self.removed.append(container)

    def remove_volume(self, name: str) -> None:
        """Remove a volume that no container uses."""
        if name in self.in_use:
            raise refusal(409)
        del self.sizes[name]

    def df(self) -> dict[str, Any]:
        """Return the sizes of the volumes."""
        self.walks += 1
        if self.walk_fails:
            raise refusal(500)
        return {"Volumes": [{"Name": name, "UsageData": {"Size": size}} for name, size in self.sizes.items()]}


def prepare(engine: Any) -> None:
    prepare_cache(engine, "sha256:aa", "v", "np", "h:b:1:2")


def test_new_volume_gets_its_owner_without_a_program_of_the_image() -> None:
    engine = Engine()
    prepare(engine)
    ((container, folder, data),) = engine.archives
    assert (container, folder) == ("helper", "/")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        (entry,) = tar.getmembers()
        assert (entry.name, entry.isdir(), entry.uid, entry.gid, oct(entry.mode)) == (
            "cache",
            True,
            1000,
            1000,
            "0o755",
        )
    (options,) = engine.created
    assert options["volumes"] == {"v": {"bind": "/cache", "mode": "rw,nocopy"}}
    assert (options["network_mode"], options["cap_drop"], options["pids_limit"]) == ("none", ["ALL"], 2048)
    assert (options["user"], options["use_config_proxy"]) == ("1000:1000", False)
    assert "cap_add" not in options
    assert engine.removed == ["helper"]
    prepare(engine)
    assert len(engine.created) == 1


def test_volume_without_its_owner_does_not_stay() -> None:
    engine = Engine()
    engine.put_fails = True
    with pytest.raises(APIError):
        prepare(engine)
    assert (engine.sizes, engine.removed) == ({}, ["helper"])


class Disk:
    """A disk whose free bytes, and a clock whose seconds, a test sets."""

    def __init__(self, free: int | None) -> None:
        """Start at second 0."""
        self.free, self.now = free, 0.0

    def guard(self, engine: Any, limit: int = 100 * MIB) -> CacheGuard:
        """Return a guard of the volume ``v``."""
        return CacheGuard(engine, "v", limit, lambda: self.free, lambda: self.now)

    def after(self, guard: CacheGuard, free: int | None, seconds: float = 2.0) -> bool:
        """Return what a guard says after some seconds, with some bytes free."""
        self.free, self.now = free, self.now + seconds
        return guard.exceeded()


def test_engine_is_asked_only_when_more_than_the_limit_is_gone_from_the_disk() -> None:
    engine, disk = Engine(v=90 * MIB), Disk(1000 * MIB)
    guard = disk.guard(engine)
    assert not disk.after(guard, 910 * MIB)
    assert engine.walks == 0
    assert not disk.after(guard, 890 * MIB)  # others filled it: the volume is within its limit
    assert not disk.after(guard, 880 * MIB)
    assert engine.walks == 1
    engine.sizes["v"] = 200 * MIB
    assert not disk.after(guard, 700 * MIB, seconds=0.5)  # looked less than a second ago
    assert disk.after(guard, 700 * MIB)
    assert guard.excess == "its cache holds 210 MB, more than the 105 MB that it may hold"


def test_limit_is_half_of_what_is_free() -> None:
    engine, disk = Engine(v=30 * MIB), Disk(50 * MIB)
    guard = disk.guard(engine)
    assert not disk.after(guard, 26 * MIB)
    assert disk.after(guard, 20 * MIB)


@pytest.mark.parametrize("free", [None, 0])
def test_disk_that_is_not_visible_is_checked_at_the_end(free: int | None) -> None:
    engine, disk = Engine(v=200 * MIB), Disk(None)
    guard = disk.guard(engine)
    assert not disk.after(guard, free)
    assert (
        guard.close() == "removed the cache volume 'v': its cache holds 210 MB, more than the 105 MB that it may hold"
    )
    assert engine.sizes == {}


def test_volume_within_its_limit_or_used_by_a_twin_stays() -> None:
    engine, disk = Engine(v=90 * MIB), Disk(None)
    assert disk.guard(engine).close() == ""
    engine.sizes["v"], engine.in_use = 200 * MIB, {"v"}
    assert disk.guard(engine).close() == ""
    assert engine.sizes == {"v": 200 * MIB}


def test_engine_that_counts_for_somebody_else_says_nothing() -> None:
    engine: Any = Engine(v=200 * MIB)
    engine.walk_fails = True
    assert volume_bytes(engine, "v") == 0
    assert Disk(None).guard(engine).close() == ""
    assert cache.volume_bytes(Engine(), "v") == 0  # type: ignore[arg-type]
