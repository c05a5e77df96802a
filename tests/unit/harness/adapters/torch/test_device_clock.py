"""The time of a GPU for calls, read on a stand-in for ``torch.cuda``: a host, a stream, events and graphs."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runner.harness import device_time
from runner.harness.adapters.torch import allreduce, compat, device_clock

MICRO = 1e-6
CLOCK = 2e9  # cycles per second


class _Event:
    def __init__(self, cuda: "_Cuda") -> None:
        self.cuda = cuda
        self.at = 0.0

    def record(self) -> None:
        self.at = max(self.cuda.now, self.cuda.finished)

    def query(self) -> bool:
        return self.cuda.now >= self.at

    def elapsed_time(self, end: "_Event") -> float:
        return 1e3 * (end.at - self.at)


class _Stream:
    def wait_stream(self, _stream: "_Stream") -> None: ...


class _Graph:
    """Holds the kernels of its capture; the device starts them without the host."""

    def __init__(self, cuda: "_Cuda") -> None:
        self.cuda = cuda
        self.kernels: list[float] = []

    def replay(self) -> None:
        self.cuda.start(sum(self.kernels))


class _Cuda:
    """``torch.cuda``: starting a kernel takes the host ``launch``; the device computes in order.

    Attributes:
        depth: how many kernels fit into the queue; the host waits where it is full.
    """

    def __init__(self, launch: float = 10 * MICRO, depth: int = 1000) -> None:
        self.launch, self.depth = launch, depth
        self.now = self.finished = 0.0
        self.ends: list[float] = []
        self.capturing: _Graph | None = None
        self.replays = self.slept = 0
        self.refuses_capture = False

    def start(self, seconds: float) -> None:
        if self.capturing is not None:
            self.capturing.kernels.append(seconds)
            return
        if len(self.ends) >= self.depth:
            self.now = max(self.now, self.ends[-self.depth])
        self.now += self.launch
        self.finished = max(self.finished, self.now) + seconds
        self.ends.append(self.finished)

    def kernel(self, seconds: float) -> Callable[[], None]:
        return lambda: self.start(seconds)

    def synchronize(self) -> None:
        self.now = max(self.now, self.finished)
        self.ends.clear()

    def Event(self, *, enable_timing: bool) -> _Event:  # noqa: N802
        assert enable_timing
        return _Event(self)

    def _sleep(self, cycles: int) -> None:
        self.slept += 1
        self.start(cycles / CLOCK)


class _CudaWithGraphs(_Cuda):
    """It remains on the stream of a capture that fails."""

    default = _Stream()
    current = default

    def Stream(self) -> _Stream:  # noqa: N802
        return _Stream()

    def current_stream(self) -> _Stream:
        return self.current

    def set_stream(self, stream: _Stream) -> None:
        self.current = stream

    @contextlib.contextmanager
    def stream(self, _stream: _Stream) -> Iterator[None]:
        yield

    def CUDAGraph(self) -> _Graph:  # noqa: N802
        return _Graph(self)

    @contextlib.contextmanager
    def graph(self, graph: _Graph, stream: object) -> Iterator[None]:
        assert stream is not self.current, "a capture needs a stream of its own"
        if self.refuses_capture:
            self.current = _Stream()
            raise RuntimeError("operation not permitted when stream is capturing")
        self.capturing = graph
        yield
        self.capturing = None


def read(cuda: Any, kernel: float, calls: int = 20, *, capture: bool = True) -> tuple[str, float]:
    method, seconds = device_clock.timer(cuda, cuda.kernel(kernel), calls, capture)
    return method, seconds()


@pytest.mark.parametrize("kernel", [5 * MICRO, 50 * MICRO, 5000 * MICRO])
@pytest.mark.parametrize("launch", [2 * MICRO, 40 * MICRO])
def test_events_behind_a_blocking_kernel_do_not_see_the_host(kernel: float, launch: float) -> None:
    method, seconds = read(_Cuda(launch), kernel)
    assert method == "events"
    assert seconds == pytest.approx(kernel, rel=0.01)


def test_without_the_kernel_events_include_the_host() -> None:
    """Which is what the word says."""
    cuda = _Cuda(40 * MICRO)
    seconds, blocked = device_clock.blocked_seconds(cuda, cuda.kernel(5 * MICRO), 0)
    assert seconds > 40 * MICRO
    assert not blocked


def test_releases_without_the_kernel_say_so() -> None:
    class Old:
        def __init__(self) -> None:
            self.cuda = _Cuda(40 * MICRO)

        def __getattr__(self, name: str) -> Any:
            if name == "_sleep":
                raise AttributeError(name)
            return getattr(self.__dict__["cuda"], name)

    old = Old()
    method, seconds = device_clock.timer(old, old.kernel(5 * MICRO), 20, capture=True)
    assert method == "events-unblocked"
    assert seconds() > 5 * MICRO


def test_work_that_does_not_fit_into_the_queue_is_not_called_blocked() -> None:
    method, _ = read(_Cuda(depth=15), 5 * MICRO)
    assert method == "events-unblocked"


@pytest.mark.parametrize("launch", [2 * MICRO, 40 * MICRO])
def test_a_replayed_graph_has_the_time_of_its_kernels(launch: float) -> None:
    cuda = _CudaWithGraphs(launch)
    method, seconds = read(cuda, 5 * MICRO)
    assert method == "graph"
    assert seconds == pytest.approx(5 * MICRO, rel=0.01)


def test_where_a_capture_fails_the_calls_themselves_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    cuda = _CudaWithGraphs()
    cuda.refuses_capture = True
    method, seconds = read(cuda, 5 * MICRO)
    assert method == "events"
    assert seconds == pytest.approx(5 * MICRO, rel=0.01)
    assert "stream is capturing" in capsys.readouterr().err
    assert cuda.current_stream() is cuda.default


def test_what_other_processes_take_part_in_is_not_captured() -> None:
    assert compat.OnDevice.can_be_captured
    assert not allreduce.NcclAllReduce.can_be_captured
    assert read(_CudaWithGraphs(), 5 * MICRO, capture=False)[0] == "events"


def test_a_cpu_has_no_timer() -> None:
    program: Any = compat.OnDevice()
    assert program.device_timer(lambda: None, 1) is None


class _Program:
    def __init__(self, timer: Any) -> None:
        self.timer = timer
        self.log: list[str] = []

    def peak_bytes(self) -> int:
        self.log.append("peak")
        return 4096

    def reset(self) -> None:
        self.log.append("reset")

    def device_timer(self, _call: Any, calls: int) -> Any:
        self.log.append(f"timer of {calls}")
        return self.timer


def test_facts_of_the_device_are_the_median_of_its_readings() -> None:
    readings = iter([9.0, *[2.0] * 30])
    program = _Program(("graph", lambda: next(readings)))
    assert device_time.facts(program, None, 1e9, 1024) == {
        "peak_bytes": 4096,
        "device_seconds": 2.0,
        "device_time_method": "graph",
    }
    assert program.log == ["peak", "reset", "timer of 20"]


def test_memory_is_known_where_the_clock_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> float:
        raise RuntimeError("an illegal memory access was encountered")

    assert device_time.facts(_Program(("events", fails)), None, 1.0, 1) == {"peak_bytes": 4096}
    assert "illegal memory access" in capsys.readouterr().err
    assert device_time.facts(_Program(None), None, 1.0, 1) == {"peak_bytes": 4096}
