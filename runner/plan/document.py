"""Write a plan as JSON and read it back: ``runner plan --format json`` prints it, and every run keeps it."""

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from runner.core.model import Block, Cell, Measurement, ModelFiles, Past, Plan, PlannedCell, Skip
from runner.core.model.variant_ids import Launch
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
    fields = {"image": launch.image, "env": dict(launch.variables), "threads": launch.threads}
    return {name: value for name, value in fields.items() if value}


def _read_launch(fields: Mapping[str, Any]) -> Launch:
    return Launch(
        image=fields.get("image", ""), variables=dict(fields.get("env", {})), threads=int(fields.get("threads", 0))
    )


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
        frameworks={entry["environment"]: entry["framework"] for entry in document["cells"]},
        past=past,
        models=models,
        launches={name: _read_launch(fields) for name, fields in document.get("launches", {}).items()},
    )


def _planned(entry: Mapping[str, Any]) -> PlannedCell:
    parts = ("environment", "implementation", "workload", "case", "phase", "precision")
    return PlannedCell(
        cell=Cell(**{part: entry[part] for part in parts}),
        device=entry["device"],
        kind=entry["kind"],
        skip=None if entry["verdict"] == "run" else _skip(entry),
        seconds=entry["seconds"],
        jit=entry.get("jit") or "",
        deferred=entry.get("deferred") or "",
    )


def _skip(entry: Mapping[str, Any]) -> Skip:
    nearest = tuple(entry.get("nearest", ()))  # plans of older versions have neither this nor a source
    return Skip(entry["code"], entry["reason"], entry.get("source") or "", nearest)
