"""Which alerts are open, and what the nights reported of their cells: derived from the stored nights alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from runner.nights.alert_entry import SENT, AlertEntry, alert_key
from runner.nights.night import Night, NightChange

Nights = Mapping[str, Night]
"""Id of the first run -> its night, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A regression that was confirmed and still stands.

    Attributes:
        environment: the environment that became slower.
        device: backend and kind of device.
        night: the night that opened it.
        cells: id of a row that is still worse -> the night that reported it; see ``core.row_ids``.
    """

    environment: str
    device: str
    night: str
    cells: Mapping[str, str]

    @property
    def key(self) -> str:
        """Its name in nights, messages and commands."""
        return alert_key(self.environment, self.night)


@dataclass(frozen=True, slots=True)
class AlertState:
    """The alerts after some nights.

    Attributes:
        alerts: key -> an open alert, oldest first.
        sent: (key, action) -> the newest entry of a message.
    """

    alerts: Mapping[str, Alert]
    sent: Mapping[tuple[str, str], AlertEntry]

    @property
    def undelivered(self) -> tuple[AlertEntry, ...]:
        """The messages that some receiver does not have: of open alerts, and of those whose end was not delivered."""
        return tuple(
            entry
            for (key, action), entry in self.sent.items()
            if not entry.delivered and (action == "closed" or key in self.alerts)
        )

    def has_readers(self, key: str) -> bool:
        """Return True if a receiver has the message that opened an alert, or may have it."""
        opened = self.sent.get((key, "opened"))
        return opened is not None and opened.may_have_readers


def state_after(nights: Nights) -> AlertState:
    """Return the alerts after nights."""
    alerts: dict[str, Alert] = {}
    sent: dict[tuple[str, str], AlertEntry] = {}
    for run, night in nights.items():
        for entry in night.alerts:
            _apply(entry, run, night.series_device, alerts)
            if entry.action in SENT:
                sent[entry.key, entry.action] = entry
    return AlertState(alerts, sent)


def _apply(entry: AlertEntry, run: str, device: str, alerts: dict[str, Alert]) -> None:
    """Apply an entry of a night to the open alerts."""
    alert = alerts.get(entry.key)
    if entry.action == "closed":
        alerts.pop(entry.key, None)
    elif entry.action == "opened" and alert is None:
        if run == entry.night:
            cells = dict.fromkeys(entry.cells, run)
            alerts[entry.key] = Alert(environment=entry.environment, device=device, night=run, cells=cells)
    elif alert and entry.action in ("joined", "left"):
        kept = {cell: night for cell, night in alert.cells.items() if cell not in entry.cells}
        joined = dict.fromkeys(entry.cells, run) if entry.action == "joined" else {}
        alerts[entry.key] = replace(alert, cells={**kept, **joined})


def of_device(alerts: Iterable[Alert], device: str) -> tuple[Alert, ...]:
    """Return the alerts of a device; those of different devices have nothing in common."""
    return tuple(alert for alert in alerts if alert.device == device)


def regressions(night: Night) -> dict[str, NightChange]:
    """Return id of a row -> its confirmed regression in a night; against its last good run where there are several."""
    return {change.row: change for change in sorted(night.slower, key=lambda change: change.against == "baseline")}


def reported(nights: Nights, run: str, row: str) -> NightChange | None:
    """Return the regression of a row that a night reported; None if the night is gone.

    Where that night did not measure the cell in turns, it is the regression in the night that confirmed it.
    """
    change = regressions(nights[run]).get(row) if run in nights else None
    if change is None or change.again or change.confirmed_in not in nights:
        return change
    confirmed = nights[change.confirmed_in].changes
    same = (each for each in confirmed if (each.row, each.before) == (row, change.before))
    return next((each for each in same if each.again), change)
