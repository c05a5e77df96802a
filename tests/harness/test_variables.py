"""What the processes of an environment find in their environment, with real servers."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.model import Limits, Outcome, Plan, Provisioned, Record
from runner.core.model.variant_ids import Launch
from runner.measure.record import collect
from runner.measure.references import References
from runner.measure.rounds import Hooks, measure
from runner.measure.server_pool import ServerPool
from tests.support.fake_servers import GB
from tests.support.models import LocalBackend, block, files, planned, spec

TELLS = """\
import os
import numpy


class NumpyModel:
    def __init__(self, random):
        at_start = open("/proc/self/environ").read().split(chr(0))
        counts = [os.environ.get(name + "_NUM_THREADS", "-") for name in ("OMP", "MKL", "OPENBLAS")]
        raise ValueError("A at start: {}; threads {}".format("A=1 2" in at_start, " ".join(counts)))

    def forward(self):
        return numpy.zeros(1)
"""
SETS = """\
import os
import numpy

os.environ["OMP_PROC_BIND"] = "true"


class NumpyModel:
    def __init__(self, random):
        os.environ["MKL_CBWR"] = "AVX2"
        os.environ["MY_OWN"] = "1"
        self.x = random.rand(8)

    def forward(self):
        return self.x * 2
"""


def records(text: str, launches: Mapping[str, Launch], folder: Path, **how: object) -> dict[str, Record]:
    """Measure a network in one round; return environment -> its record."""
    model = files(text)
    specification = spec("default", model, phases=["forward"], sizes={}, takes_precision=[])
    plan: Plan = replace(planned([block(specification, tuple(launches))], [model], **how), launches=launches)
    ready = {
        name: Provisioned(
            environment=name,
            framework="numpy",
            handle="h",
            digest="d",
            seconds=0.0,
            cached=True,
            variables=launch.variables,
        )
        for name, launch in launches.items()
    }
    limits = Limits(memory=16 * GB, side_by_side=2)
    with contextlib.closing(ServerPool(plan, ready, LocalBackend(folder), limits, print)) as servers:
        events = measure(plan, servers, References(folder / "references", 1), Hooks(say=print))
        outcomes = [event for event in events if isinstance(event, Outcome)]
    return {outcome.cell.environment: collect(outcome, "run", {"device": "cpu"})[0] for outcome in outcomes}


def test_variables_are_there_when_the_interpreter_starts_and_replace_the_runner_s_thread_counts(tmp_path: Path) -> None:
    starts = {"np-a": Launch(variables={"A": "1 2", "MKL_NUM_THREADS": "7"}), "np-b": Launch(threads=3)}
    made = records(TELLS, starts, tmp_path, threads=2)
    assert "A at start: True; threads 2 7 2" in str(made["np-a"].reason)
    assert made["np-a"].facts["env"] == {"A": "1 2", "MKL_NUM_THREADS": "7"}
    assert "env" not in made["np-b"].facts


def test_libraries_fall_back_to_the_user_s_count_of_openmp(tmp_path: Path) -> None:
    made = records(TELLS, {"np-a": Launch(variables={"OMP_NUM_THREADS": "7"})}, tmp_path, threads=2)
    assert "threads 7 - -" in str(made["np-a"].reason)


def test_each_environment_is_given_its_own_number_of_threads(tmp_path: Path) -> None:
    made = records(TELLS, {"np-b": Launch(threads=3)}, tmp_path, threads=2)
    assert "A at start: False; threads 3 3 3" in str(made["np-b"].reason)


def test_variables_that_the_user_s_file_sets_after_the_import_are_named(tmp_path: Path) -> None:
    made = records(SETS, {"np-a": Launch()}, tmp_path)
    assert made["np-a"].status == "ok"
    assert made["np-a"].facts["set_too_late"] == ["MKL_CBWR", "OMP_PROC_BIND"]


def test_a_library_to_preload_that_is_missing_is_a_failure_and_no_silence(tmp_path: Path) -> None:
    made = records(SETS, {"np-a": Launch(variables={"LD_PRELOAD": "/nowhere/libtcmalloc.so.4"})}, tmp_path)
    assert made["np-a"].failure == "import"
    expected = "LD_PRELOAD names /nowhere/libtcmalloc.so.4, and this environment has no such library"
    assert made["np-a"].reason == expected


def test_a_library_to_preload_is_loaded(tmp_path: Path) -> None:
    library = next((path for path in Path("/lib/x86_64-linux-gnu").glob("libm.so.6")), None)
    if library is None:
        pytest.skip("no libm where Debian has it")
    assert records(SETS, {"np-a": Launch(variables={"LD_PRELOAD": str(library)})}, tmp_path)["np-a"].status == "ok"
