"""Cases dealt out between GPUs, and GPUs that may share a run."""

from dataclasses import replace

import pytest

from runner.core.errors import GpuError, UsageError
from runner.core.model import Gpu, Measurement, Past, Plan, PlannedCell
from runner.gpu.selection import alike, pick_devices
from runner.plan.assignment import assign, split_multi_gpu
from runner.plan.limits import defer_over_budget
from tests.support.fake_servers import block, cells

FIRST = Gpu(uuid="GPU-1", name="H200", capability=(9, 0), driver="580.65", memory=141 << 30)
SECOND = replace(FIRST, uuid="GPU-2", memory=FIRST.memory - (1 << 20))
OTHER = replace(FIRST, uuid="GPU-3", name="A100", capability=(8, 0))
COSTS = {"one": 50.0, "two": 30.0, "three": 20.0, "four": 20.0, "five": 1.0}


def plan(past: Past = Past()) -> Plan:  # noqa: B008  frozen
    blocks = tuple(block(*cells("a/x", "b/x", case=name)) for name in COSTS)
    planned = tuple(
        PlannedCell(cell=cell, device="cuda", seconds=COSTS[cell.case]) for block in blocks for cell in block.cells
    )
    return Plan(
        device="cuda",
        backend="fake",
        measurement=Measurement(),
        cells=planned,
        blocks=blocks,
        frameworks={"a": "torch", "b": "torch"},
        past=past,
    )


def test_each_case_is_dealt_to_one_device_the_longest_first() -> None:
    parts = assign(plan(), 2)
    assert [[entry.spec["name"] for entry in part.blocks] for part in parts] == [
        ["one", "three"],
        ["two", "four", "five"],
    ]
    assert [{entry.cell.case for entry in part.cells} for part in parts] == [
        {"one", "three"},
        {"two", "four", "five"},
    ]
    assert parts == assign(plan(), 2)


def test_cases_that_want_several_gpus_at_once_are_dealt_to_nobody() -> None:
    narrow, none = split_multi_gpu(plan())
    assert (narrow, none.blocks, none.cells) == (plan(), (), ())
    rest, wide = split_multi_gpu(with_wide(plan()))
    assert [block.spec["name"] for block in wide.blocks] == ["two"]
    assert {entry.cell.case for entry in wide.cells} == {"two"}
    assert [block.spec["name"] for block in rest.blocks] == ["one", "three", "four", "five"]
    on_cpu = replace(with_wide(plan()), device="cpu")
    assert split_multi_gpu(on_cpu)[0] == on_cpu


def with_wide(planned: Plan) -> Plan:
    """Return the plan with a case that two GPUs compute together."""
    more = {"two": {"chips": 2}}
    blocks = tuple(replace(block, spec={**block.spec, **more.get(block.spec["name"], {})}) for block in planned.blocks)
    return replace(planned, blocks=blocks)


def test_fewer_cases_than_devices_make_as_many_parts_as_cases() -> None:
    assert [len(part.blocks) for part in assign(plan(), 9)] == [1] * 5
    assert assign(plan(), 1) == (plan(),)
    alone = replace(plan(), blocks=plan().blocks[:1])
    assert assign(alone, 4) == (alone,)


def test_each_part_has_what_is_behind_it_and_no_other() -> None:
    failed = frozenset({(plan().blocks[0].cells[0], "oom"), (plan().blocks[1].cells[0], "nan")})
    past = Past(
        finished=frozenset({("rnn-step/one", 1), ("rnn-step/two", 1), ("rnn-step/two", 2)}),
        attempts={("rnn-step/one", 2): 1, ("rnn-step/two", 3): 1},
        failed=failed,
        servers={"a": 4},
        groups={"GPU-1": (("a", "b"),)},
        elapsed=3.0,
    )
    first, second = (part.past for part in assign(plan(past), 2))
    assert first.finished == {("rnn-step/one", 1)}
    assert [part.last_started_round for part in assign(plan(past), 2)] == [2, 3]
    assert {kind for _, kind in first.failed} == {"oom"}
    assert {kind for _, kind in second.failed} == {"nan"}
    assert (first.servers, first.groups, first.elapsed) == (past.servers, past.groups, 3.0)


@pytest.mark.parametrize(
    ("requested", "names"),
    [
        (None, ["GPU-1"]),
        ("cuda", ["GPU-1"]),
        ("cuda:1", ["GPU-2"]),
        ("cuda:all", ["GPU-1", "GPU-2"]),
        ("cuda:0,1", ["GPU-1", "GPU-2"]),
        ("cuda:1,cuda:0", ["GPU-1", "GPU-2"]),
        ("GPU-2,GPU-1", ["GPU-1", "GPU-2"]),
        ("cuda:0,GPU-1", ["GPU-1"]),
    ],
)
def test_devices_as_they_are_asked_for(requested: str | None, names: list[str]) -> None:
    device, gpus = pick_devices(requested, (FIRST, SECOND), "this machine")
    assert (device, [gpu.uuid for gpu in gpus]) == ("cuda", names)


@pytest.mark.parametrize("requested", ["cuda:all", "cuda:0,1", "GPU-1,GPU-2"])
def test_another_numbering_gives_the_same_gpus_in_the_same_order(requested: str) -> None:
    assert pick_devices(requested, (SECOND, FIRST), "this machine")[1] == (FIRST, SECOND)


@pytest.mark.parametrize("requested", ["cuda:0,5", "cuda:0,cpu", "cpu,cuda:0", "cuda:0,", "cuda:all,cuda:0", "1"])
def test_a_device_among_several_that_is_not_there(requested: str) -> None:
    with pytest.raises(GpuError, match="there is no device"):
        pick_devices(requested, (FIRST, SECOND), "this machine")


def test_all_of_no_gpu_is_an_error() -> None:
    with pytest.raises(GpuError, match="this machine shows no GPU at all"):
        pick_devices("cuda:all", (), "this machine")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (OTHER, "H200 and A100 cannot share a run: they are not of one kind"),
        (replace(SECOND, driver="570.1"), "they are not of one kind"),
        (replace(SECOND, memory=SECOND.memory // 2), "they have not as much memory"),
        (replace(SECOND, uuid="MIG-1"), "slices of a board share its power and its clocks"),
    ],
)
def test_gpus_that_are_unlike_share_no_run(other: Gpu, why: str) -> None:
    assert alike((FIRST, SECOND)) == (FIRST, SECOND)
    with pytest.raises(UsageError, match=why):
        alike((FIRST, other))


def test_a_budget_is_time_on_each_gpu_and_no_case_is_split() -> None:
    measurement = Measurement(budget=100.0)
    kept = [entry.cell.case for entry in defer_over_budget(plan().cells, measurement, 2) if not entry.deferred]
    assert list(dict.fromkeys(kept)) == ["one", "two", "three"]
    alone = defer_over_budget(plan().cells, Measurement(budget=90.0), 8)
    assert {entry.skip for entry in alone} == {None}  # an estimate skips nothing
    assert {entry.cell.case for entry in alone if entry.deferred} == {"one"}  # 100 s on whichever
    reasons = {entry.deferred for entry in alone if entry.deferred}
    cost, rest = "would take about 1 min 40 s by an estimate", "1 min 30 s of the budget of 1 min 30 s remain"
    assert reasons == {f"3 rounds of rnn-step/one {cost}; {rest}"}


def test_a_case_of_all_gpus_takes_from_the_budget_of_each() -> None:
    (cell,) = cells("a/x")
    on_all, single = "deepbench-allreduce", "rnn-step"
    cases = [
        (on_all, "train-001-100000-c2"),
        (single, "lstm-b32-h128"),
        (single, "lstm-b128-h128"),
        (on_all, "train-002-3097600-c2"),
    ]
    planned_cells = [
        PlannedCell(cell=replace(cell, workload=work, case=case), device="cuda", seconds=60.0) for work, case in cases
    ]
    result = defer_over_budget(tuple(planned_cells), Measurement(budget=125.0), 2)
    assert [bool(planned.deferred) for planned in result] == [False, False, False, True]


def test_the_estimate_has_the_cases_of_all_gpus_whole() -> None:
    shared = replace(plan(), devices=2)
    assert shared.seconds == sum(COSTS.values())  # two cells a case, on two GPUs
    longest = 2 * COSTS["one"]  # of the others
    assert with_wide(shared).seconds == 2 * COSTS["two"] + longest


def test_the_estimate_is_that_of_the_gpu_with_most_to_do() -> None:
    assert plan().seconds == 242.0
    assert replace(plan(), devices=2).seconds == 121.0
    assert replace(plan(), devices=9).seconds == 100.0
