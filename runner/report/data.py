"""A comparison as JSON and CSV, for programs."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from runner.analysis.model import Comparison, QualityIssue, Row
from runner.catalog.published import SOURCES, Figure
from runner.report.quality import values

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
)
"""The keys of a row, in JSON and CSV; scripts rely on them."""


def to_json(comparison: Comparison) -> str:
    """Return a comparison as a JSON object; a number that is not there is null."""
    document = {
        "version": VERSION,
        "base": comparison.base,
        "others": list(comparison.others),
        "device": comparison.device,
        "rows": [{**_row(row), "doubts": _codes(row.quality_issues)} for row in comparison.rows],
        "overall": [asdict(one) for one in comparison.overall],
        "doubts": [values(one) for one in dict.fromkeys(one for row in comparison.rows for one in row.quality_issues)],
        "only": list(comparison.only),
        "runs": list(dict.fromkeys(run for row in comparison.rows for run in row.runs)),
        "published": [_figure(figure) for figure in comparison.figures],
        "differences": {name: [asdict(one) for one in found] for name, found in comparison.differences.items()},
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def to_csv(comparison: Comparison) -> str:
    """Return the rows as CSV with a head line, the base's id before each; a number that is not there is empty.

    The codes of its doubts are in one column, parted by spaces. A mean over cells is no row, so there is none.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ["base", *COLUMNS], lineterminator="\n")
    writer.writeheader()
    for row in comparison.rows:
        writer.writerow({"base": comparison.base, **_row(row), "doubts": " ".join(_codes(row.quality_issues))})
    return stream.getvalue()


def _row(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in COLUMNS if name != "doubts"}


def _codes(doubts: Iterable[QualityIssue]) -> list[str]:
    """Return the codes of doubts about either cell of a row, each once, the serious first."""
    return list(dict.fromkeys(one.code for one in doubts))


def _figure(figure: Figure) -> dict[str, Any]:
    """Return a published figure with the name of its side, and where it is from."""
    return {"side": figure.side, **asdict(figure), "citation": SOURCES[figure.source].citation}
