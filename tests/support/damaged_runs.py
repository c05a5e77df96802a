"""Run folders that were damaged by accident or changed by hand, and the commands that read them."""

import io
import json
import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from runner.analysis import dataset
from runner.analysis.analyse import analyse_run
from runner.backends import harness_archive
from runner.core.errors import RunnerError
from runner.core.model import Measurement, Record
from runner.nights.looks import earlier_nights
from runner.plan.document import fingerprint
from runner.report import FORMATS, accuracy, render
from runner.session.check import check
from runner.session.execution.header import check_program, read_header
from runner.session.execution.resume import past, stored_plan
from runner.session.listing import listing
from runner.session.results import comparison, find_run, run_accuracy, run_answer, write_report
from runner.store.run import Run
from runner.watch.nightly.baseline import find_baselines
from tests.support.changed_runs import reseal
from tests.support.fake_runs import bad, cell, environments, facts, good, plan, times

NO_MATRIX = Path("no-matrix.yaml")
SIDES = ("torch-1.0", "torch-2.x")
NAMES = (*SIDES, "torch-2.x@twin")
NUMBERS = (1, 2, 3)
CASE = {"workload": "rnn-step", "case": "lstm-b32-h128"}
MEASURED_FACTS: Mapping[str, Any] = {
    "device": "H200",
    "device_name": "H200",
    "device_uuid": "GPU-1",
    "driver": "575.57",
    "clocks": "locked",
    "pinned": "SM base, memory 2619 MHz",
    "batch": 4,
    "clock_seconds": 1.3e-7,
    "warmup_seconds": 0.3,
    "steady": True,
    "swapped_bytes": 0,
    "build_seconds": 0.3,
    "check_seconds": 0.01,
    "child_seconds": 2.9,
    "round_seconds": 3.0,
    "turns": [2, 3],
    "turns_with": "1/0",
    "leads": [0.01, 0.02],
    "cpus": [0, 1],
    "gpu_affinity": "near the GPU, NUMA node 1",
    "load": 0.8,
    "others_busy": 0.1,
    "os_threads": 4,
    "minor_faults_per_call": 993.5,
    "major_faults_per_call": 0.0,
    "voluntary_switches_per_call": 0.25,
    "involuntary_switches_per_call": 0.01,
    "peak_resident_bytes": 1 << 28,
    "huge_page_bytes": 2 << 20,
    "stolen": 0.0,
    "clock_mhz": [1980, 1980, 1980],
    "memory_clock_mhz": [2619, 2619, 2619],
    "throttled": 1,
    "held_back": ["heat"],
    "power_watts": 300.0,
    "temperature_celsius": 55,
    "joules_per_step": 0.5,
    "idle_watts": 90.0,
    "waited_after": "each sample",
    "latency_seconds": 0.3,
    "dispatch_seconds": 0.05,
    "wait_seconds": 1e-5,
    "host_bound": False,
    "device_seconds": 0.2,
    "device_time_method": "events",
    "peak_bytes": 123456789,
    "forward_error": 1e-7,
    "loss_error": 2e-7,
    "gradient_errors": {"bias": 1e-7, "kernel": 3e-7},
    "gradient_error": 3e-7,
    "data_digest": "fa8499c2d9ac4e24",
    "corpus": {"name": "ptb", "digest": "ab12"},
    "checked_case": {"batch": 2},
    "discarded": 1,
}
MACHINE: Mapping[str, Any] = {
    "host": "vm",
    "kernel": "6.18",
    "cpu": "AMD EPYC",
    "cores": 2,
    "logical_cores": 2,
    "online_cpus": 2,
    "memory_bytes": 25276502016,
    "governor": None,
    "load_average": [0.1, 0.8, 1.2],
    "gpu": {"uuid": "GPU-1", "name": "H200", "driver": "575.57"},
}


def small_run(reports: Path, *, ended: bool = True, later: int = 0) -> Run:
    """Make a small run with every kind of event, document and fact; ``later`` minutes after the first."""
    from datetime import timedelta

    from tests.support.fake_runs import NOW

    cells = [cell(name, slug, **CASE) for name in NAMES for slug in ("nn-lstm", "lstm-cell-basic")]
    document = {**plan(cells), "device": "cuda", "backend": "venv", "rounds": 3, "max_rounds": 8, "budget": None}
    document |= {"seconds": 0.6, "threads": 2, "seed": 5}
    document["cells"] = [{**each, "framework": "torch", "device": "cuda"} for each in document["cells"]]
    cases = {"rnn-step/lstm-b32-h128": {"steps": 7, "batch": 32}}
    measurement = Measurement(rounds=3, max_rounds=8, seconds=0.6, threads=2, seed=5)
    header = {
        "at": "2026-11-20T10:45:00Z",
        "plan": fingerprint(document, cases),
        "measurement": asdict(measurement),
        "backend": "venv",
        "device": "GPU-1",
        "device_name": "H200",
        "driver": "575.57",
        "matrix": "/nowhere/matrix.yaml",
        "python": None,
        "clocks": {"sm": "base", "memory": "max", "force": False},
        "pin": True,
        "harness": harness_archive.version(),
        "digests": dict.fromkeys(SIDES, "sha256:" + "ab" * 32),
        "command": ["torch-1.0", "torch-2.x"],
        "program": "0.1.0",
        "framework": None,
    }
    run = Run.create(reports, document, cases, MACHINE, header, NOW + timedelta(minutes=later))
    run.write_environments(environments(cells))
    _add_events(run, cells)
    if ended:
        run.note("ended", how="done")
    return run


def _add_events(run: Run, cells: Sequence[Any]) -> None:
    case_id = "rnn-step/lstm-b32-h128"
    run.note("groups", device="GPU-1", groups=[list(NAMES)], spent=1.0)
    for number in NUMBERS:
        run.note("canary", case=case_id, round=number, seconds=0.001 + number * 1e-6, spent=number * 10.0)
        for position, of in enumerate(cells):
            run.add(replace(_record(of, number, position), run=run.id), "", number * 10.0 + position)
        run.note("round", case=case_id, round=number, spent=number * 10.0 + 8)
        run.note("times", device="GPU-1", round=number, seconds={"start": 1.5, "samples": 3.0}, spent=number * 10.0 + 9)
    run.note("further", round=4, cells=2, spent=41.0)
    run.note("skipped", case="asr-lstm/1x320-ce-short", reason="3 rounds would take about 3 h", spent=42.0)
    run.note("resumed", at="2026-11-20T11:45:00Z", digests={"torch-2.x@twin": "sha256:" + "ab" * 32})


def _record(of: Any, number: int, position: int) -> Record:
    if of.implementation == "lstm-cell-basic" and of.environment == SIDES[0] and number == NUMBERS[-1]:
        return bad(of, number, "oom", "it took more than the 8.0 GiB it may have", **MEASURED_FACTS)
    seconds = times(0.3 + 0.01 * position + 0.002 * number)
    return good(of, number, seconds, **{**facts(of), **MEASURED_FACTS, "server": f"{of.environment}#{number}"})


def commands(reports: Path, run: Run, other: Run) -> Mapping[str, Callable[[], object]]:
    """Return the commands that read a run, by name; each raises only RunnerError where something is wrong.

    Args:
        reports: the folder that holds both runs.
        run: the run that may be damaged.
        other: a sound run that is compared with it, as a night is with earlier runs.
    """

    def compare() -> object:
        compared = comparison(NO_MATRIX, reports, SIDES, best=False)
        return [render(compared, each, width=100, colour=False) for each in FORMATS]

    def checked() -> object:
        result = check(reports, run.id, NO_MATRIX)
        return result.text(100, colour=False), json.dumps(result.json(), allow_nan=False)

    def resume() -> object:
        journal = run.journal()
        header = read_header(run)
        check_program(run, header)
        return stored_plan(run, journal, header, print), past(run, journal)

    def night() -> object:
        return find_baselines(reports, other, dataset.load_dataset(other), (), earlier_nights(reports).open_cells)

    return {
        "samples": lambda: dataset.load_dataset(run).samples,
        "compare": compare,
        "report": lambda: (write_report(analyse_run(run, 0.03), run), run_answer(analyse_run(run, 0.03))),
        "check": checked,
        "accuracy": lambda: accuracy.text(run_accuracy(find_run(reports, run.id)), 100, colour=False),
        "list": lambda: [*listing("runs", NO_MATRIX, reports)],
        "resume": resume,
        "night": night,
    }


def outcome(command: Callable[[], object]) -> tuple[str, str]:
    """Return how a command ended, ``ok``, ``error`` or ``traceback``, and its warnings or its error."""
    with warnings.catch_warnings(record=True) as caught, redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            command()
        except RunnerError as error:
            return "error", str(error)
        except Exception as error:  # noqa: BLE001  every traceback counts
            trace = error.__traceback__
            line = ""
            while trace is not None:
                name = trace.tb_frame.f_code.co_filename
                line = f"{name.rpartition('/runner/')[2]}:{trace.tb_lineno}" if "/runner/" in name else line
                trace = trace.tb_next
            return "traceback", f"{type(error).__name__} at {line}: {error}"[:300]
    return "ok", "\n".join(str(warning.message) for warning in caught)


# Confused types -------------------------------------------------------------------------------------------------------

VALUES: Sequence[str] = (
    *("null", "true", "false", "0", "-1", "1", "5", "0.0", "-0.5", "1e308", "1e999", "NaN", "Infinity"),
    *('""', '"x"', '"5"', '"\\u001b]0;pwned\\u0007"', '"\\ud83d"', '"a\\u0000b"', '"../../../../dev/zero"'),
    *("[]", "[1]", '["a"]', "[null]", "[[1]]", "[[]]", "{}", '{"a": 1}', '{"a": {"b": []}}', "[{}]"),
    *("1" + "0" * 400, "1" + "0" * 4400, str(2**63), "-1e-300", "[" * 900 + "]" * 900),
)
"""JSON texts that replace a value."""


def confuse(run: Run, draw: random.Random) -> str:
    """Replace a value of a file of a run by one of another type; return what was done."""
    files = [*run.path.glob("*.json"), *[run.path / "journal.jsonl"] * 4, *(run.path / "records").iterdir()]
    path = draw.choice(sorted(files))
    lines = path.read_text("utf-8").splitlines()
    number = draw.randrange(len(lines))
    document = json.loads(lines[number])
    keys = draw.choice([*_paths(document)])
    if draw.random() < 0.1 and keys:
        removed, text = "@removed@", ""
    else:
        removed, text = "", draw.choice(VALUES)
    marked = _replaced(document, keys, "@value@")
    changed = json.dumps(marked).replace('"@value@"', text) if not removed else json.dumps(_without(document, keys))
    lines[number] = changed
    path.write_text("\n".join(lines) + "\n", "utf-8")
    reseal(run)
    return f"{path.name}:{number + 1} {'/'.join(map(str, keys))} -> {removed or text[:40]}"


def _paths(value: object, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield keys
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*keys, key))


def _replaced(value: Any, keys: tuple[Any, ...], new: object) -> Any:
    if not keys:
        return new
    copy = value.copy()
    copy[keys[0]] = _replaced(copy[keys[0]], keys[1:], new)
    return copy


def _without(value: Any, keys: tuple[Any, ...]) -> Any:
    copy = value.copy()
    if len(keys) == 1:
        del copy[keys[0]]
    else:
        copy[keys[0]] = _without(copy[keys[0]], keys[1:])
    return copy


# Accidental damage ----------------------------------------------------------------------------------------------------

LINE_KINDS = ("cut at a line's end", "doubled line", "lost line")
"""Damage to the lines of a journal."""
KINDS = (*LINE_KINDS, "cut", "bit flip", "digit", "zeroed block", "lost record", "tail")


def damage(run: Run, kind: str, draw: random.Random) -> str:
    """Damage a file of a run as disks and file systems do; return what was done."""
    records = sorted((run.path / "records").iterdir())
    journal = run.path / "journal.jsonl"
    if kind == "lost record":
        path = draw.choice(records)
        path.unlink()
        return f"{kind}: {path.name}"
    if kind in LINE_KINDS:
        lines = journal.read_bytes().splitlines(keepends=True)
        number = draw.randrange(len(lines))
        kept = {"doubled line": lines[: number + 1] + lines[number:], "lost line": lines[:number] + lines[number + 1 :]}
        journal.write_bytes(b"".join(kept.get(kind, lines[: number or 1])))
        return f"{kind}: {journal.name}:{number + 1}"
    path = draw.choice([journal, *records, *sorted(run.path.glob("*.json"))])
    content = path.read_bytes()
    at = draw.randrange(len(content))
    path.write_bytes(_damaged(content, at, kind, draw))
    return f"{kind}: {path.name} at {at}"


def _damaged(content: bytes, at: int, kind: str, draw: random.Random) -> bytes:
    match kind:
        case "cut":
            return content[:at]
        case "bit flip":
            return content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
        case "digit":
            at = draw.choice([position for position, byte in enumerate(content) if chr(byte).isdigit()])
            return content[:at] + str((content[at] - ord("0") + 1) % 10).encode() + content[at + 1 :]
        case "zeroed block":
            size = draw.choice((16, 64, 512, 4096))
            return content[:at] + b"\0" * min(size, len(content) - at) + content[at + size :]
        case _:
            return content + draw.randbytes(draw.randrange(1, 200))


def copied(run: Run, folder: Path) -> Run:
    """Return a copy of a run in a reports folder, which is emptied before."""
    target = folder / "runs" / run.id
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(run.path, target)
    os.utime(target / "plan.json", ns=(0, 0))
    return Run(target)
