"""Send messages to receivers: a process for each, with a deadline, side by side."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, Protocol

from runner.watch.alerts import sender
from runner.watch.alerts.sender import NO_APPRISE, TOO_SLOW, UNKNOWN
from runner.watch.alerts.targets import VARIABLE, Receiver

DEADLINE = 20.0
"""Seconds that a receiver has to accept a message."""
SENDER = (sys.executable, "-P", sender.__file__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message: a line, plain text, and how it is coloured by services that have colours."""

    title: str
    body: str
    kind: Literal["info", "success", "warning", "failure"] = "info"


class Send(Protocol):
    """Sends a message to receivers within some seconds; returns name -> why it was not delivered, or empty."""

    def __call__(self, message: Message, targets: Sequence[Receiver], seconds: float) -> Mapping[str, str]:
        """Send it."""


def send(message: Message, targets: Sequence[Receiver], seconds: float = DEADLINE) -> dict[str, str]:
    """Send a message to receivers side by side; return the name of each -> why it was not delivered, empty if it was.

    Args:
        message: what to send.
        targets: the receivers.
        seconds: after these, what did not answer counts as not delivered.
    """
    if not targets:
        return {}
    if importlib.util.find_spec("apprise") is None:
        return dict.fromkeys((target.name for target in targets), NO_APPRISE)
    with ThreadPoolExecutor(len(targets)) as pool:
        reasons = pool.map(lambda target: _send(message, target, min(seconds, DEADLINE)), targets)
        return {target.name: reason for target, reason in zip(targets, reasons, strict=True)}


def _send(message: Message, target: Receiver, seconds: float) -> str:
    """Send a message to a receiver; return why it was not delivered."""
    request = {"address": target.address, "title": message.title, "body": message.body, "kind": message.kind}
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    try:
        done = subprocess.run(
            SENDER,
            input=json.dumps(request).encode(),  # stdin: a command line or an environment can be read by others
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(seconds, 0.1),
            env=environment,
            check=False,
        )
        answer = json.loads(done.stdout)
        return "" if answer["delivered"] else str(answer["reason"])
    except subprocess.TimeoutExpired:
        return TOO_SLOW
    except (OSError, ValueError, LookupError, TypeError):
        pass  # nothing of the error is shown: it may hold the address
    return UNKNOWN
