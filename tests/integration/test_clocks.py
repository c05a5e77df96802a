"""Clocks are held, written down, read and given back, by a real guardian through the real binding, on the stand-in."""

import json
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import GpuError
from runner.core.model import Gpu
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.gpu.clocks import journal, permission, recovery
from runner.gpu.clocks.client import Guard
from runner.gpu.clocks.journal import ClockEntry, Ledger
from runner.gpu.clocks.lease import ClockLease
from runner.gpu.clocks.protocol import COMMAND, Order
from runner.gpu.device import DeviceSession, recover
from runner.gpu.types import ClockPair
from tests.fakes import driver
from tests.fakes.driver import INVALID, LOST, NO_PERMISSION, NOBODY, TDP, UNSUPPORTED, UUID, StandIn
from tests.integration.conftest import PATIENCE, ROOT, Runner, wait_for
from tests.support.executables import write_executable
from tests.support.options import with_last_values

SCRIPT = ROOT / "tests" / "integration" / "data" / "gpu_run.py"
HOLD = Order(task="hold", uuid=UUID.format(0), run="20261121-213143-c055", runner=os.getpid())


@pytest.fixture
def messages() -> list[str]:
    """What the user was told."""
    return []


@pytest.fixture
def take(standin: StandIn, messages: list[str]) -> Iterator[Callable[..., ClockLease]]:
    """Takes a lease of the first GPU; it is released at the end."""
    taken: list[ClockLease] = []

    def of(clocks: ClockPolicy | None = None, *, patience: float = 3.0, seconds: float = 20.0) -> ClockLease:
        lease = ClockLease(replace(HOLD, clocks=clocks or ClockPolicy(), patience=patience), messages.append, seconds)
        taken.append(lease)
        lease.acquire()
        return lease

    yield of
    standin.no_rules()
    for lease in taken:
        lease.release()


def books() -> list[Path]:
    """Return what is written down."""
    return [book.path for book in journal.files(journal.folder(os.environ, os.geteuid()))]


def calls(standin: StandIn) -> list[tuple[str, int, int]]:
    """Return what was set, as far as the driver took it."""
    return [(call.name, call.a, call.b) for call in standin.sets() if not call.answer]


def test_clocks_are_held_and_given_back(standin: StandIn, take: Callable[..., ClockLease], messages: list[str]) -> None:
    lease = take()
    assert standin.pinned() == {"sm": (TDP, TDP), "memory": (2619, 2619)}
    assert (lease.pin.how, lease.pin.sm, lease.pin.memory) == ("locked", "base", 2619)
    assert messages == ["the GPU's clocks are held: SM base, memory 2619 MHz"]
    assert len(standin.open_in()) == 1  # a child of the guardian keeps the GPU open
    entry = Ledger(books()[0]).read()
    assert entry is not None
    assert lease.guard is not None
    assert (entry.run, entry.runner, entry.guardian) == (HOLD.run, os.getpid(), lease.guard.process.pid)
    assert (entry.undo, entry.held) == (("sm", "memory"), "SM base, memory 2619 MHz")
    assert os.getsid(lease.guard.process.pid) == lease.guard.process.pid  # a session of its own
    assert lease.release()
    assert standin.pinned() == {}
    assert books() == []
    assert standin.open_in() == []


def test_it_is_written_down_before_anything_is_set(standin: StandIn, messages: list[str]) -> None:
    standin.rule(0, "nvmlDeviceSetGpuLockedClocks", seconds=1.0)
    guard = Guard(HOLD)
    wait_for(books)
    entry = wait_for(lambda: (entry := Ledger(books()[0]).read()) and entry.undo and entry)
    assert entry.undo == ("sm",)
    assert entry.before == ClockPair(2619, 1500)
    assert standin.sets() == []
    answer = guard.answer(20)
    assert answer is not None
    assert answer["said"] == "held"
    guard.end()
    assert standin.pinned() == {}


BEFORE = {"application": (2619, 1200)}  # by somebody else
BASE, TOP = {"sm": (TDP, TDP)}, {"memory": (2619, 2619)}


@pytest.mark.parametrize(
    ("board", "while_held", "words"),
    [
        ("Maxwell", {}, "a GPU of the generation Maxwell has no clocks that can be locked"),
        ("Pascal", {}, "this board has no application clocks"),
        ("Kepler Tesla", {}, "held: SM 1500 MHz, memory 2619 MHz"),  # which are the driver's own
        ("Pascal Tesla", {}, "held: SM 1500 MHz, memory 2619 MHz"),
        ("Volta Tesla", BEFORE | BASE, "the memory clock of a GPU of the generation Volta cannot be locked"),
        ("Turing", BASE, "the memory clock of a GPU of the generation Turing cannot be locked"),
        ("Ampere Tesla", BEFORE | BASE | TOP, "held: SM base, memory 2619 MHz"),
        ("Ada", BASE | TOP, "held: SM base, memory 2619 MHz"),
    ],
)
def test_each_generation_is_held_by_what_it_has(
    board: str, while_held: dict[str, tuple[int, int]], words: str, standin: StandIn, take: Callable[..., ClockLease]
) -> None:
    architecture, _, tesla = board.partition(" ")
    standin.make(0, architecture, application=bool(tesla))
    standin.gpu.application[1] = 1200
    before = standin.pinned()
    lease = take()
    assert standin.pinned() == while_held
    assert words in f"held: {lease.pin} {lease.pin.why}"
    lease.release()
    assert standin.pinned() == before == (BEFORE if tesla else {})  # application clocks are what they were
    assert books() == []


def test_a_gpu_in_slices_is_left_alone(standin: StandIn, take: Callable[..., ClockLease], messages: list[str]) -> None:
    standin.gpu.mig = 1
    assert take().pin.how == "none"
    assert "MIG slices" in messages[0]
    assert standin.sets() == []


def test_a_number_is_rounded_to_what_there_is_and_refused_where_there_is_none(
    standin: StandIn, take: Callable[..., ClockLease]
) -> None:
    lease = take(ClockPolicy(1207, 1600))
    assert standin.pinned() == {"sm": (1200, 1200), "memory": (1593, 1593)}
    lease.release()
    with pytest.raises(GpuError, match="Stand-in Hopper has no SM clock of 5000 MHz") as caught:
        take(ClockPolicy(5000))
    assert "345 to 1980 MHz" in str(caught.value)
    assert caught.value.exit_code == 5
    assert standin.pinned() == {}
    assert books() == []


def test_a_driver_that_knows_no_base_clock_is_given_a_number(standin: StandIn, take: Callable[..., ClockLease]) -> None:
    standin.rule(0, "nvmlDeviceSetGpuLockedClocks", INVALID)
    standin.state.rules[0].after = 0
    assert take().pin.how == "application"  # it takes no number either
    standin.no_rules()


def test_a_memory_that_cannot_be_held_leaves_the_rest_held(
    standin: StandIn, take: Callable[..., ClockLease], messages: list[str]
) -> None:
    standin.rule(0, "nvmlDeviceSetMemoryLockedClocks", UNSUPPORTED)
    lease = take()
    assert (lease.pin.sm, lease.pin.memory) == ("base", None)
    assert "the memory clock is not held: this GPU or its driver cannot do that" in messages[0]
    lease.release()
    assert [name for name, _, _ in calls(standin)] == ["SetGpuLockedClocks", "ResetGpuLockedClocks"]


def test_without_permission_one_sentence_says_the_one_command(
    standin: StandIn, take: Callable[..., ClockLease], messages: list[str]
) -> None:
    standin.state.only_root = 1
    lease = take()
    assert lease.pin.how == "none"
    (sentence,) = messages
    assert sentence.startswith("the GPU's clocks are not held: the driver lets only root do that; ")
    assert ("sudo tee -a /etc/sudoers.d/matrix-runner" if os.geteuid() else "--cap-add SYS_ADMIN") in sentence
    assert calls(standin) == []
    assert books() == []


def test_a_driver_that_hangs_holds_nobody_up_and_leaves_nothing_held(
    standin: StandIn, take: Callable[..., ClockLease], messages: list[str]
) -> None:
    standin.rule(0, "nvmlDeviceSet*", seconds=600)
    assert take(patience=0.3, seconds=1.0).pin.how == "none"
    assert messages == ["the GPU's clocks are not held: the GPU's driver did not answer within 1 s"]
    wait_for(lambda: not books())
    assert standin.pinned() == {}
    wait_for(lambda: not standin.open_in())


@pytest.mark.slow
def test_a_driver_that_hangs_at_the_end_is_given_up_and_undone_later(
    standin: StandIn, take: Callable[..., ClockLease], messages: list[str]
) -> None:
    lease = take(patience=0.2)
    standin.rule(0, "nvmlDeviceReset*", seconds=600)
    assert not lease.release()
    assert "still held: its driver does not answer; `runner clocks reset` tries again" in messages[-1]
    assert len(books()) == 1
    wait_for(lambda: not standin.open_in())
    standin.no_rules()
    assert recovery.recover(messages.append) == ()
    assert messages[-1].startswith("restored the clocks of Stand-in Hopper (left locked by run ")
    assert standin.pinned() == {}
    assert books() == []


def test_a_gpu_that_is_lost_is_undone_when_it_is_back(
    standin: StandIn, take: Callable[..., ClockLease], messages: list[str]
) -> None:
    lease = take()
    standin.gpu.lost = 1
    assert not lease.release()
    assert "still held: the GPU is lost" in messages[-1]
    (failure,) = recovery.recover(messages.append)
    assert "the GPU is lost" in failure
    standin.gpu.lost = 0
    assert recovery.recover(messages.append) == ()
    assert standin.pinned() == {}


def test_a_second_runner_waits_for_the_first(
    standin: StandIn, take: Callable[..., ClockLease], messages: list[str]
) -> None:
    lease = take()
    code = (
        "import sys\nfrom tests.integration.test_clocks import HOLD\nfrom runner.gpu.clocks.lease import ClockLease\n"
    )
    code += "ClockLease(HOLD, lambda text: print(text, flush=True)).acquire()"
    standin.gpu.processes[0] = os.getpid()  # the first computes: the second waits, and measures with locked clocks
    second = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert second.stdout is not None
    line = second.stdout.readline()
    assert line.startswith(f"the GPU's clocks are held by process {os.getpid()} for run {HOLD.run}: waiting")
    before = len(standin.sets())
    standin.gpu.processes[0] = 0
    lease.release()
    assert "are held: SM base" in second.stdout.readline()
    second.communicate(timeout=PATIENCE)
    wait_for(lambda: not standin.pinned())
    assert [call.name[:5] for call in standin.sets()[before:]] == ["Reset", "Reset", "SetGp", "SetMe", "Reset", "Reset"]


OTHER_HOME = """
import sys
from runner.gpu.clocks.lease import ClockLease
from tests.integration.test_clocks import HOLD
lease = ClockLease(HOLD, lambda text: print(text, flush=True))
lease.acquire()
lease.release()
"""


def test_a_runner_of_another_user_waits_too(standin: StandIn, take: Callable[..., ClockLease], tmp_path: Path) -> None:
    lease = take()
    assert lease.guard is not None
    lease_guardian = lease.guard.process.pid
    home = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "other")}
    command = [sys.executable, "-c", OTHER_HOME]
    name = pwd.getpwuid(os.geteuid()).pw_name
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=home) as second:
        assert second.stdout is not None
        line, before = second.stdout.readline(), len(standin.sets())
        lease.release()
        assert f"held by the guardian of a runner of {name}, process {lease_guardian}: " in line
        assert "are held: SM base" in second.stdout.readline()
    assert [call.name[:5] for call in standin.sets()[before:]] == ["Reset", "Reset", "SetGp", "SetMe", "Reset", "Reset"]


@pytest.mark.slow
def test_a_child_that_still_hangs_in_the_driver_is_told_of(
    standin: StandIn, take: Callable[..., ClockLease], messages: list[str]
) -> None:
    lease = take(patience=0.2)
    assert lease.guard is not None
    standin.rule(0, "nvmlDeviceReset*", seconds=600)
    lease.guard.process.kill()  # its child finds out, and hangs in the driver while it undoes
    assert not lease.release()
    assert "still held: its driver does not answer; `runner clocks reset` tries again" in messages[-1]
    for pid in standin.open_in():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not standin.open_in())
    standin.no_rules()
    assert recovery.recover(messages.append) == ()
    assert standin.pinned() == {}


def test_what_is_held_on_another_machine_is_left_to_it(standin: StandIn, messages: list[str], runner: Runner) -> None:
    book = journal.ledger(journal.folder(os.environ, os.geteuid()), UUID.format(7))
    book.write(ClockEntry(uuid=UUID.format(7), run="r", boot="another one", machine="another one", undo=("sm",)))
    assert recovery.recover(messages.append) == ()
    assert (messages, standin.sets(), books()) == ([], [], [book.path])
    assert "held on another machine by run r" in runner("clocks", "show").stdout
    book.write(ClockEntry(uuid=UUID.format(7), boot="another one", machine=journal.machine(), undo=("sm",)))
    assert recovery.recover(messages.append) == ()
    assert books() == []


def test_nothing_stays_held_over_a_start_of_the_machine(standin: StandIn, messages: list[str]) -> None:
    book = journal.ledger(journal.folder(os.environ, os.geteuid()), standin.uuid)
    book.write(ClockEntry(uuid=standin.uuid, boot="another one", undo=("sm",)))
    assert recovery.recover(messages.append) == ()
    assert standin.sets() == []
    assert books() == []


def test_a_file_that_cannot_be_read_is_named(standin: StandIn, messages: list[str]) -> None:
    book = journal.ledger(journal.folder(os.environ, os.geteuid()), standin.uuid)
    book.write(ClockEntry(uuid=standin.uuid))
    book.path.write_text('{"version": 2}')
    (failure,) = recovery.recover(messages.append)
    assert "it was written by a newer program" in failure
    assert standin.sets() == []


def test_leaving_the_clocks_changes_nothing_not_even_what_was_left(standin: StandIn, messages: list[str]) -> None:
    lease = ClockLease(replace(HOLD, clocks=ClockPolicy()), messages.append)
    lease.acquire()
    assert lease.guard is not None
    _kill(lease, standin)
    before = len(standin.sets())
    messages.clear()
    recover(LEAVE, messages.append)
    (sentence,) = messages
    assert "`runner clocks reset` restores them" in sentence
    clocks = DeviceSession(_gpu(standin), LEAVE, messages.append)
    with clocks.hold("run"):
        assert clocks.facts()["clocks"] == "left"
    assert len(standin.sets()) == before
    recover(ClockPolicy(), messages.append)
    assert standin.pinned() == {}


def _kill(lease: ClockLease, standin: StandIn) -> None:
    """Kill a guardian with its child, so that what they hold stays held."""
    assert lease.guard is not None
    guardian = lease.guard.process.pid
    os.kill(guardian, signal.SIGSTOP)  # it would undo what its child has set
    for pid in (*standin.open_in(), guardian):
        os.kill(pid, signal.SIGKILL)
    lease.guard.end()
    wait_for(lambda: not standin.open_in())
    assert standin.pinned()


def _gpu(standin: StandIn) -> Gpu:
    return Gpu(uuid=standin.uuid, name="Stand-in", capability=(9, 0), driver="580")


@pytest.mark.slow
def test_a_guardian_that_dies_gets_a_successor_and_after_some_no_more(standin: StandIn, messages: list[str]) -> None:
    clocks = DeviceSession(_gpu(standin), ClockPolicy(), messages.append)
    with clocks.hold("run"):
        standin.gpu.processes[0] = os.getpid()  # the run computes by now, which is no objection to its clocks
        for _ in range(3):
            assert clocks.lease is not None
            _kill(clocks.lease, standin)
            clocks.check()
            assert "SM base" in messages[-1]
            assert standin.pinned()
        assert clocks.lease is not None
        _kill(clocks.lease, standin)
        clocks.check()
        assert "has died again and again" in messages[-1]
        assert clocks.facts()["clocks"] == "none"
    recover(ClockPolicy(), messages.append)
    assert standin.pinned() == {}


HOLD_AS_A_USER = """
import os, pathlib, sys
from runner.gpu.clocks import journal, permission
from runner.gpu.clocks.lease import ClockLease
from tests.integration.test_clocks import HOLD
os.geteuid = lambda: 1000  # also where the tests are root's
journal.MACHINE, permission.COPY = map(pathlib.Path, sys.argv[1:])
permission.SUDOERS = permission.COPY.with_name("none")
lease = ClockLease(HOLD, lambda text: print(text, flush=True))
lease.acquire()
sys.stdin.readline()
lease.release()
"""
SUDO = """#!/bin/sh
# sudo -n COMMAND..., with a rule for the guardian and for nothing else
echo "$@" >>{log}
[ "$1" = -n ] && [ "$3 $4 $5" = "-P -m runner.gpu.clocks.guardian" ] && [ -e "{rule}" ] || exit 1
shift
XDG_STATE_HOME={state} {root}=1 exec "$@"
"""


def test_a_user_without_rights_is_told_the_command_and_with_it_only_the_guardian_is_root(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standin.state.only_root = 1
    rule, roots, sudo = tmp_path / "rule", tmp_path / "roots", tmp_path / "bin" / "sudo"
    log = tmp_path / "auth.log"
    sudo.parent.mkdir()
    write_executable(sudo, SUDO.format(rule=rule, state=roots, root=driver.ROOT, log=log))
    monkeypatch.setenv("PATH", f"{sudo.parent}:{os.environ['PATH']}")

    def held() -> tuple[str, dict[str, tuple[int, int]]]:
        """Return what a user is told, and what is held then."""
        command = [sys.executable, "-c", HOLD_AS_A_USER, str(roots), str(rule)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line, pinned = process.stdout.readline(), standin.pinned()
        rest, _ = process.communicate("\n", timeout=PATIENCE)
        assert (process.returncode, rest) == (0, "")
        return line, pinned

    line, pinned = held()
    command = " ".join(COMMAND)
    assert f"ALL=(root) NOPASSWD: {command}' | sudo tee -a {tmp_path / 'none'} {rule}\n" in line
    assert pinned == {}
    assert not log.exists()  # sudo logs what it denies, so it is not tried
    rule.write_text(permission.rule(1000) + "\n")
    assert held() == (
        "the GPU's clocks are held: SM base, memory 2619 MHz\n",
        {"sm": (TDP, TDP), "memory": (2619, 2619)},
    )
    assert standin.pinned() == {}
    assert list(roots.glob("matrix-runner/clocks/*.lock"))  # what is root's is in root's folder


def shown(runner: Runner) -> dict[str, object]:
    gpu: dict[str, object] = runner.json("clocks", "show", "--format", "json")["gpus"][0]
    return gpu


def test_the_command_shows_what_is_held_and_lets_go_of_what_was_left(
    standin: StandIn, runner: Runner, take: Callable[..., ClockLease]
) -> None:
    assert shown(runner)["held"] is None
    assert "not held by matrix-runner" in runner("clocks").stdout
    lease = take()
    held = shown(runner)["held"]
    assert isinstance(held, dict)
    assert (held["run"], held["alive"], held["held"]) == (HOLD.run, True, "SM base, memory 2619 MHz")
    done = runner("clocks", "reset")
    assert (done.returncode, done.stdout) == (0, "no clocks were left locked\n")
    assert f"skipped: held by run {HOLD.run}" in done.stderr
    assert standin.pinned()
    assert runner("clocks", "reset", "--device", "cuda:0").returncode == 5
    _kill(lease, standin)
    assert f"whose guardian is dead: `{runner.name} clocks reset` restores them" in runner("clocks", "show").stdout
    done = runner("clocks", "reset")
    assert (done.returncode, done.stdout) == (0, "reset the clocks of 1 GPU\n")
    assert standin.pinned() == {}
    done = runner("clocks", "reset")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no clocks were left locked\n", "")


def test_the_command_gives_a_gpu_back_whoever_has_set_its_clocks(standin: StandIn, runner: Runner) -> None:
    standin.gpu.locked_sm[0] = standin.gpu.locked_sm[1] = 900
    standin.gpu.application[1] = 1200
    assert runner("clocks", "reset").returncode == 0
    assert standin.pinned() == {"sm": (900, 900), "application": (2619, 1200)}
    done = runner("clocks", "reset", "--device", "cuda:0")
    assert (done.returncode, done.stdout) == (0, "reset the clocks of Stand-in Hopper to the driver's defaults\n")
    assert standin.pinned() == {}


def test_what_the_command_cannot_do_ends_with_five(standin: StandIn, runner: Runner) -> None:
    assert runner("clocks", "reset", "--device", "cuda:7").returncode == 5
    assert runner("clocks", "reset", "--device", "cpu").returncode == 2
    assert runner("clocks", "show", "--device", "cuda:0").returncode == 2
    standin.state.only_root = 1
    done = runner("clocks", "reset", "--device", "cuda:0")
    assert done.returncode == 5
    assert "could not reset the clocks of Stand-in Hopper: the driver lets only root do that" in done.stderr
    book = journal.ledger(journal.folder(os.environ, os.geteuid()), standin.uuid)
    book.write(ClockEntry(uuid=standin.uuid, name="H200", run="r", boot=journal.boot(), undo=("sm",)))
    done = runner("clocks", "reset")
    assert done.returncode == 5
    assert (
        "could not restore the clocks of H200 (left locked by run r): the driver lets only root do that" in done.stderr
    )
    assert "(the driver lets only root do that)" in runner("clocks", "show").stdout


def test_without_a_driver_nothing_is_held(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    done = runner("clocks", "reset")
    assert (done.returncode, done.stdout) == (0, "no clocks were left locked\n")
    assert runner("clocks", "show").returncode == 0


def start_measuring(runner: Runner, *words: str) -> "subprocess.Popen[str]":
    """Start a small measurement on the stand-in's GPU."""
    command = [sys.executable, str(SCRIPT), "--backend", "venv", "--threads", "1", "--busy-ok"]
    command += with_last_values(["*/rnn-b32-h128/*", "--rounds", "1", "--seconds", "0.5", *words])
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=runner.folder, stdout=pipe, stderr=pipe, text=True)
    runner.started.append(process)
    return process


def measured(runner: Runner, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a small measurement on the stand-in's GPU to its end."""
    process = start_measuring(runner, *words)
    out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_a_run_holds_the_clocks_and_its_records_say_so(standin: StandIn, runner: Runner) -> None:
    standin.gpu.busy, standin.gpu.processes[0] = 1, NOBODY
    done = measured(runner, "--pin")
    assert done.returncode == 0, done.stderr
    assert f"will disturb what is measured: {NOBODY}" in done.stderr
    for record in runner.records():
        facts = record["facts"]
        assert (facts["clocks"], facts["pinned"], facts["device"]) == (
            "locked",
            "SM base, memory 2619 MHz",
            "Stand-in Hopper",
        )
        assert (facts["clock_mhz"], facts["memory_clock_mhz"]) == ([1590, 1590, 1590], [2619, 2619, 2619])
        assert (facts["throttled"], facts["held_back"], facts["power_watts"]) == (0, [], 120.0)
    assert [name for name, _, _ in calls(standin)] == [
        *("SetGpuLockedClocks", "SetMemoryLockedClocks", "ResetMemoryLockedClocks", "ResetGpuLockedClocks")
    ]
    assert standin.open_in() == []


@pytest.mark.slow
def test_a_run_that_is_throttled_says_so_in_its_records(standin: StandIn, runner: Runner) -> None:
    standin.gpu.busy, standin.gpu.reasons, standin.gpu.sm_slowed = 1, 0x40, 900
    (runner.folder / "matrix.yaml").write_text(
        (runner.folder / "matrix.yaml").read_text() + "gpu: {clocks: 1500, memory: leave, telemetry: 50}\n"
    )
    done = measured(runner)
    assert "held at 1500 MHz and was 900 MHz: power or heat allow no more" in done.stderr
    assert done.stderr.count("power or heat allow no more") == 1
    for record in runner.records():
        facts = record["facts"]
        assert (facts["pinned"], facts["clock_mhz"], facts["held_back"]) == ("SM 1500 MHz", [900, 900, 900], ["heat"])
        assert facts["throttled"] > 0
    assert done.stderr.count("throttled by heat, repeating it in") == 2
    assert done.stderr.count("the GPU stays throttled after every pause") == 1
    assert sorted(record["facts"].get("discarded", 0) for record in runner.records())[-2:] == [0, 2]


def test_a_run_without_permission_observes_and_marks_its_records(standin: StandIn, runner: Runner) -> None:
    standin.state.only_root = standin.gpu.busy = 1
    done = measured(runner)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the driver lets only root do that") == 1
    facts = runner.records()[0]["facts"]
    assert (facts["clocks"], facts["clock_mhz"]) == ("none", [1500, 1500, 1500])
    assert "pinned" not in facts


def test_no_pin_changes_nothing(standin: StandIn, runner: Runner) -> None:
    standin.gpu.busy = 1
    assert measured(runner, "--no-pin").returncode == 0
    assert standin.sets() == []
    facts = runner.records()[0]["facts"]
    assert (facts["clocks"], facts["clock_mhz"]) == ("left", [1500, 1500, 1500])
    state = Path(os.environ["XDG_STATE_HOME"])
    assert [path.name for path in state.glob("*/*")] == ["started"]  # the note of the run, and nothing about clocks


def test_a_clock_that_there_is_not_ends_a_run_before_it_begins(standin: StandIn, runner: Runner) -> None:
    (runner.folder / "matrix.yaml").write_text((runner.folder / "matrix.yaml").read_text() + "gpu: {clocks: 5000}\n")
    done = measured(runner)
    assert done.returncode == 5
    assert "Stand-in Hopper has no SM clock of 5000 MHz" in done.stderr
    assert "hint: it has 345 to 1980 MHz" in done.stderr
    assert not list(runner.folder.glob("reports/runs/*"))


def test_a_gpu_that_is_lost_ends_a_run_with_five_and_what_was_measured_is_kept(
    standin: StandIn, runner: Runner
) -> None:
    process = start_measuring(runner, "--rounds", "50")
    wait_for(runner.records)
    standin.rule(0, "nvmlDeviceGetClockInfo", LOST)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 5, err
    assert "Stand-in Hopper: the GPU is lost" in err
    assert "then `runner run --resume " in err
    assert runner.records()
    assert standin.pinned() == {}


@pytest.mark.slow
def test_a_refused_reading_says_so_once_and_measuring_goes_on(standin: StandIn, runner: Runner) -> None:
    standin.rule(0, "nvmlDeviceGetClockInfo", 999, after=2)
    done = measured(runner, "--no-pin")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the GPU is no longer read: the driver failed, and does not say why") == 1


def test_a_gpu_can_be_asked_for_and_refused_by_its_number(standin: StandIn, runner: Runner) -> None:
    standin.rule(0, "nvmlInitWithFlags", 18)
    done = runner("plan", "--device", "cuda")
    assert done.returncode == 5
    assert "kernel module differ" in done.stderr
    done = runner("plan")  # nor is the CPU taken for it in silence
    assert done.returncode == 5
    assert "`--device cpu` measures without a GPU" in done.stderr
    assert json.loads(runner("plan", "--device", "cpu", "--format", "json").stdout)["device"] == "cpu"
    standin.rule(0, "nvmlInitWithFlags", NO_PERMISSION)
    assert runner("plan", "--device", "cuda").returncode == 5
