"""A run in short, as ``summary.json`` in its folder: its answer, its grade and its size, for a list of runs.

The times of its cells are in the history.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from runner.core.bounds import STRICT, Count
from runner.report.formatting import date
from runner.report.page import Page
from runner.report.wording import Word
from runner.store.documents import newest, read_value

NAME = "summary.json"
KIND = "summary"
"""The kind of the file, see ``documents.UPGRADES``; its version is that of the report."""
MAX_SUMMARY_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in a line: when it was measured, its answer and grade, and how many tests and comparisons it has."""

    __pydantic_config__ = STRICT

    run: str
    measured: str
    title: str
    grade: str | None
    device: str
    tests: Count
    words: Mapping[Word, Count]
    failed: Count


SUMMARY = TypeAdapter(RunSummary)


def to_json(page: Page) -> str:
    """Return the summary of a run."""
    words = [each.word for each in page.rows]
    facts = dict(page.facts)
    summary = RunSummary(
        run=page.run,
        measured=date(page.run),
        title=page.title,
        grade=page.answer.grade.level if page.answer.grade else None,
        device=facts["Device"],
        tests=sum(len(case.lines) for case in page.cases),
        words={word: words.count(word) for word in dict.fromkeys(words)},
        failed=sum(len(each.cells) for each in page.missing if each.outcome == "failed"),
    )
    return json.dumps({"version": newest(KIND), **asdict(summary)}, allow_nan=False) + "\n"


def read_summary(run: Path) -> RunSummary:
    """Return the summary in a run's folder; raises RecordError if it cannot be read, or is of another program."""
    return read_value(run / NAME, KIND, SUMMARY, MAX_SUMMARY_BYTES)
