"""How clocks are to be held, what readings say, and where it is written down: values in, values out."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.backends.venv import VenvBackend
from runner.core.errors import GpuError
from runner.core.model import Measurement
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.gpu.clocks.journal import Entry, folder, folders, ledger
from runner.gpu.clocks.policy import Pin, choose, clock_policy
from runner.gpu.clocks.protocol import Order, read
from runner.gpu.device import DeviceSession
from runner.gpu.telemetry import facts
from runner.gpu.types import AMPERE, HOPPER, KEPLER, PASCAL, TURING, VOLTA, Abilities, Pair, Reading, architecture
from runner.matrix.models import GpuSettings
from runner.session.context import clocks, setup
from runner.session.execution.resume import with_header
from runner.session.options import Options
from runner.store.header import RunHeader

SM = (1980, 1500, 1200, 345)
DEFAULT = Pair(2619, 1200)
UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"


def able(generation: int = HOPPER, **more: Any) -> Abilities:
    """Return a GPU of a generation, with application clocks where ``tesla`` is given."""
    tesla = {"application": Pair(1593, 1500), "default": DEFAULT} if more.pop("tesla", False) else {}
    return Abilities(**{"name": "H", "architecture": generation, "memory": (2619, 1593), "sm": SM, **tesla, **more})


@pytest.mark.parametrize(
    ("board", "requested", "ways"),
    [
        (
            able(),
            ClockPolicy(),
            ["locked base 2619", "locked 1200 2619", "none"],
        ),  # 1200 < 0.75 * 1980
        (able(tesla=True), ClockPolicy(), ["locked base 2619", "locked 1200 2619", "application 1200 2619", "none"]),
        (able(AMPERE), ClockPolicy("max"), ["locked 1980 2619", "none"]),
        (able(), ClockPolicy(1490, 1600), ["locked 1500 1593", "none"]),
        (able(), ClockPolicy(1350, "leave"), ["locked 1200 None", "none"]),  # as near as 1500, and lower
        (able(), ClockPolicy("leave", "max"), ["locked None 2619", "none"]),
        (able(TURING), ClockPolicy(), ["locked base None", "locked 1200 None", "none"]),
        (able(VOLTA), ClockPolicy("leave", "max"), ["none"]),
        (able(PASCAL), ClockPolicy(), ["none"]),
        (able(PASCAL, tesla=True), ClockPolicy(), ["application 1200 2619", "none"]),
        (able(KEPLER, tesla=True), ClockPolicy("max"), ["application 1980 2619", "none"]),
        (able(PASCAL, tesla=True), ClockPolicy(1500, "leave"), ["application 1500 1593", "none"]),
        (able(PASCAL, tesla=True), ClockPolicy("leave", "max"), ["none"]),
        (able(sm=(), memory=()), ClockPolicy(), ["locked base None", "none"]),
        (able(sm=()), ClockPolicy(1234), ["locked 1234 2619", "none"]),
        (able(sliced=True), ClockPolicy(), ["none"]),
        (able(sliced=False), LEAVE, ["left"]),
    ],
)
def test_the_ways_to_hold_clocks(board: Abilities, requested: ClockPolicy, ways: list[str]) -> None:
    pins = choose(board, requested)
    assert [f"{pin.how} {pin.sm} {pin.memory}" if pin.sm or pin.memory else pin.how for pin in pins] == ways
    assert bool(pins[-1].why) == (pins[-1].how == "none")


def test_what_cannot_be_held_is_said() -> None:
    first = choose(able(TURING), ClockPolicy())[0]
    assert first.why == "the memory clock of a GPU of the generation Turing cannot be locked"
    assert choose(able(TURING), ClockPolicy(memory="leave"))[0].why == ""
    assert str(first) == "SM base"
    assert str(Pin(how="locked", sm=1410, memory=1215)) == "SM 1410 MHz, memory 1215 MHz"
    assert str(Pin(how="left")) == ""


@pytest.mark.parametrize("requested", [ClockPolicy(2000), ClockPolicy(344), ClockPolicy(memory=3000)])
def test_a_clock_that_there_is_not_is_refused(requested: ClockPolicy) -> None:
    with pytest.raises(GpuError, match=r"H has no (SM|memory) clock of") as caught:
        choose(able(), requested)
    assert "hint: it has" in str(caught.value)


def test_a_capability_names_its_generation() -> None:
    known = {
        (3, 5): 2,
        (5, 2): 3,
        (6, 1): 4,
        (7, 0): 5,
        (7, 2): 5,
        (7, 5): 6,
        (8, 0): 7,
        (8, 6): 7,
        (8, 9): 8,
        (9, 0): 9,
    }
    assert {capability: architecture(capability) for capability in known} == known
    assert architecture((10, 0)) == architecture((12, 0)) == 10
    assert architecture((2, 0)) == 0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ClockPolicy("base", "max")),
        ({"clocks": "leave"}, LEAVE),
        ({"clocks": "leave", "memory": "max"}, ClockPolicy("leave", "max")),
        ({"clocks": 1410, "memory": "leave"}, ClockPolicy(1410, "leave")),
        ({"clocks": "max", "memory": 1215}, ClockPolicy("max", 1215)),
    ],
)
def test_what_the_matrix_asks_for(settings: dict[str, Any], expected: ClockPolicy) -> None:
    assert clocks(GpuSettings(**settings), pin=None) == expected
    assert clocks(GpuSettings(**settings), pin=True) == replace(expected, force=True)
    assert clocks(GpuSettings(**settings), pin=False) == LEAVE
    for policy in (expected, replace(expected, force=True)):
        assert clock_policy(json.loads(json.dumps(policy.json()))) == policy


def test_a_policy_of_an_older_program_does_not_force_anything() -> None:
    assert clock_policy({"sm": "base", "memory": "max"}) == ClockPolicy("base", "max", force=False)
    with pytest.raises(ValueError, match="neither true nor false"):
        clock_policy({"sm": "base", "memory": "max", "force": 1})


def test_a_run_that_is_resumed_asks_for_the_clocks_it_began_with() -> None:
    shipped = Path(__file__).parents[3] / "matrix.yaml"
    typed = Options(matrix=shipped, backend="venv", device="cpu", pin=False)
    context = setup(typed, {"XDG_CACHE_HOME": "/nowhere"})
    assert isinstance(context.backend, VenvBackend)
    assert context.settings.clocks == LEAVE
    assert not context.settings.pin
    began = setup(replace(typed, pin=True), {"XDG_CACHE_HOME": "/nowhere"}).settings
    assert (began.clocks, began.pin) == (ClockPolicy("base", "max", force=True), True)
    assert setup(replace(typed, pin=None), {"XDG_CACHE_HOME": "/nowhere"}).settings.clocks == ClockPolicy("base", "max")
    fields: dict[str, Any] = dict.fromkeys(("at", "plan", "backend", "device", "device_name", "matrix", "harness"), "")
    header = RunHeader(**fields, measurement=Measurement(), driver=None, python=None, digests={}, clocks=began.clocks)
    assert with_header(context.settings, header).clocks == began.clocks
    assert with_header(context.settings, replace(header, clocks=None)).clocks == LEAVE  # started by an older program


def busy(sm: int = 1500, **more: Any) -> Reading:
    return Reading(sm=sm, memory=2619, reasons=more.pop("reasons", 0), watts=300.0, celsius=60, **more)


IDLE = Reading(sm=345, memory=2619, reasons=1, watts=60.0, celsius=40)


def test_readings_while_it_computes_are_facts_and_the_first_of_a_row_is_not() -> None:
    rising = busy(900)
    values = facts([IDLE, rising, busy(1500), busy(1485), IDLE, rising, IDLE])
    assert values["clock_mhz"] == [1485, 1492.5, 1500]
    assert values["memory_clock_mhz"] == [2619, 2619, 2619]
    assert (values["power_watts"], values["temperature_celsius"]) == (300.0, 60)
    assert (values["throttled"], values["held_back"]) == (0, [])


def test_nothing_read_says_nothing() -> None:
    assert facts([]) == facts([IDLE]) == facts([IDLE, busy()]) == facts([IDLE, IDLE]) == {}
    assert facts([Reading(), Reading()]) == {"throttled": 0, "held_back": []}


def test_a_clock_that_is_held_back_counts() -> None:
    values = facts([busy(), busy(reasons=0x4), busy(reasons=0x60), busy()])
    assert (values["throttled"], values["held_back"]) == (2, ["heat", "its power limit"])


def test_a_counter_sees_what_falls_between_readings() -> None:
    before, after = (
        busy(counted={"heat": 1.0, "the power brake": 0.0}),
        busy(counted={"heat": 1.5, "the power brake": 0.0}),
    )
    assert facts([before, after])["held_back"] == ["heat"]
    assert facts([after], before) == {"throttled": 1, "held_back": ["heat"]}
    assert facts([before, busy(counted={"heat": 1.0005})])["throttled"] == 0


def test_without_a_gpu_nothing_happens_to_its_clocks() -> None:
    session = DeviceSession(None, ClockPolicy(), pytest.fail)
    session.check_policy()
    with session.hold("run"):
        session.check()
        assert session.facts() == {"clocks": None}


def test_what_is_written_down_is_read_back(tmp_path: Path) -> None:
    book = ledger(tmp_path / "new", UUID)
    assert book.read() is None
    entry = book.write(Entry(uuid=UUID, name="H200", run="r", before=Pair(2619, 1500)))
    assert book.read() == entry
    book.will("sm")
    book.will("memory")
    book.will("sm")
    book.was_refused("memory")
    book.holds("SM base")
    changed = book.read()
    assert changed is not None
    assert (changed.undo, changed.held, changed.before) == (("sm",), "SM base", Pair(2619, 1500))
    book.close()
    book.close()
    assert book.read() is None
    with pytest.raises(ValueError, match="no UUID"):
        ledger(tmp_path, "../../etc/passwd")


def test_root_writes_in_one_place_for_the_machine() -> None:
    machine, users = Path("/var/lib/matrix-runner/clocks"), Path("/s/matrix-runner/clocks")
    assert folder({"HOME": "/root"}, 0) == machine
    assert folder({"HOME": "/home/a"}, 1000) == Path("/home/a/.local/state/matrix-runner/clocks")
    assert folder({"XDG_STATE_HOME": "/s"}, 0) == folder({"XDG_STATE_HOME": "/s"}, 1000) == users
    assert folder({"XDG_STATE_HOME": "s", "HOME": "/h"}, 0) == machine
    assert folders({"XDG_STATE_HOME": "/s"}, 1000) == (users, machine)
    assert folders({"XDG_STATE_HOME": "/s"}, 0) == (users,)
    assert Entry(uuid=UUID, boot="another").gone
    assert not Entry(uuid=UUID).gone


def test_an_order_is_read_back_and_another_one_refused() -> None:
    order = Order(task="hold", uuid=UUID, clocks=ClockPolicy(1410, "leave"), run="r", runner=7, patience=0.5)
    assert read(order.line()) == order
    for name, value in (("task", "erase"), ("uuid", "GPU-/../x"), ("clocks", {"sm": "fast", "memory": "max"})):
        with pytest.raises(ValueError, match=r"no order|is no clock"):
            read(json.dumps({**json.loads(order.line()), name: value}).encode())
    with pytest.raises(ValueError, match="is no clock"):
        clock_policy({"sm": True, "memory": "max"})
