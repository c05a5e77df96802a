"""The result of an explanation, as text and as JSON."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.analysis.analyse import Analysis
from runner.analysis.comparison_model import Row
from runner.analysis.profile_changes import OperatorChanges
from runner.core.metrics import BY_NAME, TIME
from runner.report import formatting, rich_text, wording
from runner.search.explain import operators
from runner.search.explain.candidates import Candidate
from runner.search.explain.shares import CandidateEffect, Share
from runner.search.explain.state import ExplainQuestion
from runner.stats.intervals import FALSE_DISCOVERY_RATE

VERSION = 1
LONGEST_REASON = 160
"""Characters of a reason in the table; JSON has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate and what it does.

    Attributes:
        candidate: what was set.
        environment: its id in the run.
        measured: what it does; None where it could not be tried.
        reason: why not; empty otherwise.
        also: packages that differ besides, because its own need them.
    """

    candidate: Candidate
    environment: str
    measured: CandidateEffect | None = None
    reason: str = ""
    also: tuple[str, ...] = ()

    @property
    def effect(self) -> str:
        """What it does, in one or two words."""
        return self.measured.effect if self.measured else "not measured"

    @property
    def share(self) -> Share | None:
        """What it takes back; None where that is not known."""
        return self.measured.share if self.measured else None

    @property
    def why(self) -> str:
        """Why it was not measured, or is undecided; empty otherwise."""
        return self.measured.reason if self.measured else self.reason

    def json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        row = self.measured.row if self.measured else None
        return {
            **asdict(self.candidate),
            "environment": self.environment,
            "also": list(self.also),
            "effect": self.effect,
            "reason": self.why,
            "share": asdict(self.share) if self.share else None,
            **{name: getattr(row, name, None) for name in ("ratio", "ratio_low", "ratio_high", "p_value", "rounds")},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What takes a change back.

    Attributes:
        id: the name of its folder.
        folder: where its runs and its state are.
        question: what was typed.
        change: the release without the change against the one with it, in the run of the candidates.
        tried: each candidate.
        together: those that take back something, at once; None where there are fewer than two.
        analyses: of its runs, the one of single candidates first.
        operators: of both releases, from their profiles; none without profiles.
        notes: what is not tried, as sentences.
    """

    id: str
    folder: Path
    question: ExplainQuestion
    change: Row
    tried: tuple[Tried, ...]
    together: Tried | None
    analyses: tuple[Analysis, ...]
    operators: tuple[OperatorChanges, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_change(self) -> bool:
        """Whether the changed release is slower, or has more of the metric."""
        return self.change.verdict_on_median == "faster"  # the release without the change, against the other

    @property
    def exit_code(self) -> int:
        """0 where something takes the change back, or the releases are the same or the later one is better; else 1."""
        if self.has_change:
            return 0 if any(each.effect == "takes back" for each in self.tried) else 1
        return 0 if self.change.verdict_on_median in ("same", "slower") else 1

    def json(self) -> dict[str, Any]:
        """Return the result as docs/how-to/explain.md describes it."""
        row = self.change
        return {
            "version": VERSION,
            "id": self.id,
            "folder": str(self.folder),
            "exit_code": self.exit_code,
            "question": asdict(self.question),
            "change": {
                "ratio": 1 / row.ratio if row.ratio else None,
                "ratio_low": 1 / row.ratio_high if row.ratio_high else None,
                "ratio_high": 1 / row.ratio_low if row.ratio_low else None,
                "rounds": row.rounds,
                "has_change": self.has_change,
            },
            "discovery_rate": FALSE_DISCOVERY_RATE,
            "candidates": [each.json() for each in self.tried],
            "together": self.together.json() if self.together else None,
            "operators": [asdict(each) for each in self.operators],
            "runs": [
                {"run": each.dataset.run, "grade": each.grade.level if each.grade else ""} for each in self.analyses
            ],
            "sentences": list(self.sentences()),
            "notes": list(self.notes),
        }

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  a plain table
        """Return the change, the candidates as a table, and what they show."""
        question = self.question
        subject = question.cell if question.metric == TIME else f"{question.cell}, {BY_NAME[question.metric].title}"
        lines = [f"{subject} on {question.device}, {question.backend}", ""]
        if self.has_change and self.tried:
            rows: list[tuple[str, ...]] = [("candidate", "takes back", "95 %", "effect", "what it sets")]
            rows += [self._row(each) for each in (*self._in_order(), *([self.together] if self.together else []))]
            lines += [rich_text.columns(rows, width).rstrip(), ""]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes), *self.sentences()])

    def _in_order(self) -> list[Tried]:
        """Return the candidates, the one that takes back most first, and those that were not measured last."""
        return sorted(self.tried, key=lambda each: -each.share.estimate if each.share else float("inf"))

    def _row(self, tried: Tried) -> tuple[str, ...]:
        share = tried.share
        also = f", with {', '.join(tried.also)}" if tried.also else ""
        why = (
            f": {textwrap.shorten(tried.why, LONGEST_REASON, placeholder=' ...')}"
            if tried.why and tried.effect == "not measured"
            else ""
        )
        described = ", ".join(filter(None, (tried.candidate.change, tried.candidate.sentence)))
        return (
            tried.candidate.name,
            _percent(share.estimate) if share else formatting.DASH,
            f"{_percent(share.low)} to {_percent(share.high)}" if share else formatting.DASH,
            tried.effect,
            f"{described}{also}{why}",
        )

    def sentences(self) -> Iterator[str]:
        """Yield what the explanation shows, as sentences."""
        good, bad = self.question.good, self.question.bad
        metric = BY_NAME[self.question.metric]
        if not self.has_change:
            yield self._no_change()
            return
        change = wording.change_with_range(metric, _Inverse(self.change))
        yield f"{bad} is {change} than {good}, in {formatting.counted(self.change.rounds, 'round')}"
        yield from self._taken_back()
        if self.together and self.together.share:
            yield f"together they take back {_share(self.together.share)} of it"
        for each in self.tried:
            if each.effect == "changes the result":
                yield f"{each.candidate.change} changes the result, so it is no explanation: {each.why}"
        yield from operators.sentences(self.operators)
        count = formatting.counted(sum(each.effect != "not measured" for each in self.tried), "candidate")
        yield f"of {count}, at most {100 * FALSE_DISCOVERY_RATE:g} % of those that take something back do so by chance"
        yield from (f"trust in run {of.dataset.run}: {of.grade.level}" for of in self.analyses if of.grade)

    def _taken_back(self) -> Iterator[str]:
        """Yield what each candidate takes back, the largest share first; or that none does."""
        back = [each for each in self._in_order() if each.effect == "takes back" and each.share]
        for each in back:
            yield f"{each.candidate.change} takes back {_share(each.share)} of it: {_source(each.candidate)}"
        if not back:
            yield f"none of {formatting.counted(len(self.tried), 'candidate')} takes it back"

    def _no_change(self) -> str:
        good, bad, verdict = self.question.good, self.question.bad, self.change.verdict_on_median
        if verdict == "same":
            return f"{bad} and {good} do not differ: there is nothing to explain"
        if verdict == "slower":
            change = wording.change_with_range(BY_NAME[self.question.metric], _Inverse(self.change))
            return f"{bad} is {change} than {good}: there is nothing to take back"
        return f"whether {bad} differs from {good} is not decided: {self.change.reason}"


class _Inverse:
    """A row with its sides exchanged."""

    def __init__(self, row: Row) -> None:
        self.ratio = 1 / row.ratio if row.ratio else None
        self.ratio_low = 1 / row.ratio_high if row.ratio_high else None
        self.ratio_high = 1 / row.ratio_low if row.ratio_low else None


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"


def _share(share: Share | None) -> str:
    assert share is not None
    return f"{_percent(share.estimate)} ({_percent(share.low)} to {_percent(share.high)})"


def _source(candidate: Candidate) -> str:
    if candidate.kind == "switch":
        return f"{candidate.sentence} ({candidate.source})"
    return f"as in {candidate.source}"


def by_environment(tried: Mapping[str, Candidate], measured: Mapping[str, CandidateEffect]) -> dict[str, Candidate]:
    """Return the candidates that take something back, by their environment."""
    return {name: each for name, each in tried.items() if name in measured and measured[name].effect == "takes back"}
