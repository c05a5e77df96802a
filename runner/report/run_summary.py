"""A run in short, as ``summary.json`` in its folder: its answer, its grade and its size, for a list of runs.

The times of its cells are in the history.
"""

import json
from typing import Any

from runner.report.formatting import date
from runner.report.page import Page

VERSION = 3
"""Of the report: the page of version 2 did not mark the links that work only in the folder of the run."""
NAME = "summary.json"
MAX_SUMMARY_BYTES = 64 << 20


def to_json(page: Page) -> str:
    """Return the summary of a run."""
    words = [each.word for each in page.rows]
    facts = dict(page.facts)
    document: dict[str, Any] = {
        "version": VERSION,
        "run": page.run,
        "measured": date(page.run),
        "title": page.title,
        "grade": page.answer.grade.level if page.answer.grade else None,
        "device": facts["Device"],
        "tests": sum(len(case.lines) for case in page.cases),
        "words": {word: words.count(word) for word in dict.fromkeys(words)},
        "failed": sum(len(each.cells) for each in page.missing if each.outcome == "failed"),
    }
    return json.dumps(document, allow_nan=False) + "\n"
