"""CUDA graphs of PyTorch, with a stand-in for torch.cuda that records the order of calls."""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.torch import capture, compat, graphs


class _Cuda:
    """torch.cuda, as far as a recording needs it; ``events`` are what happened, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.current = "default"

    def Stream(self) -> Any:  # noqa: N802  # the name in PyTorch
        return self._stream("side")

    def current_stream(self) -> Any:
        return self._stream(self.current)

    def _stream(self, name: str) -> Any:
        wait = lambda other: self.events.append(f"{name} waits for {other.name}")  # noqa: E731
        return SimpleNamespace(name=name, wait_stream=wait)

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before, self.current = self.current, stream.name
        yield
        self.current = before

    def CUDAGraph(self) -> Any:  # noqa: N802
        return SimpleNamespace(replay=lambda: self.events.append("replay"))

    @contextlib.contextmanager
    def graph(self, graph: Any, stream: Any) -> Iterator[None]:
        assert graph.replay
        self.events.append(f"begin on {stream.name}")
        yield
        self.events.append("end")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> _Cuda:
    stand_in = _Cuda()
    monkeypatch.setattr(compat, "torch", SimpleNamespace(cuda=stand_in))
    monkeypatch.setattr(graphs.Recording, "stream", None)
    return stand_in


def test_a_call_is_warmed_up_on_a_stream_of_its_own_and_then_recorded(cuda: _Cuda) -> None:
    def call() -> str:
        cuda.events.append(f"call on {cuda.current}")
        return "result"

    recording = graphs.Recording(call, lambda: cuda.events.append("drop gradients"))
    assert cuda.events == [
        "side waits for default",
        *["drop gradients", "call on side"] * capture.WARM_UP_CALLS,
        "default waits for side",
        "drop gradients",  # so that the recording allocates them, in memory that stays
        "begin on side",
        "call on default",  # torch.cuda.graph itself changes the stream
        "end",
    ]
    assert recording.result == "result"


def test_a_replay_makes_no_call(cuda: _Cuda) -> None:
    recording = graphs.Recording(lambda: cuda.events.append("call"), lambda: None)
    cuda.events.clear()
    recording.replay()
    recording.replay()
    assert cuda.events == ["replay", "replay"]


def test_all_recordings_share_a_stream(cuda: _Cuda) -> None:
    graphs.Recording(lambda: None, lambda: None)
    first = graphs.Recording.stream
    graphs.Recording(lambda: None, lambda: None)
    assert graphs.Recording.stream is first


class _Tensor:
    def __init__(self, value: float) -> None:
        self.value = value

    def zero_(self) -> None:
        self.value = 0.0

    def copy_(self, other: "_Tensor") -> None:
        self.value = other.value

    def detach(self) -> "_Tensor":
        return self


def test_states_are_copied_into_the_memory_that_a_graph_reads() -> None:
    hidden, cell = _Tensor(1.0), _Tensor(2.0)
    states = [(hidden, cell)]
    graphs.copy(states, [(_Tensor(3.0), _Tensor(4.0))])
    assert (hidden.value, cell.value) == (3.0, 4.0)
    assert states[0] == (hidden, cell)
    graphs.copy(states, None)
    assert (hidden.value, cell.value) == (0.0, 0.0)
