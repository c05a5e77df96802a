"""The stored nights, ``reports/nights/*.json``, as alerts read them: what changed, what differs, what was sent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.errors import RecordError
from runner.core.json import Document
from runner.nights.alert_entry import Action
from runner.store.documents import read_shaped
from runner.store.shapes import CONFIG, CellId, Count, Number

FOLDER = "nights"
MAX_BYTES = 64 << 20
"""The largest stored night that is read."""


@with_config(CONFIG)
class StoredRatio(TypedDict):
    """Tonight's time over that of an earlier run."""

    ratio: NotRequired[Number | None]
    ratio_low: NotRequired[Number | None]
    ratio_high: NotRequired[Number | None]
    rounds: NotRequired[Count]


@with_config(CONFIG)
class StoredInTurns(StoredRatio):
    """The same, measured in turns, and the run that did so."""

    verdict: NotRequired[str]
    run: NotRequired[str]


@with_config(CONFIG)
class StoredChange(StoredRatio):
    """A cell that may have changed."""

    cell: CellId
    before: str
    environment: NotRequired[str]
    against: NotRequired[str]
    confirmed_in: NotRequired[str]
    reason: NotRequired[str]
    again: StoredInTurns | None


@with_config(CONFIG)
class StoredDifference(TypedDict):
    """A fact that differs between an environment as it was and as it is."""

    name: str
    base: str | None
    other: str | None
    kind: NotRequired[str]


@with_config(CONFIG)
class StoredPair(TypedDict):
    """An environment as it was and as it is, measured in turns."""

    environment: str
    base: str
    differences: list[StoredDifference]


@with_config(CONFIG)
class StoredEntry(TypedDict):
    """See ``AlertEntry``."""

    key: str
    action: Action
    environment: str
    cells: list[CellId]
    because: str
    delivered: bool
    targets: dict[str, str]
    reason: str


@with_config(CONFIG)
class StoredNight(TypedDict):
    """What alerts read of a night."""

    run: str
    at: str
    device_name: str
    backend: str
    changes: list[StoredChange]
    pairs: list[StoredPair]
    seconds: NotRequired[dict[str, Number]]
    alerts: NotRequired[list[StoredEntry]]


NIGHT = TypeAdapter[Any](StoredNight)


def read_nights(reports: Path) -> dict[str, Document]:
    """Return id of the first run -> its night, oldest first; a file that this program did not write is ignored."""
    nights = {}
    for path in sorted((reports / FOLDER).glob("[!.]*.json")):
        try:
            nights[path.stem] = read_shaped(path, NIGHT, MAX_BYTES)
        except RecordError:
            continue
    return nights


def device_of(night: Mapping[str, Any]) -> str:
    """Return the backend and the kind of device of a night; alerts of different devices have nothing in common."""
    return f"{night['backend']} {night['device_name'].rpartition(' x ')[2]}"


def regressions(night: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return id of a cell -> its confirmed regression in a night; against its last good run where there are several."""
    confirmed = [change for change in night["changes"] if change.get("confirmed_in")]
    confirmed.sort(key=lambda change: change.get("against", "baseline") == "baseline")
    return {change["cell"]: change for change in confirmed}


def in_turns(nights: Mapping[str, Mapping[str, Any]], run: str, cell: str) -> Mapping[str, Any]:
    """Return a regression of a cell in a night; where that did not measure it in turns, as the confirming night did.

    It is empty for a night that does not have it.
    """
    change = regressions(nights[run]).get(cell, {}) if run in nights else {}
    if change and change["again"] is None and change["confirmed_in"] != run:
        confirmed = nights.get(change["confirmed_in"], {}).get("changes", ())
        same = (each for each in confirmed if (each["cell"], each["before"]) == (cell, change["before"]))
        return next((each for each in same if each["again"]), change)
    return change


def differences(nights: Mapping[str, Mapping[str, Any]], run: str, environment: str, before: str) -> list[Document]:
    """Return what differs between an environment in a night and in an earlier run; empty if it was not measured."""
    pairs = nights[run]["pairs"] if run in nights else ()
    base = f"{environment}@{before}"
    return next((pair["differences"] for pair in pairs if pair["base"] == base), [])
