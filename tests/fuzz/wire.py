"""The targets ``wire`` and ``session``: what the replies of a server may do to the runner.

``wire``: one server; its stream is cut into pieces, and a cell is measured in turns. The input is
``{"changes": [[INDEX, KIND, ...], ...], "sizes": [...]}``: changes to the messages of ``conversation`` by index, and
the sizes of the pieces in which they arrive. The record is written and read as in a run folder, but in memory.

``session``: two servers, one of which is honest, through a run, its records, and what commands show of it. The input is
``{"changes": [...], "view": NAME}``; indices count the replies of the other server. Kinds of changes: ``edit`` (an edit
of ``tests.fuzz.edits``), ``line`` (other bytes), ``drop``, ``twice``, ``end`` (the server is gone), ``silence``.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from runner.analysis.tables import TableBuilder
from runner.backends.line_reader import Lines
from runner.core.model import Outcome, Provisioned
from runner.harness import protocol
from runner.measure.record import collect
from runner.measure.session import Session
from runner.session.execution.costs import measured_seconds
from runner.store import records
from runner.store.documents import VERSION, text
from runner.store.events import Entry
from tests.fuzz.edits import edited
from tests.fuzz.examples import CASE, CELLS, hello, reply
from tests.fuzz.limits import BrokenPropertyError
from tests.fuzz.values import to_json

CELL = CELLS[0]
READY = Provisioned(
    environment=CELL.environment, framework="torch", handle="h", digest="sha256:1", seconds=0.0, cached=True
)
REQUEST = {"key": "k", "case": CASE, "phase": "train", "timeout": 5.0, "seconds": 1.0, "turns": True}
NUMBER = re.compile(rb'"id":([1-9])(?=[,}])')
"""The number of a request in ``conversation``; the runner draws its id."""
COMMON = {"device": "cpu", "framework": "torch", "threads": 2, "environment": CELL.environment, "backend": "venv"}
MAX_TURNS = 10
SILENCE, END = b"silence", b"end"


def conversation() -> list[dict[str, Any]]:
    """Return what a server says while one cell is measured in turns and another in one go."""
    beat = {"reply": "heartbeat"}
    stages = [{"reply": "turn", "stage": stage, "id": 4} for stage in ("built", "turn", "timed")]
    return [
        beat,
        hello(id=1),
        {"reply": "result", "status": "ok", "cold": {"0": 12.5}, "id": 2},
        {"reply": "result", "status": "ok", "id": 3},
        *stages,
        beat,
        reply(id=4),
        {"reply": "gone"},
        {**reply(id=5), "status": "failed", "class": "oom", "reason": "it took more than 8 GiB", "log": "Killed"},
        {"reply": "gone"},
    ]


@cache
def _unchanged() -> tuple[tuple[Any, bytes], ...]:
    """Return the messages of ``conversation``, each with its line."""
    return tuple((message, to_json(message).encode()) for message in conversation())


def stream(changes: Sequence[Sequence[Any]]) -> list[bytes]:
    """Return the lines of a conversation with changes; SILENCE and END stand for what is no line."""
    unchanged = _unchanged()
    lines = [[line] for _, line in unchanged]
    edits: dict[int, list[Any]] = {}
    for index, kind, *arguments in changes:
        if kind == "edit":
            edits.setdefault(index % len(lines), []).append(arguments)
    for position, of_message in edits.items():
        lines[position] = [to_json(edited(unchanged[position][0], of_message)).encode()]
    for index, kind, *arguments in changes:
        if kind != "edit":
            position = index % len(lines)
            lines[position] = changed_line(lines[position], kind, arguments)
    return [line for group in lines for line in group]


def changed_line(group: list[bytes], kind: str, arguments: Sequence[Any]) -> list[bytes]:
    """Return what comes in place of a line."""
    if kind == "line":
        return [str(arguments[0]).encode("utf-8", "surrogateescape")]
    if kind == "twice":
        return group * 2
    return {"drop": [], "end": [END], "silence": [SILENCE]}[kind]


class Pieces:
    """The channel of a server whose stream arrives in pieces."""

    def __init__(self, lines: Sequence[bytes], sizes: Sequence[int]) -> None:
        """Take the lines, and the sizes of pieces, again and again; 0 stands for all there is."""
        self.lines = list(lines)
        self.sizes = list(sizes) or [0]
        self.count = 0
        self.waiting = b""
        self.reader = Lines(self._read)
        self.ids: list[str] = []  # of the requests so far

    def _with_id(self, number: re.Match[bytes]) -> bytes:
        """Return the id of the request with a number; the number where there was none."""
        index = int(number[1]) - 1
        return b'"id":"%s"' % self.ids[index].encode() if index < len(self.ids) else number[0]

    def _read(self, _timeout: float) -> bytes:
        if not self.waiting:
            line = self.lines.pop(0) if self.lines else END
            if line == SILENCE:
                raise TimeoutError
            if line == END:
                self.lines.clear()
                return b""
            self.waiting = NUMBER.sub(self._with_id, line) + b"\n"
        size = self.sizes[self.count % len(self.sizes)] or len(self.waiting)
        self.count += 1
        piece, self.waiting = self.waiting[:size], self.waiting[size:]
        return piece

    def send(self, data: bytes, timeout: float) -> None:
        """See Channel; the id of a new request takes the place of its number in what follows."""
        assert timeout > 0
        number = str(protocol.decode(data)["id"])
        if number not in self.ids:
            self.ids.append(number)

    def discard(self) -> None:
        """See Channel."""
        self.reader.discard()

    def receive(self, timeout: float) -> bytes | None:
        """See Channel."""
        return self.reader.next(timeout)

    def words(self) -> str:
        """See Channel."""
        return "last words"

    def ending(self) -> tuple[str, str]:
        """See Channel."""
        return "crash", "the harness server ended with exit 1"

    def close(self) -> None:
        """See Channel."""


def run_wire(value: Mapping[str, Any]) -> None:
    """Hold a conversation with a server, and keep the records of its two cells."""
    session = Session(Pieces(stream(value["changes"]), value["sizes"]), "torch-1.0#1")
    first = session.hello("torch", 2, "cpu", 5.0)
    if first["status"] == "ok" and session.alive:
        assert_seconds(session.cold("/cache", [{"implementation": "nn-lstm"}]))
    answer = session.measure(REQUEST, lambda: {"loss": [], "gradients": {}, "digest": "d"})
    turns = 0
    while answer.get("reply") == "turn" and turns < MAX_TURNS:
        if not isinstance(answer["stage"], str):
            raise BrokenPropertyError(f"the stage {answer['stage']!r} is no text")
        turns += 1
        answer = session.go_on(5.0)
    outcomes = [answer, session.ask({**REQUEST, "op": "measure", "turns": False}, 5.0)] if turns < MAX_TURNS else []
    builder = TableBuilder()
    for number, answered in enumerate(outcomes, 1):
        outcome = Outcome(cell=CELL, round=number, reply=answered, facts=session.facts, ready=READY)
        builder.add(stored(outcome))


def assert_seconds(seconds_by_index: Mapping[str, float]) -> None:
    """Use estimates of compile times as ``measure.precompile`` does."""
    for index, seconds in seconds_by_index.items():
        if int(index) >= 0 and seconds + 0.0 < 0:
            raise BrokenPropertyError(f"{seconds} seconds to compile")


def stored(outcome: Outcome) -> Any:
    """Return the record of an outcome after it was written and read."""
    record, log = collect(outcome, "run", COMMON)
    log.rstrip().encode("utf-8", "backslashreplace")
    measured_seconds(record.facts, record.seconds)
    content = text(records.encode(record, VERSION)).encode()
    entry = Entry(record.cell.id, record.round, record.attempt, record.status, "record.json")
    try:
        return records.decode(content, "record.json", entry)
    except Exception as error:
        raise BrokenPropertyError(f"a record that was stored cannot be read: {error}") from error
