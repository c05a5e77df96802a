"""Memory beside time: recorded by real processes, compared, and held by a gate."""

import statistics
from pathlib import Path

import pytest

from tests.integration.conftest import Runner
from tests.support import models

NETWORK = """
import os
import numpy

GROWS = os.environ["ENVIRONMENT"] == "np-b"


class NumpyModel:
    def __init__(self, random):
        self.numbers = random.rand(1 << 14)
        self.held = numpy.ones((33 if GROWS else 30) << 17)
        self.kept = []

    def forward(self):
        if GROWS:
            self.kept.append(bytearray(1000))
        return (self.numbers * 2.0).sum()
"""
MIB = 2.0**20


def test_peaks_and_growth_are_those_of_each_process(tmp_path: Path) -> None:
    model = models.files(NETWORK)
    block = models.block(models.spec("small", model, phases=["forward"], sizes={}))
    outcomes = [record for record, _ in models.measured(models.planned([block], [model], seconds=0.5), tmp_path)]
    facts = {record.cell.environment: record.facts for record in outcomes}
    assert {record.status for record in outcomes} == {"ok"}, outcomes
    assert 30 * MIB < facts["np-a"]["step_peak_bytes"] < 32 * MIB
    assert facts["np-b"]["step_peak_bytes"] > 33 * MIB
    assert facts["np-a"]["growth_bytes_per_call"] < 100
    assert 1000 <= facts["np-b"]["growth_bytes_per_call"] < 1500
    for each in facts.values():
        assert 28 * MIB < each["build_peak_bytes"] <= each["first_call_peak_bytes"] + MIB
        assert 0 < each["first_call_seconds"] < 10


@pytest.mark.slow
def test_a_run_compares_each_metric_and_a_gate_reads_it(runner: Runner) -> None:
    how = ("--preset", "tiny", "--device", "cpu", "--threads", "1", "--backend", "venv", "--rounds", "4")
    ran = runner("run", *how, "--max-rounds", "4")
    assert ran.returncode == 0, ran.stderr
    document = runner.json("compare", "np-old", "np-new", "--format", "json")
    rows = {row["metric"]: row for row in document["metrics"]}
    assert {"memory", "first-call", "import", "size"} <= set(rows)
    assert (rows["size"]["verdict"], rows["size"]["ratio"]) == ("same", 1.0)
    assert rows["import"]["rounds"] == 3
    assert rows["memory"]["verdict"] != "not-comparable"
    peaks = [record["facts"]["step_peak_bytes"] for record in runner.records()]
    assert statistics.median(peaks) > 0
    shown = runner("compare", "np-old", "np-new", "--metric", "size")
    assert "installed size" in shown.stdout
    gated = runner("compare", "np-old", "np-new", "--fail-on", "size:5%,energy")
    assert gated.returncode == 8
    assert "no test has energy of a step" in gated.stderr
    assert runner("compare", "np-old", "np-new", "--fail-on", "size:5%").returncode == 0
