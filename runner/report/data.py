"""A comparison as JSON and CSV, for programs."""

import csv
import io
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import Any

from runner.analysis.boards import Board
from runner.analysis.compare.kinds import boards_of_rows, by_kind
from runner.analysis.comparison_model import MAX_MORE_ROUNDS, Comparison, Row
from runner.analysis.gate import GateResult
from runner.analysis.model import QualityIssue
from runner.catalog.published import SOURCES, Figure
from runner.core.metrics import TIME
from runner.report.quality import grade_values, json_values
from runner.store.samples import csv_text

VERSION = 1
COLUMNS = (
    "environment",
    "implementation",
    "base_implementation",
    "workload",
    "case",
    "phase",
    "precision",
    "base_seconds",
    "seconds",
    "ratio",
    "ratio_low",
    "ratio_high",
    "rounds",
    "verdict",
    "code",
    "reason",
    "doubts",
    "p_value",
    "level",
    "deciding_low",
    "deciding_high",
    "more_rounds_low",
    "more_rounds",
    "abandoned",
    "device_name",
    "boards",
    "mean_ratio",
    "mean_ratio_low",
    "mean_ratio_high",
    "base_p95_seconds",
    "p95_seconds",
    "metric",
    "base_amount",
    "amount",
)
"""The keys of a row, in JSON and CSV; scripts rely on them."""


def to_json(comparison: Comparison, gate: GateResult | None = None) -> str:
    """Return a comparison as a JSON object, with the result of a gate if there is one; a missing number is null."""
    issues = dict.fromkeys(issue for row in comparison.rows for issue in row.quality_issues)
    document: dict[str, Any] = {
        "version": VERSION,
        "base": comparison.base,
        "others": list(comparison.others),
        "device": comparison.device,
        "rows": list(map(_row, comparison.rows)),
        "metrics": list(map(_row, comparison.metrics)),
        "absent": dict(comparison.absent),
        "overall": [asdict(mean) for mean in comparison.overall],
        "widenings": [asdict(widening) for widening in comparison.widenings],
        "detectable_change": comparison.detectable_change,
        "detectable_rounds": list(comparison.detectable_rounds),
        "kinds": list(map(_kind, by_kind(comparison))),
        "doubts": [json_values(issue) for issue in issues],
        "only": list(comparison.only),
        "passed_over": [asdict(run) for run in comparison.passed_over],
        "runs": list(dict.fromkeys(run for row in comparison.rows for run in row.runs)),
        "grades": {run: grade_values(grade) for run, grade in comparison.grades.items()},
        "published": [_figure(figure) for figure in comparison.figures],
        "differences": {name: list(map(asdict, each)) for name, each in comparison.differences.items()},
    }
    if gate is not None:
        document["gate"] = gate_values(gate)
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def gate_values(gate: GateResult) -> dict[str, Any]:
    """Return what a gate makes of a comparison: its conditions, whether it passes, and the cells that break it."""
    broken = [
        {"condition": each.condition.text, "base": each.row.base.id, "cell": each.row.other.id} for each in gate.broken
    ]
    conditions = [condition.text for condition in gate.conditions]
    return {"fail_on": conditions, "passed": gate.passed, "compared": gate.compared, "broken": broken}


def to_csv(comparison: Comparison, metrics: Collection[str] = (TIME,)) -> str:
    """Return the rows of some metrics as CSV, each after the id of the base; a missing number is empty.

    The codes of quality issues are in the column ``doubts``, separated by spaces; ``boards`` has ``HOST/UUID`` of each
    board in the same way. Means over cells are left out.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ["base", *COLUMNS], lineterminator="\n")
    writer.writeheader()
    for values in rows(comparison, metrics):
        boards = " ".join(f"{board['host']}/{board['device_uuid']}" for board in values["boards"])
        joined = {**values, "doubts": " ".join(values["doubts"]), "boards": boards}
        writer.writerow({name: csv_text(value) if isinstance(value, str) else value for name, value in joined.items()})
    return stream.getvalue()


def rows(comparison: Comparison, metrics: Collection[str] = (TIME,)) -> list[dict[str, Any]]:
    """Return the rows of some metrics with the id of the base and ``COLUMNS``; ``doubts`` is a list of codes."""
    every = (*comparison.rows, *comparison.metrics)
    return [{"base": comparison.base, **_row(row)} for row in every if row.metric in metrics]


def _row(row: Row) -> dict[str, Any]:
    codes = _codes(row.quality_issues)
    values: dict[str, Any] = {name: codes if name == "doubts" else getattr(row, name) for name in COLUMNS}
    values["boards"] = list(map(_board, row.boards))
    beyond = {name: None for name in ("more_rounds_low", "more_rounds") if values[name] > MAX_MORE_ROUNDS}
    return values | beyond


def _kind(comparison: Comparison) -> dict[str, Any]:
    """Return a kind of device, its boards, and the change that its rows can call."""
    return {
        "device_name": comparison.device_name,
        "boards": list(map(_board, boards_of_rows(comparison.rows))),
        "detectable_change": comparison.detectable_change,
        "detectable_rounds": list(comparison.detectable_rounds),
    }


def _board(board: Board) -> dict[str, str]:
    return {"host": board.host, "device_uuid": board.uuid}


def _codes(issues: Iterable[QualityIssue]) -> list[str]:
    """Return the codes of issues of either cell of a row, each once, the serious first."""
    return list(dict.fromkeys(issue.code for issue in issues))


def _figure(figure: Figure) -> dict[str, Any]:
    """Return a published figure with the name of its side and its citation."""
    return {"side": figure.side, **asdict(figure), "citation": SOURCES[figure.source].citation}
