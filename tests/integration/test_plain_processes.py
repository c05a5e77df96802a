"""Cells in fresh interpreters: what a script would see, in runs of the real program."""

import statistics
import sys
from pathlib import Path

from runner.core.model import Record
from runner.core.model.cells import plain
from tests.integration.conftest import Runner
from tests.support import models

NETWORK = """
import os
import resource
import numpy


class NumpyModel:
    def __init__(self, random):
        self.numbers = random.rand(1 << 17)
        self.calls, self.before = 0, 0

    def forward(self):
        chained = self.numbers * 2.0 + self.numbers * self.numbers - self.numbers * 3.0  # temporaries of 1 MiB
        self.calls += 1
        if self.calls in (10, 20):
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            with open({path!r}, "a") as file:
                print(os.environ.get("ENVIRONMENT"), self.calls, faults, file=file)
        return chained
"""

WRONG = 'if ENVIRONMENT == "np-b":\n    rectified = lambda x: x * (x > 0) * 1.01\n'
TRAINED = """
class NumpyModel:
    def __init__(self, random, precision):
        kind = "float64" if precision == "fp64" else "float32"
        self.weight = random.rand(8, 8).astype(kind)
        self.data = random.rand(4, 8).astype(kind)

    def forward(self):
        return self.data.dot(self.weight)

    def train(self):
        error = self.forward()
        self.weight -= 0.01 * self.data.T.dot(error)
        return (error * error).mean()
"""


def faults_per_call(path: Path) -> dict[str, float]:
    """Return environment -> the page faults of a call, of the process that was timed."""
    counts: dict[str, list[int]] = {}
    for line in path.read_text().splitlines():
        name, _, faults = line.split()
        counts.setdefault(name, []).append(int(faults))
    return {name: (last - first) / 10 for name, (first, last) in counts.items()}


def test_a_control_allocates_as_a_script_does_in_the_turns_of_its_original(tmp_path: Path) -> None:
    path = tmp_path / "faults"
    model = models.files(NETWORK.replace("{path!r}", repr(str(path))))
    of = models.block(models.spec("small", model, phases=["forward"], sizes={}))
    both = models.block(of.spec, [name for cell in of.cells for name in (cell.environment, plain(cell).environment)])
    outcomes = [record for record, _ in models.measured(models.planned([both], [model], seconds=0.5), tmp_path)]
    assert {record.status for record in outcomes} == {"ok"}, outcomes
    by_name: dict[str, Record] = {record.cell.environment: record for record in outcomes}
    for name in ("np-a", "np-b"):
        forked, control = by_name[name], by_name[f"{name}@plain"]
        assert (forked.facts["process"], control.facts["process"]) == ("fork", "plain")
        assert forked.facts["turns_with"] == control.facts["turns_with"]
        assert control.facts["turns"]
        assert "model_check" in forked.facts
        assert not {"model_check", "output_errors", "data_digest"} & set(control.facts)
        assert statistics.median(control.seconds) > 0
    counted = faults_per_call(path)
    assert set(counted) == {"np-a", "np-b", "np-a@plain", "np-b@plain"}
    assert all(faults > 200 for faults in counted.values()), counted  # 1 MiB has 256 pages, and none is kept


def test_a_run_measures_everything_in_plain_processes(runner: Runner, tmp_path: Path) -> None:
    file = tmp_path / "my_network.py"
    file.write_text(TRAINED)
    how = ("--backend", "host", "--python", sys.executable, "--framework", "numpy", "--process", "plain")
    ended = runner("run", *how, "--model", str(file), "--rounds", "2", "--seconds", "0.05", "--threads", "1")
    assert ended.returncode == 0, ended.stderr
    records = runner.records()
    assert {(record["status"], record["facts"]["process"]) for record in records} == {("ok", "plain")}
    assert {record["cell"].split("/")[4] for record in records} == {"forward", "train"}
    assert len(records) == 4
    for record in records:
        assert ("model_check" in record["facts"]) == (record["round"] == 1), record["cell"]
    checked = [record["facts"]["model_check"] for record in records if record["round"] == 1]
    assert {(check["by"], check["fp64"]) for check in checked} == {("state", True)}


def test_a_wrong_result_is_found_before_a_plain_process_is_timed(tmp_path: Path) -> None:
    model = models.files(models.NETWORK + WRONG)
    plan = models.planned([models.block(models.spec("small", model))], [model], process="plain")
    outcomes = {f"{r.cell.environment}/{r.cell.phase}": r for r, _ in models.measured(plan, tmp_path)}
    assert (outcomes["np-a/train"].status, outcomes["np-b/train"].failure) == ("ok", "wrong-result")
    assert outcomes["np-b/train"].seconds == ()
