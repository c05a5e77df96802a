"""A run in short, as ``summary.json`` in its folder: what a list of runs and the trends over them need.

``cells`` has [seconds, low, high] for each measured cell, the ends being null without an interval. Runs with the same
``alike`` were measured on the same device, with the same number of threads and the same measuring code.
"""

import json
from typing import Any

from runner.analysis.model import Dataset
from runner.report.formatting import date
from runner.report.page import Page

VERSION = 1
NAME = "summary.json"


def to_json(page: Page, dataset: Dataset) -> str:
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
        "alike": " · ".join(
            filter(
                None,
                (
                    facts["Device"],
                    f"threads {facts.get('Threads', '')}",
                    f"measuring code {dataset.provenance.get('harness', '')}",
                ),
            )
        ),
        "tests": sum(len(case.lines) for case in page.cases),
        "words": {word: words.count(word) for word in dict.fromkeys(words)},
        "failed": sum(len(each.cells) for each in page.missing if each.outcome == "failed"),
        "cells": {
            f"{line.environment}/{line.implementation}/{case.name}/{line.phase}/{line.precision}": [
                line.seconds,
                line.low,
                line.high,
            ]
            for case in page.cases
            for line in case.lines
            if "@" not in line.environment
        },
    }
    return json.dumps(document, allow_nan=False) + "\n"
