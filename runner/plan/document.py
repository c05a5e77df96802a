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
        "cells": [_cell(found, plan.frameworks[found.cell.environment]) for found in plan.cells],
    }


def _cell(found: PlannedCell, framework: str) -> dict[str, Any]:
    cell = found.cell
    return {
        "id": cell.id,
        "environment": cell.environment,
        "framework": framework,
        "implementation": cell.implementation,
        "kind": found.kind,
        "workload": cell.workload,
        "case": cell.case,
        "phase": cell.phase,
        "precision": cell.precision,
        "device": found.device,
        "verdict": found.verdict,
        "code": found.skip.code if found.skip else None,
        "reason": found.skip.reason if found.skip else None,
        "source": (found.skip.source if found.skip else None) or None,
        "nearest": list(found.skip.nearest) if found.skip else [],
        "jit": found.jit or None,
        "seconds": round(found.seconds, 2),
    }


def fingerprint(document: Mapping[str, Any], cases: Mapping[str, Any]) -> str:
    """Return 12 digits that change with a plan, as JSON, and with the cases it measures."""
    said = {name: value for name, value in document.items() if name != "version"}
    return hashlib.sha256(json.dumps([said, cases], sort_keys=True).encode()).hexdigest()[:12]


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
    planned = tuple(_planned(found) for found in document["cells"])
    runnable: dict[str, list[Cell]] = {}
    for found in planned:
        if found.skip is None:
            runnable.setdefault(found.cell.case_id, []).append(found.cell)
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
        frameworks={found["environment"]: found["framework"] for found in document["cells"]},
        past=past,
    )


def _planned(found: Mapping[str, Any]) -> PlannedCell:
    words = ("environment", "implementation", "workload", "case", "phase", "precision")
    return PlannedCell(
        cell=Cell(**{word: found[word] for word in words}),
        device=found["device"],
        kind=found["kind"],
        skip=None if found["verdict"] == "run" else _skip(found),
        seconds=found["seconds"],
        jit=found.get("jit") or "",
    )


def _skip(found: Mapping[str, Any]) -> Skip:
    nearest = tuple(found.get("nearest", ()))  # a plan of an older program has neither it nor a source
    return Skip(found["code"], found["reason"], found.get("source") or "", nearest)
