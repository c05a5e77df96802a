"""``reports/anchors.json``: the run that is the anchor of each cell, for each device."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.errors import Problem, RecordError, RunnerError
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.store.documents import save
from runner.store.run import runs
from runner.store.shapes import CONFIG, checked
from runner.workflows.nightly.baseline import device_kind

FILE = "anchors.json"
VERSION = 1
MAX_BYTES = 64 << 20
"""The largest file of anchors that is read."""


@with_config(CONFIG)
class StoredPin(TypedDict):
    """The anchor of a cell, as stored."""

    run: str
    accepted: bool


@with_config(CONFIG)
class StoredPins(TypedDict):
    """``anchors.json``: device -> id of a cell -> its anchor."""

    devices: dict[str, dict[str, StoredPin]]


PINS = TypeAdapter[Any](StoredPins)


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
    pins = _stored(reports).get(device, {})
    return {cell: Pin(pin["run"], pin["accepted"]) for cell, pin in pins.items()}


def write_pins(reports: Path, device: str, pins: Mapping[str, Pin]) -> None:
    """Replace the anchors of a device; those of other devices stay."""
    of_device = {cell: {"run": pin.run, "accepted": pin.accepted} for cell, pin in sorted(pins.items())}
    document = {"version": VERSION, "devices": {**_stored(reports), device: of_device}}
    save(reports / FILE, json.dumps(document, indent=1) + "\n")


def _stored(reports: Path) -> Mapping[str, Any]:
    """Return device -> id of a cell -> its anchor, as stored; raises RunnerError if the file is damaged."""
    path = reports / FILE
    try:
        devices: Mapping[str, Any] = checked(parse_object(read_bounded(path, MAX_BYTES), path, 1), PINS)["devices"]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise RunnerError(_damaged(path, error.strerror or str(error))) from error
    except RecordError as error:
        raise RunnerError(_damaged(path, error.problems[0].message)) from error
    except ValueError as error:
        raise RunnerError(_damaged(path, str(error))) from error
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
    for device in _stored(reports):
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


def _damaged(path: Path, reason: str) -> Problem:
    hint = "remove it: the next night makes a new one from the first good run of each cell"
    return Problem(f"{path} cannot be read: {reason}", hint=hint)
