"""What a night did about an alert, as its file has it: ``alerts`` of ``reports/nights/<run>.json``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Action = Literal["opened", "joined", "left", "closed"]
"""``opened`` and ``closed`` are sent; ``joined`` and ``left`` only say which cells an open alert is about."""

SENT: tuple[Action, ...] = ("opened", "closed")


INTENDED = "it was about to be sent"
"""The reason of a message that is stored before it is sent; after a kill, a receiver may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEntry:
    """An action of a night on an alert.

    Attributes:
        key: names the alert: its environment and the night that opened it.
        environment: the environment that became slower.
        cells: ids of the cells that this action is about.
        because: why cells left, or why the alert was closed; empty otherwise.
        delivered: whether every receiver has the message, or there is none to send.
        targets: key of a receiver -> why it does not have the message, empty if it does.
        reason: why the message is not delivered, in a sentence; empty if it is.
    """

    key: str
    action: Action
    environment: str
    cells: tuple[str, ...]
    because: str = ""
    delivered: bool = False
    targets: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def may_have_readers(self) -> bool:
        """True if a receiver has the message, or may have it."""
        return self.reason == INTENDED or any(not failure for failure in self.targets.values())

    def json(self) -> dict[str, Any]:
        """Return the entry as a file has it."""
        return {**asdict(self), "cells": list(self.cells), "targets": dict(self.targets)}
