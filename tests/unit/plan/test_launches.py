"""Environments as they are started: variables, and images that several share."""

from dataclasses import replace

from runner.core.model import Block, Cell, Measurement, Past, Plan, PlannedCell, Provisioned
from runner.core.model.variant_ids import Launch
from runner.plan.document import plan_document, read_plan
from runner.plan.launches import failed_launches, with_launches
from runner.plan.pairs import add_controls, in_turns, with_twins

LAUNCHES = {
    "np@env:A=1": Launch(image="np", variables={"A": "1"}),
    "np@threads:4": Launch(image="np", threads=4),
    "own": Launch(variables={"B": "2"}),
}
NAMES = ("np", *LAUNCHES)


def plan(names: tuple[str, ...] = NAMES) -> Plan:
    cells = tuple(Cell(environment=n, implementation="i", workload="w", case="c", phase="forward") for n in names)
    return Plan(
        device="cpu",
        backend="venv",
        measurement=Measurement(threads=2),
        cells=tuple(PlannedCell(cell=cell, device="cpu") for cell in cells),
        blocks=(Block(case_id="w/c", spec={}, device="cpu", cells=cells),),
        frameworks=dict.fromkeys(names, "numpy"),
        launches={name: LAUNCHES[name] for name in names if name in LAUNCHES},
    )


def built(name: str) -> Provisioned:
    return Provisioned(environment=name, framework="numpy", handle=name, digest="d", seconds=0.0, cached=True)


def test_environments_share_an_image_and_have_their_own_variables() -> None:
    ready = with_launches(plan(), {name: built(name) for name in ("np", "own")})
    assert {name: (each.handle, each.variables) for name, each in ready.items()} == {
        "np": ("np", {}),
        "np@env:A=1": ("np", {"A": "1"}),
        "np@threads:4": ("np", {}),
        "own": ("own", {"B": "2"}),
    }
    assert all(each.environment == name for name, each in ready.items())


def test_variables_are_a_part_of_what_identifies_an_environment() -> None:
    ready = with_launches(plan(), {name: built(name) for name in ("np", "own")})
    assert ready["np"].digest == ready["np@threads:4"].digest == "d"
    assert len({each.digest for each in ready.values()}) == 3
    assert with_launches(plan(), ready) == ready


def test_an_image_that_is_not_measured_itself_is_left_out() -> None:
    assert list(with_launches(plan(("np@env:A=1",)), {"np": built("np")})) == ["np@env:A=1"]


def test_an_environment_of_an_earlier_run_keeps_its_variables() -> None:
    earlier = {"own": replace(built("own"), variables={"B": "old"})}
    assert with_launches(plan(), earlier, earlier)["own"].variables == {"B": "old"}


def test_what_cannot_be_built_fails_all_that_share_it() -> None:
    assert failed_launches(plan(), {"np": "no image"}) == dict.fromkeys(NAMES[:3], "no image")


def test_a_twin_is_started_as_what_it_repeats() -> None:
    made = with_twins(plan(("np@env:A=1", "np")))
    ready = add_controls(made, with_launches(made, {"np": built("np")}))
    assert ready["np@env:A=1@twin"].variables == {"A": "1"}
    assert made.launch_of("np@env:A=1@twin") == LAUNCHES["np@env:A=1"]


def test_threads_are_those_of_the_run_where_an_environment_has_none() -> None:
    assert [plan().threads_of(name) for name in ("np", "np@env:A=1", "np@threads:4", "np@threads:4@twin")] == [
        2,
        2,
        4,
        4,
    ]


def test_an_environment_as_it_was_has_its_thread_count() -> None:
    of_four = plan(("np@threads:4",))
    assert in_turns(of_four, of_four, "before", 3).threads_of("before") == 4


def test_starts_come_back_from_the_document_of_a_plan_and_others_add_nothing_to_it() -> None:
    document = plan_document(plan())
    assert document["launches"] == {
        "np@env:A=1": {"image": "np", "env": {"A": "1"}},
        "np@threads:4": {"image": "np", "threads": 4},
        "own": {"env": {"B": "2"}},
    }
    assert read_plan(document, {"w/c": {}}, Measurement(threads=2), Past()).launches == LAUNCHES
    assert "launches" not in plan_document(plan(("np",)))
