"""Nights that follow releases, through the real command line and a package index; two at once, and a killed one."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from runner.core.paths import cache_folder
from tests.integration.conftest import Runner, journal_of, wait_for
from tests.support.package_index import NAME, PackageIndex, package_index, wheel
from tests.support.slow_numpy import SLOW_NUMPY

MATRIX = """\
version: 1
environments:
  np-pinned: {{framework: numpy, release: "2.4.6", python: "3.11", lock: docker/locks/numpy.txt}}
  np-follows:
    framework: numpy
    release: "2.4.6"
    python: "3.11"
    requirements: [numpy==2.4.6, {name}]
    follow: {name}
    index: {url}
workloads:
  rnn-step: {{cases: [rnn-b32-h128]}}
measure: {{controls: false}}
nightly: {{base: np-pinned}}
presets:
  tiny: {{select: [rnn-step/rnn-b32-h128/forward], rounds: 3, max_rounds: 3, seconds: 0.05}}
"""
ONE_THREAD = "import os\nos.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
"""Code before an import of NumPy when Python starts, for this is before the harness limits the threads.

Two threads on the CPU of one take 500 times as long in place of three times.
"""
NIGHT = ("nightly", "np-follows", "--preset", "tiny", "--device", "cpu", "--threads", "1", "--backend", "venv")


@pytest.fixture(scope="module")
def served() -> Iterator[PackageIndex]:
    """A package index for all tests of a module, which so share environments; what was built from it is removed."""
    with package_index() as server:
        yield server
        for lock in (cache_folder(os.environ) / "venvs").glob("np-follows-*/lock.txt"):
            with suppress(FileNotFoundError):  # other test sessions have theirs, and remove them
                if server.url in lock.read_text():
                    rmtree(lock.parent)
                    lock.parent.with_name(f"{lock.parent.name}.lock").unlink(missing_ok=True)


@pytest.fixture
def index(runner: Runner, served: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> PackageIndex:
    """An index with one release of the package that np-follows follows, and the matrix with np-follows."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, ",".join(filter(None, (os.environ.get(name), "127.0.0.1"))))
    served.broken = False
    served.wheels = {"1.0": wheel("1.0", "")}
    (runner.folder / "matrix.yaml").write_text(MATRIX.format(name=NAME, url=served.url))
    return served


def nights(runner: Runner) -> list[dict[str, Any]]:
    """Return what nights left, oldest first."""
    return [json.loads(path.read_text()) for path in sorted(runner.folder.glob("reports/nights/*.json"))]


@pytest.mark.slow
def test_a_new_release_is_measured_in_turns_with_the_base_and_confirmed(runner: Runner, index: PackageIndex) -> None:
    first = runner(*NIGHT, "--budget", "2m")
    assert first.returncode == 0, first.stderr
    locks = runner.folder / "reports/locks/np-follows"
    assert f"np-follows: {NAME} 1.0; its lock is reports/locks/np-follows/1.0.txt" in first.stdout
    assert {record["cell"].partition("/")[0] for record in runner.records()} == {"np-pinned", "np-follows"}
    rounds = [(record["round"], record["cell"].partition("/")[0]) for record in runner.records()]
    assert set(rounds) == {(number, name) for number in (1, 2, 3) for name in ("np-pinned", "np-follows")}

    index.wheels["1.1"] = wheel("1.1", ONE_THREAD + SLOW_NUMPY)
    second = runner(*NIGHT, "--budget", "2m")
    assert second.returncode == 1, second.stdout + second.stderr
    assert f"np-follows: {NAME} 1.1, was 1.0; its lock is" in second.stdout
    assert {path.stem for path in locks.glob("*.txt")} == {"1.0", "1.1"}  # the earlier release can be built again
    night = nights(runner)[-1]
    confirmed = [change for change in night["changes"] if change["confirmed_in"]]
    (slower,) = [change for change in confirmed if change["metric"] == "time"]  # the first call, too, has become slower
    assert (slower["environment"], slower["again"]["verdict"]) == ("np-follows", "slower")
    (pair,) = [pair for pair in night["pairs"] if pair["environment"] == "np-follows"]
    assert NAME in {entry["name"] for entry in pair["differences"]}
    assert not (runner.folder / "docker/locks/np-follows.txt").exists()  # the user's folder stays as it was

    index.broken = True
    planned = runner.json("plan", "np-follows", "--preset", "tiny", "--format", "json", "--backend", "venv")
    assert {cell["code"] for cell in planned["cells"]} == {"image-unavailable"}  # a plan follows nothing


@pytest.mark.slow
def test_one_night_runs_at_a_time_and_a_killed_one_is_named(runner: Runner, index: PackageIndex) -> None:
    running = runner.start(*NIGHT, "--rounds", "500")
    wait_for(lambda: len(runner.records()) >= 3)
    refused = runner(*NIGHT)
    assert refused.returncode == 75
    (night,) = nights(runner)
    assert f"in use by process {running.pid} on " in refused.stderr
    assert night["run"] in refused.stderr
    assert (night["state"], night["stage"]) == ("running", "measure")
    later = datetime.now().astimezone() + timedelta(minutes=30)
    assert runner("nightly", "--if-missed", f"{later:%H:%M}").returncode == 0  # which was last before this night began

    running.send_signal(signal.SIGKILL)
    running.communicate()
    index.broken = True  # and what a night does without its index
    after = runner(*NIGHT, "--budget", "2m")
    assert after.returncode == 0, after.stderr
    assert f"night {night['run']} was killed while it measured" in after.stdout
    assert f"the newest release of {NAME} is not known" in after.stdout
    assert f"the night measures {NAME} 1.0, as before" in after.stdout
    killed, done = nights(runner)
    assert (killed["state"], done["state"]) == ("killed", "done")
    header = journal_of(runner.folder / "reports/runs" / killed["run"])[0]
    lock = runner.folder / "reports/locks/np-follows/1.0.txt"
    assert header["locks"] == {"np-follows": str(lock)}  # so that it can be resumed


def test_a_schedule_that_missed_nothing_starts_nothing(runner: Runner) -> None:
    idle = runner(*NIGHT, "--if-missed", "02:30")
    assert idle.returncode == 0
    assert "none was missed" in idle.stderr
    assert idle.stdout == ""
    assert runner(*NIGHT, "--if-missed", "25:00").returncode == 2
    assert not Path(runner.folder, "reports/nights").exists()
