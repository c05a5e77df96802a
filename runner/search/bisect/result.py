"""The result of a bisect, as text and as JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.core.metrics import BY_NAME
from runner.core.units import duration
from runner.releases.candidates import ReleaseCandidate
from runner.report import formatting, rich_text, wording
from runner.search.bisect import effects
from runner.search.bisect.package_ends import AXES
from runner.search.bisect.rebuilt import rebuilt_name
from runner.search.bisect.source_changes import SourceChange, source_changes
from runner.search.bisect.state import CandidateEntry, Question, SearchStep
from runner.search.bisect.walk import SearchResult
from runner.stats.bisection import FoundChanges, Kind, LocatedChange
from runner.stats.release_scatter import LEVEL, Standing

VERSION = 1
STEP_FIELDS = ("ratio", "ratio_low", "ratio_high", "base_value", "value", "rounds", "verdict", "run")
"""Fields of the deciding step that a change has in JSON."""
RANGES: Mapping[Kind, str] = {
    "gradual": "and no two neighbours differ by more than the margin",
    "unconfirmed": "which a second run did not confirm",
    "scatter": "which does not stand out from how much releases differ from each other",
    "stopped": "where the search stopped",
}
"""Kind of a change that no release is named for -> what a sentence says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """What a search found.

    Attributes:
        id: the name of its folder.
        folder: where its runs and its state are.
        label: the name of what varies, ``PyTorch`` or ``CUDA``.
        searched: the changes by position, and how they stand beside the scatter of releases.
        notes: what could not be had, as sentences.
    """

    id: str
    folder: Path
    question: Question
    label: str
    candidates: tuple[ReleaseCandidate, ...]
    steps: tuple[SearchStep, ...]
    searched: SearchResult
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> FoundChanges:
        """The changes by position."""
        return self.searched.answer

    @property
    def exit_code(self) -> int:
        """0 where each change has a release, or the ends do not differ; 1 where there is only a range, or no answer."""
        return 0 if all(change.is_named for change in self.answer.changes) and not self.answer.undecided else 1

    def json(self) -> dict[str, Any]:
        """Return the result as docs/how-to/bisect.md describes it."""
        return {
            "version": VERSION,
            "id": self.id,
            "folder": str(self.folder),
            "exit_code": self.exit_code,
            "question": asdict(self.question),
            "candidates": [entry(candidate) for candidate in self.candidates],
            "steps": [asdict(step) for step in self.steps],
            "changes": [self._change(change) for change in self.answer.changes],
            "undecided": [self.candidates[position].name for position in self.answer.undecided or ()],
            "stopped": self.answer.stopped,
            "sentences": list(self.sentences()),
            "notes": list(self.notes),
        }

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  a plain table
        """Return the steps as a table, then what they show."""
        rows: list[tuple[str, ...]] = [("base", "other", "change", "95 %", "rounds", "verdict")]
        rows += [step_row(step, self.question.metric) for step in self.steps]
        varying = f", {self.label} in {self.question.environment}" if self.question.axis not in AXES else ""
        lines = [f"{effects.subject(self.question)} on {self.question.device}, {self.question.backend}{varying}", ""]
        lines += [rich_text.columns(rows, width).rstrip(), ""]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes), *self.sentences()])

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each change, or one that says why there is none."""
        for change in self.answer.changes:
            yield self._sentence(change)
            yield from (f"  {sentence}" for sentence in self._differences(change))
        yield from self._second_builds()
        good, bad = self.candidates[0], self.candidates[-1]
        if self.answer.undecided:
            first, last = (self.candidates[position] for position in self.answer.undecided)
            between = f"between {self._name(first)} and {self._name(last)}"
            yield f"{between} nothing is decided: {self._why_open(first, last)}"
        elif not self.answer.changes:
            yield effects.equal(self.question, (self._name(good), self._name(bad)))
        if self.answer.stopped:
            count = len(self.steps)
            yield f"the search stopped after {count} comparisons; `--max-comparisons {2 * count}` goes on"

    def _second_builds(self) -> Iterator[str]:
        """Yield by how much the second build of each end differs from the first."""
        by_name = {rebuilt_name(candidate.name): candidate for candidate in self.candidates}
        for step in self.steps:
            if candidate := by_name.get(step.other):
                yield effects.second_build(self.question, self._name(candidate), step)

    def _sentence(self, change: LocatedChange) -> str:
        releases = self._name(self.candidates[change.before]), self._name(self.candidates[change.after])
        step = self._deciding(change)
        runs = len({each.run for each in self.steps if each.run})
        measured = f"measured alternately in {formatting.counted(runs, 'run')}"
        effect = effects.effect(self.question, step)
        if change.is_named:
            return f"{effects.named(self.question, effect, releases, step)}; {measured}"
        if change.kind == "scatter":
            effect = effects.level_effect(self.question, self.searched.standings[change.after])
        range_of = effects.between(self.question, effect, releases)
        if change.kind == "scatter" and self.searched.standings[change.after].p_value <= LEVEL:
            return f"{range_of}, but releases differ too much to say which one of this range caused it; {measured}"
        if change.kind in RANGES:
            return f"{range_of}, {RANGES[change.kind]}; {measured}"
        between = "; ".join(self._missing(position) for position in change.missing)
        return f"{range_of}; {between}; {measured}"

    def _differences(self, change: LocatedChange) -> Iterator[str]:
        if change.is_named or change.kind == "scatter":
            yield self._scatter(change)
        yield from effects.in_plain_processes(self.question, self._deciding(change))
        yield from self._quality(change)
        for source in self._sources(change):
            yield source.sentence
        yield from self._deciding(change).differences
        before = self.candidates[change.before].name
        for step in self.steps:
            if step.other == before and step.outcome == "open":
                yield f"whether {before} differs from {step.base} stays open: {effects.effect(self.question, step)}"

    def _scatter(self, change: LocatedChange) -> str:
        """Return what the interval of a change contains, and how much releases differ from each other."""
        standing = self.searched.standings.get(change.after)
        if standing is None:
            return (
                "the interval is that of these two builds: too few releases were measured to show how much releases "
                "differ from each other anyway"
            )
        spread = f"{100 * standing.scatter:.1f} %"
        scatter = f"releases on either side differ from each other by {spread} (standard deviation)"
        if change.kind == "scatter":
            return scatter
        effect = effects.level_effect(self.question, standing)
        return f"{scatter}, and with that the change is {effect}; the interval above is that of two builds"

    def _quality(self, change: LocatedChange) -> Iterator[str]:
        """Yield the grades and the serious issues of the runs that a change rests on."""
        steps = [step for step in self._resting(change) if step.run]
        grades = Counter(step.grade for step in steps if step.grade)
        if grades:
            text = ", ".join(f"{count} {grade}" for grade, count in grades.most_common())
            yield f"trust in the {formatting.counted(len(steps), 'run')} that this rests on: {text}"
        for issue in dict.fromkeys(issue for step in steps for issue in step.issues):
            yield f"serious in a run that this rests on: {issue}"

    def _sources(self, change: LocatedChange) -> list[SourceChange]:
        return source_changes(self.steps, *(self.candidates[at].name for at in (change.before, change.after)))

    def _missing(self, position: int) -> str:
        candidate = self.candidates[position]
        steps = [step for step in self.steps if step.other == candidate.name and step.reason]
        if not steps:
            return f"{candidate.release} was not measured"
        verb = "cannot be measured" if steps[-1].outcome == "missing" else "stays open"
        return f"{candidate.release} {verb}: {steps[-1].reason}"

    def _deciding(self, change: LocatedChange) -> SearchStep:
        """Return the last comparison of the two releases of a change, or of the second with the base."""
        steps = self._resting(change)
        return ([step for step in steps if step.outcome == "changed"] or steps)[-1]

    def _resting(self, change: LocatedChange) -> list[SearchStep]:
        """Return the comparisons of the two releases of a change, or those of the second, for an unconfirmed range."""
        names = self.candidates[change.before].name, self.candidates[change.after].name
        of_pair = [step for step in self.steps if (step.base, step.other) == names]
        return of_pair or [step for step in self.steps if step.other == names[1]]

    def _why_open(self, first: ReleaseCandidate, last: ReleaseCandidate) -> str:
        reasons = [step.reason for step in self.steps if step.other == last.name and step.base == first.name]
        if self.answer.stopped and not reasons:
            return "the search stopped before they were compared"
        return (reasons[-1] if reasons else "") or "their comparison has no verdict"

    def _change(self, change: LocatedChange) -> dict[str, Any]:
        step, standing = self._deciding(change), self.searched.standings.get(change.after)
        return {
            "before": entry(self.candidates[change.before]),
            "after": entry(self.candidates[change.after]),
            "named": change.is_named,
            "kind": change.kind,
            "between": [self.candidates[position].release for position in change.missing],
            **{name: getattr(step, name) for name in STEP_FIELDS},
            "plain_processes": step.plain and asdict(step.plain),
            "sources": [source.json() for source in self._sources(change)],
            "with_scatter": None if standing is None else _standing_entry(standing),
            "runs": [
                {"run": each.run, "grade": each.grade, "issues": list(each.issues)}
                for each in self._resting(change)
                if each.run
            ],
            "sentence": self._sentence(change),
        }

    def _name(self, candidate: ReleaseCandidate) -> str:
        return f"{self.label} {candidate.release}"


def _standing_entry(standing: Standing) -> dict[str, Any]:
    """Return as JSON how a change stands beside the scatter of releases."""
    names = ("ratio", "ratio_low", "ratio_high", "scatter", "p_value")
    return {name: getattr(standing, name) for name in names}


def step_row(step: SearchStep, metric: str) -> tuple[str, ...]:
    """Return a step as fields of a table: both releases, the change of a metric, its interval, rounds and verdict."""
    ends = wording.change_range(BY_NAME[metric], step.ratio_low, step.ratio_high, direction=False) or formatting.DASH
    change, rounds = wording.change(BY_NAME[metric], step.ratio), str(step.rounds or formatting.DASH)
    return step.base, step.other, change, ends, rounds, _verdict(step)


def _verdict(step: SearchStep) -> str:
    word = wording.verdict_word(step.verdict or step.outcome)
    return word if step.outcome in ("same", "changed") else f"{word}: {step.reason}"


def step_line(number: int, step: SearchStep, question: Question) -> str:
    """Return a step as a line that is printed while the search goes on."""
    rounds = formatting.counted(step.rounds, "round")
    measured = f" {effects.effect(question, step)} in {rounds}," if step.ratio else ""
    return f"step {number}: {step.other} against {step.base}:{measured} {_verdict(step)}; {duration(step.seconds)}"


def entry(candidate: ReleaseCandidate) -> CandidateEntry:
    """Return a candidate as JSON has it."""
    return {
        "name": candidate.name,
        "release": candidate.release,
        "source": candidate.source,
        "template": candidate.template,
    }
