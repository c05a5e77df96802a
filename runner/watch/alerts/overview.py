"""What `runner alerts` shows: the open alerts, the body of an issue, and the outcome of a test."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, UsageError
from runner.core.metrics import TIME
from runner.core.text import printable
from runner.nights.night import NightChange
from runner.nights.night_files import read_nights
from runner.report import formatting
from runner.watch.alerts.message import TEST_MESSAGE, AlertEvidence, evidence, issue, title
from runner.watch.alerts.sending import DEADLINE, Send, send
from runner.watch.alerts.state import Alert, AlertState, Nights, state_after
from runner.watch.alerts.targets import FILE_VARIABLE, VARIABLE, read_targets, targets_file
from runner.watch.alerts.wording import change_text, ratio_of


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An open alert, what is known about it, and why a receiver does not have it; empty if all have it."""

    alert: Alert
    known: AlertEvidence | None
    failure: str

    def json(self) -> dict[str, Any]:
        """Return the alert for scripts."""
        largest = self.known.largest if self.known else None
        return {
            "key": self.alert.key,
            "environment": self.alert.environment,
            "device": self.alert.device,
            "night": self.alert.night,
            "cells": sorted(self.alert.cells),
            "title": title(self.known) if self.known else "",
            "largest": None if largest is None else _largest(largest),
            "not_delivered": self.failure,
        }


def _largest(change: NightChange) -> dict[str, Any]:
    of_metric = {} if change.metric == TIME else {"metric": change.metric}
    return {"cell": change.cell, **of_metric, "ratio": ratio_of(change)}


@dataclass(frozen=True, slots=True)
class Overview:
    """The open alerts of a reports folder, oldest first."""

    alerts: tuple[OpenAlert, ...]

    def json(self) -> Mapping[str, object]:
        """Return the alerts for scripts."""
        return {"alerts": [each.json() for each in self.alerts]}

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  its lines have no colours
        """Return the alerts for a terminal."""
        if not self.alerts:
            return "no alert is open"
        lines = []
        for each in self.alerts:
            lines += [printable(each.alert.key), f"  {title(each.known) if each.known else 'its night is gone'}"]
            lines += [f"  {change_text(each.known.largest)}"] if each.known else []
            lines += [f"  not delivered: {printable(each.failure)}"] if each.failure else []
        count = formatting.counted(len(self.alerts), "alert")
        return "\n".join([*lines, "", f"{count} open; `runner alerts --issue KEY` prints the body of an issue"])


@dataclass(frozen=True, slots=True)
class DeliveryTest:
    """Name of a receiver -> why it did not accept the test message; empty if it did."""

    outcomes: Mapping[str, str]

    @property
    def exit_code(self) -> int:
        """1 if a receiver did not accept it."""
        return 1 if any(self.outcomes.values()) else 0

    def json(self) -> Mapping[str, object]:
        """Return the outcome for scripts."""
        return {"targets": [{"name": name, "reason": reason} for name, reason in self.outcomes.items()]}

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  its lines have no colours
        """Return the outcome for a terminal."""
        return "\n".join(f"{name}: {reason or 'delivered'}" for name, reason in self.outcomes.items())


def overview(reports: Path) -> Overview:
    """Return the open alerts of a reports folder; raises UsageError if it does not exist."""
    state, nights = _read(reports)
    return Overview(tuple(_open_alert(alert, state, nights) for alert in state.alerts.values()))


def issue_body(reports: Path, key: str) -> str:
    """Return the body of an issue about an open alert, in Markdown.

    Raises:
        UsageError: there is no such alert, or its nights are gone.
    """
    state, nights = _read(reports)
    alert = state.alerts.get(key)
    known = evidence(key, alert.environment, alert.cells, nights) if alert else None
    if known is None:
        hint = f"open are {', '.join(map(printable, state.alerts))}" if state.alerts else "no alert is open"
        raise UsageError(Problem(f"there is no open alert {key!r} in {reports}", hint=hint))
    return issue(known, reports)


def send_test(environ: MutableMapping[str, str], send: Send = send) -> DeliveryTest:
    """Send a test message to all receivers.

    Raises:
        UsageError: there are no receivers, or they cannot be read.
    """
    targets = read_targets(environ)
    if not targets:
        hint = f"write addresses of apprise into {targets_file(environ)}, with mode 0600, or into {VARIABLE}"
        message = f"no receiver of alerts is set: neither {VARIABLE}, nor {FILE_VARIABLE}, nor a file"
        raise UsageError(Problem(message, hint=hint))
    return DeliveryTest(send(TEST_MESSAGE, targets, DEADLINE))


def _read(reports: Path) -> tuple[AlertState, Nights]:
    if not reports.is_dir():
        raise UsageError(
            Problem(f"there is no folder {reports}", hint="name the folder that holds the runs: --reports")
        )
    nights = read_nights(reports)
    return state_after(nights), nights


def _open_alert(alert: Alert, state: AlertState, nights: Nights) -> OpenAlert:
    opened = state.sent[alert.key, "opened"]
    known = evidence(alert.key, alert.environment, alert.cells, nights)
    return OpenAlert(alert, known, "" if opened.delivered else opened.reason)
