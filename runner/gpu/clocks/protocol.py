"""The protocol between a runner and a guardian: an order goes in, answers come out, each a line of JSON."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from runner.core.model.devices import ClockPolicy
from runner.gpu.clocks import policy
from runner.gpu.clocks.journal import UUID

COMMAND = (sys.executable, "-P", "-m", "runner.gpu.clocks.guardian")
HOLD_SECONDS = 60.0  # to open the driver and to set clocks
UNDO_SECONDS = 3.0  # to undo them, with the driver open; a second try opens it anew and has twenty times as long

Task = Literal["hold", "restore", "reset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request to a guardian.

    Attributes:
        task: ``hold`` clocks until stdin ends; ``restore`` what the journal records; ``reset`` all clocks of a GPU to
            the driver's defaults, whatever the journal records.
        uuid: the GPU.
        clocks: the clocks to hold.
        run: the run that needs the clocks; ``runner`` is its process.
        patience: seconds that undoing may take with the driver open; a second try takes up to 20 times as long.
    """

    task: Task
    uuid: str
    clocks: ClockPolicy = field(default_factory=ClockPolicy)
    run: str = ""
    runner: int = 0
    patience: float = UNDO_SECONDS

    def line(self) -> bytes:
        """Return the order as a line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"


def read(line: bytes) -> Order:
    """Parse a line; raises ValueError, KeyError or TypeError if it is not an order."""
    values: Mapping[str, Any] = json.loads(line)
    task, uuid = values["task"], values["uuid"]
    if task not in {"hold", "restore", "reset"} or not UUID.fullmatch(uuid):
        raise ValueError("no order")
    return Order(
        task=task,
        uuid=uuid,
        clocks=policy.clock_policy(values["clocks"]),
        run=str(values["run"]),
        runner=int(values["runner"]),
        patience=min(max(float(values["patience"]), 0.1), 600.0),
    )
