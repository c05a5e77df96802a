"""Whose a cache volume is, and when it is too large; an engine in memory answers."""

import io
import tarfile
from typing import Any

import pytest
from docker.errors import APIError, NotFound

from runner.backends.docker import cache
from runner.backends.docker.cache import CacheGuard, create_folder, create_volume, disk_usage, volume_bytes

MIB = 1 << 20


class Response:
    """What the SDK keeps of an answer: its status code."""

    def __init__(self, code: int) -> None:
        """Take the code."""
        self.status_code = code


def refusal(code: int, explanation: str | None = None) -> APIError:
    return APIError("no", response=Response(code), explanation=explanation)  # type: ignore[arg-type]


COUNTING = refusal(500, "a disk usage operation is already running")


class Engine:
    """An engine in memory: its volumes by name with their sizes, and what it was asked to do."""

    def __init__(self, **sizes: int) -> None:
        """Start with volumes."""
        self.sizes = dict(sizes)
        self.archives: list[tuple[str, str, bytes]] = []
        self.refusals: list[APIError] = []  # of the next archives
        self.walks = 0
        self.walk_fails = False
        self.other_walks = 0
        self.in_use: set[str] = set()
        self.api = self

    def inspect_volume(self, name: str) -> None:
        """Raise if there is none."""
        if name not in self.sizes:
            raise NotFound("no such volume")

    def create_volume(self, name: str, labels: dict[str, str]) -> None:
        """Make an empty volume."""
        assert labels == {"io.matrix-runner.cache": "np"}
        self.sizes[name] = 0

    def put_archive(self, container: str, folder: str, data: bytes) -> bool:
        """Take an archive, or refuse it."""
        if self.refusals:
            raise self.refusals.pop(0)
        self.archives.append((container, folder, data))
        return True

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
        if self.walks <= self.other_walks:
            raise COUNTING
        return {"Volumes": [{"Name": name, "UsageData": {"Size": size}} for name, size in self.sizes.items()]}


def test_an_engine_that_counts_for_another_client_is_asked_again() -> None:
    engine: Any = Engine(one=MIB)
    engine.other_walks, waits = 3, list[float]()
    assert disk_usage(engine, waits.append)["Volumes"][0]["UsageData"]["Size"] == MIB
    assert len(waits) == 3
    assert 0 < sum(waits) < 1


def test_an_engine_that_always_counts_for_another_or_fails_is_not_asked_for_ever() -> None:
    engine: Any = Engine(one=MIB)
    engine.other_walks, waits = 1000, list[float]()
    with pytest.raises(APIError):
        disk_usage(engine, waits.append)
    assert 1 < sum(waits) < 30
    engine.walk_fails, before = True, engine.walks
    with pytest.raises(APIError):
        disk_usage(engine, waits.append)
    assert engine.walks == before + 1


def test_folder_of_the_caches_belongs_to_the_server() -> None:
    engine: Any = Engine()
    create_folder(engine, "server")
    ((container, folder, data),) = engine.archives
    assert (container, folder) == ("server", "/cache")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        (entry,) = tar.getmembers()
        assert (entry.name, entry.isdir(), entry.mode) == ("compilers", True, 0o755)
        assert (entry.uid, entry.gid) == (1000, 1000)


MADE_MEANWHILE = refusal(500, "Error processing tar file(exit status 1): mkdir /cache/compilers: file exists")


def test_the_folder_may_be_made_for_another_server_at_the_same_moment() -> None:
    """Docker 20.10 refused one of three servers of variants of an image, whose side then had no cell in the run."""
    engine: Any = Engine()
    engine.refusals = [MADE_MEANWHILE] * 2
    create_folder(engine, "server")
    assert [container for container, _, _ in engine.archives] == ["server"]
    for refusals in ([MADE_MEANWHILE] * 9, [refusal(500, "no space left on device")]):
        engine.refusals = list(refusals)
        with pytest.raises(APIError):
            create_folder(engine, "server")
    assert len(engine.archives) == 1


def test_volume_is_created_once() -> None:
    engine: Any = Engine()
    create_volume(engine, "v", "np")
    engine.sizes["v"] = 5
    create_volume(engine, "v", "np")
    assert engine.sizes == {"v": 5}


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


def test_server_may_fill_half_of_a_disk_that_is_almost_full() -> None:
    engine, disk = Engine(v=30 * MIB), Disk(50 * MIB)
    guard = disk.guard(engine)
    engine.sizes["v"] = 54 * MIB
    assert not disk.after(guard, 26 * MIB)
    assert engine.walks == 1  # at the start
    assert not disk.after(guard, 20 * MIB)  # it holds 24 MiB more than at its start, which is less than half
    engine.sizes["v"] = 60 * MIB
    assert disk.after(guard, 9 * MIB)
    assert guard.excess == "its cache holds 63 MB, more than the 58 MB that it may hold"


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
    assert volume_bytes(engine, "v") is None
    assert Disk(None).guard(engine).close() == ""
    assert cache.volume_bytes(Engine(), "v") == 0  # type: ignore[arg-type]


def test_size_that_the_engine_does_not_know_is_none() -> None:
    """Docker then says -1."""
    assert volume_bytes(Engine(v=-1), "v") is None  # type: ignore[arg-type]


def test_engine_that_did_not_say_the_size_is_asked_again() -> None:
    engine, disk = Engine(v=90 * MIB), Disk(1000 * MIB)
    guard = disk.guard(engine)
    engine.sizes["v"], engine.walk_fails = 200 * MIB, True
    assert not disk.after(guard, 700 * MIB)
    engine.walk_fails = False
    assert disk.after(guard, 700 * MIB)
