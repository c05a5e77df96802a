"""What a runner asks of a guardian, and what the guardian answers: lines of JSON."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from runner.gpu.clocks import policy
from runner.gpu.clocks.journal import UUID
from runner.gpu.clocks.policy import Wish

COMMAND = (sys.executable, "-P", "-m", "runner.gpu.clocks.guardian")
HOLD_SECONDS = 60.0  # to open the driver and to set clocks
UNDO_SECONDS = 3.0  # to undo them, with the driver open; a second try opens it anew and has twenty times as long

Task = Literal["hold", "restore", "reset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is asked.

    Attributes:
        task: ``hold`` clocks until stdin ends; ``restore`` what is written down; ``reset`` a GPU to what its driver has
            by itself, whatever is written down.
        uuid: the GPU.
        wish: which clocks.
        run: the run that they are held for, and ``runner`` its process.
        patience: seconds that undoing may take; a second try has as many to itself.
    """

    task: Task
    uuid: str
    wish: Wish = field(default_factory=Wish)
    run: str = ""
    runner: int = 0
    patience: float = UNDO_SECONDS

    def line(self) -> bytes:
        """Return it as a line."""
        return json.dumps(asdict(self)).encode() + b"\n"


def read(line: bytes) -> Order:
    """Return the order in a line; raises ValueError, KeyError or TypeError where it holds none."""
    values: Mapping[str, Any] = json.loads(line)
    task, uuid = values["task"], values["uuid"]
    if task not in {"hold", "restore", "reset"} or not UUID.fullmatch(uuid):
        raise ValueError("no order")
    return Order(
        task=task,
        uuid=uuid,
        wish=policy.wish(values["wish"]),
        run=str(values["run"]),
        runner=int(values["runner"]),
        patience=min(max(float(values["patience"]), 0.1), 600.0),
    )
