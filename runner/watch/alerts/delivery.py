"""Alerts at the end of a night: decide, store what is to be sent, send it, store what was delivered.

The intention is stored before anything is sent. So a night that is killed in between sends a message again in the next
night, which a receiver then has twice; no message is lost.
"""

import time
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from runner.core.errors import RecordError, RunnerError
from runner.nights.alert_entry import INTENDED, AlertEntry
from runner.nights.anchors_file import acceptances
from runner.nights.night import Night
from runner.nights.night_files import read_nights
from runner.report import formatting
from runner.stats.intervals import MARGIN
from runner.store.run import runs
from runner.watch.alerts.actions import Tonight, actions
from runner.watch.alerts.message import AlertEvidence, closed_message, evidence, opened_message
from runner.watch.alerts.sending import Message, Send, send
from runner.watch.alerts.state import AlertState, Nights, state_after
from runner.watch.alerts.targets import Receiver, read_targets, salted

BUDGET = 60.0
"""Seconds that all messages of a night may take."""
NO_TARGETS = "nobody is to be notified"
NO_TIME = "the messages before it took too long"

Note = Callable[[str], None]


def targets_of_night(environ: MutableMapping[str, str], note: Note) -> tuple[Receiver, ...]:
    """Return the receivers of alerts; where they cannot be read, note why and return none: the night goes on.

    MATRIX_RUNNER_ALERTS is taken out of the environment, so that no process of the night gets it.
    """
    try:
        targets = read_targets(environ)
    except RunnerError as error:
        note(f"no alerts will be sent: {error.problems[0].message}")
        return ()
    if not targets:
        return ()
    try:
        return salted(targets, environ)
    except (OSError, RunnerError) as error:
        reason = error.problems[0].message if isinstance(error, RunnerError) else f"{error.filename}: {error.strerror}"
        note(f"this night stores the receivers of alerts by their numbers, because no salt can be kept: {reason}")
        return targets


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The delivery of a night's alerts: what does not arrive is a note, and the next night sends it again.

    Attributes:
        reports: the folder that holds the nights.
        write: replaces the file of the night; raises RecordError if it cannot be stored.
        targets: the receivers; without any, the alerts are kept and nothing is sent.
        note: shows a line.
        margin: the relative change that counts as none.
        send: sends a message.
        clock: seconds, monotonic.
    """

    reports: Path
    write: Callable[[Night], object]
    targets: tuple[Receiver, ...]
    note: Note
    margin: float = MARGIN
    send: Send = send
    clock: Callable[[], float] = time.monotonic

    def of(self, night: Night, compared: Collection[str], digests: Mapping[str, str]) -> Night:
        """Open, close and send the alerts of a night that is done; return the night with its alerts, stored again.

        Args:
            night: tonight, with its confirmed regressions.
            compared: ids of the rows that were compared with their last good runs.
            digests: environment -> what pins its content tonight.

        Raises:
            RecordError: the night cannot be stored.
        """
        nights = read_nights(self.reports)
        nights.pop(night.run, None)
        state = state_after(nights)
        tonight = Tonight(
            night=night,
            compared=compared,
            digests=digests,
            accepted=_accepted(self.reports, night),
            digest_in=cache(partial(_digest_in, self.reports)),
            margin=self.margin,
        )
        entries = actions(state, nights, tonight)
        closed = {entry.key for entry in entries if entry.action == "closed"}
        entries += [entry for entry in state.undelivered if self.targets and entry.key not in closed]
        night = self._stored(night, [_intended(entry, self.targets) for entry in entries])
        night = self._sent(night, state, {**nights, night.run: night})
        failures = [_outcome(entry) for entry in night.alerts if self.targets and not entry.delivered]
        return self._stored(replace(night, notes=(*night.notes, *failures)), night.alerts) if failures else night

    def _stored(self, night: Night, entries: Sequence[AlertEntry]) -> Night:
        """Store a night with its alerts; return it."""
        night = replace(night, alerts=tuple(entries))
        self.write(night)
        return night

    def _sent(self, night: Night, state: AlertState, nights: Nights) -> Night:
        """Send the messages of a night, and store it after each; return it."""
        deadline = self.clock() + BUDGET
        for index, entry in enumerate(night.alerts):
            if entry.delivered or not self.targets:
                continue
            message = _message(entry, state, nights, self.reports)
            outcome = self._outcome_of(entry, message, deadline - self.clock())
            self.note(_outcome(outcome))
            night = self._stored(night, [*night.alerts[:index], outcome, *night.alerts[index + 1 :]])
        return night

    def _outcome_of(self, entry: AlertEntry, message: Message | None, seconds: float) -> AlertEntry:
        """Send the message of an entry to those who do not have it; return the entry with the outcome."""
        if message is None:
            return replace(entry, delivered=True, reason="its nights are gone")
        has_it = {name for name, failure in entry.targets.items() if not failure}
        missing = [target for target in self.targets if not any(map(target.is_stored_as, has_it))]
        names = [target.name for target in missing]
        failures = self.send(message, missing, seconds) if seconds > 0 else dict.fromkeys(names, NO_TIME)
        outcome = {target.key: failures.get(target.name, "") for target in self.targets}
        reasons = [f"{target.name}: {outcome[target.key]}" for target in self.targets if outcome[target.key]]
        return replace(entry, targets=outcome, delivered=not reasons, reason="; ".join(reasons))


def _intended(entry: AlertEntry, targets: Sequence[Receiver]) -> AlertEntry:
    """Return an entry as it is stored before its message is sent."""
    if entry.delivered:
        return entry
    return replace(entry, reason=INTENDED if targets else NO_TARGETS)


def _message(entry: AlertEntry, state: AlertState, nights: Nights, reports: Path) -> Message | None:
    """Return the message of an entry; None where there is nothing left to send."""
    known = known_of(entry, state, nights)
    if entry.action == "closed":
        return closed_message(entry, known)
    return opened_message(known, reports) if known else None


def known_of(entry: AlertEntry, state: AlertState, nights: Nights) -> AlertEvidence | None:
    """Return what is known about the alert of an entry."""
    alert = state.alerts.get(entry.key)
    cells = dict(alert.cells) if alert and entry.action == "opened" else dict.fromkeys(entry.cells, entry.night)
    return evidence(entry.key, entry.environment, cells, nights)


def _outcome(entry: AlertEntry) -> str:
    """Return a line on what became of a message."""
    what = f"alert {entry.key} ({entry.action})"
    if entry.delivered:
        return f"{what}: sent to {formatting.counted(len(entry.targets), 'receiver')}"
    return f"{what} was not delivered: {entry.reason}; the next night sends it again"


def _accepted(reports: Path, night: Night) -> dict[str, tuple[str, str]]:
    """Return id of a cell -> the run that a person last accepted on the night's device, and who did so and why."""
    return {
        cell: (accepted.run, f"{accepted.reason} ({accepted.person})")
        for accepted in acceptances(reports)
        if accepted.device == night.series_device
        for cell in accepted.cells
    }


def _digest_in(reports: Path, run: str, environment: str) -> str:
    """Return what pinned the content of an environment in a run; empty if that is not known."""
    for stored in runs(reports):
        if stored.id == run:
            try:
                return str(stored.journal().header.get("digests", {}).get(environment, ""))
            except RecordError:
                return ""
    return ""
