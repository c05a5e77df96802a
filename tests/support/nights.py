"""Nights as values: what a night confirmed of some cells, and a receiver of alerts in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.analysis.comparison_model import Comparison, Difference, Row, Verdict
from runner.core.model import Cell
from runner.nights.night import Against, Night, NightChange
from runner.watch.alerts.delivery import Delivery
from runner.watch.alerts.sending import Message
from runner.watch.alerts.targets import Receiver
from runner.watch.nightly.night_record import NightFile, night_change, night_pair
from tests.support.fake_runs import cell

SALT = b"of the user who runs the nights"
SLACK = Receiver("1 slack", "slack://n0bodymayread", SALT)
MAIL = Receiver("2 mailto", "mailto://u:n0bodymayread@h", SALT)
BEFORE = "20261120-023000-aaaa"


def run_of(day: int) -> str:
    """Return the id of the night of a day of December 2026."""
    return f"202612{day:02}-023000-aaaa"


def many(count: int, environment: str = "torch-2.x") -> list[Cell]:
    """Return cells of different cases."""
    return [cell(environment, case=f"{number}x320") for number in range(count)]


def row(of: Cell, ratio: float, verdict: Verdict = "slower", width: float = 0.01) -> Row:
    """Return a row with an interval of one per cent each way, or of another width."""
    return Row(
        base=of,
        other=of,
        verdict=verdict,
        ratio=ratio,
        ratio_low=ratio - width,
        ratio_high=ratio + width,
        rounds=9,
        runs=("confirmation-run",),
    )


def change(
    of: Cell,
    night: str,
    ratio: float = 1.1,
    *,
    before: str = BEFORE,
    against: Against = "baseline",
    stands: bool = True,
) -> NightChange:
    """Return a change that was measured in turns."""
    return night_change(
        of,
        before=before,
        against=against,
        row=row(of, ratio),
        state="measured-again",
        again=row(of, ratio, "slower" if stands else "same"),
        digest="sha256:new",
        confirmed_in=night if stands else "",
    )


def night(
    day: int, changes: Sequence[NightChange], cells: Sequence[Cell], *, facts: Mapping[str, str] | None = None
) -> Night:
    """Return the night of a day that measured some cells."""
    names = {changed.environment: changed.before for changed in changes}
    different = (
        Difference(name="torch", base="2.9.0", other="2.9.1", kind="framework"),
        *(Difference(name=name, base="1", other=value, kind="speed") for name, value in (facts or {}).items()),
        Difference(name="triton", base="3.5.0", other="3.5.1", kind="package"),
    )
    pairs = [
        Comparison(
            base=f"{name}@{before}",
            others=(name,),
            device="cuda",
            device_name="",
            rows=(),
            differences={name: different},
        )
        for name, before in names.items()
    ]
    return Night(
        run=run_of(day),
        at=f"2026-12-{day:02}T02:30:00+00:00",
        device="cuda:0",
        device_name="NVIDIA H200",
        backend="docker",
        state="done",
        measured=len(cells),
        seconds={of.id: 1.0 for of in cells},
        changes=tuple(changes),
        pairs=tuple(night_pair(pair.others[0], Path("folder"), pair) for pair in pairs),
    )


@dataclass
class Receivers:
    """Receivers that accept messages, but for those with a reason not to."""

    refusing: dict[str, str] = field(default_factory=dict)
    messages: list[tuple[str, Message]] = field(default_factory=list)

    def __call__(self, message: Message, targets: Sequence[Receiver], seconds: float) -> dict[str, str]:
        """Keep the message of each receiver that accepts it."""
        assert seconds > 0
        self.messages += [(target.name, message) for target in targets if target.name not in self.refusing]
        return {target.name: self.refusing.get(target.name, "") for target in targets}

    def titles(self) -> list[str]:
        """Return what was accepted since the last call, as receiver and title."""
        titles = [f"{name}: {message.title}" for name, message in self.messages]
        self.messages.clear()
        return titles


def ended(
    reports: Path,
    tonight: Night,
    receivers: Receivers,
    targets: Sequence[Receiver] = (SLACK, MAIL),
    **context: Any,
) -> Night:
    """Store a night, deliver its alerts, and return it."""
    file = NightFile(tonight, reports)
    file.write(tonight)
    compared = context.pop("compared", frozenset(tonight.seconds))
    digests = context.pop("digests", {"torch-2.x": "sha256:new"})
    delivery = Delivery(
        reports=reports, write=file.write, targets=tuple(targets), note=lambda _: None, send=receivers, **context
    )
    return delivery.of(tonight, compared, digests)
