"""What a night did about an alert, as its file has it: ``alerts`` of ``reports/nights/<run>.json``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ConfigDict

from runner.core.bounds import CellId

Action = Literal["opened", "joined", "left", "closed"]
"""``opened`` and ``closed`` are sent; ``joined`` and ``left`` only say which cells an open alert is about."""

SENT: tuple[Action, ...] = ("opened", "closed")


INTENDED = "it was about to be sent"
"""The reason of a message that is stored before it is sent; after a kill, a receiver may have it."""


def alert_key(environment: str, night: str) -> str:
    """Return the key of an alert that a night opens: at most one for each environment; see ``AlertEntry.night``."""
    return f"{environment}-{night}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEntry:
    """An action of a night on an alert.

    Attributes:
        key: names the alert, see ``alert_key``.
        environment: the environment that became slower, or worse in another metric.
        cells: ids of the rows that this action is about, see ``core.row_ids``: of cells where their times changed.
        because: why cells left, or why the alert was closed; empty otherwise.
        delivered: whether every receiver has the message, or there is none to send.
        targets: key of a receiver -> why it does not have the message, empty if it does.
        reason: why the message is not delivered, in a sentence; empty if it is.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore")

    key: str
    action: Action
    environment: str
    cells: tuple[CellId, ...]
    because: str = ""
    delivered: bool = False
    targets: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def night(self) -> str:
        """The night that opened the alert; empty if the key is of another environment."""
        prefix = alert_key(self.environment, "")
        return self.key.removeprefix(prefix) if self.key.startswith(prefix) else ""

    @property
    def may_have_readers(self) -> bool:
        """True if a receiver has the message, or may have it."""
        return self.reason == INTENDED or any(not failure for failure in self.targets.values())
