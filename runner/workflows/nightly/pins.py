"""``reports/anchors.json``: the run that is the anchor of each cell, for each device."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from runner.core.errors import RecordError, RunnerError
from runner.core.files import write_whole
from runner.store.run import runs
from runner.workflows.nightly.baseline import device_kind

FILE = "anchors.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Pin:
    """The anchor of a cell: the id of a run, and whether a person accepted it."""

    run: str
    accepted: bool = False


def read_pins(reports: Path, device: str) -> dict[str, Pin]:
    """Return id of a cell -> its anchor on a device; empty without a file.

    Raises:
        RunnerError: the file is damaged; overwriting it would forget what a person accepted.
    """
    try:
        pins = _stored(reports).get(device, {})
        return {cell: Pin(str(pin["run"]), bool(pin["accepted"])) for cell, pin in pins.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunnerError(_damaged(reports, error)) from error


def write_pins(reports: Path, device: str, pins: Mapping[str, Pin]) -> None:
    """Replace the anchors of a device; those of other devices stay."""
    of_device = {cell: {"run": pin.run, "accepted": pin.accepted} for cell, pin in sorted(pins.items())}
    document = {"version": VERSION, "devices": {**_stored(reports), device: of_device}}
    write_whole(reports / FILE, json.dumps(document, indent=1) + "\n")


def _stored(reports: Path) -> Mapping[str, Any]:
    path = reports / FILE
    devices: Mapping[str, Any] = json.loads(path.read_text("utf-8"))["devices"] if path.exists() else {}
    return devices


def device_of(header: Mapping[str, Any]) -> str:
    """Return the name under which the anchors of a run's device are kept: its backend and the kind of device."""
    return f"{header.get('backend')} {device_kind(header)}"


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
    for device in _devices(reports):
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


def _devices(reports: Path) -> Sequence[str]:
    try:
        return tuple(_stored(reports))
    except (ValueError, KeyError, TypeError) as error:
        raise RunnerError(_damaged(reports, error)) from error


def _damaged(reports: Path, error: Exception) -> str:
    hint = "remove it: the next night makes a new one from the first good run of each cell"
    return f"{reports / FILE} cannot be read: {error}; {hint}"
