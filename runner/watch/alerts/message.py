"""What is known about an alert, as text: messages in plain text, and the body of an issue in Markdown."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.core.metrics import BY_NAME, TIME
from runner.core.paths import DEFAULT_REPORTS
from runner.core.row_ids import cell_and_metric
from runner.core.text import REASON_LENGTH, printable
from runner.nights.alert_entry import AlertEntry
from runner.nights.night import Against, NightChange, NightDifference
from runner.report import formatting, wording
from runner.report.markdown_text import Raw, bullets, plain, table
from runner.watch.alerts.sending import Message
from runner.watch.alerts.state import Nights, reported
from runner.watch.alerts.wording import change_text, name_of, phrase_of, ratio_of, words_of

SHOWN_CELLS = 5
"""Cells of a message, for each earlier run; many services cut off a message after 2,000 characters."""
ISSUE_CELLS = 100
SHOWN_NAMES = 8
TITLE_LENGTH = 100
EARLIER: Mapping[Against, str] = {
    "baseline": "the last good run",
    "anchor": "the anchor",
    "series": "the level of earlier nights",
}
"""What a change was compared with -> its words."""
_MENTIONS = str.maketrans({"<": "(", ">": ")", "@": " at "})
"""What chat services read as a mention or a link; ids of cells, releases and commands have none of them."""


VALUE_LENGTH = 60  # characters of a value of a fact; an environment reports it
RELEVANT = ("framework", "speed")
"""Kinds of differences that times may depend on; see ``runner.analysis.comparison_model.Difference``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep:
    """Cells that became slower, or worse in another metric, between the same two states of an environment.

    Attributes:
        before: the earlier run.
        against: what that is for the cells.
        changes: the largest ratio first.
        facts: (name, value in the earlier run, value now) that times may depend on, the framework first.
        packages: names of the packages and settings that differ besides.
        release_before: the framework's release in the earlier run, ``release`` in the later one; empty if they are not
            known or equal.
    """

    before: str
    against: Against
    changes: tuple[NightChange, ...]
    facts: tuple[tuple[str, str, str], ...]
    packages: tuple[str, ...]
    release_before: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvidence:
    """An alert with what its nights measured; all text is printable, but for the ids of cells.

    Attributes:
        key, environment: of the alert.
        device: name of the device; ``backend`` its backend.
        night: the night that opened it.
        reported_in: id of a row -> the night that reported it.
        steps: those with the largest change first.
    """

    key: str
    environment: str
    device: str
    backend: str
    night: str
    reported_in: Mapping[str, str]
    steps: tuple[SlowStep, ...]

    @property
    def changes(self) -> tuple[NightChange, ...]:
        """All changes, those of a step together."""
        return tuple(change for step in self.steps for change in step.changes)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len({change.cell for change in self.changes})

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that became worse, that with the largest change first."""
        return tuple(dict.fromkeys(change.metric for change in self.changes))

    @property
    def largest(self) -> NightChange:
        """The change with the largest ratio."""
        return self.steps[0].changes[0]


def evidence(key: str, environment: str, cells: Mapping[str, str], nights: Nights) -> AlertEvidence | None:
    """Return what is known about an alert; None if its nights are gone.

    Args:
        key: of the alert.
        environment: that became slower.
        cells: id of a row -> the night that reported it.
        nights: all nights.
    """
    by_run: dict[str, list[NightChange]] = {}
    for cell, night in cells.items():
        if change := reported(nights, night, cell):
            by_run.setdefault(change.before, []).append(change)
    steps = [_step(environment, changes, cells, nights) for changes in by_run.values()]
    steps.sort(key=lambda step: -ratio_of(step.changes[0]))
    opened = min(cells.values(), default="")
    if not steps or opened not in nights:
        return None
    return AlertEvidence(
        key=printable(key),
        environment=printable(environment),
        device=printable(nights[opened].device_name, VALUE_LENGTH),
        backend=printable(nights[opened].backend, VALUE_LENGTH),
        night=opened,
        reported_in=cells,
        steps=tuple(steps),
    )


def _step(environment: str, changes: Sequence[NightChange], cells: Mapping[str, str], nights: Nights) -> SlowStep:
    """Return the step of changes since the same earlier run."""
    ordered = sorted(changes, key=lambda change: -ratio_of(change))
    before = ordered[0].before
    reporting = dict.fromkeys(name for change in ordered for name in (cells[change.row], change.confirmed_in))
    different = next(filter(None, (_differences(nights, name, environment, before) for name in reporting)), ())
    relevant = [each for each in different if each.kind in RELEVANT]
    framework = next((each for each in relevant if each.kind == "framework"), None)
    return SlowStep(
        before=printable(before),
        against=ordered[0].against,
        changes=tuple(ordered),
        facts=tuple((_text(each.name), _text(each.base), _text(each.other)) for each in relevant),
        packages=tuple(_text(each.name) for each in different if each.kind in ("package", "alone")),
        release_before=_text(framework.base or "") if framework else "",
        release=_text(framework.other or "") if framework else "",
    )


def _differences(nights: Nights, run: str, environment: str, before: str) -> tuple[NightDifference, ...]:
    """Return what differs between an environment in a night and in an earlier run; empty if it was not measured."""
    pairs = nights[run].pairs if run in nights else ()
    return next((pair.differences for pair in pairs if pair.base == f"{environment}@{before}"), ())


def _text(value: str | None) -> str:
    return printable(value or formatting.DASH, VALUE_LENGTH) if value != "" else ""


def opened_message(known: AlertEvidence, reports: Path = DEFAULT_REPORTS) -> Message:
    """Return the message that opens an alert; ``reports`` is the folder that its commands name."""
    lines = [_summary(known), ""]
    for step in known.steps:
        lines += [*_step_lines(step, known, reports), ""]
    lines += [f"{what}: {command}" for what, command in commands(known, reports)]
    return Message(title=title(known), body=_safe("\n".join(lines)), kind="failure")


def closed_message(entry: AlertEntry, known: AlertEvidence | None) -> Message:
    """Return the message that closes an alert."""
    rows = {cell for cell, metric in map(cell_and_metric, entry.cells) if BY_NAME[metric].scope == "cell"}
    cells = f": {formatting.counted(len(rows), 'test')}" if rows else ""
    device = f" on {known.device}" if known else ""
    words = words_of(entry.cells)
    what = printable(f"{entry.environment}: no longer {words}{cells}{device}", TITLE_LENGTH)
    because = printable(entry.because, 600)
    return Message(title=_safe(what), body=_safe(f"Alert {entry.key} is closed: {because}."), kind="success")


TEST_MESSAGE = Message(
    title="matrix-runner: a test of alerts",
    body="`runner alerts --test` sent this message. Alerts about confirmed regressions will come the same way.",
)


def title(known: AlertEvidence) -> str:
    """Return the title of an alert and of its issue: what, how many, how much, where."""
    amount = wording.change(BY_NAME[known.largest.metric], ratio_of(known.largest))
    amount = amount if known.cells == 1 else f"up to {amount}"
    cells = name_of(known.largest) if known.cells == 1 else formatting.counted(known.cells, "test")
    return _safe(printable(f"{known.environment} {amount}: {cells}, on {known.device}", TITLE_LENGTH))


def issue(known: AlertEvidence, reports: Path = DEFAULT_REPORTS) -> str:
    """Return the body of an issue, in Markdown; whatever an environment reported is escaped."""
    parts = [f"# {plain(title(known))}", plain(_safe(_summary(known)))]
    for step in known.steps:
        rows = [(_safe(name_of(change)), change_text(change)) for change in step.changes[:ISSUE_CELLS]]
        word = "Slower" if {change.metric for change in step.changes} == {TIME} else "Worse"
        parts += [f"## {word} than {plain(_safe(_since(step)))}"]
        parts += [table(("test", "change, with its 95 % interval"), rows)]
        parts += [plain(_more(step, ISSUE_CELLS))] if len(step.changes) > ISSUE_CELLS else []
        parts += [bullets(map(_safe, _fact_lines(step)))]
    blocks = [f"{what}:\n\n```sh\n{command}\n```" for what, command in commands(known, reports)]
    return Raw("\n\n".join([*filter(None, parts), *blocks, f"Alert `{known.key.replace('`', '')}`."]) + "\n")


def commands(known: AlertEvidence, reports: Path = DEFAULT_REPORTS) -> Iterator[tuple[str, str]]:
    """Yield what to do next, and the command for the cell with the largest change.

    Args:
        known: what is known about the alert.
        reports: the folder of its nights.
    """
    folder = () if reports == DEFAULT_REPORTS else ("--reports", str(reports.absolute()))
    cell, step = known.largest.cell, known.steps[0]
    night, name = known.reported_in[known.largest.row], known.largest.metric
    metric = () if name == TIME else ("--metric", name)
    has_cell = BY_NAME[name].scope == "cell"
    shown = cell if has_cell else known.environment
    yield "Look", _command("runner", "history", shown, *metric, *folder)
    if name == TIME:  # ``reproduce`` compares times
        yield "Reproduce", _command("runner", "reproduce", f"{night}/{shown}", *folder)
    if step.release_before and step.release and has_cell:
        good, bad = step.release_before, step.release
        axis = ("--axis", "nightly") if ".dev" in bad else ()
        how = (*metric, *axis, *folder)
        yield "Find the release", _command("runner", "bisect", cell, "--good", good, "--bad", bad, *how)
    cells = list(dict.fromkeys(change.cell for change in known.changes if BY_NAME[change.metric].scope == "cell"))
    accepted = cells if 0 < len(cells) <= SHOWN_CELLS else [known.environment]
    yield "Accept", _command("runner", "history", "accept", *accepted, "--run", night, "--reason", "REASON", *folder)


def _command(*words: str) -> str:
    """Return a command for a shell; a word that a stored night made up stays a word."""
    return shlex.join(printable(word, 300) for word in words)


def _summary(known: AlertEvidence) -> str:
    cells = formatting.counted(known.cells, "test")
    verb = "is" if known.cells == 1 else "are"
    night = f"the night of {formatting.date(known.night) or known.night}"
    if known.metrics != (TIME,):
        worse = ", ".join(phrase_of(known.changes, name) for name in known.metrics)
        return f"{known.environment}: {worse}, on {known.device}, {known.backend}: confirmed by {night}."
    return f"{cells} of {known.environment} {verb} slower on {known.device}, {known.backend}: confirmed by {night}."


def _since(step: SlowStep) -> str:
    earlier, date = EARLIER[step.against], formatting.date(step.before) or "an unknown time"
    return f"{earlier}, {step.before} of {date}"


def _step_lines(step: SlowStep, known: AlertEvidence, reports: Path) -> Iterator[str]:
    yield f"Against {_since(step)}:"
    for change in step.changes[:SHOWN_CELLS]:
        yield f"  {name_of(change)}: {change_text(change)}"
    if len(step.changes) > SHOWN_CELLS:
        folder = "" if reports == DEFAULT_REPORTS else f" --reports {shlex.quote(str(reports.absolute()))}"
        yield f"  {_more(step, SHOWN_CELLS)}: `runner alerts --issue {known.key}{folder}` prints them"
    yield from (f"  {line}" for line in _fact_lines(step))


def _more(step: SlowStep, shown: int) -> str:
    return f"and {formatting.counted(len(step.changes) - shown, 'more test')}"


def _fact_lines(step: SlowStep) -> Iterator[str]:
    """Yield what differs between the two states of the environment."""
    if step.against == "series":
        yield printable(step.changes[0].reason, REASON_LENGTH)
    facts = [f"{name} {before} → {after}" for name, before, after in step.facts]
    if facts:
        yield f"differs: {_few(facts)}"
    if step.packages:
        yield f"{formatting.counted(len(step.packages), 'package')} in other versions: {_few(step.packages)}"
    if not facts and not step.packages:
        yield "what differs was not recorded"


def _few(items: Sequence[str]) -> str:
    shown = ", ".join(items[:SHOWN_NAMES])
    return shown if len(items) <= SHOWN_NAMES else f"{shown} and {len(items) - SHOWN_NAMES} more"


def _safe(text: str) -> str:
    """Return text in which nothing mentions everybody of a chat, or is a link."""
    return text.translate(_MENTIONS).replace("://", ":")
