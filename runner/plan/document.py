"""Write a plan as JSON and read it back: ``runner plan --format json`` prints it, and every run keeps it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from runner.core.errors import Problem, RecordError
from runner.core.model import Block, Cell, Measurement, ModelFiles, Past, Plan, PlannedCell, Skip
from runner.core.model.variant_ids import Launch
from runner.core.variables import refused_variable
from runner.matrix.fields import is_environment_id
from runner.plan import estimate


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON objects, version 1 of the format; ``docs/reference/records.md`` has its keys.

    Seconds are rounded to two decimals.
    """
    measurement = plan.measurement
    return {
        "version": 1,
        "device": plan.device,
        "backend": plan.backend,
        "rounds": measurement.rounds,
        "max_rounds": measurement.round_limit,
        "budget": measurement.budget,
        "seconds": measurement.seconds,
        "threads": measurement.threads,
        "seed": measurement.seed,
        **({"launches": {name: _launch(launch) for name, launch in plan.launches.items()}} if plan.launches else {}),
        "cells": [_cell(planned, plan.frameworks[planned.cell.environment]) for planned in plan.cells],
    }


def _launch(launch: Launch) -> dict[str, Any]:
    """Return how the processes of an environment are started, without what is as everywhere."""
    start = {"image": launch.image, "env": dict(launch.variables), "threads": launch.threads}
    return {name: value for name, value in start.items() if value}


def _read_launch(stored: Mapping[str, Any]) -> Launch:
    image, variables = stored.get("image", ""), dict(stored.get("env", {}))
    if image:
        check_environment(image)
    if reason := refused_variable(variables):
        raise RecordError(Problem(f"the plan sets the variable {reason}", hint="start a new run"))
    return Launch(image=image, variables=variables, threads=int(stored.get("threads", 0)))


def check_environment(name: str) -> None:
    """Raise RecordError where a stored environment has a name that no matrix can have: it becomes a part of paths.

    A variant, a control, or an environment of another run has ``@`` after the name.
    """
    if not is_environment_id(name.partition("@")[0]):
        hint = "start a new run: somebody has changed this one, or it was never a run of this program"
        raise RecordError(Problem(f"the plan names the environment {name!r}, which no matrix can have", hint=hint))


def _cell(planned: PlannedCell, framework: str) -> dict[str, Any]:
    cell = planned.cell
    return {
        "id": cell.id,
        "environment": cell.environment,
        "framework": framework,
        "implementation": cell.implementation,
        "kind": planned.kind,
        "workload": cell.workload,
        "case": cell.case,
        "phase": cell.phase,
        "precision": cell.precision,
        "device": planned.device,
        "verdict": planned.verdict,
        "code": planned.skip.code if planned.skip else None,
        "reason": planned.skip.reason if planned.skip else None,
        "source": (planned.skip.source if planned.skip else None) or None,
        "nearest": list(planned.skip.nearest) if planned.skip else [],
        "jit": planned.jit or None,
        "deferred": planned.deferred or None,
        "seconds": round(planned.seconds, 2),
        "control_seconds": round(planned.control_seconds, 2),
    }


def fingerprint(document: Mapping[str, Any], cases: Mapping[str, Any]) -> str:
    """Return 12 hexadecimal digits of the SHA-256 of a plan as JSON, without its version, and the cases it measures."""
    content = {name: value for name, value in document.items() if name != "version"}
    return hashlib.sha256(json.dumps([content, cases], sort_keys=True).encode()).hexdigest()[:12]


def read_plan(
    document: Mapping[str, Any],
    cases: Mapping[str, Any],
    measurement: Measurement,
    past: Past,
    models: Mapping[str, ModelFiles] = MappingProxyType({}),
) -> Plan:
    """Return the plan that ``plan_document`` wrote.

    Args:
        document: the plan as JSON.
        cases: case id -> its sizes, at least for every case with a cell that runs.
        measurement: how each cell is measured.
        past: what an earlier part of the run has measured.
        models: digest -> the files of a user's network.

    Raises:
        KeyError, TypeError: a key is missing, or has another type.
        RecordError: a cell is not what its id says, or has a name that no matrix can have.
    """
    planned = tuple(_planned(entry) for entry in document["cells"])
    runnable: dict[str, list[Cell]] = {}
    for entry in planned:
        if entry.skip is None:
            runnable.setdefault(entry.cell.case_id, []).append(entry.cell)
    return Plan(
        device=document["device"],
        backend=document["backend"],
        measurement=measurement,
        cells=planned,
        blocks=tuple(
            Block(
                case_id=case_id,
                spec=cases[case_id],
                device=document["device"],
                cells=tuple(cells),
                memory_bytes=estimate.process_bytes(case_id),
            )
            for case_id, cells in runnable.items()
        ),
        frameworks={
            planned_cell.cell.environment: entry["framework"]
            for planned_cell, entry in zip(planned, document["cells"], strict=True)
        },
        past=past,
        models=models,
        launches={name: _read_launch(stored) for name, stored in document.get("launches", {}).items()},
    )


def _planned(entry: Mapping[str, Any]) -> PlannedCell:
    return PlannedCell(
        cell=_cell_of(entry),
        device=entry["device"],
        kind=entry["kind"],
        skip=None if entry["verdict"] == "run" else _skip(entry),
        seconds=entry["seconds"],
        control_seconds=entry.get("control_seconds", 0.0),  # plans of older versions have none
        jit=entry.get("jit") or "",
        deferred=entry.get("deferred") or "",
    )


def _cell_of(entry: Mapping[str, Any]) -> Cell:
    """Return the cell of an entry, by its id alone; raises RecordError where the entry contradicts that."""
    cell = Cell.parse(entry["id"])
    for part in fields(cell):
        if entry[part.name] != getattr(cell, part.name):
            message = f"the plan is damaged: the test {cell.id} has the {part.name} {entry[part.name]!r}"
            raise RecordError(Problem(message, hint="restore it from a copy, or start a new run"))
    check_environment(cell.environment)
    return cell


def _skip(entry: Mapping[str, Any]) -> Skip:
    nearest = tuple(entry.get("nearest", ()))  # plans of older versions have neither this nor a source
    return Skip(entry["code"], entry["reason"], entry.get("source") or "", nearest)
