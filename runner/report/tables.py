"""A comparison as JSON and CSV, for programs."""

import csv
import io
import json
from dataclasses import asdict
from typing import Any

from runner.comparison import Comparison, Row
from runner.published import SOURCES, Figure

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
)
"""The keys of a row, in JSON and CSV; scripts rely on them."""


def to_json(comparison: Comparison) -> str:
    """Return a comparison as a JSON object; a number that is not there is null."""
    document = {
        "version": VERSION,
        "base": comparison.base,
        "others": list(comparison.others),
        "device": comparison.device,
        "rows": [_row(row) for row in comparison.rows],
        "only": list(comparison.only),
        "runs": list(dict.fromkeys(run for row in comparison.rows for run in row.run.split(" and ") if run)),
        "published": [_figure(figure) for figure in comparison.figures],
        "differences": {name: [asdict(one) for one in found] for name, found in comparison.differences.items()},
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def to_csv(comparison: Comparison) -> str:
    """Return the rows as CSV with a head line, the base's id before each; a number that is not there is empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ["base", *COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"base": comparison.base, **_row(row)} for row in comparison.rows)
    return stream.getvalue()


def _row(row: Row) -> dict[str, Any]:
    found = asdict(row)
    return {name: found[name] for name in COLUMNS}


def _figure(figure: Figure) -> dict[str, Any]:
    """Return a published figure with the name of its side, and where it is from."""
    return {"side": figure.side, **asdict(figure), "citation": SOURCES[figure.source].citation}
