"""What travels between driver and workers: JSON and archives as bytes, never pickled objects.

A task is an ``Inquiry``, which asks what a device would measure, or a ``BlockTask``, which asks to measure one block.
"""

import base64
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Required

from pydantic import TypeAdapter

from runner import __version__
from runner.backends import harness_archive
from runner.core.bounds import open_dict
from runner.core.errors import Problem, RecordError, UsageError
from runner.core.json import parse_object
from runner.core.text import REASON_LENGTH, printable
from runner.session.existing import existing_words
from runner.session.options import Options
from runner.store.document_shapes import PLAN
from runner.store.shapes import checked

VERSION = 1
NOT_SENT = ("matrix", "reports", "device", "python", "corpus", "model", "upgrade", "traceback")
"""Options that each host decides, or that the driver has carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Asks a worker to plan the matrix for its device.

    Attributes:
        project: the archive of ``project.pack``.
        options: the options of the run, see ``sent_options``.
        token: 32 hexadecimal digits, which the reply has as well.
    """

    project: bytes
    options: Mapping[str, Any]
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """Asks a worker to measure one block.

    Attributes:
        project: the archive of ``project.pack``.
        options: the options of the run, see ``sent_options``.
        run: id of the driver's run.
        case_id: the case of the block.
        lease: counts the times that this block was handed out, from 1; it becomes the attempt of its records.
        token: 32 hexadecimal digits, different for each lease: a result with another token than the last is late.
        plan: the plan of the block, as ``plan.document.plan_document`` writes it.
        cases: case id -> its specification.
        measurement: the fields of ``Measurement``.
    """

    project: bytes
    options: Mapping[str, Any]
    run: str
    case_id: str
    lease: int
    token: str
    plan: Mapping[str, Any]
    cases: Mapping[str, Any]
    measurement: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a device would measure.

    Attributes:
        host: the name of the host.
        device: ``cpu``, or the UUID of a GPU.
        device_name: the processor or the GPU.
        driver: of the GPU; None for a CPU.
        plan: every selected cell with its verdict there, as ``plan_document`` writes it.
        cases: case id -> its specification, for every case with a cell that runs.
        measurement: the fields of ``Measurement``.
        made: the environments that the host has made already.
        notes: sentences that the user should read first, such as what happens to the clocks.
    """

    host: str
    device: str
    device_name: str
    driver: str | None
    plan: Mapping[str, Any]
    cases: Mapping[str, Any]
    measurement: Mapping[str, Any]
    made: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What the device is; times of different kinds are not comparable."""
        return self.device_name


def sent_options(options: Options) -> dict[str, Any]:
    """Return the options that a host is sent, as JSON values.

    Raises:
        UsageError: an option names something of the driver's host.
    """
    hints = {"python": None, "corpus": None, "model": "write it as `file` of a workload in the matrix file"}
    for name, hint in hints.items():
        if getattr(options, name) is not None:
            raise UsageError(Problem(f"--{name} names a file of this host, and other hosts do not have it", hint=hint))
    for word in existing_words(options.selectors or ()):
        message = f"{word.word} is of this host, and other hosts do not have it"
        raise UsageError(Problem(message, hint="write it as an environment of the matrix file"))
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return {name: value for name, value in values.items() if name not in NOT_SENT}


def received_options(values: Mapping[str, Any], matrix: Path, reports: Path, device: str) -> Options:
    """Return the options that ``sent_options`` made, with the files and the device of this host.

    Raises:
        RecordError: there is an unknown option.
    """
    known = {field.name for field in dataclasses.fields(Options)} - set(NOT_SENT)
    unknown = sorted(set(values) - known)
    if unknown:
        raise RecordError(Problem(f"the driver sent unknown options: {', '.join(unknown)}"))
    return Options(**{**values, "matrix": matrix, "reports": reports, "device": device})


KINDS: Mapping[type[Inquiry | BlockTask | Offer], str] = {Inquiry: "inquiry", BlockTask: "job", Offer: "offer"}
"""Class of a message -> its name in the message."""
OFFER: TypeAdapter[Any] = TypeAdapter(
    open_dict(
        "OfferMessage",
        {
            **dict.fromkeys(("host", "device", "device_name"), Required[str]),
            "driver": Required[str | None],
            "plan": Required[open_dict("OfferedPlan", PLAN)],
            "cases": Required[dict[str, dict[str, Any]]],
            "measurement": Required[dict[str, Any]],
            **dict.fromkeys(("made", "notes"), Required[list[str]]),
        },
    )
)
"""What an offer may hold. Others have made it, and the driver keeps it: it is checked as a stored file is."""


def encode(task: Inquiry | BlockTask | Offer) -> bytes:
    """Return a task or an offer as JSON, with the versions of the program and of its measuring code."""
    content = {field.name: _plain(getattr(task, field.name)) for field in dataclasses.fields(task)}
    return json.dumps({**_versions(), "kind": KINDS[type(task)], **content}).encode()


@cache
def _versions() -> Mapping[str, object]:
    return {"version": VERSION, "program": __version__, "harness": harness_archive.version()}


def _plain(value: object) -> object:
    return _base64(value) if isinstance(value, bytes) else value


@lru_cache(maxsize=1)
def _base64(project: bytes) -> str:
    """Return an archive as text; a driver sends the same one in each task."""
    return base64.b64encode(project).decode()


def decode(content: bytes) -> Inquiry | BlockTask | Offer:
    """Return what ``encode`` was given.

    Raises:
        RecordError: it is damaged, or a program of another version wrote it.
    """
    document: Mapping[str, Any] = parse_object(content, "a message between driver and worker", 1)
    _check_versions(document)
    kinds = {word: kind for kind, word in KINDS.items()}
    try:
        kind = kinds[document["kind"]]
        document = checked(dict(document), OFFER) if kind is Offer else document
        fields = {field.name: document[field.name] for field in dataclasses.fields(kind)}
        if "project" in fields:
            fields["project"] = base64.b64decode(fields["project"], validate=True)
        for name in {"made", "notes"} & fields.keys():
            fields[name] = tuple(map(str, fields[name]))
        return kind(**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(Problem(f"a message between driver and worker is damaged: {error}")) from error


def _check_versions(document: Mapping[str, Any]) -> None:
    """Raise RecordError where driver and worker are different programs: their records would not be comparable."""
    for name, value in _versions().items():
        if document.get(name) != value:
            message = f"driver and worker differ in their {name}: {document.get(name)!r} and {value!r}"
            raise RecordError(Problem(message, hint="install the same version of matrix-runner on all hosts"))


def reply(content: bytes, token: str) -> bytes:
    """Return what a worker sends back when it has carried out a task: the token of the lease, and the result."""
    return json.dumps({"token": token}).encode() + b"\n" + content


def refusal(reason: str, token: str) -> bytes:
    """Return what a worker sends back when it cannot carry out a task."""
    return json.dumps({"token": token, "reason": reason}).encode() + b"\n"


def token_of(content: bytes) -> str:
    """Return the token in a reply or a task, also of another version of the program; empty if it cannot be read."""
    try:
        return str(parse_object(content.partition(b"\n")[0], "a reply of a worker", 1).get("token", ""))
    except RecordError:
        return ""


def run_of(content: bytes) -> str:
    """Return the run that a task measures a block of; empty for an inquiry, and if it cannot be read."""
    try:
        return str(parse_object(content, "a task", 1).get("run", ""))
    except RecordError:
        return ""


def is_refusal(content: bytes) -> bool:
    """Return whether a reply says that its worker could not carry out the task; or is damaged."""
    try:
        return "reason" in parse_object(content.partition(b"\n")[0], "a reply of a worker", 1)
    except RecordError:
        return True


def payload(content: bytes) -> bytes:
    """Return the result in a reply.

    Raises:
        RecordError: it is damaged, or the worker could not carry out the task.
    """
    first, _, rest = content.partition(b"\n")
    head = parse_object(first, "a reply of a worker", 1)
    if "reason" not in head and not head.get("token"):
        raise RecordError(Problem("a reply of a worker belongs to no task"))
    if "reason" in head:
        raise RecordError(Problem(printable(str(head["reason"]), REASON_LENGTH)))
    return rest
