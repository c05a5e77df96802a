"""Several devices side by side in one run, without any of them: servers live in memory."""

import itertools
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import EngineError
from runner.core.model import Gpu, Past, Plan
from runner.core.model.devices import LEAVE
from runner.core.progress import Progress
from runner.gpu.device import DeviceSession
from runner.gpu.locality import Locality, Near
from runner.measure.references import References
from runner.plan.assignment import assign, split_multi_gpu
from runner.plan.document import plan_document, read_plan
from runner.plan.pairs import add_controls
from runner.session.execution import assignment
from runner.session.execution.assignment import Assignment
from runner.session.execution.device_worker import DeviceWorker, RunContext
from runner.session.execution.header import read_header, start_run
from runner.session.execution.recorder import RunRecorder
from runner.session.execution.resume import past
from runner.session.execution.side_by_side import measure_parts
from runner.session.preparation import RunOrigin, RunSettings
from runner.store.run import Run
from tests.support.fake_servers import FakeBackend, Known
from tests.unit.plan import test_assignment
from tests.unit.session.execution.test_resume import made

GPUS = (test_assignment.FIRST, test_assignment.SECOND)
READY = {name: made(name, "1") for name in "ab"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    settings = RunSettings(file=tmp_path / "matrix.yaml", reports=tmp_path, cache=tmp_path / "cache")
    return start_run(test_assignment.plan(), settings, RunOrigin(), GPUS, READY)


def test_a_run_says_which_metrics_its_rounds_are_for(run: Run, tmp_path: Path) -> None:
    settings = RunSettings(file=run.path, reports=tmp_path / "of-memory", cache=tmp_path, metrics=("memory", "size"))
    of_memory = start_run(test_assignment.plan(), settings, RunOrigin(), GPUS, READY)
    assert (read_header(run).metrics, read_header(of_memory).metrics) == (("time",), ("memory", "size"))


def measured(
    run: Run,
    backend: FakeBackend,
    plan: Plan,
    references: Callable[..., References] = Known,
    gpus: Sequence[Gpu] = GPUS,
    near: Near | None = None,
    **more: Any,
) -> list[str]:
    """Measure a plan on GPUs whose driver is never asked; return the lines of its progress.

    With ``near``, servers keep to the CPUs that it returns; ``more`` are further settings of the run.
    """
    lines: list[str] = []
    progress = Progress(lines.append)
    cache, controls = run.path / "cache", len(gpus) > 1  # one device alone would start a canary
    settings = RunSettings(
        file=run.path, reports=run.path, cache=cache, controls=controls, pin=near is not None, **more
    )
    single, together = split_multi_gpu(plan)
    sessions = tuple(DeviceSession(gpu, LEAVE, progress.note) for gpu in gpus)
    parts = assign(single, len(sessions))
    assignment = Assignment(
        plan=plan,
        by_device=tuple(zip(parts, sessions, strict=False)),
        together=together if together.blocks else None,
        sessions=sessions,
    )
    recorder = RunRecorder(plan, run, progress)
    context = RunContext(
        backend=backend,
        ready=add_controls(plan, READY),
        recorder=recorder,
        settings=settings,
        make_references=references,
        near=near or unasked,
    )
    measure_parts(assignment, context)
    return lines


def unasked(uuid: str) -> Locality:
    """Fail: without a pin nobody asks which CPUs are near a GPU."""
    pytest.fail(f"asked for the CPUs near {uuid}")


def places(run: Run) -> dict[str, set[str]]:
    """Return the devices that measured each case."""
    devices_by_case: dict[str, set[str]] = {}
    for record in run.records():
        devices_by_case.setdefault(record.cell.case, set()).add(str(record.facts["device_uuid"]))
    return devices_by_case


def journal(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.path / "journal.jsonl").read_text().splitlines()]


def test_a_case_stays_on_its_device_and_all_are_measured(run: Run) -> None:
    backend = FakeBackend()
    measured(run, backend, test_assignment.plan())
    assert places(run) == {
        **{name: {"GPU-1"} for name in ("one", "three")},
        **{name: {"GPU-2"} for name in ("two", "four", "five")},
    }
    assert Counter(record.cell.case for record in run.records()) == dict.fromkeys(test_assignment.COSTS, 6)
    assert {server.device for server in backend.opened} == {"GPU-1", "GPU-2"}
    assert all(server.closed == 1 for server in backend.opened)
    numbers = [record.facts["server"] for record in run.records()]
    on = {record.facts["server"]: record.facts["device_uuid"] for record in run.records()}
    assert all(on[record.facts["server"]] == record.facts["device_uuid"] for record in run.records())
    assert len(set(numbers)) == len(backend.opened)


def test_a_record_has_the_clocks_of_its_measurement_although_it_is_written_later(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurements, lapsed = itertools.count(1), set[str]()

    def observed(_: DeviceSession, reply: Mapping[str, Any]) -> dict[str, Any]:
        if not reply:  # before a measurement
            return {}
        number = next(measurements)
        if number == 2:  # its guardian dies while the last cell of the first case is measured
            lapsed.add("guardian")
        return {"clock_mhz": [number]}

    held = {"clocks": "locked", "pinned": "SM 1410 MHz"}
    monkeypatch.setattr(DeviceSession, "observed_facts", observed)
    monkeypatch.setattr(DeviceSession, "facts", lambda _: {"clocks": "none"} if lapsed else held)
    monkeypatch.setattr(DeviceSession, "check", lambda _: lapsed.clear())
    plan = test_assignment.plan()
    blocks = tuple(replace(block, device="cuda") for block in plan.blocks)
    measured(run, FakeBackend(), replace(plan, blocks=blocks), gpus=GPUS[:1])
    facts = {record.facts["clock_mhz"][0]: record.facts for record in run.records()}
    assert [number for number, each in facts.items() if each["clocks"] == "none"] == [2]
    assert [number for number, each in facts.items() if "pinned" not in each] == [2]


def test_a_case_of_several_gpus_has_all_of_them_before_the_others_begin(run: Run) -> None:
    backend = FakeBackend()
    measured(run, backend, test_assignment.with_wide(test_assignment.plan()))
    devices_by_case = places(run)
    assert devices_by_case.pop("two") == {"GPU-1,GPU-2"}
    assert (sorted(devices_by_case), set.union(*devices_by_case.values())) == (
        ["five", "four", "one", "three"],
        {"GPU-1", "GPU-2"},
    )
    order = [server.device for server in backend.opened]
    together = order.count("GPU-1,GPU-2")
    assert order[:together] == ["GPU-1,GPU-2"] * together
    assert all(server.closed == 1 for server in backend.opened)
    assert [record.cell.case for record in run.records()][:6] == ["two"] * 6
    assert len(list(run.records())) == 30


def test_the_budget_includes_cases_of_several_gpus_and_cooling_starts_before_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, DeviceWorker] = {}
    work = DeviceWorker.work

    def noted(worker: DeviceWorker, context: RunContext) -> None:
        assert worker.clocks.gpu
        seen[worker.clocks.gpu.uuid] = worker
        work(worker, context)

    monkeypatch.setattr(DeviceWorker, "work", noted)
    monkeypatch.setattr(DeviceSession, "celsius", lambda clocks: {"GPU-1": 40, "GPU-2": 43}.get(clocks.gpu.uuid))
    measured(run, FakeBackend(), test_assignment.with_wide(test_assignment.plan()))
    first = seen.pop("GPU-1,GPU-2")
    assert (first.seconds_before, first.idle_celsius) == (0.0, None)
    assert {uuid: worker.idle_celsius for uuid, worker in seen.items()} == {"GPU-1": 40, "GPU-2": 43}
    of_several = [line["spent"] for line in journal(run) if line.get("cell", line.get("case", "")).find("/two") > 0]
    assert all(worker.seconds_before >= max(of_several) - 0.001 > 0 for worker in seen.values())
    elapsed = [line["spent"] for line in journal(run) if "spent" in line and line["event"] != "times"]
    others = elapsed[len(of_several) + 1 :]
    assert min(others) >= max(of_several)


def test_a_run_goes_on_with_a_case_of_several_gpus(run: Run) -> None:
    planned = test_assignment.with_wide(test_assignment.plan())
    backend = FakeBackend()
    backend.does("a/x", "ok", "ok", "loses-its-engine")
    with pytest.raises(EngineError):
        measured(run, backend, planned)
    behind = past(run, run.journal())
    assert set(behind.groups) == {"GPU-1,GPU-2"}
    measured(run, FakeBackend(), replace(planned, past=behind))
    assert places(run)["two"] == {"GPU-1,GPU-2"}
    assert Counter(record.cell.case for record in run.records())["two"] == 6


def test_the_journal_names_the_devices_and_has_no_canary(run: Run) -> None:
    measured(run, FakeBackend(), test_assignment.plan())
    lines = journal(run)
    assert (lines[0]["device"], lines[0]["device_name"]) == ("GPU-1,GPU-2", "2 x H200")
    assert run.journal().groups == {"GPU-1": (("a", "b"),), "GPU-2": (("a", "b"),)}
    assert not [line for line in lines if line["event"] == "canary"]  # it would tell of the neighbour


def test_devices_are_at_work_at_the_same_time(run: Run) -> None:
    backend = FakeBackend()
    backend.together = threading.Barrier(2)  # a server says hello when that of the other device is asked, too
    measured(run, backend, test_assignment.plan())
    assert len(places(run)) == 5


def test_an_engine_that_is_lost_on_one_device_ends_all_and_what_was_measured_is_kept(run: Run) -> None:
    backend = FakeBackend()
    backend.does("a/x", "ok", "ok", "ok", "loses-its-engine")
    with pytest.raises(EngineError):
        measured(run, backend, test_assignment.plan())
    before = journal(run)
    assert all(server.closed for server in backend.opened)
    assert {record.status for record in run.records()} == {"ok"}
    for thread in threading.enumerate():
        if thread.name == "aside":
            thread.join(10)
    assert journal(run) == before  # whoever was interrupted left nothing


def test_a_run_goes_on_where_each_device_was(run: Run) -> None:
    backend = FakeBackend()
    backend.does("a/x", *["ok"] * 8, "loses-its-engine")
    with pytest.raises(EngineError):
        measured(run, backend, test_assignment.plan())
    then = past(run, run.journal())
    assert then.finished
    again = FakeBackend()
    measured(run, again, test_assignment.plan(then))
    rounds = [(line["case"], line["round"]) for line in journal(run) if line["event"] == "round"]
    assert len(rounds) == len(set(rounds)) == 15
    assert all(len(devices) == 1 for devices in places(run).values())
    first = {f"{server.environment}" for server in again.opened}
    assert first == {"a", "b"}
    counts = Counter((record.cell, record.round) for record in run.records())
    assert set(counts.values()) == {1}
    assert len(counts) == 30


def test_a_plan_that_was_read_back_is_dealt_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {f"rnn-step/{name}": 1 for name in test_assignment.COSTS}
    monkeypatch.setattr("runner.plan.estimate.process_bytes", sizes.get)

    def dealt(plan: Plan) -> list[list[str]]:
        return [[block.case_id for block in part.blocks] for part in assign(plan, 2)]

    costs = {"one": 20.004, "two": 20.0, "three": 10.001, "four": 10.004, "five": 10.0}
    close = test_assignment.plan()
    cells = tuple(replace(planned_cell, seconds=costs[planned_cell.cell.case]) for planned_cell in close.cells)
    close = replace(close, cells=cells)
    document, cases = plan_document(close), {block.case_id: block.spec for block in close.blocks}
    again = read_plan(json.loads(json.dumps(document)), cases, close.measurement, Past())
    assert dealt(again) == dealt(close)


def test_references_are_computed_before_anything_is_timed(run: Run) -> None:
    backend, order = FakeBackend(), list[str]()

    class Missing(Known):
        def known(self, case: Mapping[str, Any]) -> bool:
            return case["name"] in order

        def get(self, case: Mapping[str, Any]) -> dict[str, Any]:
            if case["name"] not in order:
                assert not backend.opened
                order.append(case["name"])
            return super().get(case)

    measured(run, backend, test_assignment.plan(), references=Missing)
    assert sorted(order) == sorted(test_assignment.COSTS)


def affinities(run: Run) -> dict[str, object]:
    """Return GPU -> how its servers' CPUs relate to it, as the records have it."""
    return {str(record.facts["device_uuid"]): record.facts["gpu_affinity"] for record in run.records()}


def test_servers_keep_to_the_cpus_near_their_gpu(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("runner.core.machine.physical_cores", len)
    near = {"GPU-1": Locality(frozenset(range(4)), 0), "GPU-2": Locality(frozenset(range(4, 8)), 1)}
    backend = FakeBackend()
    measured(run, backend, test_assignment.plan(), near=near.__getitem__)
    requested = {(server.device, tuple(server.requests[0]["cpus"])) for server in backend.opened}
    assert requested == {("GPU-1", (0, 1, 2, 3)), ("GPU-2", (4, 5, 6, 7))}
    assert affinities(run) == {"GPU-1": "near the GPU, NUMA node 0", "GPU-2": "near the GPU, NUMA node 1"}
    assert all("gpu_affinity" not in facts for facts in run.environments().values())


def test_one_gpu_whose_cpus_are_unknown_is_not_pinned_and_the_records_say_so(run: Run) -> None:
    backend = FakeBackend()
    measured(run, backend, test_assignment.plan(), gpus=GPUS[:1], near=lambda _: Locality())
    assert {tuple(server.requests[0]["cpus"]) for server in backend.opened} == {()}
    assert affinities(run) == {"GPU-1": assignment.UNKNOWN}


def test_more_threads_than_cores_near_the_gpu_pin_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("runner.core.machine.physical_cores", len)
    near = Locality(frozenset({0, 1}), 0)

    def chosen(threads: int, *, pin: bool = True) -> assignment.ServerCpus:
        (cpus,) = assignment.on_gpus(GPUS[:1], threads, pin=pin, near=lambda _: near)
        return cpus

    assert chosen(2) == ((0, 1), "near the GPU, NUMA node 0")
    assert chosen(3) == ((), assignment.TOO_FEW)
    assert chosen(2, pin=False) == ((), assignment.UNPINNED)


def test_records_without_a_pin_say_so(run: Run) -> None:
    measured(run, FakeBackend(), test_assignment.plan())
    assert set(affinities(run).values()) == {assignment.UNPINNED}


def test_an_import_that_opens_a_gpu_is_announced_and_recorded(run: Run) -> None:
    backend = FakeBackend()
    backend.opening = {"a"}
    lines = measured(run, backend, test_assignment.plan(), gpus=GPUS[:1])
    assert [line for line in lines if "each child imports the framework instead" in line]
    opened = {(record.cell.environment, record.facts.get("opened_by_import")) for record in run.records()}
    assert opened == {("a", "/dev/x"), ("b", None)}
