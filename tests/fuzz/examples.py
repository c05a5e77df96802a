"""What the inputs start from: a stored run with every event and fact, nights, anchors, and a server's replies."""

import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from runner.backends import harness_archive
from runner.catalog.cases import asr_lstm
from runner.core.facts import FACTS
from runner.core.json import parse_object
from runner.core.model import Cell, Measurement
from runner.plan.document import fingerprint
from tests.support.fake_runs import MACHINE, bad, cell, environments, good, plan, times

BASE, OTHER = "torch-1.0", "torch-2.x"
EARLIER, TONIGHT = "20261119-104500-aaaa", "20261120-104500-bbbb"
CELLS = (cell(BASE), cell(OTHER), cell(OTHER, "lstm-cell-basic"), cell(f"{OTHER}@twin"))
CASE = dict(asr_lstm.CASES[0])
MEASUREMENT = asdict(Measurement(rounds=3, max_rounds=6, seconds=2.0, threads=2, budget=3600.0))
FACT_VALUES: Mapping[str, Any] = {
    "batch": 10,
    "clock_seconds": 2e-8,
    "warmup_seconds": 0.5,
    "steady": True,
    "swapped_bytes": 0,
    "build_seconds": 0.25,
    "check_seconds": 0.125,
    "child_seconds": 3.0,
    "round_seconds": 3.5,
    "turns": [2, 3],
    "turns_with": "asr-lstm/1x320-ce-short/1/0",
    "leads": [0.1, 0.2],
    "first_call": 30,
    "catch_up_seconds": 0.125,
    "cpus": [0, 1],
    "load": 0.5,
    "others_busy": 0.01,
    "os_threads": 4,
    "minor_faults_per_call": 993.5,
    "instructions_per_call": 1.25e6,
    "major_faults_per_call": 0.0,
    "voluntary_switches_per_call": 0.25,
    "involuntary_switches_per_call": 0.01,
    "peak_resident_bytes": 1 << 28,
    "huge_page_bytes": 2 << 20,
    "build_peak_bytes": 30 << 20,
    "first_call_peak_bytes": 40 << 20,
    "step_peak_bytes": 40 << 20,
    "growth_bytes_per_call": 0.0,
    "first_call_seconds": 0.75,
    "compiled_graphs": 3,
    "graph_breaks": 1,
    "graph_break_reasons": ["Data-dependent branching"],
    "recompilations": 1,
    "stolen": 0.0,
    "clock_mhz": [2400.0, 2400.0, 2395.0],
    "throttled": 1,
    "held_back": ["heat"],
    "waited_after": "heat",
    "wait_seconds": 0.0,
    "latency_seconds": 0.001,
    "dispatch_seconds": 0.0005,
    "device_seconds": 0.12,
    "device_time_method": "events",
    "host_bound": False,
    "peak_bytes": 1 << 30,
    "power_watts": 250.0,
    "temperature_celsius": 60,
    "joules_per_step": 0.25,
    "forward_error": 1e-7,
    "loss_error": 1.5e-7,
    "gradient_errors": {"weight": 1e-6, "bias": None},
    "output_errors": {"output": 1e-7},
    "model_check": {
        "by": "state",
        "base": "torch-1.0",
        "reason": "",
        "fp64": True,
        "no_update": "",
        "later": "",
        "tolerance": {"loss": 1e-5},
    },
    "data_digest": "d1",
    "checked_case": None,
    "trained_weights": 1000,
    "arithmetic": "eager",
    "set_too_late": ["XLA_FLAGS"],
    "conduct": ["a thread of the network has left the CPUs that --threads gives it"],
    "process": "fork",
    "gpu_affinity": "0-1",
    "opened_by_import": "",
}
"""Fact of a record -> a likely value; all that the harness can report."""


def reply(**changes: Any) -> dict[str, Any]:
    """Return what the harness answers to ``measure`` when it went well, with every fact that it can have."""
    harness = {
        (*fact.other_names, fact.name)[0]: FACT_VALUES[fact.name] for fact in FACTS if fact.recorder == "harness"
    }
    seconds = {"seconds": times(0.25), "warmup": [0.5, 0.3], "compile_seconds": 1.5}
    losses = {"loss": [2.0, 1.5, 1.25], "reference_loss": [2.0, 1.5, 1.25]}
    return {"reply": "result", "status": "ok", **seconds, **losses, **harness, "log": "", "settles": True, **changes}


def hello(**changes: Any) -> dict[str, Any]:
    """Return what a server answers to ``hello``."""
    facts = {
        "version": "1.0.0",
        "numpy": "1.19.5",
        "blas": "MKL",
        "onednn": "2.1",
        "intra_op_threads": 2,
        "cpu": "avx2",
    }
    rest = {
        "protocol": 1,
        "packages": {"numpy": "1.19.5", "torch": "1.0.0"},
        "import_seconds": 0.5,
        "import_cpu_seconds": 0.4,
    }
    return {"reply": "result", "status": "ok", "facts": facts, **rest, "bytes": 10**8, "python": "3.6.9", **changes}


def header(document: Mapping[str, Any], cases: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a run with a plan."""
    return {
        "at": "2026-11-20T10:45:00Z",
        "plan": fingerprint(document, cases),
        "measurement": MEASUREMENT,
        "backend": "venv",
        "device": "cpu",
        "device_name": MACHINE["cpu"],
        "driver": None,
        "matrix": "/nowhere/matrix.yaml",
        "python": None,
        "framework": None,
        "clocks": {"sm": "leave", "memory": "leave", "force": False},
        "pin": True,
        "harness": harness_archive.version(),
        "digests": {BASE: "sha256:" + "ab" * 32, OTHER: "sha256:" + "cd" * 32},
        "command": ["run", "--preset", "quick"],
        "program": "0.1.0",
    }


@cache
def folder(run: str) -> Mapping[str, Any]:
    """Return the files of a stored run: name -> JSON document; of a file that ends in ``.jsonl``, a list of them."""
    from runner.store.run import Run
    from tests.support.fake_runs import NOW

    document, cases = plan_of_cells(), {CELLS[0].case_id: CASE}
    with tempfile.TemporaryDirectory() as name:
        stored = Run.create(Path(name), document, cases, {**MACHINE, "host": "box"}, header(document, cases), NOW)
        stored.write_environments(environments(CELLS))
        _fill(stored, run)
        files: dict[str, Any] = {}
        for path in sorted(stored.path.rglob("*.json*")):
            lines = path.read_text().splitlines()
            documents = [parse_object(line, path, 1) for line in lines]
            files[str(path.relative_to(stored.path))] = documents if path.suffix == ".jsonl" else documents[0]
    return files


def plan_of_cells() -> dict[str, Any]:
    """Return the plan of the cells, with one that is skipped."""
    from runner.core.model import Skip

    document = plan(CELLS, {cell("theano-0.9", "theano-scan"): Skip("no-interpreter", "there is no Python 2.7")})
    for entry in document["cells"]:
        entry |= {"framework": entry["environment"].split("-")[0], "source": None, "nearest": [], "jit": None}
        entry["deferred"] = None
    settings = {name: MEASUREMENT[name] for name in ("rounds", "budget", "seconds", "threads", "seed", "max_rounds")}
    return {**document, "device": "cpu", "backend": "venv", **settings}


def _fill(stored: Any, run: str) -> None:
    case = CELLS[0].case_id
    stored.note("groups", device="cpu", groups=[[BASE, OTHER, f"{OTHER}@twin"]], spent=1.0)
    for number in (1, 2, 3):
        stored.note("canary", case=case, round=number, seconds=0.01 + number / 10_000, spent=float(number))
        for position, of in enumerate(CELLS):
            stored.add(_record(of, number, 0.2 + position / 10, run), "", float(number))
        stored.note("round", case=case, round=number, spent=10.0 * number)
        stored.note("times", device="cpu", round=number, seconds={"samples": 8.0, "import": 1.0}, spent=10.0 * number)
    stored.add(bad(cell(BASE, "lstm-cell-fused"), 1, "oom", "it took more than 8 GiB", run), "log", 31.0)
    stored.note("resumed", digests={OTHER: "sha256:" + "cd" * 32})
    stored.note("further", round=4, cells=2, spent=32.0)
    stored.note("skipped", case="lm-lstm/ptb-small", reason="no time", spent=33.0)
    stored.note("ended", how="done")


def _record(of: Cell, number: int, seconds: float, run: str) -> Any:
    from dataclasses import replace

    harness = {name: value for name, value in FACT_VALUES.items() if value != ""}
    return replace(good(of, number, times(seconds * (1 + number / 100)), run, **harness), attempt=1)


def night() -> dict[str, Any]:
    """Return a stored night with a change that was measured in turns, and one that was not."""
    of = CELLS[1]
    names = ("environment", "implementation", "workload", "case", "phase", "precision")
    row: dict[str, Any] = {
        "base_seconds": 0.2,
        "seconds": 0.3,
        "ratio": 1.5,
        "ratio_low": 1.4,
        "ratio_high": 1.6,
        "rounds": 9,
    }
    row |= {"rounds": 9, "more_rounds": 0, "p_value": 1e-5, "verdict": "slower", "code": "", "reason": ""}
    change = {
        "cell": of.id,
        **{name: getattr(of, name) for name in names},
        "before": EARLIER,
        "against": "baseline",
        "state": "measured-again",
        **row,
        "confirmed_in": "",
        "digest": "sha256:" + "cd" * 32,
        "again": {**row, "run": TONIGHT},
    }
    later = {**change, "against": "anchor", "state": "environment-gone", "again": None}
    rest = {"exit_code": 1, "measured": 3, "failed": [], "compared": 2, "pairs": [], "notes": []}
    seconds = {of.id: 0.3, CELLS[0].id: 0.2}
    return {"version": 2, "run": EARLIER, "state": "done", **rest, "changes": [change, later], "seconds": seconds}


def anchors() -> dict[str, Any]:
    """Return stored anchors."""
    pins = {of.id: {"run": EARLIER, "accepted": False} for of in CELLS[:2]}
    return {"version": 1, "devices": {f"venv {MACHINE['cpu']}": pins}}
