"""Which alerts are open: derived from what the stored nights did, so nothing else can disagree with them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from runner.nights.alert_entry import SENT, AlertEntry
from runner.watch.alerts.stored import device_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A regression that was confirmed and still stands.

    Attributes:
        key: names it.
        environment: the environment that became slower.
        device: backend and kind of device.
        night: the night that opened it.
        cells: id of a cell that is still slower -> the night that reported it.
    """

    key: str
    environment: str
    device: str
    night: str
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class State:
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


def state_after(nights: Mapping[str, Mapping[str, Any]]) -> State:
    """Return the alerts after nights, which are given oldest first."""
    alerts: dict[str, Alert] = {}
    sent: dict[tuple[str, str], AlertEntry] = {}
    for run, night in nights.items():
        for stored in night.get("alerts", ()):
            entry = entry_of(stored)
            _apply(entry, run, device_of(night), alerts)
            if entry.action in SENT:
                sent[entry.key, entry.action] = entry
    return State(alerts, sent)


def entry_of(stored: Mapping[str, Any]) -> AlertEntry:
    """Return a stored entry."""
    names = ("key", "action", "environment", "because", "delivered", "targets", "reason")
    return AlertEntry(cells=tuple(stored["cells"]), **{name: stored[name] for name in names})


def _apply(entry: AlertEntry, run: str, device: str, alerts: dict[str, Alert]) -> None:
    """Apply an entry of a night to the open alerts."""
    alert = alerts.get(entry.key)
    if entry.action == "closed":
        alerts.pop(entry.key, None)
    elif entry.action == "opened" and alert is None:
        if run == night_of(entry.key, entry.environment):
            cells = dict.fromkeys(entry.cells, run)
            alerts[entry.key] = Alert(
                key=entry.key, environment=entry.environment, device=device, night=run, cells=cells
            )
    elif alert and entry.action in ("joined", "left"):
        kept = {cell: night for cell, night in alert.cells.items() if cell not in entry.cells}
        joined = dict.fromkeys(entry.cells, run) if entry.action == "joined" else {}
        alerts[entry.key] = replace(alert, cells={**kept, **joined})


def key_of(environment: str, night: str) -> str:
    """Return the key of an alert that a night opens: at most one for each environment."""
    return f"{environment}-{night}"


def night_of(key: str, environment: str) -> str:
    """Return the night that opened an alert."""
    return key.removeprefix(f"{environment}-")


def of_device(alerts: Iterable[Alert], device: str) -> tuple[Alert, ...]:
    """Return the alerts of a device."""
    return tuple(alert for alert in alerts if alert.device == device)
