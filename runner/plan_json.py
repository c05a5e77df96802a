"""A plan as JSON: what ``runner plan --format json`` prints and every run keeps."""

from typing import Any

from runner.model import Plan, PlannedCell
from runner.plan import kind


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return the plan with ``version`` 1; see DESIGN.md, 8."""
    measurement = plan.measurement
    return {
        "version": 1,
        "device": plan.device,
        "backend": plan.backend,
        "rounds": measurement.rounds,
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
        "kind": kind(framework, cell.implementation),
        "workload": cell.workload,
        "case": cell.case,
        "phase": cell.phase,
        "precision": cell.precision,
        "device": found.device,
        "verdict": found.verdict,
        "code": found.skip.code if found.skip else None,
        "reason": found.skip.reason if found.skip else None,
        "seconds": round(found.seconds, 2),
    }
