"""GPUs that compute a case together: what is said of their clocks, and how PyTorch's processes find them."""

import ctypes
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from runner.core.errors import GpuError, Problem
from runner.core.model.devices import LEAVE
from runner.gpu.device import DeviceGroup, DeviceSession
from runner.harness.adapters.torch import allreduce, compat
from runner.harness.cases import deepbench_allreduce
from tests.unit.plan.test_assignment import FIRST, SECOND


class _FakeSession(DeviceSession):
    """A GPU's clocks that say what a test wants."""

    def __init__(self, name: str, read: dict[str, Any], celsius: int | None, how: str = "pinned") -> None:
        super().__init__(replace(FIRST, uuid=name), LEAVE, print)
        self.read, self.degrees, self.how, self.checked = read, celsius, how, 0

    def facts(self) -> dict[str, Any]:
        return {"clocks": self.how, **({"pinned": "SM base"} if self.how == "pinned" else {})}

    def observed_facts(self, reply: Any) -> dict[str, Any]:
        return {**self.read, "of": reply["step"]}

    def celsius(self) -> int | None:
        return self.degrees

    def check(self) -> None:
        self.checked += 1
        if self.how == "gone":
            raise GpuError(Problem("it is lost"), kind="lost")


def test_the_first_that_was_held_back_is_told_of_and_no_energy_of_one() -> None:
    first = _FakeSession("GPU-1", {"clock_mhz": [1, 1, 1], "joules_per_step": 3.0, "idle_watts": 60.0}, 40)
    second = _FakeSession("GPU-2", {"clock_mhz": [2, 2, 2], "throttled": 1, "held_back": ["a power limit"]}, 71)
    hot = _FakeSession("GPU-3", {"clock_mhz": [3, 3, 3], "throttled": 1, "held_back": ["heat"]}, 90)
    group = DeviceGroup([first, second])
    assert group.gpu
    assert (group.gpu.uuid, group.gpu.name) == ("GPU-1,GPU-2", "H200")
    seen = {"clock_mhz": [2, 2, 2], "throttled": 1, "of": 7}
    assert group.observed_facts({"step": 7}) == {**seen, "held_back": ["a power limit"]}
    assert DeviceGroup([second, hot]).observed_facts({"step": 7}) == {**seen, "held_back": ["a power limit", "heat"]}
    assert DeviceGroup([first, first]).observed_facts({"step": 7}) == {"clock_mhz": [1, 1, 1], "of": 7}
    assert group.celsius() == 71
    assert DeviceGroup([_FakeSession("GPU-1", {}, None), _FakeSession("GPU-2", {}, None)]).celsius() is None


def test_one_that_is_not_held_or_is_lost_is_seen() -> None:
    first, second, lost = (
        _FakeSession("GPU-1", {}, 1),
        _FakeSession("GPU-2", {}, 1, "none"),
        _FakeSession("GPU-3", {}, 1, "gone"),
    )
    assert DeviceGroup([first, second]).facts() == DeviceGroup([second, first]).facts() == {"clocks": "none"}
    assert DeviceGroup([second, first, first]).facts() == {"clocks": "none"}
    assert DeviceGroup([first, first]).facts() == {"clocks": "pinned", "pinned": "SM base"}
    DeviceGroup([first, second]).check()
    assert (first.checked, second.checked) == (1, 1)
    with pytest.raises(GpuError):
        DeviceGroup([first, lost]).check()
    with DeviceGroup([first, second]).hold("run"):
        assert first.lease is None


class _FakeTorch:
    """What a process of a sum asks of PyTorch, in order."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.distributed = self

    @property
    def cuda(self) -> "_FakeTorch":
        return self

    def __call__(self) -> "_FakeTorch":
        self.requests.append(("cuda",))
        return self

    def __getattr__(self, name: str) -> Any:
        def ask(*words: Any, **more: Any) -> "_FakeTorch":
            self.requests.append((name, *words, *more.values()))
            return self

        return ask


@pytest.mark.parametrize(("device", "group"), [("cuda", "nccl"), ("cpu", "gloo")])
def test_each_process_of_a_sum_has_the_gpu_of_its_number(
    device: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = _FakeTorch()
    monkeypatch.setattr(compat, "torch", fake)
    for name in allreduce.INTERFACES:
        monkeypatch.setenv(name, "eth0")
    member: Any = allreduce.Member
    member({"chips": 4}, 3, "/folder", "numbers", device).reduce()
    placed = [("set_device", 3), ("cuda",)] if device == "cuda" else []
    joined = ("init_process_group", group, "file:///folder/group", 3, 4)
    again = [("copy_", fake), ("all_reduce", fake)]
    assert fake.requests == [("set_num_threads", 1), ("from_numpy", "numbers"), *placed, ("clone",), joined, *again]
    assert {os.environ[name] for name in allreduce.INTERFACES} == {"lo"}


@pytest.mark.parametrize(
    ("device", "error", "killed"),
    [
        ("cpu", RuntimeError("the connection is closed"), False),
        ("cpu", MemoryError(), True),
        ("cuda", RuntimeError("CUDA error: an illegal memory access"), True),
    ],
)
def test_a_process_that_fails_ends_the_sum_unless_it_was_over(
    device: str,
    error: Exception,
    killed: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[Any] = []

    class Member:
        def __init__(self, *_: Any) -> None:
            self.sums = 0

        def reduce(self) -> None:
            self.sums += 1
            if self.sums == 3:
                raise error

        def synchronize(self) -> None:
            pass

    monkeypatch.setattr(allreduce, "Member", Member)
    monkeypatch.setattr(deepbench_allreduce, "array_of_rank", lambda *_: None)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(prctl=lambda *_: 0))
    monkeypatch.setattr(os, "kill", lambda pid, _: ends.append(pid))
    monkeypatch.setattr(os, "_exit", lambda code: ends.append(f"exit {code}"))
    run_member: Any = allreduce.run_member
    run_member({"chips": 2}, 1, "/folder", device)
    assert ends == [*([os.getppid()] if killed else []), "exit 0"]


def test_two_gpus_of_one_kind_are_one_device() -> None:
    group = DeviceGroup([DeviceSession(gpu, LEAVE, print) for gpu in (FIRST, SECOND)]).gpu
    assert group == replace(FIRST, uuid="GPU-1,GPU-2")
