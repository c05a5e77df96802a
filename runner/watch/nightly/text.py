"""A night as text for a terminal or a mail."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME, TIME, WORSE
from runner.nights.night import Against, Night, NightChange, NightPair
from runner.report import differences, formatting, wording
from runner.report.formatting import counted
from runner.report.night_changes import night_changes
from runner.session.run_entry import change_entry
from runner.watch.alerts.state import regressions
from runner.watch.alerts.wording import phrase_of, ratio_of, values_of

BETWEEN: Mapping[Against, str] = {
    "baseline": "between the runs",
    "anchor": "between the run and its anchor",
    "series": "against the base, since {} nights",
}
"""What a test was compared with -> what its change is, when the two sides did not alternate."""


@dataclass(frozen=True, slots=True)
class PrintedNight:
    """A night as a command prints it."""

    night: Night

    def json(self) -> dict[str, Any]:
        """Return the night as docs/how-to/nightly.md describes it."""
        return self.night.json()

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  its lines are not laid out
        """Return the night as text for a terminal or a mail."""
        return night_text(self.night)


def night_text(night: Night) -> str:
    """Return the night: the changes of each environment since each earlier run, the notes, and a summary."""
    measured = f"{counted(night.measured, 'test')} measured, {len(night.failed)} failed"
    lines = [
        f"night of {formatting.date(night.run) or night.at}, run {night.run}, on {night.device_name}, {night.backend}",
        f"{measured}; {night.compared} compared with their last good run",
    ]
    for environment, before in dict.fromkeys((change.environment, change.before) for change in night.changes):
        lines += ["", *_environment_lines(night, environment, before)]
    lines += ["", *(f"note: {note}" for note in night.notes)] if night.notes else []
    return "\n".join([*lines, "", _summary(night)])


def _environment_lines(night: Night, environment: str, before: str) -> list[str]:
    """Return the lines about the changes of one environment since one run."""
    changes = [change for change in night.changes if (change.environment, change.before) == (environment, before)]
    against = "anchor" if all(change.against == "anchor" for change in changes) else "run"
    lines = [f"{environment} against {against} {before}, {formatting.date(before)}"]
    lines += [
        f"  {_line(change)}"
        for change in changes
        if change.again or change.confirmed_in or change.verdict != "inconclusive"
    ]
    reasons = Counter(change.reason for change in changes if change.reason and not change.is_decided)
    lines += [f"  {counted(count, 'test')}: {reason}" for reason, count in reasons.items()]
    name = f"{environment}@{before}"
    return lines + [f"  {_pair_line(pair)}" for pair in night.pairs if pair.base == name]


def _summary(night: Night) -> str:
    unconfirmed = sum(change.again is None for change in night.changes)
    text = night_changes(night.run, map(change_entry, night.changes)).text(_by_metric(night))
    if unconfirmed:
        text += f"; {unconfirmed} of {len(night.changes)} candidates were not re-measured"
    return text if night.state == "done" else f"{text}; the night was interrupted"


def _by_metric(night: Night) -> str:
    """Return what the confirmed regressions are worse in; empty if that is time alone."""
    confirmed = (change for change in regressions(night).values() if change.confirmed_in == night.run)
    changes_by_metric = grouped((change.metric, change) for change in confirmed)
    if changes_by_metric.keys() <= {TIME}:
        return ""
    return ", ".join(_worse(*each) for each in changes_by_metric.items())


def _worse(name: str, changes: Sequence[NightChange]) -> str:
    """Return how much worse a metric is: that of one change with its values, of several the largest."""
    largest = max(changes, key=ratio_of)
    if len(changes) == 1:
        return ", ".join(filter(None, (wording.change(BY_NAME[name], ratio_of(largest)), values_of(largest))))
    return f"{phrase_of(changes, name)}, up to {wording.amount(ratio_of(largest))}"


def _line(change: NightChange) -> str:
    """Return a change as one line: how large it is with alternating sides, then that of the two runs."""
    again = change.again
    name, metric = _name(change), BY_NAME[change.metric]
    between = f"{wording.change_with_range(metric, change)} {BETWEEN[change.against].format(change.rounds)}"
    word = "creep" if change.against == "anchor" else metric.worse
    if again is None:
        confirmed = f"{word}: {name}: confirmed by night {change.confirmed_in}"
        return f"{confirmed}; {between}" if change.confirmed_in else f"looks {change.verdict}: {name}: {between}"
    values = values_of(change)
    amount = wording.change_with_range(metric, again) + (f", {values}" if values else "")
    alternating = f"alternating, {counted(again.rounds, 'round')}"
    if change.is_regression and change.against == "anchor":
        return f"creep: {name}: {amount} than the anchor of {formatting.date(change.before)[:10]}, {alternating}"
    if change.is_regression and again.verdict not in WORSE:
        verdict = f"by that alone {wording.verdict_word(again.verdict)}; confirmed by night {change.confirmed_in}"
        return f"{metric.worse}: {name}: {amount}, {alternating}, {verdict}; {between}"
    return f"{wording.verdict_word(again.verdict)}: {name}: {amount}, {alternating}; {between}"


def _name(change: NightChange) -> str:
    metric = BY_NAME[change.metric]
    if metric.scope == "environment":
        return metric.title
    cell = f"{change.implementation} {change.workload}/{change.case} {change.phase} {change.precision}"
    return cell if metric.name == TIME else f"{cell}, {metric.title}"


def _pair_line(pair: NightPair) -> str:
    different = [differences.sentence_of(pair.base, pair.environment, pair.differences)] if pair.differences else []
    return "; ".join([*different, f"measured alternately in {pair.folder}"])
