"""The driver through the real nvidia-ml-py, on the stand-in: every figure, every refusal, every way to be missing."""

import ctypes
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from runner.core.errors import GpuError
from runner.core.threads import call_with_timeout
from runner.gpu import detect, nvml, types
from runner.gpu.selection import choose_devices
from runner.gpu.types import Abilities, ClockPair
from runner.machine.doctor.noise import gpu_settings
from tests.fakes import driver
from tests.fakes.driver import INVALID, LOST, NO_FUNCTION, NO_PERMISSION, TDP, UNSUPPORTED, StandIn

RUNNER = Path(nvml.__file__).parents[1]


@pytest.fixture
def here(driver_library: Path, standin: StandIn) -> Iterator[StandIn]:
    """The stand-in, in this process."""
    with driver.in_this_process(driver_library, standin):
        yield standin


def refused(call: str, standin: StandIn) -> GpuError:
    """Return the error of a method of the first GPU."""
    with nvml.opened() as opened_driver:
        method = getattr(opened_driver.device(standin.uuid), call)
        with pytest.raises(GpuError) as caught:
            method(1200)
    return caught.value


def test_one_module_alone_calls_the_binding() -> None:
    callers = [path for path in RUNNER.rglob("*.py") if re.search(r"\bpynvml\b", path.read_text("utf-8"))]
    assert callers == [RUNNER / "gpu" / "binding.py"]


def test_every_error_of_the_library_has_its_sentence() -> None:
    names = {name.removeprefix("NVML_ERROR_") for name in dir(pynvml) if name.startswith("NVML_ERROR_")}
    assert names == set(types.ERRORS)
    assert types.error("NEVER_HEARD_OF", "nvmlInit").kind == "broken"


def test_the_numbers_are_those_of_the_header() -> None:
    assert pynvml.NVML_FI_DEV_POWER_INSTANT == nvml.POWER_NOW
    assert set(types.COUNTERS) == {
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
    }
    assert pynvml.nvmlClocksEventReasonGpuIdle == types.IDLE
    for number, name in types.ARCHITECTURES.items():
        assert getattr(pynvml, f"NVML_DEVICE_ARCH_{name.upper()}") == number


def test_a_gpu_is_what_the_driver_says(here: StandIn) -> None:
    (gpu,) = detect.present()
    assert (gpu.uuid, gpu.name, gpu.capability) == (here.uuid, "Stand-in Hopper", (9, 0))
    assert (gpu.driver, gpu.memory) == ("580.65.06", 80 << 30)
    with nvml.opened() as opened_driver:
        device = opened_driver.device(here.uuid)
        assert (device.index, device.architecture(), device.sliced()) == (0, 9, False)
        assert (device.persistent(), device.processes(), device.highest_sm()) == (False, (), 1980)
        able = device.abilities()
    assert (able.memory, able.application, able.default) == ((2619, 1593), ClockPair(2619, 1500), ClockPair(2619, 1500))
    assert (able.sm[0], able.sm[-1], len(able.sm)) == (1980, 345, 110)


def test_a_reading_has_all_there_is(here: StandIn) -> None:
    here.gpu.busy, here.gpu.energy, here.gpu.reasons = 1, 5_000, 0x24
    here.gpu.counters[0], here.gpu.counters[2], here.gpu.counters[3] = 2_000_000_000, 250_000_000, 500_000_000
    here.gpu.processes[0], here.gpu.processes[1] = 4711, 4712
    with nvml.opened() as opened_driver:
        device = opened_driver.device(here.uuid)
        reading, processes = device.reading(), device.processes()
    assert (reading.sm, reading.memory, reading.watts, reading.joules, reading.celsius) == (1500, 2619, 120.0, 5.0, 41)
    assert (reading.idle, types.held_back(reading.reasons or 0)) == (False, ("its power limit", "heat"))
    assert reading.counted == {"its power limit": 2.0, "heat": 0.75, "the power brake": 0.0}
    assert processes == (4711, 4712)


def test_what_a_gpu_cannot_say_is_none(here: StandIn) -> None:
    here.make(0, "Pascal", application=False)
    here.gpu.memory = here.gpu.sm_step = 0
    for number, name in enumerate(("nvmlDeviceGetFieldValues", "nvmlDeviceGetPower*", "nvmlDeviceGetTemperature*")):
        here.rule(number, name, UNSUPPORTED)
    here.rule(3, "nvmlDeviceGetPersistenceMode", NO_PERMISSION)
    with nvml.opened() as opened_driver:
        device = opened_driver.device(here.uuid)
        reading, able = device.reading(), device.abilities()
        assert (device.memory(), device.sliced(), device.persistent()) == (0, None, None)
    assert (reading.watts, reading.joules, reading.celsius, reading.counted) == (None, None, None, {})
    assert able == Abilities(name="Stand-in Pascal", architecture=4, memory=(2619, 1593))


def test_a_gpu_that_is_cut_is_its_slices(here: StandIn) -> None:
    here.gpu.mig, here.gpu.slices, here.gpu.busy, here.gpu.processes[0] = 1, 2, 1, 4711
    slices = detect.gpus({})
    assert [gpu.name for gpu in slices] == ["Stand-in Hopper MIG 1g.10gb"] * 2
    assert {gpu.memory for gpu in slices} == {10 << 30}
    assert [gpu.uuid for gpu in slices] == [f"MIG{here.uuid[3:]}-{number}" for number in (1, 2)]
    assert detect.gpus({"CUDA_VISIBLE_DEVICES": slices[1].uuid}) == slices[1:]
    with pytest.raises(GpuError, match="no GPU here is called so"):
        detect.gpus({"CUDA_VISIBLE_DEVICES": here.uuid})  # CUDA shows none then, either
    with nvml.opened() as opened_driver:
        part = opened_driver.device(slices[1].uuid)
        assert (part.gpu(), part.sliced(), part.processes()) == (slices[1], True, (4711,))
        assert part.reading().watts == 120.0  # the whole GPU's


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_a_user_may_hide_all_gpus_but_not_by_mistake(value: str, here: StandIn) -> None:
    assert here.uuid
    assert detect.gpus({"CUDA_VISIBLE_DEVICES": value}) == ()
    with pytest.raises(GpuError, match="CUDA_VISIBLE_DEVICES is '7', and no GPU here is called so") as caught:
        detect.gpus({"CUDA_VISIBLE_DEVICES": "7"})
    assert f"0 (Stand-in Hopper, {here.uuid})" in str(caught.value)


def test_one_gpu_that_fails_hides_no_other(driver_library: Path, tmp_path: Path) -> None:
    both = StandIn(tmp_path / "two", 2)
    with driver.in_this_process(driver_library, both):
        both.rule(0, "nvmlDeviceGetPersistenceMode", 999)
        both.state.rules[0].after = 1
        assert [gpu.index for gpu in gpu_settings()] == [0]
    both.close()


def test_an_older_driver_is_asked_by_older_names(here: StandIn) -> None:
    here.gpu.processes[0], here.gpu.reasons = 4711, 0x8
    names = ("*EventReasons", "*Processes_v3", "*TemperatureV", "nvmlDeviceGetArchitecture")
    for number, name in enumerate(names):
        here.rule(number, name, NO_FUNCTION)
    with nvml.opened() as opened_driver:
        device = opened_driver.device(here.uuid)
        assert (device.reasons(), device.processes(), device.architecture()) == (0x9, (4711,), 9)
        assert device.reading().celsius == 41


@pytest.mark.parametrize("missing", [(), ("nvmlInit_v2",)])
def test_a_driver_before_r390_is_opened_by_an_older_name(
    missing: tuple[str, ...], here: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``nvmlInit`` without a suffix is the only name of the oldest drivers; the stand-in exports it as ``_v2``."""
    real = pynvml.nvmlLib

    class Old:
        def __getattr__(self, name: str) -> object:
            if name in {"nvmlInitWithFlags", *missing}:
                raise AttributeError(name)
            return getattr(real, "nvmlInit_v2" if name == "nvmlInit" else name)

    monkeypatch.setattr(pynvml, "nvmlLib", Old())
    pynvml._nvmlGetFunctionPointer_cache.clear()
    (gpu,) = detect.present()
    assert gpu.uuid == here.uuid
    here.rule(0, "nvmlInit*", 18)
    with pytest.raises(GpuError, match="kernel module differ"):
        detect.present()


def test_a_driver_that_cannot_be_asked_leaves_the_cpu_and_says_so(here: StandIn) -> None:
    here.rule(0, "nvmlDeviceGetCudaComputeCapability", NO_FUNCTION)
    notes: list[str] = []
    assert choose_devices(None, notes.append) == ("cpu", ())
    assert "driver 580.65.06 does not describe its GPUs" in notes[0]
    assert types.NEWER_DRIVER in notes[0]
    assert choose_devices("cpu", pytest.fail) == ("cpu", ())
    with pytest.raises(GpuError, match="does not describe its GPUs"):
        choose_devices("cuda", pytest.fail)


def test_a_library_without_any_opening_call_is_outdated(here: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here.uuid
    monkeypatch.setattr(pynvml, "nvmlLib", object())
    pynvml._nvmlGetFunctionPointer_cache.clear()
    with pytest.raises(GpuError) as caught:
        detect.present()
    assert caught.value.kind == "outdated"
    assert detect.answering() == ()


def test_processes_are_read_by_the_name_that_a_driver_has(here: StandIn) -> None:
    here.gpu.processes[0], here.gpu.processes[1] = 4711, 4712
    for number, suffix in enumerate(("v3", "v2")):
        with nvml.opened() as opened_driver:
            here.rule(number, f"*Processes_{suffix}", NO_FUNCTION)
            assert opened_driver.device(here.uuid).processes() == (4711, 4712)
    here.gpu.processes[0] = 0
    with nvml.opened() as opened_driver:
        assert opened_driver.device(here.uuid).processes() == ()
        here.rule(2, "nvmlDeviceGetComputeRunningProcesses", NO_FUNCTION)
        assert opened_driver.device(here.uuid).processes() is None


def test_no_driver_no_library_and_no_gpu_are_no_gpus(here: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    here.state.devices = 0
    assert detect.present() == ()
    monkeypatch.setenv(driver.STATE, "/nowhere")
    assert detect.present() == ()
    assert gpu_settings() == ()
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", lambda name: ctypes.CDLL(f"/nowhere/{name}"))
    with pytest.raises(GpuError, match=r"libnvidia-ml\.so\.1, is not here"), nvml.opened():
        pass
    assert detect.present() == ()


def test_a_driver_that_does_not_work_says_so(here: StandIn) -> None:
    here.rule(0, "nvmlInitWithFlags", 18)
    with pytest.raises(GpuError, match="kernel module differ") as caught:
        detect.present()
    assert (caught.value.exit_code, caught.value.kind) == (5, "broken")
    assert detect.answering() == ()
    assert gpu_settings() == ()


def test_a_gpu_that_is_lost_is_left_out_and_its_neighbour_stays(driver_library: Path, tmp_path: Path) -> None:
    both = StandIn(tmp_path / "two", 2)
    with driver.in_this_process(driver_library, both):
        assert [gpu.uuid[-1] for gpu in detect.present()] == ["0", "1"]
        both.gpu.lost = 1
        assert [gpu.uuid[-1] for gpu in detect.present()] == ["1"]
        with nvml.opened() as opened_driver, pytest.raises(GpuError, match="fallen off the bus") as caught:
            opened_driver.device(both.uuid)
    assert caught.value.kind == "lost"
    both.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(NO_PERMISSION, "permission"), (UNSUPPORTED, "unsupported"), (INVALID, "argument"), (LOST, "lost")],
)
def test_a_refusal_has_its_kind(answer: int, kind: str, here: StandIn) -> None:
    here.rule(0, "nvmlDeviceSet*", answer)
    error = refused("lock_sm", here)
    assert (error.kind, error.exit_code) == (kind, 5)
    assert here.pinned() == {}


def test_clocks_are_set_and_reset(here: StandIn) -> None:
    with nvml.opened() as opened_driver:
        device = opened_driver.device(here.uuid)
        device.lock_sm("base")
        device.lock_memory(1593)
        device.set_application(ClockPair(1593, 1200))
        assert here.pinned() == {"sm": (TDP, TDP), "memory": (1593, 1593), "application": (1593, 1200)}
        here.gpu.busy = 1
        assert (device.reading().sm, device.reading().memory) == (1590, 1593)
        device.lock_sm(1200)
        assert device.reading().sm == 1200
        device.unlock_sm()
        device.unlock_memory()
        device.set_application(None)
    assert here.pinned() == {}
    assert [call.answer for call in here.sets()] == [0] * 7


def test_a_driver_that_hangs_is_not_waited_for(here: StandIn) -> None:
    here.rule(0, "nvmlDeviceGetCount_v2", seconds=5)
    with pytest.raises(GpuError, match=r"did not answer within 0\.1 s") as caught:
        call_with_timeout(detect.present, 0.1)
    assert caught.value.kind == "hang"
    still_there = [thread for thread in threading.enumerate() if thread.name == "driver"]
    assert still_there
    for thread in still_there:  # they end when the call does
        thread.join(60)


def test_a_process_of_its_own_finds_the_library_by_its_name(standin: StandIn) -> None:
    code = "from runner.gpu.detect import gpus; print(gpus()[0].name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Stand-in Hopper\n"


def test_settings_tell_what_is_noisy(here: StandIn) -> None:
    here.gpu.reasons, here.gpu.persistent = 0x40, 1
    (gpu,) = gpu_settings()
    assert (gpu.index, gpu.persistent, gpu.mhz, gpu.most_mhz) == (0, True, 345, 1980)
    assert (gpu.held_back, gpu.processes) == (("heat",), 0)
