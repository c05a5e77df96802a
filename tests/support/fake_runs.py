"""Run folders with known content, made without measuring anything."""

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from runner.core.model import Cell, PlannedCell, Record, Skip
from runner.store.run import Run

NOW = datetime(2026, 11, 20, 10, 45, tzinfo=UTC)
FRAMEWORKS = {
    "torch": "torch",
    "tf": "tensorflow",
    "keras": "keras",
    "theano": "theano",
    "numpy": "numpy",
    "jax": "jax",
}
KINDS = {
    "lstm-cell-basic": "flexible",
    "lstm-cell-fused": "fused",
    "nn-lstm": "vendor",
    "basic-lstm-cell": "flexible",
    "lstm-block-fused-cell": "fused",
    "compiled-cell": "fused",
}
MACHINE = {"cpu": "AMD EPYC 7B13", "cores": 2, "memory_bytes": 24 * 2**30, "system": "Linux 6.1", "python": "3.11.7"}


def cell(environment: str = "torch-2.x", implementation: str = "nn-lstm", **changes: str) -> Cell:
    """Return a cell of one case."""
    parts = {"workload": "asr-lstm", "case": "1x320-ce-short", "phase": "train", "precision": "fp32", **changes}
    return Cell(environment=environment, implementation=implementation, **parts)


def facts(of: Cell, **changes: object) -> dict[str, Any]:
    """Return the facts a good record of a cell carries."""
    return {
        "environment": of.environment,
        "framework": FRAMEWORKS[of.environment.split("-", maxsplit=1)[0]],
        "release": of.environment.split("-", maxsplit=1)[1],
        "kind": KINDS.get(of.implementation, "flexible"),
        "device": "cpu",
        "backend": "venv",
        "digest": "sha256:" + "ab" * 32,
        "threads": 2,
        "harness": "9f3c",
        "precision": of.precision,
        "protocol": "aligned",
        "server": f"{of.environment}#1",
        "loss_error": 1.5e-7,
        "gradient_error": 2.5e-6,
        **changes,
    }


def good(of: Cell, number: int, seconds: Iterable[float], run: str = "run", **changes: object) -> Record:
    """Return a good record of a cell in a round."""
    return Record(
        cell=of,
        run=run,
        round=number,
        attempt=1,
        status="ok",
        failure=None,
        reason=None,
        seconds=tuple(seconds),
        warmup=(0.2, 0.1),
        compile_seconds=0.5,
        loss=(2.0, 1.5, 1.25),
        reference_loss=(2.0, 1.5, 1.25),
        facts=facts(of, **{"server": f"{of.environment}#{number + 1}", **changes}),
    )


def bad(of: Cell, number: int, failure: str, reason: str, run: str = "run", **changes: object) -> Record:
    """Return a record of a cell that failed in a round."""
    nothing: dict[str, Any] = {"warmup": (), "compile_seconds": None, "loss": (), "reference_loss": ()}
    known = facts(of, **changes)
    return replace(good(of, number, (), run), status="failed", failure=failure, reason=reason, facts=known, **nothing)


def plan(cells: Iterable[Cell], skips: Mapping[Cell, Skip] | None = None) -> dict[str, Any]:
    """Return what ``runner plan --format json`` prints for cells that run and cells that do not."""
    planned = [PlannedCell(cell=of, device="cpu", seconds=6.0) for of in cells]
    planned += [PlannedCell(cell=of, device="cpu", skip=skip) for of, skip in (skips or {}).items()]
    return {
        "version": 1,
        "cells": [
            {
                "id": entry.cell.id,
                "environment": entry.cell.environment,
                "implementation": entry.cell.implementation,
                "kind": KINDS.get(entry.cell.implementation, "flexible"),
                "workload": entry.cell.workload,
                "case": entry.cell.case,
                "phase": entry.cell.phase,
                "precision": entry.cell.precision,
                "device": entry.device,
                "verdict": entry.verdict,
                "code": entry.skip.code if entry.skip else None,
                "reason": entry.skip.reason if entry.skip else None,
                "seconds": entry.seconds,
            }
            for entry in planned
        ],
    }


def environments(cells: Iterable[Cell]) -> dict[str, Any]:
    """Return what environments.json says of the environments of cells."""
    names = sorted({of.environment for of in cells})
    return {
        name: {
            "framework": FRAMEWORKS[name.split("-", maxsplit=1)[0]],
            "release": name.split("-", maxsplit=1)[1],
            "backend": "venv",
            "digest": "sha256:" + "ab" * 32,
            "python": "3.11.7",
            "packages": {"numpy": "2.4.6", FRAMEWORKS[name.split("-", maxsplit=1)[0]]: name.split("-", maxsplit=1)[1]},
            "libraries": "Intel MKL 2024.2, oneDNN 3.7",
        }
        for name in names
    }


def make(
    reports: Path,
    records: Iterable[Record],
    skips: Mapping[Cell, Skip] | None = None,
    *,
    later: int = 0,
    each: float | None = None,
    **machine: object,
) -> Run:
    """Make a run folder that holds records; ``later`` minutes after NOW, each of ``each`` seconds."""
    records = list(records)
    cells = list(dict.fromkeys(record.cell for record in records))
    known = environments([*cells, *(skips or {})])
    now = NOW + timedelta(minutes=later)
    run = Run.create(reports, plan(cells, skips), {}, {**MACHINE, **machine}, {}, now)
    run.write_environments(known)
    for count, record in enumerate(records, 1):
        run.add(replace(record, run=run.id), f"log of {record.cell.id}\n", each and count * each)
    return run


def times(median: float, count: int = 5) -> list[float]:
    """Return an odd number of seconds around a median, exactly at it in the middle."""
    return [median * (1 + 0.01 * (index - count // 2)) for index in range(count)]


def rounds(of: Cell, medians: Iterable[float]) -> list[Record]:
    """Return good records of a cell with the given median in each round, from round 0."""
    return [good(of, number, times(median)) for number, median in enumerate(medians)]


def realistic(reports: Path, *, seed: int = 7, number: int = 5) -> Run:
    """Make a run like one from a laptop: three frameworks, two cases, two phases, drift, noise, failures and skips."""
    draw = random.Random(seed)
    offers = {
        "torch-1.0": {"lstm-cell-basic": 1.0, "lstm-cell-fused": 0.55, "nn-lstm": 0.4},
        "torch-1.12": {"lstm-cell-basic": 0.82, "lstm-cell-fused": 0.545, "nn-lstm": 0.398},
        "torch-2.x": {"lstm-cell-basic": 0.9, "lstm-cell-fused": 0.62, "nn-lstm": 0.31, "compiled-cell": 0.45},
        "tf-1.15": {"basic-lstm-cell": 1.7, "lstm-block-fused-cell": 0.5},
        "tf-2.x": {"basic-lstm-cell": 1.62},
        "numpy-2.x": {"lstm-cell-basic": 3.1},
    }
    phases = {"forward": 0.35, "train": 1.0}
    sizes = {("asr-lstm", "1x320-ce-short"): 0.12, ("rnn-step", "lstm-b32-h128"): 0.0009}
    records = []
    for (workload, case), size in sizes.items():
        for phase, share in phases.items():
            for turn in range(number):
                drift = math.exp(draw.gauss(0, 0.05))
                for environment, slugs in offers.items():
                    for slug, factor in slugs.items():
                        of = cell(environment, slug, workload=workload, case=case, phase=phase)
                        center = size * share * factor * drift * math.exp(draw.gauss(0, 0.008))
                        seconds = [center * math.exp(draw.gauss(0, 0.02)) for _ in range(30)]
                        errors: dict[str, Any] = {
                            "loss_error": 10 ** draw.uniform(-8, -6),
                            "gradient_error": 10 ** draw.uniform(-7, -5),
                        }
                        records.append(good(of, turn, seconds, **errors))
    broken = cell("tf-2.x", "lstm-block-fused-cell")
    records += [bad(broken, 0, "wrong-result", "losses are off by 3.1e-02, 1e-04 allowed", loss_error=3.1e-2)]
    records += [
        bad(
            cell("tf-2.x", "basic-lstm-cell", case="4x320-ce-long"),
            0,
            "oom",
            "it took more than the 8.0 GiB it may have",
        )
    ]
    missing = "no wheel for Python 3.11, and no Docker engine answers; torch 0.4.0 needs Python 3.6"
    skips = {cell("torch-0.4", slug): Skip("image-unavailable", missing) for slug in ("lstm-cell-basic", "nn-lstm")}
    skips[cell("theano-0.9", "theano-scan")] = Skip("no-interpreter", "no Python 2.7 or 3.5 was found on this machine")
    return make(reports, records, skips)
