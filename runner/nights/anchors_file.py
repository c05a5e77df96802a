"""``reports/anchors.json``: the run that is the anchor of each cell, for each device; and what people accepted.

An anchor moves on when a night is faster. The reason for which a person accepted it is kept: acceptances are a list
that only grows.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict, TypeAdapter

from runner.core.errors import Problem, RecordError, RunnerError
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.core.locks import changing
from runner.core.model.cells import environment_of
from runner.history.entries import Acceptance, series_device
from runner.store.documents import NewerVersionError, newest, save, upgrade
from runner.store.run import runs
from runner.store.shapes import value_of

FILE = "anchors.json"
KIND = "anchors"
"""The kind of the file, see ``documents.UPGRADES``."""
MAX_BYTES = 64 << 20
"""The largest file of anchors that is read."""
HINT = "remove it: the next night makes a new one from the first good run of each test"


@dataclass(frozen=True, slots=True)
class CellAnchor:
    """The anchor of a cell: the id of a run, and whether a person accepted it."""

    run: str
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class AnchorsFile:
    """The content of ``anchors.json``: device -> id of a cell -> its anchor; and all acceptances, oldest first."""

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore")

    devices: Mapping[str, Mapping[str, CellAnchor]]
    accepted: tuple[Acceptance, ...] = field(default=())


ANCHORS = TypeAdapter(AnchorsFile)


def read_anchors(reports: Path, device: str) -> dict[str, CellAnchor]:
    """Return id of a cell -> its anchor on a device; empty without a file.

    Raises:
        RunnerError: the file is damaged; overwriting it would forget what a person accepted.
    """
    return dict(_stored(reports).devices.get(device, {}))


def write_anchors(
    reports: Path, device: str, anchors: Mapping[str, CellAnchor], read: Mapping[str, CellAnchor] | None = None
) -> None:
    """Replace the anchors of a device; those of other devices stay, and so do acceptances.

    Args:
        reports: the folder that holds the runs.
        device: as ``device_of`` names it.
        anchors: id of a cell -> its anchor.
        read: the anchors that ``anchors`` were derived from: what a person has accepted since then stays.

    Raises:
        RunnerError: the file is damaged, or cannot be written.
    """
    with changing(reports / FILE):
        _replace(reports, device, anchors, None, read)


def accept_anchors(reports: Path, acceptance: Acceptance) -> None:
    """Make the run of an acceptance the anchor of its cells; all else stays.

    Raises:
        RunnerError: the file is damaged, or cannot be written.
    """
    with changing(reports / FILE):
        anchors = read_anchors(reports, acceptance.device)
        anchors |= dict.fromkeys(acceptance.cells, CellAnchor(acceptance.run, accepted=True))
        _replace(reports, acceptance.device, anchors, acceptance, None)


def _replace(
    reports: Path,
    device: str,
    anchors: Mapping[str, CellAnchor],
    acceptance: Acceptance | None,
    read: Mapping[str, CellAnchor] | None,
) -> None:
    stored = _stored(reports)
    current = stored.devices.get(device, {}) if read is not None else {}
    accepted = {
        cell: anchor for cell, anchor in current.items() if anchor.accepted and anchor != (read or {}).get(cell)
    }
    kept = dict(sorted({**anchors, **accepted}.items()))
    stored = replace(stored, devices={**stored.devices, device: kept})
    if acceptance is not None:
        stored = replace(stored, accepted=(*stored.accepted, acceptance))
    document = {"version": newest(KIND), **ANCHORS.dump_python(stored, mode="json")}
    save(reports / FILE, json.dumps(document, indent=1) + "\n")


def acceptances(reports: Path) -> tuple[Acceptance, ...]:
    """Return everything that was accepted, oldest first; raises RunnerError if the file is damaged."""
    return _stored(reports).accepted


def anchor_runs(reports: Path) -> frozenset[str]:
    """Return the ids of all anchors and of all runs that were accepted; raises RunnerError if the file is damaged."""
    stored = _stored(reports)
    anchors = (anchor for of_device in stored.devices.values() for anchor in of_device.values())
    return frozenset(anchor.run for anchor in anchors) | {acceptance.run for acceptance in stored.accepted}


def _stored(reports: Path) -> AnchorsFile:
    """Return the content of the file; raises RunnerError if it is damaged, or of a newer program."""
    path = reports / FILE
    if not path.exists():
        return AnchorsFile({})
    try:
        document = {"version": newest(KIND), **parse_object(read_bounded(path, MAX_BYTES), path, 1)}
        return value_of(upgrade(document, path, KIND), ANCHORS)
    except NewerVersionError:
        raise
    except RecordError as error:
        raise RunnerError(*(replace(problem, hint=HINT) for problem in error.problems)) from error
    except OSError as error:
        raise RunnerError(Problem(f"{path} cannot be read: {error.strerror or error}", hint=HINT)) from error
    except ValueError as error:
        raise RunnerError(Problem(f"{path} is damaged: {error}", hint=HINT)) from error


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
    for of_device in _stored(reports).devices.values():
        for cell, anchor in of_device.items():
            environments.setdefault(anchor.run, set()).add(environment_of(cell))
    anchors = set()
    for run in runs(reports):
        try:
            digests = run.journal().header.get("digests", {}) if run.id in environments else {}
        except RecordError:
            continue
        anchors |= {Anchor(name, digests[name]) for name in environments.get(run.id, set()) & digests.keys()}
    return frozenset(anchors)
