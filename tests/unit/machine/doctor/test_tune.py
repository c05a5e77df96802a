"""``runner tune``: the sources of noise, read from a tree like the kernel's and judged."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner import cli
from runner.core.busy import Busy
from runner.gpu.types import held_back
from runner.machine.doctor import tune
from runner.machine.doctor.noise import Noise, Settings, read_noise
from runner.machine.doctor.tune import NoiseSource, Tuning, judge

QUIET = Noise(
    cpus=8,
    governors={"performance": 8},
    boost=("sys/devices/system/cpu/intel_pstate/no_turbo", False),
    shared_cores=0,
    mhz=(3000.0, 3000.0),
    load=0.1,
    swap=(0, 8 << 30),
    huge_pages="madvise",
    randomization=2,
    overheated=0,
    mains=True,
)
GPU = Settings(index=1, name="H200", persistent=True, mhz=345, most_mhz=1980, processes=0)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def process(name: str, ticks: int) -> str:
    """Return what /proc/PID/stat says of a process that computed for some ticks."""
    return f"7 ({name}) S 1 7 7 0 -1 4194560 100 0 0 0 {ticks} 0 0 0 20 0 1 0 100 0 0"


def noise_below(root: Path, pause: Callable[[float], object] = lambda _: None) -> Noise:
    return read_noise(root, pause, lambda: (), ignored=1)


def source_of(name: str, noise: Noise) -> NoiseSource:
    """Return the one source of a name."""
    (source,) = [source for source in judge(noise) if source.name == name]
    return source


def test_a_machine_that_shows_nothing_is_never_noisy(tmp_path: Path) -> None:
    noise = noise_below(tmp_path)
    assert (noise.governors, noise.boost, noise.mhz, noise.load, noise.busy, noise.swap) == (
        {},
        None,
        (),
        None,
        (),
        None,
    )
    states = {source.name: source.state for source in judge(noise)}
    assert {name for name, state in states.items() if state == "unseen"} == {
        *("governor", "turbo", "clocks", "hyper-threads", "swap", "huge pages", "addresses")
    }
    assert "noisy" not in states.values()


def test_an_untuned_laptop_has_every_source_of_noise_it_shows(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    root = write(
        tmp_path,
        {
            **{f"{cpu}/cpu{number}/cpufreq/scaling_governor": "powersave" for number in (0, 1)},
            **{f"{cpu}/cpu{number}/topology/thread_siblings_list": "0-1" for number in (0, 1)},
            f"{cpu}/cpu0/cpufreq/scaling_cur_freq": "800000",
            f"{cpu}/cpu1/cpufreq/scaling_cur_freq": "3200000",
            f"{cpu}/cpu0/thermal_throttle/core_throttle_count": "3",
            f"{cpu}/intel_pstate/no_turbo": "0",
            f"{cpu}/isolated": "",
            "proc/cpuinfo": "flags\t\t: fpu vme\ncpu MHz\t\t: 1.0",
            "proc/loadavg": "1.75 0.50 0.10 1/200 999",
            "proc/meminfo": "MemTotal: 16 kB\nSwapTotal:  8000000 kB\nSwapFree:  2000000 kB",
            "proc/sys/kernel/randomize_va_space": "2",
            "proc/sys/kernel/numa_balancing": "1",
            "proc/42/comm": "irqbalance",
            "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
            "sys/class/power_supply/BAT0/type": "Battery",
            "sys/class/power_supply/AC/type": "Mains",
            "sys/class/power_supply/AC/online": "0",
            "sys/fs/cgroup/cpu.max": "150000 100000",
            "sys/fs/cgroup/cpu.stat": "nr_periods 10\nnr_throttled 4",
        },
    )
    noise = noise_below(root)
    assert noise == Noise(
        cpus=2,
        governors={"powersave": 2},
        boost=(f"{cpu}/intel_pstate/no_turbo", True),
        shared_cores=1,
        mhz=(800.0, 3200.0),
        load=1.75,
        swap=(6_144_000_000, 8_192_000_000),
        huge_pages="always",
        randomization=2,
        quota=1.5,
        throttled=4,
        balancing=True,
        irqbalance=True,
        mains=False,
        overheated=3,
    )
    noisy = {source.name: source for source in judge(noise) if source.state == "noisy"}
    assert set(noisy) == {
        *("governor", "turbo", "clocks", "heat", "power", "hyper-threads", "other load", "CPU quota", "swap"),
        *("huge pages", "interrupts"),
    }
    assert noisy["governor"].command == "sudo cpupower frequency-set --governor performance"
    assert noisy["turbo"].command == f"echo 1 | sudo tee /{cpu}/intel_pstate/no_turbo"
    assert noisy["clocks"].command == "sudo cpupower frequency-set --min 800MHz --max 800MHz"
    assert noisy["swap"].detail == "5.7 GiB of 7.6 GiB in use"
    assert noisy["CPU quota"].detail.startswith("1.5 CPUs at a time, waited 4 times")


def test_other_processes_that_compute_are_noise(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/stat": "cpu 100 0 0 900 0 0 0 0 0 0\ncpu0 1 2 3",
            **{f"proc/{pid}/stat": process("idle) one", 10) for pid in (1, 20, 21, 22)},
            **{f"sys/devices/system/cpu/cpu{number}/online": "1" for number in range(2)},
        },
    )

    def later(seconds: float) -> None:
        assert seconds == 1.0
        write(root, {"proc/stat": "cpu 300 0 0 900 0 0 0 0 0 0", "proc/1/stat": process("ignored", 110)})
        write(root, {"proc/20/stat": process("web server", 60), "proc/21/stat": process("editor", 14)})
        write(root, {"proc/23/stat": process("new", 99)})

    noise = noise_below(root, later)
    assert noise.busy == (Busy("web server", 20, 0.5),)
    source = source_of("other load", noise)
    assert (source.state, source.command) == ("noisy", None)
    assert source.detail == "busy now: web server at 50 % of a CPU; wait for the first, process 20"
    write(root, {"proc/stat": "cpu 100 0 0 900 0 0 0 0 0 0\ncpu0 1 2 3", "proc/20/stat": process("idle) one", 10)})
    write(root, {"proc/20/status": f"Name:\tweb server\nUid:\t{os.getuid()}\t0\t0\t0\n"})
    of_this_user = source_of("other load", noise_below(root, later))
    assert (of_this_user.state, of_this_user.command) == ("noisy", "kill -STOP 20")
    assert of_this_user.detail.endswith("; wait for the first, or pause it and continue it later: kill -CONT 20")


def test_a_process_of_another_user_is_not_to_be_paused_but_its_user_named() -> None:
    noise = replace(QUIET, busy=(Busy("make", 7, 1.9),), busiest_user=os.getuid() + 54321)
    source = source_of("other load", noise)
    assert (source.state, source.command) == ("noisy", None)
    owner = f"#{os.getuid() + 54321}"
    assert source.detail.endswith(f"; wait for the first, process 7 of the user {owner}, or ask {owner} to pause it")


def test_a_virtual_machine_shows_stolen_time_and_hides_the_governor(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "cpu MHz\t\t: 2600.0\nflags\t\t: fpu hypervisor",
        "proc/stat": "cpu 1 0 0 989 0 0 0 10 0 0",
    }
    noise = noise_below(write(tmp_path, files))
    assert noise.virtual
    assert source_of("stolen time", noise).state == "noisy"
    assert source_of("stolen time", noise).detail.startswith("1.00 % of the CPU time")
    assert source_of("governor", noise).detail == "cannot be seen here: the host of this virtual machine decides"
    assert source_of("clocks", noise).detail == "2600 MHz on all CPUs, as the host reports it"
    assert source_of("stolen time", replace(noise, stolen=0.0)).state == "ok"


def test_cgroup_v1_quota_and_boost_file_are_read(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        "sys/devices/system/cpu/cpufreq/boost": "1",
    }
    noise = noise_below(write(tmp_path, files))
    assert (noise.quota, noise.throttled) == (2.0, 0)
    assert source_of("turbo", noise).command == "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    write(tmp_path, {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/devices/system/cpu/cpufreq/boost": "0"})
    noise = noise_below(tmp_path)
    assert noise.quota is None
    assert source_of("turbo", noise).state == "ok"


def test_a_quiet_machine_is_ok_and_needs_no_command() -> None:
    assert {source.state for source in judge(QUIET)} == {"ok"}
    assert not [source for source in judge(QUIET) if source.command]
    assert Tuning(judge(QUIET)).verdict == "nothing that can be seen here makes times noisy; nothing was changed"


@pytest.mark.parametrize(
    ("name", "changes", "state"),
    [
        ("governor", {"governors": {"performance": 4, "powersave": 4}}, "noisy"),
        ("clocks", {"mhz": (3000.0, 3100.0)}, "ok"),
        ("other load", {"load": 2.0}, "noisy"),
        ("other load", {"load": 0.9}, "ok"),
        ("other load", {"busy": (Busy("a", 7, 0.3),)}, "ok"),
        ("other load", {"busy": (Busy("a", 7, 0.9),)}, "noisy"),
        ("swap", {"swap": (0, 0)}, "ok"),
        ("swap", {"swap": (5, 100)}, "ok"),
        ("addresses", {"randomization": 0}, "noisy"),
        ("isolation", {"isolated": "2-3"}, "ok"),
        ("memory nodes", {"nodes": 2, "balancing": True}, "noisy"),
        ("memory nodes", {"nodes": 2}, "ok"),
        ("heat", {"overheated": 2}, "noisy"),
        ("power", {"mains": False}, "noisy"),
    ],
)
def test_each_source_is_noisy_from_its_limit_on(name: str, changes: dict[str, Any], state: str) -> None:
    assert source_of(name, replace(QUIET, **changes)).state == state


@pytest.mark.parametrize(
    ("name", "changes", "state", "command"),
    [
        ("gpu 1 persistence", {}, "ok", None),
        ("gpu 1 persistence", {"persistent": False}, "noisy", "sudo nvidia-smi --id=1 --persistence-mode=1"),
        ("gpu 1 persistence", {"persistent": None}, "unseen", None),
        ("gpu 1 clock", {}, "unseen", "sudo nvidia-smi --id=1 --lock-gpu-clocks=1485,1485"),
        ("gpu 1 clock", {"most_mhz": None}, "unseen", None),
        ("gpu 1 clock", {"held_back": ("heat",)}, "noisy", None),
        ("gpu 1 processes", {"processes": 2}, "noisy", "nvidia-smi --id=1"),
        ("gpu 1 processes", {}, "ok", None),
    ],
)
def test_a_gpu_has_a_state_and_a_command(name: str, changes: dict[str, Any], state: str, command: str | None) -> None:
    source = source_of(name, replace(QUIET, gpus=(replace(GPU, **changes),)))
    assert (source.state, source.command) == (state, command)


def test_the_reasons_of_a_gpu_that_is_held_back_are_named() -> None:
    assert held_back(0x1) == ()  # it has nothing to do
    assert held_back(0x4 | 0x20 | 0x40) == ("its power limit", "heat")


def test_table_has_every_source_with_its_reason_and_command() -> None:
    tuning = Tuning(judge(replace(QUIET, randomization=1, gpus=(GPU,))))
    text = " ".join(tuning.text(400).split())
    for source in tuning.sources:
        assert f"{source.state} {source.name} {source.detail} ({source.why})" in text
        assert source.command is None or f"to change it: `{source.command}`" in text
    assert tuning.text().splitlines()[-1] == "1 of 16 makes times noisy: addresses; nothing was changed"


def test_tune_prints_a_table_writes_json_and_exits_0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tune, "read_noise", lambda: replace(QUIET, randomization=0))
    result = CliRunner().invoke(cli.app, ["tune"], standalone_mode=False)
    assert result.return_value == 0
    assert "sudo sysctl kernel.randomize_va_space=2" in result.stdout
    arguments = ["tune", "--format", "json", "-o", str(tmp_path / "tune.json")]
    assert CliRunner().invoke(cli.app, arguments, standalone_mode=False).return_value == 0
    document = json.loads((tmp_path / "tune.json").read_text())
    assert document["version"] == 1
    assert {*document["sources"][0]} == {"what", "state", "found", "why", "command"}
