"""A plan as JSON: what ``runner plan --format json`` prints and every run keeps."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from runner.core.model import Block, Cell, Measurement, Past, Plan, PlannedCell, Skip
from runner.plan import estimate


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return the plan with ``version`` 1; see DESIGN.md, 8."""
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
        "cells": [_cell(planned, plan.frameworks[planned.cell.environment]) for planned in plan.cells],
    }


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
        "seconds": round(planned.seconds, 2),
    }


def fingerprint(document: Mapping[str, Any], cases: Mapping[str, Any]) -> str:
    """Return 12 digits that change with a plan, as JSON, and with the cases it measures."""
    content = {name: value for name, value in document.items() if name != "version"}
    return hashlib.sha256(json.dumps([content, cases], sort_keys=True).encode()).hexdigest()[:12]


def read_plan(
    document: Mapping[str, Any], cases: Mapping[str, Any], measurement: Mapping[str, Any], past: Past
) -> Plan:
    """Return the plan that ``plan_json`` made a document of.

    Args:
        document: the plan as JSON.
        cases: case id -> its sizes; for every case of which a cell runs.
        measurement: the fields of ``Measurement``.
        past: what there is of it already.

    Raises:
        KeyError, TypeError: something is missing.
    """
    planned = tuple(_planned(entry) for entry in document["cells"])
    runnable: dict[str, list[Cell]] = {}
    for entry in planned:
        if entry.skip is None:
            runnable.setdefault(entry.cell.case_id, []).append(entry.cell)
    return Plan(
        device=document["device"],
        backend=document["backend"],
        measurement=Measurement(**measurement),
        cells=planned,
        blocks=tuple(
            Block(
                case_id=case_id,
                spec=cases[case_id],
                device=document["device"],
                cells=tuple(cells),
                memory_bytes=estimate.held_bytes(case_id),
            )
            for case_id, cells in runnable.items()
        ),
        frameworks={entry["environment"]: entry["framework"] for entry in document["cells"]},
        past=past,
    )


def _planned(entry: Mapping[str, Any]) -> PlannedCell:
    words = ("environment", "implementation", "workload", "case", "phase", "precision")
    return PlannedCell(
        cell=Cell(**{word: entry[word] for word in words}),
        device=entry["device"],
        kind=entry["kind"],
        skip=None if entry["verdict"] == "run" else _skip(entry),
        seconds=entry["seconds"],
        jit=entry.get("jit") or "",
    )


def _skip(entry: Mapping[str, Any]) -> Skip:
    nearest = tuple(entry.get("nearest", ()))  # a plan of an older program has neither it nor a source
    return Skip(entry["code"], entry["reason"], entry.get("source") or "", nearest)
