"""``reports/anchors.json``: the run that is the anchor of each cell, for each device; and what people accepted.

An anchor moves on when a night is faster. The reason for which a person accepted it is kept: acceptances are a list
that only grows.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.errors import RecordError, RunnerError
from runner.history.entries import series_device
from runner.store.documents import read_shaped, save
from runner.store.run import runs
from runner.store.shapes import CONFIG

FILE = "anchors.json"
VERSION = 1
MAX_BYTES = 64 << 20
"""The largest file of anchors that is read."""
HINT = "remove it: the next night makes a new one from the first good run of each cell"


@with_config(CONFIG)
class StoredPin(TypedDict):
    """The anchor of a cell, as stored."""

    run: str
    accepted: bool


@with_config(CONFIG)
class StoredAcceptance(TypedDict):
    """What a person accepted, as stored; see ``Acceptance``."""

    device: str
    run: str
    cells: list[str]
    at: str
    reason: str
    person: str


@with_config(CONFIG)
class StoredPins(TypedDict):
    """``anchors.json``: device -> id of a cell -> its anchor; and all acceptances, oldest first."""

    devices: dict[str, dict[str, StoredPin]]
    accepted: NotRequired[list[StoredAcceptance]]


PINS = TypeAdapter[Any](StoredPins)


@dataclass(frozen=True, slots=True)
class Pin:
    """The anchor of a cell: the id of a run, and whether a person accepted it."""

    run: str
    accepted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a person accepted at once.

    Attributes:
        device: as ``device_of`` names it.
        run: the run whose times are good from then on.
        cells: the ids of the cells.
        at: when, ISO 8601 with an offset.
        reason: why, in the person's words.
        person: the login name.
    """

    device: str
    run: str
    cells: tuple[str, ...]
    at: str
    reason: str
    person: str


def read_pins(reports: Path, device: str) -> dict[str, Pin]:
    """Return id of a cell -> its anchor on a device; empty without a file.

    Raises:
        RunnerError: the file is damaged; overwriting it would forget what a person accepted.
    """
    pins = _stored(reports)["devices"].get(device, {})
    return {cell: Pin(pin["run"], pin["accepted"]) for cell, pin in pins.items()}


def write_pins(
    reports: Path,
    device: str,
    pins: Mapping[str, Pin],
    acceptance: Acceptance | None = None,
    read: Mapping[str, Pin] | None = None,
) -> None:
    """Replace the anchors of a device; those of other devices stay, and so do acceptances.

    Args:
        reports: the folder that holds the runs.
        device: as ``device_of`` names it.
        pins: id of a cell -> its anchor.
        acceptance: what a person accepts at the same time; it is added to the others.
        read: the anchors that ``pins`` were derived from: what a person has accepted since then stays.
    """
    stored = _stored(reports)
    current = read_pins(reports, device) if read is not None else {}
    accepted = {cell: pin for cell, pin in current.items() if pin.accepted and pin != (read or {}).get(cell)}
    kept = sorted({**pins, **accepted}.items())
    of_device = {cell: {"run": pin.run, "accepted": pin.accepted} for cell, pin in kept}
    document = {**stored, "version": VERSION, "devices": {**stored["devices"], device: of_device}}
    if acceptance is not None:
        document["accepted"] = [*stored.get("accepted", []), asdict(acceptance)]
    save(reports / FILE, json.dumps(document, indent=1) + "\n")


def acceptances(reports: Path) -> tuple[Acceptance, ...]:
    """Return everything that was accepted, oldest first; raises RunnerError if the file is damaged."""
    stored = _stored(reports).get("accepted", [])
    names = Acceptance.__dataclass_fields__
    return tuple(Acceptance(**{name: _tuple(entry[name]) for name in names}) for entry in stored)


def anchor_runs(reports: Path) -> frozenset[str]:
    """Return the ids of all anchors and of all runs that were accepted; raises RunnerError if the file is damaged."""
    pins = (pin for device in _stored(reports)["devices"].values() for pin in device.values())
    return frozenset(pin["run"] for pin in pins) | {acceptance.run for acceptance in acceptances(reports)}


def _tuple(value: object) -> Any:  # noqa: ANN401  text, or a list of texts
    return tuple(value) if isinstance(value, list) else value


def _stored(reports: Path) -> Mapping[str, Any]:
    """Return the document with the anchors; raises RunnerError if the file is damaged."""
    path = reports / FILE
    if not path.exists():
        return {"version": VERSION, "devices": {}}
    try:
        return read_shaped(path, PINS, MAX_BYTES, HINT)
    except RecordError as error:
        raise RunnerError(*error.problems) from error


def device_of(header: Mapping[str, Any]) -> str:
    """Return the name under which the anchors of a run's device are kept, which is that of its series."""
    return series_device(str(header.get("backend") or ""), str(header.get("device_name") or ""))


class Anchor(NamedTuple):
    """An environment that nights compare with: its id, and what pins its content."""

    environment: str
    digest: str


def anchor_digests(reports: Path) -> frozenset[Anchor]:
    """Return the environments of all anchors, of every device; runs that cannot be read are left out.

    Raises:
        RunnerError: the file of the anchors is damaged.
    """
    environments: dict[str, set[str]] = {}
    for device in _stored(reports)["devices"]:
        for cell, pin in read_pins(reports, device).items():
            environments.setdefault(pin.run, set()).add(cell.partition("/")[0])
    anchors = set()
    for run in runs(reports):
        try:
            digests = run.journal().header.get("digests", {}) if run.id in environments else {}
        except RecordError:
            continue
        anchors |= {Anchor(name, digests[name]) for name in environments.get(run.id, set()) & digests.keys()}
    return frozenset(anchors)
