"""The CPUs near a GPU, from the files of a kernel and the answers of a driver."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.core import machine
from runner.core.errors import GpuError
from runner.gpu import nvml, types
from runner.gpu.locality import Locality, by_kernel, cores_near, locality, near_shares
from tests.unit.harness.test_cpu import topology
from tests.unit.plan.test_assignment import FIRST, SECOND


class Device:
    """A GPU at an address, with the CPUs that its driver names."""

    def __init__(self, address: str | None, cpus: tuple[int, ...] | None) -> None:
        """Take None for what the driver does not report."""
        self.address, self.cpus = address, cpus

    def bus(self) -> str | None:
        """See nvml.Device."""
        return self.address

    def near_cpus(self) -> tuple[int, ...] | None:
        """See nvml.Device."""
        return self.cpus


def driver(monkeypatch: pytest.MonkeyPatch, devices: dict[str, Device]) -> None:
    """Have the driver know some GPUs."""

    class Driver:
        def device(self, uuid: str) -> Device:
            if uuid not in devices:
                raise GpuError("it is lost", kind="lost")
            return devices[uuid]

    @contextmanager
    def opened() -> Iterator[Driver]:
        yield Driver()

    monkeypatch.setattr(nvml, "opened", opened)


def pci(folder: Path, address: str, cpus: str, node: int) -> None:
    device = folder / address
    device.mkdir()
    (device / "local_cpulist").write_text(f"{cpus}\n")
    (device / "numa_node").write_text(f"{node}\n")


def test_the_kernel_names_the_cpus_and_the_node(tmp_path: Path) -> None:
    pci(tmp_path, "0000:3b:00.0", "0-2,8-9", 1)
    pci(tmp_path, "0000:af:00.0", "0-3", -1)
    assert by_kernel(tmp_path / "0000:3b:00.0") == Locality(frozenset({0, 1, 2, 8, 9}), 1)
    assert by_kernel(tmp_path / "0000:af:00.0") == Locality(frozenset(range(4)), None)
    assert by_kernel(tmp_path / "0000:00:00.0") == Locality()
    (tmp_path / "0000:3b:00.0" / "local_cpulist").write_text("garbage")
    assert by_kernel(tmp_path / "0000:3b:00.0") == Locality()


def test_addresses_of_the_driver_are_those_of_the_kernel() -> None:
    assert types.sysfs_address("00000000:3B:00.0") == "0000:3b:00.0"
    assert types.sysfs_address(b"00010000:AF:00.0") == "10000:af:00.0"


def test_the_driver_answers_where_the_kernel_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pci(tmp_path, "0000:3b:00.0", "0-1", 0)
    devices = {
        "listed": Device("0000:3b:00.0", (7,)),
        "unlisted": Device("0000:99:00.0", (4, 5)),
        "hidden": Device(None, (6,)),
        "unknown": Device("0000:99:00.0", None),
    }
    driver(monkeypatch, devices)
    assert locality("listed", tmp_path) == Locality(frozenset({0, 1}), 0)
    assert locality("unlisted", tmp_path) == Locality(frozenset({4, 5}))
    assert locality("hidden", tmp_path) == Locality(frozenset({6}))
    assert locality("unknown", tmp_path) == Locality()
    assert locality("lost", tmp_path) == Locality()
    assert locality("listed,unlisted", tmp_path).cpus == {0, 1, 4, 5}
    assert locality("listed,unknown", tmp_path) == Locality()


TWO_PACKAGES = [(package, core) for package in range(2) for core in range(4) for _ in range(2)]  # 16 CPUs, two per core
FIRST_NODE, SECOND_NODE = range(8), range(8, 16)


@pytest.mark.parametrize(
    ("near", "allowed", "shares"),
    [
        ([FIRST_NODE], range(16), (tuple(range(8)),)),
        ([SECOND_NODE], range(16), (tuple(range(8, 16)),)),
        ([FIRST_NODE, SECOND_NODE], range(16), (tuple(range(8)), tuple(range(8, 16)))),
        # two GPUs of a node divide its cores, and one core stays free
        ([SECOND_NODE, SECOND_NODE], range(16), ((10, 11), (12, 13))),
        ([FIRST_NODE, SECOND_NODE, FIRST_NODE], range(16), ((2, 3), tuple(range(8, 16)), (4, 5))),
        ([SECOND_NODE], range(10), ((8, 9),)),  # what a control group allows
        ([FIRST_NODE, FIRST_NODE], range(2), ((0, 1), (0, 1))),  # one core, two GPUs: they share it
        ([()], range(16), ((),)),
        ([SECOND_NODE], range(8), ((),)),  # nothing near is allowed
        ([(), SECOND_NODE], range(16), ((2, 3, 4, 5, 6, 7), (8, 9, 10, 11, 12, 13))),  # nobody knows: all cores
    ],
)
def test_gpus_divide_the_cores_near_them(
    near: list[range],
    allowed: range,
    shares: tuple[tuple[int, ...], ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "TOPOLOGY", topology(tmp_path, *TWO_PACKAGES))
    assert near_shares(near, allowed) == shares


def test_threads_of_a_server_are_at_most_the_cores_near_its_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "TOPOLOGY", topology(tmp_path, *TWO_PACKAGES))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))

    def cores(*near: Locality) -> int:
        by_uuid = dict(zip((FIRST.uuid, SECOND.uuid), near, strict=False))
        return cores_near((FIRST, SECOND)[: len(near)], by_uuid.__getitem__)

    first, second = Locality(frozenset(FIRST_NODE), 0), Locality(frozenset(SECOND_NODE), 1)
    assert cores(first) == cores(first, second) == 4
    assert cores(first, first) == 1
    assert cores(Locality()) == cores(first, Locality()) == 0
    assert machine.Capacity(cores=8, memory=1, glibc=None, near_gpu=4).each(1) == 4
    assert machine.Capacity(cores=8, memory=1, glibc=None, near_gpu=0).each(1) == 8
    assert machine.Capacity(cores=9, memory=1, glibc=None, near_gpu=3).each(2) == 3
