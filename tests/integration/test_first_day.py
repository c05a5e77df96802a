"""`nox -s gpu` on the stand-in for NVIDIA's driver: the real command with small checks, and its page."""

import json
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.first_day import limits, private
from benchmarks.first_day.__main__ import CHECKS
from tests.fakes.driver import UNSUPPORTED, StandIn
from tests.integration.conftest import ROOT, alive, wait_for

SMALL = ("--small", "--backend", "host", "--python", sys.executable)


def first_day(out: Path, *words: str) -> dict[str, Any]:
    """Run the command, and return the JSON that it writes."""
    command = [sys.executable, "-m", "benchmarks.first_day", *SMALL, "--out", str(out), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert str(out / "index.html") in done.stdout
    document: dict[str, Any] = json.loads((out / "first-day.json").read_text("utf-8"))
    return document


def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return name -> row of every check."""
    return {row["name"]: row for check in document["checks"] for row in check["rows"]}


def states(document: dict[str, Any]) -> dict[str, str]:
    """Return name -> state of every row."""
    return {name: row["state"] for name, row in rows(document).items()}


@pytest.mark.slow
def test_the_first_day_on_the_stand_in_has_a_page_of_what_held_and_what_could_not_be_tested(
    standin: StandIn, tmp_path: Path
) -> None:
    standin.rule(0, "nvmlDeviceGetPowerUsage", answer=UNSUPPORTED)
    standin.gpu.busy = 1
    document = first_day(tmp_path / "day")
    assert {check["check"]: check["end"] for check in document["checks"]} == {
        check.name: "finished" for check in CHECKS
    }
    by_name = states(document)
    for name in (
        "doctor finds the GPU",
        "GPU 0: a reading",
        "import of numpy in host",
        "time-out",
        "the cell after a time-out",
        "out of memory",
        "the cell after it ran out of memory",
        "processes after SIGKILL of the runner",
        "clocks after SIGKILL of the runner",
        "--resume finishes the killed run",
        "SIGKILL of a measuring child",
        "the quick run",
        "GPU 0: as before",
        "no clocks are held",
    ):
        assert by_name[name] == "held", name
    for name in ("twenty products by five clocks", "five precisions", "clocks and heat during the run"):
        assert by_name[name] == "not tested", name
    assert {each["verdict"] for each in document["predictions"]} == {"not tested"}
    answer = rows(document)["GPU 0: nvmlDeviceGetPowerUsage()"]
    assert (answer["detail"], answer["values"]["answer"]) == ("this GPU or its driver cannot do that", "unsupported")
    assert rows(document)["GPU 0: nvmlDeviceGetTemperature(0)"]["detail"] == "41"
    assert standin.pinned() == {}
    assert [call.name for call in standin.sets()][:1] == ["SetGpuLockedClocks"]
    check_folder(tmp_path / "day")


def check_folder(folder: Path) -> None:
    """Check the page, the report of the quick run, the zip, and that nothing private is in them."""
    page = (folder / "index.html").read_text("utf-8")
    assert "No GPU was measured." in page
    assert "no environment with torch is ready" in page
    assert "deepbench-gemm" in (folder / "quick" / "index.html").read_text("utf-8")
    with zipfile.ZipFile(folder.with_suffix(".zip")) as packed:
        names = set(packed.namelist())
        assert {"day/index.html", "day/first-day.json", "day/quick/index.html", "day/logs/kills.txt"} <= names
        texts = [packed.read(name).decode("utf-8", "replace") for name in names if Path(name).suffix in private.TEXTS]
    for text in texts:
        for secret in private.names():
            assert not re.search(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", text), secret
        assert not private.GPU_ID.search(text)


@pytest.mark.slow
def test_without_pinning_nothing_of_the_gpu_is_changed(standin: StandIn, tmp_path: Path) -> None:
    document = first_day(tmp_path / "day", "--no-pin", "--checks", "kills")
    assert document["settings"]["pin"] is False
    assert states(document)["--resume finishes the killed run"] == "held"
    assert "clocks after SIGKILL of the runner" not in states(document)
    assert standin.sets() == []


def test_a_driver_that_hangs_is_a_row_and_the_next_check_starts(standin: StandIn, tmp_path: Path) -> None:
    standin.rule(0, "nvmlDeviceGetCount*", seconds=3600.0)
    begin = time.monotonic()
    document = first_day(tmp_path / "day", "--checks", "readings,restored", "--minutes", "0.05")
    assert time.monotonic() - begin < 60 + limits.GRACE
    assert document["checks"][0]["end"] == "time limit"
    assert states(document)["the check itself"] == "did not hold"
    assert [check["check"] for check in document["checks"]] == ["readings", "restored"]


def test_a_time_limit_ends_all_that_a_check_has_started(tmp_path: Path) -> None:
    script = "import subprocess,sys,time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    end, seconds = limits.run([sys.executable, "-c", script], tmp_path / "log", 1.0, tmp_path)
    assert end == "time limit"
    assert 1.0 <= seconds < 1.0 + limits.GRACE
    pid = int((tmp_path / "log").read_text())
    assert pid != os.getpid()
    wait_for(lambda: not alive(pid))


def test_ends_of_commands_are_told_apart(tmp_path: Path) -> None:
    for code, end in ((0, "finished"), (3, "failed")):
        script = f"import sys; sys.exit({code})"
        assert limits.run([sys.executable, "-c", script], tmp_path / "log", 30.0, tmp_path)[0] == end
