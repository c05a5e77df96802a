"""Rows, time limits, and what must not leave the machine."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from benchmarks.first_day import private
from benchmarks.first_day.__main__ import CHECKS
from benchmarks.first_day.checks import quick, readings
from benchmarks.first_day.limits import Allowance, ended
from benchmarks.first_day.rows import Result, Row, counts, line, read, with_end
from benchmarks.first_day.settings import Settings

ROOT = Path(__file__).parents[3]


def test_rows_are_lines_and_a_cut_line_is_left_out() -> None:
    rows = [Row("a", "held", "1 ms", {"seconds": 0.001}), Row("b", "not tested", "no GPU")]
    lines = [line(row) for row in rows]
    assert list(read(lines)) == rows
    assert list(read([*lines, lines[0][:-5]])) == rows


@pytest.mark.parametrize(
    ("end", "state", "words"),
    [
        ("failed", "did not hold", "logs/x.txt"),
        ("time limit", "did not hold", "30 s"),
        ("interrupted", "not tested", "interrupted"),
        ("left out", "not tested", "used up"),
    ],
)
def test_a_check_that_does_not_finish_is_a_row_after_those_it_has(end: str, state: str, words: str) -> None:
    first = Row("a", "held")
    result = with_end(Result("x", "X", end, 3.0, 30.0, (first,)))  # type: ignore[arg-type]
    assert result.rows[0] == first
    assert result.rows[1].state == state
    assert words in result.rows[1].detail
    assert with_end(Result("x", "X", "finished", 3.0, 30.0, (first,))).rows == (first,)


def test_rows_are_counted_by_state() -> None:
    results = [
        Result("x", "X", "finished", 1, 1, (Row("a", "held"), Row("b", "read"))),
        Result("y", "Y", "failed", 1, 1),
    ]
    assert counts(map(with_end, results)) == {"held": 1, "did not hold": 1, "not tested": 0, "read": 1}


def test_checks_share_the_time_of_the_session_and_downloads_do_not_count() -> None:
    allowance = Allowance(100.0)
    assert allowance.limit(60.0, counts=True) == 60.0
    allowance.use(70.0, counts=True)
    assert allowance.limit(60.0, counts=True) == 30.0
    allowance.use(900.0, counts=False)
    assert allowance.limit(3600.0, counts=False) == 3600.0
    allowance.use(40.0, counts=True)
    assert allowance.limit(60.0, counts=True) == 0.0


class Process:
    """A process that ends at a signal, or by itself."""

    pid = 42

    def __init__(self, code: int | None, ends_at: int | None) -> None:
        """Take the exit code of its own end, and the signal that ends it."""
        self.code, self.ends_at = code, ends_at
        self.signals: list[int] = []

    def wait(self, timeout: float | None = None) -> int:
        """See limits.Process."""
        if self.code is None and self.ends_at in self.signals:
            self.code = -self.signals[-1]
        if self.code is None:
            assert timeout is not None, "it would wait for ever"
            raise subprocess.TimeoutExpired("x", timeout)
        return self.code

    def signal(self, pid: int, number: int) -> None:
        """Take a signal."""
        assert pid == self.pid
        self.signals.append(number)


@pytest.mark.parametrize(
    ("code", "ends_at", "end", "signals"),
    [
        (0, None, "finished", []),
        (1, None, "failed", []),
        (None, signal.SIGTERM, "time limit", [signal.SIGTERM, signal.SIGKILL]),
        (None, signal.SIGKILL, "time limit", [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]),
    ],
)
def test_a_check_that_hangs_is_ended_gently_first(
    code: int | None, ends_at: int | None, end: str, signals: list[int]
) -> None:
    process = Process(code, ends_at)
    assert ended(process, 30.0, process.signal, grace=1.0) == end
    assert process.signals == signals


def test_settings_survive_the_way_to_a_check() -> None:
    settings = Settings(folder=Path("/a"), scratch=Path("/b"), selectors=("torch-2.x",), pin=False, limit=12.5)
    assert Settings.read(settings.text()) == settings


def test_options_ask_for_the_same_device_backend_and_clocks() -> None:
    settings = Settings(folder=Path("/a"), scratch=Path("/b"), backend="venv", pin=False, selectors=("torch-*",))
    options = settings.options(preset="quick")
    assert (options.device, options.backend, options.pin, options.preset) == ("cuda", "venv", False, "quick")
    assert settings.command("run", options)[2:5] == ["runner", "run", "torch-*"]


def test_homes_hosts_users_and_ids_of_gpus_are_replaced_and_nothing_else() -> None:
    clean = private.cleaner(
        {"/home/ann/matrix-runner": "REPOSITORY", "/home/ann": "~", "node7": "host-1", "ann": "USER"}
    )
    uuid = "GPU-0a1b2c3d-0000-1111-2222-333344445555"
    assert clean("/home/ann/matrix-runner/x /home/ann/y ann@node7") == "REPOSITORY/x ~/y USER@host-1"
    assert clean("annex node77 bannister") == "annex node77 bannister"
    assert clean(uuid) == f"GPU-{private.hashed(uuid)}" == clean(uuid)
    assert len(clean(uuid)) == len("GPU-") + 8


def test_values_are_cleaned_and_keys_stay() -> None:
    clean = private.cleaner({"ann": "USER"})
    assert private.clean_values({"ann": {"a": ("ann", 1, None)}}, clean) == {"ann": {"a": ["USER", 1, None]}}


def test_every_text_of_a_folder_is_cleaned(tmp_path: Path) -> None:
    (tmp_path / "quick").mkdir()
    for name in ("a.html", "quick/b.json", "quick/c.bin"):
        (tmp_path / name).write_text("ann")
    private.clean_folder(tmp_path, private.cleaner({"ann": "USER"}))
    assert [(tmp_path / name).read_text() for name in ("a.html", "quick/b.json", "quick/c.bin")] == [
        "USER",
        "USER",
        "ann",
    ]


def test_every_getter_that_the_runner_calls_is_read() -> None:
    source = (ROOT / "runner" / "gpu" / "nvml.py").read_text("utf-8")
    called = set(re.findall(r'"(nvmlDeviceGet\w+)"', source))
    listed = {name for name, _ in readings.GETTERS} | set(readings.ENUMERATING) | {"nvmlDeviceGetFieldValues"}
    assert called <= listed


def test_every_check_is_documented_with_its_time_limit() -> None:
    page = (ROOT / "docs" / "how-to" / "first-day-with-a-gpu.md").read_text("utf-8")
    for check in CHECKS:
        assert re.search(rf"^\| `{check.name}` \|.*\| {check.seconds / 60:g} min \|$", page, re.MULTILINE), check


def test_the_estimate_of_the_quick_run_is_that_of_the_measurements_it_made() -> None:
    """A budget of eight minutes ends a plan of forty; that says nothing about the estimates."""
    cells = [{"id": "a", "seconds": 90.0}, {"id": "b", "seconds": 30.0}, {"id": "never measured", "seconds": 9000.0}]
    records = [{"cell": "a"}, {"cell": "b"}, {"cell": "b"}]
    assert quick.estimated_seconds({"rounds": 3, "cells": cells}, records) == 50.0
    assert quick.estimate_row(50.0, 60.0).state == "held"
    assert quick.estimate_row(50.0, 10.0).state == "did not hold"
    assert quick.estimate_row(0.0, 10.0).state == quick.estimate_row(50.0, 0.0).state == "not tested"


def test_cells_that_the_budget_had_no_time_for_count_as_skipped() -> None:
    cells = [
        {"id": name, "workload": "w", "case": name[0], "code": code}
        for name, code in (("a1", None), ("a2", None), ("b1", None), ("a3", "arch"))
    ]
    events = [{"event": "skipped", "case": "w/a"}, {"event": "round", "case": "w/b"}]
    codes = quick.skip_codes({"cells": cells}, [{"cell": "a2"}, {"cell": "b1"}], events)
    assert codes == {"a1": "over-budget", "a2": None, "b1": None, "a3": "arch"}
