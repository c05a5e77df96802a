"""Nights through the real command line: nothing changed, a planted slow-down, a harmless change, an interruption."""

import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.backends.venv import READY, VenvBackend
from runner.core.model import Spec
from runner.core.paths import cache_folder
from tests.integration.conftest import PATIENCE, Runner, journal_of, wait_for
from tests.support.receivers import Received, http_server
from tests.support.slow_numpy import SLOW_NUMPY, copy_with_code

NIGHT = ("nightly", "np-old", "--preset", "tiny", "--device", "cpu", "--threads", "1", "--backend", "venv")
QUICK = ("--seconds", "0.1", "--budget", "3m")

Change = Callable[[str], Path]


@pytest.fixture
def change(runner: Runner) -> Iterator[Change]:
    """Give np-old another lock, and the virtual environment that goes with it: a copy, with code added to NumPy.

    Sessions share the folder of environments, so the names of the copies are random.
    """
    session = secrets.token_hex(8)
    backend = VenvBackend(cache_folder(os.environ))
    lock = runner.folder / "docker/locks/numpy.txt"
    spec = Spec(environment="np-old", framework="numpy", release="2.4.6", python="3.11", lock=lock)
    made: list[Path] = []

    def changed(code: str) -> Path:
        assert runner("build", *NIGHT[1:]).returncode == 0
        before = backend.home(spec)
        lock.write_text(lock.read_text() + f"# change {len(made)} of {session}\n")
        home = backend.home(spec)
        made.append(home)
        copy_with_code(before, home, code)
        assert (home / READY).exists()
        return home

    yield changed
    for home in made:
        shutil.rmtree(home)


def last_night(runner: Runner) -> dict[str, Any]:
    """Return what the newest night left."""
    path = max(runner.folder.glob("reports/nights/*.json"))
    night: dict[str, Any] = json.loads(path.read_text())
    return night


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A webhook that gets the alerts of all nights."""
    with http_server() as received:
        monkeypatch.setenv("MATRIX_RUNNER_ALERTS", f"json://127.0.0.1:{received.port}/hook")
        yield received


def test_a_planted_slow_down_is_named_and_ends_when_it_is_accepted(
    runner: Runner, change: Change, hook: Received
) -> None:
    first = runner(*NIGHT, *QUICK)
    assert first.returncode == 0, first.stderr
    assert "nothing to compare with" in first.stdout

    unchanged = runner(*NIGHT, *QUICK)
    assert unchanged.returncode == 0, unchanged.stdout + unchanged.stderr
    assert "no regression confirmed" in unchanged.stdout
    night = last_night(runner)
    assert (night["state"], night["compared"]) == ("done", 2)
    assert not [entry for entry in night["changes"] if entry["state"] != "same-environment"]
    assert night["pairs"] == []

    change(SLOW_NUMPY)
    slow = runner(*NIGHT, *QUICK, "--format", "json")
    assert slow.returncode == 1, slow.stdout + slow.stderr
    night = last_night(runner)
    assert json.loads(slow.stdout) == night
    repeated = [entry for entry in night["changes"] if entry["again"] and entry["again"]["verdict"] == "slower"]
    assert {entry["environment"] for entry in repeated} == {"np-old"}
    named = [entry for entry in repeated if entry["metric"] == "time"]  # the first call, too, has become slower
    assert named
    assert all(2 < entry["again"]["ratio"] < 5 for entry in named)  # three times as long
    assert all(entry["again"]["rounds"] >= 3 for entry in named)
    assert {pair["base"] for pair in night["pairs"]} <= {f"np-old@{entry['before']}" for entry in night["changes"]}
    for pair in night["pairs"]:
        assert "digest" in {entry["name"] for entry in pair["differences"]}
        assert Path(runner.folder, pair["folder"], "index.html").exists()
    ((_, alert),) = hook.requests
    title, text = (json.loads(alert)[name] for name in ("title", "message"))
    assert title.startswith("np-old ")
    assert "x slower" in title
    assert "alternating" in text
    (opened,) = night["alerts"]
    assert runner("alerts", "--issue", opened["key"]).stdout.startswith(f"# {title}")

    accepted = runner("history", "accept", "np-old", "--reason", "as planted")
    assert accepted.returncode == 0, accepted.stderr
    assert len(accepted.stdout.splitlines()) == night["measured"]
    after = runner(*NIGHT, *QUICK)
    assert after.returncode == 0, after.stdout + after.stderr
    assert {entry["before"] for entry in last_night(runner)["changes"]} <= {night["run"]}
    (closed,) = [json.loads(body)["title"].partition(":")[2] for _, body in hook.requests[1:]]
    assert closed.startswith(" no longer slower")  # "or worse in first call"
    assert closed.endswith(f" on {night['device_name'].replace('@', ' at ')}")
    assert runner("alerts").stdout == "no alert is open\n"


@pytest.mark.slow
def test_a_change_of_nothing_is_measured_again_and_not_named_twice(runner: Runner, change: Change) -> None:
    """Equal sides are called slower with a probability of FALSE_ALARM_LEVEL / 2 for each row.

    For the five rows whose noise leaves it to chance, that is 1.7 % of the nights, and 3 of 10,000 pairs of nights.
    """
    assert runner(*NIGHT, *QUICK).returncode == 0
    nights: list[subprocess.CompletedProcess[str]] = []
    while len(nights) < 2 and not any(night.returncode == 0 for night in nights):
        change("\n# nothing of it changes\n")
        nights.append(runner(*NIGHT, *QUICK))
        assert {entry["state"] for entry in last_night(runner)["changes"]} <= {"measured-again"}
    assert nights[-1].returncode == 0, nights[-1].stdout + nights[-1].stderr


@pytest.mark.slow
def test_a_removed_environment_confirms_nothing(runner: Runner, change: Change) -> None:
    was = change("\n# as it was\n")
    assert runner(*NIGHT, *QUICK).returncode == 0
    change(SLOW_NUMPY)
    (was / READY).unlink()
    night = runner(*NIGHT, *QUICK)
    assert night.returncode == 0, night.stdout + night.stderr
    assert "no longer exists" in night.stdout
    assert {entry["state"] for entry in last_night(runner)["changes"]} == {"environment-gone"}


@pytest.mark.slow
def test_a_night_that_is_interrupted_keeps_its_half(runner: Runner) -> None:
    assert runner("build", *NIGHT[1:]).returncode == 0
    process = runner.start(*NIGHT, "--rounds", "500")
    wait_for(lambda: len(runner.records()) >= 5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"`{runner.name} run --resume " in err
    (half,) = runner.folder.glob("reports/runs/[!.]*")
    ended = journal_of(half)[-1]
    assert (ended["event"], ended["how"]) == ("ended", "interrupted")
    records = [record for record in runner.records() if record["status"] == "ok"]
    assert len(records) >= 5

    night = runner(*NIGHT, *QUICK)
    assert night.returncode == 0, night.stderr
    assert "nothing to compare with" in night.stdout
    assert len(list(half.glob("records/*.json"))) == len(runner.records()) - len(
        list(max(runner.folder.glob("reports/runs/[!.]*")).glob("records/*.json"))
    )


@pytest.mark.slow
def test_a_night_that_is_interrupted_while_it_measures_again_says_so(runner: Runner, change: Change) -> None:
    assert runner(*NIGHT, *QUICK).returncode == 0
    change(SLOW_NUMPY)
    process = runner.start(*NIGHT, *QUICK)
    wait_for(lambda: list(runner.folder.glob("reports/nights/*/runs/[!.]*/records/*.json")))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert f"`{runner.name} nightly` measures it again" in err
    night = last_night(runner)
    assert night["state"] == "interrupted"
    assert {entry["state"] for entry in night["changes"]} == {"interrupted"}
    resumed = runner("run", "--resume")
    assert resumed.returncode == 3
    assert "unfinished" in resumed.stderr
