"""The targets ``matrix``, ``planning`` and ``machine``: what is read before a plan, and plans themselves.

- ``matrix``: bytes of a matrix file.
- ``planning``: ``{"changes": [EDIT, ...], "machine": INDEX, "machine_changes": [EDIT, ...], "options": {...}}``, with
  edits of the small matrix and of a machine (``tests.fuzz.edits``); the matrix is planned for the machine.
- ``machine``: bytes of a machine file; the smallest matrix is planned for it.
"""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from runner.core.errors import RunnerError
from runner.core.model import Plan
from runner.matrix import load, parse, select_environments
from runner.plan.document import plan_document
from runner.plan.machine_file import read_machine_file
from runner.report.coverage import coverage
from runner.report.plan import plan_table
from runner.session.listing import Topic, listing
from runner.session.options import Options
from runner.session.plan_elsewhere import planned
from tests.fuzz.edits import edited
from tests.fuzz.limits import ROOT
from tests.fuzz.values import to_json

NAMES = ("torch-0.4", "torch-1.0", "torch-2.x", "tf-1.15", "theano-cudnn")
MACHINES = tuple(sorted((ROOT / "docs" / "machines").glob("*.json")))


@cache
def small_matrix() -> Mapping[str, Any]:
    """Return the shipped matrix with a few environments and one case of each workload."""
    matrix = yaml.safe_load((ROOT / "matrix.yaml").read_text())
    environments = {name: matrix["environments"][name] for name in NAMES}
    cases = {"rnn-step": "lstm-b32-h128", "lm-lstm": "lm-small", "deepbench-gemm": "train-001-*-nn"}
    choice = {"phases": ["forward"], "precisions": ["fp32", "fp16"]}
    workloads = {name: {**choice, "cases": [glob]} for name, glob in cases.items()}
    presets = {
        "quick": {"select": ["rnn-step/*", {"cases": ["*/*/forward"], "environments": ["torch-*"]}], "rounds": 2}
    }
    exclude = [{"select": "theano-*/rnn-step/*", "reason": "too slow"}]
    chosen = {"environments": environments, "workloads": workloads, "presets": presets, "exclude": exclude}
    return {**matrix, **chosen}


@cache
def machines() -> tuple[Mapping[str, Any], ...]:
    """Return the machines of the documentation, and one without a GPU."""
    described = [json.loads(path.read_text()) for path in MACHINES]
    described[0]["machine"]["interpreters"] = {"3.11": "/usr/bin/python3.11", "3.6": None}
    bare = {**described[0], "machine": {**described[0]["machine"], "gpus": [], "engine": None}}
    return (*described, bare)


@cache
def _workplace() -> Path:
    """Return a folder with the lock files that the matrix names; it stays until the process ends."""
    from tests.fuzz.folders import MEMORY

    folder = Path(tempfile.mkdtemp(prefix="fuzz-plans-", dir=MEMORY if MEMORY.is_dir() else None))
    shutil.copytree(ROOT / "docker", folder / "docker")
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def run_matrix(content: bytes) -> None:
    """Read a matrix file, and list what it names."""
    matrix = parse(content, "matrix.yaml")
    select_environments(matrix, list(matrix.environments)[:3] or ["torch-*"])


def run_planning(value: Mapping[str, Any]) -> None:
    """Plan a matrix for a machine, and show the plan in every format."""
    folder = _workplace()
    matrix, machine = folder / "matrix.yaml", folder / "machine.json"
    matrix.write_text(to_json(edited(small_matrix(), value["changes"])))
    described = machines()[value["machine"] % len(machines())]
    machine.write_text(to_json(edited(described, value["machine_changes"])))
    known = {field.name for field in fields(Options)}
    options = Options(matrix=matrix, **{name: item for name, item in value["options"].items() if name in known})
    _show(planned(options, read_machine_file(machine), lambda _: None))
    topics: tuple[Topic, ...] = ("environments", "presets")
    for topic in topics:
        list(listing(topic, matrix, folder))
    options.to_argv()


def _show(plan: Plan) -> None:
    json.dumps(plan_document(plan), allow_nan=False)
    plan_table(plan, 80, why=True, colour=True)
    with contextlib.suppress(RunnerError):  # a plan of one environment has no table
        coverage(plan)


def run_machine(content: bytes) -> None:
    """Plan for a machine that a file describes."""
    folder = _workplace()
    path, matrix = folder / "described.json", folder / "smallest.yaml"
    path.write_bytes(content)
    if not matrix.exists():
        text = to_json(small_matrix())
        matrix.write_text(text)
        load(matrix)
    machine = read_machine_file(path)
    options = Options(matrix=matrix, workload=["rnn-step"], precision=["fp32"], seed=0, selectors=["torch-2.x"])
    _show(planned(options, machine, lambda _: None))
