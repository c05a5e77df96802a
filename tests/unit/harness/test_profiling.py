"""Profiles in the harness: which steps they are of, what fails, and self times from single events."""

import itertools
from types import SimpleNamespace
from typing import Any, Self

import pytest

from runner.harness import adapters, profiling
from runner.harness.adapters.torch import profile as torch_profile
from runner.harness.profile_rows import NoProfile, Row, nested

REQUEST = {"framework": "torch", "device": "cpu", "seconds": 2.0}


class Clock:
    """A clock that each step advances."""

    def __init__(self, step: float) -> None:
        """Start at 0."""
        self.now, self.step, self.steps = 0.0, step, 0

    def call(self) -> None:
        """Do a step."""
        self.now += self.step
        self.steps += 1


def profiled(monkeypatch: pytest.MonkeyPatch, step: float, table: Any) -> tuple[dict[str, Any], Clock]:
    """Return the profile of a step that takes some seconds, by a profiler, and the clock at its end."""
    clock = Clock(step)
    program = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr("runner.harness.profiling.time.perf_counter", lambda: clock.now)
    monkeypatch.setattr(adapters, "find", lambda _: SimpleNamespace(profile=SimpleNamespace(table=table)))
    return profiling.facts(program, clock.call, REQUEST), clock


def one_row(run: Any, device: str) -> tuple[str, list[Row]]:
    run()
    return "a profiler", [Row("mm", 40, 1.0, 0.0, 2.0)]


def test_a_profile_is_of_as_many_steps_as_the_time_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    profile, clock = profiled(monkeypatch, 0.25, one_row)
    assert (profile["reason"], profile["profiler"], profile["steps"]) == ("", "a profiler", 8)
    assert profile["rows"] == [
        {"name": "mm", "calls": 5.0, "host_seconds": 0.125, "device_seconds": 0.0, "total_seconds": 0.25}
    ]
    assert (profile["step_seconds"], profile["plain_step_seconds"]) == (0.25, 0.25)
    assert clock.steps == profiling.WARM_UP_CALLS + 2 + 1 + 8  # plain steps, the first with the profiler, the others


@pytest.mark.parametrize(("step", "steps"), [(1e-4, profiling.MOST_STEPS), (5.0, profiling.FEWEST_STEPS), (11.0, 1)])
def test_a_profile_has_few_steps_and_one_where_they_are_long(
    monkeypatch: pytest.MonkeyPatch, step: float, steps: int
) -> None:
    assert profiled(monkeypatch, step, one_row)[0]["steps"] == steps


def test_a_profiler_that_fails_or_sees_nothing_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run: Any, device: str) -> Any:
        raise RuntimeError("CUPTI_ERROR\nmore")

    def refuses(run: Any, device: str) -> Any:
        raise NoProfile("this release has no profiler")

    def empty(run: Any, device: str) -> Any:
        run()
        return "p", []

    reasons = [profiled(monkeypatch, 0.1, table)[0] for table in (broken, refuses, empty)]
    assert reasons == [
        {"reason": "the profiler failed: RuntimeError: CUPTI_ERROR"},
        {"reason": "this release has no profiler"},
        {"reason": "the table of p is empty"},
    ]


def test_a_framework_without_a_profiler_says_so() -> None:
    program = SimpleNamespace(synchronize=lambda: None)
    facts = profiling.facts(program, lambda: None, {**REQUEST, "framework": "numpy"})
    assert facts == {"reason": "numpy has no profiler"}


def test_a_table_keeps_the_largest_rows_and_the_sum_of_the_others() -> None:
    rows = [Row(f"op{number}", 2, float(number), 1.0) for number in range(profiling.MOST_ROWS + 2)]
    table = profiling.table([*rows, Row("op1", 2, 0.5, 0.0)], steps=2)
    assert [row["name"] for row in table["rows"][:2]] == ["op201", "op200"]
    assert len(table["rows"]) == profiling.MOST_ROWS
    assert table["left_out"] == {"rows": 2, "host_seconds": 0.75, "device_seconds": 1.0}


def test_self_time_leaves_out_the_events_within_an_event_of_the_same_thread() -> None:
    events = [
        (1, "lstm", 0.0, 10.0),
        (1, "mm", 1.0, 4.0),
        (1, "mm", 4.0, 6.0),
        (1, "copy", 2.0, 3.0),
        (2, "mm", 5.0, 9.0),
        (1, "lstm", 10.0, 11.0),
    ]
    rows = {row.name: (row.calls, row.host, row.total) for row in nested(events)}
    assert rows == {"lstm": (2, 6.0, 11.0), "mm": (3, 8.0, 9.0), "copy": (1, 1.0, 1.0)}


def test_total_time_counts_an_operator_that_calls_itself_once() -> None:
    rows = nested([(1, "add", 0.0, 4.0), (1, "add", 1.0, 3.0)])
    assert [(row.calls, row.host, row.total) for row in rows] == [(2, 4.0, 4.0)]


def mean(key: str, device_type: str, host: float, device: float) -> SimpleNamespace:
    """Return an average as PyTorch has it, in microseconds."""
    names = {"key": key, "count": 2, "device_type": f"DeviceType.{device_type}", "cpu_time_total": host + 1}
    return SimpleNamespace(**names, self_cpu_time_total=host, self_device_time_total=device)


class Profiler:
    """A profiler of PyTorch that has seen some operators."""

    def __init__(self, *means: SimpleNamespace, events: Any = ()) -> None:
        """Take what the table has."""
        self.means, self.function_events = means, events

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def key_averages(self) -> list[SimpleNamespace]:
        """Return the table."""
        return list(self.means)


def rows_of(profiler: Profiler) -> dict[str, tuple[float, float]]:
    """Return name -> microseconds on the host and on the device."""
    rows = torch_profile.averages(profiler, lambda: None)
    return {row.name: (round(row.host * 1e6, 6), round(row.device * 1e6, 6)) for row in rows}


def test_kernels_are_counted_for_the_operators_that_start_them() -> None:
    profiler = Profiler(mean("aten::mm", "CPU", 5.0, 90.0), mean("sgemm", "CUDA", 0.0, 92.0))
    assert rows_of(profiler) == {"aten::mm": (5.0, 90.0)}


def test_kernels_that_no_operator_starts_have_rows() -> None:
    profiler = Profiler(mean("cudaGraphLaunch", "CPU", 5.0, 0.0), mean("sgemm", "CUDA", 0.0, 92.0))
    assert rows_of(profiler) == {"cudaGraphLaunch": (5.0, 0.0), "sgemm": (0.0, 92.0)}


def test_early_tables_get_self_times_from_their_events() -> None:
    kernel_starts = itertools.count(100)

    def event(name: str, start: float, end: float, on_device: float) -> SimpleNamespace:
        begin = next(kernel_starts)
        kernel = SimpleNamespace(interval=SimpleNamespace(start=begin, end=begin + on_device))
        interval = SimpleNamespace(start=start, end=end)
        return SimpleNamespace(name=name, thread=1, cpu_interval=interval, kernels=[kernel])

    early = SimpleNamespace(key="lstm", count=1, cpu_time_total=10.0, cuda_time_total=0.0)
    events = [event("lstm", 0.0, 10.0, 30.0), event("mm", 2.0, 5.0, 20.0)]
    assert rows_of(Profiler(early, events=events)) == {"lstm": (7.0, 10.0), "mm": (3.0, 20.0)}
