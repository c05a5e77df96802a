"""``--phase`` on the command line: compile phases of a user's network, which no matrix lists, in real runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.integration.conftest import Runner

NETWORK = """\
import time

import numpy


class NumpyModel:
    def __init__(self, random):
        time.sleep(0.05)
        self.x, self.is_built = random.rand(16), False

    def forward(self):
        if not self.is_built:
            time.sleep(0.1)
            self.is_built = True
        return self.x * 2.0
"""
LENGTHS = ("--rounds", "3", "--max-rounds", "3", "--seconds", "0.05", "--backend", "venv")


def test_what_building_and_the_first_call_take_is_compared(runner: Runner) -> None:
    (runner.folder / "net.py").write_text(NETWORK)
    phases = ("--phase", "compile", "--phase", "compile-warm")
    done = runner("run", "np-old", "np-new", "--model", "net.py", *phases, *LENGTHS)
    assert done.returncode == 0, done.stderr
    records = runner.records()
    names, cases = ("np-old", "np-new"), ("compile", "compile-warm")
    assert {each["cell"] for each in records if "@" not in each["cell"]} == {
        f"{name}/model/net/default/{phase}/fp32" for name in names for phase in cases
    }
    for record in records:
        assert record["status"] == "ok", record
        (seconds,) = record["seconds"]
        assert seconds > 0.15
        assert "step_peak_bytes" not in record["facts"]
    rows = runner.json("compare", "np-old", "np-new", "--format", "json")["rows"]
    assert {row["phase"] for row in rows} == set(cases)
    for row in rows:
        assert (row["rounds"], row["verdict"] == "not-comparable") == (3, False), row
        old, new = (seconds_by_round(records, f"{name}/model/net/default/{row['phase']}/fp32") for name in names)
        ratios = [new[number] / old[number] for number in (1, 2, 3)]
        assert min(ratios) <= row["ratio"] <= max(ratios)  # what a busy machine does to the times is in both


def seconds_by_round(records: Sequence[Mapping[str, Any]], cell: str) -> dict[int, float]:
    """Return the one time of a cell in each round."""
    return {record["round"]: record["seconds"][0] for record in records if record["cell"] == cell}


def test_a_phase_that_no_case_has_selects_nothing(runner: Runner) -> None:
    (runner.folder / "net.py").write_text(NETWORK)
    done = runner("plan", "np-old", "np-new", "--model", "net.py", "--phase", "train", "--backend", "venv")
    assert done.returncode == 3
    assert "no test matches the selection (workload net; phase train; environment np-old, np-new)" in done.stderr
