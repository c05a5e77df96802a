"""The target ``session``: a run of an honest server and one that is not, its folder, and what commands show of it."""

import contextlib
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.core.errors import RecordError
from runner.core.model import Block, Limits, Measurement, Plan, PlannedCell, Provisioned
from runner.core.model.devices import LEAVE
from runner.core.progress import Progress
from runner.gpu.device import DeviceSession
from runner.harness import protocol
from runner.measure.rounds import Hooks, measure
from runner.measure.server_pool import ServerPool
from runner.session.execution.recorder import RunRecorder
from runner.store.run import Run
from tests.fuzz import views
from tests.fuzz.edits import edited
from tests.fuzz.examples import BASE, CASE, CELLS, OTHER, TONIGHT, header, hello, plan_of_cells, reply
from tests.fuzz.folders import MEMORY
from tests.fuzz.limits import BrokenPropertyError
from tests.fuzz.values import to_json
from tests.fuzz.wire import changed_line
from tests.support.fake_runs import MACHINE, NOW
from tests.support.fake_servers import GB, FakeBackend, FakeServer, Known

HONEST = CELLS[0]  # the only cell of BASE; OTHER is the server that is not
MEASURED = CELLS[:3]
ROUNDS = 2
MAX_REPLIES = 400
RUN = "20261120-104500-cccc"
FACTS = {name: value for name, value in reply().items() if name not in {"reply", "status", "seconds", "turns"}}


class Server(FakeServer):
    """A server whose replies have every fact, and are changed as the input says unless it is honest."""

    backend: "Backend"

    def send(self, data: bytes, timeout: float) -> None:
        """Take a request; a turn of which no child knows is ignored, as a reply was changed."""
        if not (protocol.decode(data)["op"] == "go" and not self.waiting):
            super().send(data, timeout)

    def measure(self, request: dict[str, Any]) -> None:
        """Measure a cell; a child that the runner has given up is gone."""
        self.waiting = {}
        super().measure(request)

    def reply(self, request: dict[str, Any], **message: Any) -> None:
        """Answer a request as a real server does."""
        if message.get("seconds"):
            message = {**FACTS, **message, "settles": False}
        elif request["op"] == "hello" and message["status"] == "ok":
            message = {**hello(), **message, "facts": hello()["facts"]}
        super().reply(request, **message)

    def receive(self, timeout: float) -> bytes | None:
        """Return the next line, with the changes of its index."""
        line = super().receive(timeout)
        if line is None or self.environment.startswith(BASE):
            return line
        number = self.backend.replies
        self.backend.replies += 1
        if number > MAX_REPLIES:
            raise BrokenPropertyError("a run does not end")
        return self._changed(line, number)

    def _changed(self, line: bytes, number: int) -> bytes | None:
        for index, kind, *arguments in self.backend.changes:
            if index != number:
                continue
            if kind == "edit":
                line = to_json(edited(protocol.decode(line), [arguments])).encode()
                break
            group = changed_line([line], kind, arguments)
            if kind == "silence":
                raise TimeoutError
            if kind == "twice":
                self.lines.appendleft(line)
            elif kind == "drop":
                return self.receive(1.0)
            elif kind == "end":
                return None
            else:
                line = group[0]
        return line


class Backend(FakeBackend):
    """Starts such servers."""

    def __init__(self, changes: Sequence[Sequence[Any]]) -> None:
        """Take the changes to the replies of the server that is not honest."""
        super().__init__()
        self.changes = changes
        self.replies = 0
        self.cold = {"nn-lstm": 5.0}

    def open(self, ready: Provisioned, limits: Limits) -> Server:
        """See Backend."""
        server = Server(self, ready.environment, limits.device)
        self.opened.append(server)
        return server


def plan() -> Plan:
    """Return the plan of a run: two environments, three cells of one case."""
    return Plan(
        device="cpu",
        backend="venv",
        measurement=Measurement(rounds=ROUNDS, restart=1, seconds=1.0, threads=2),
        cells=tuple(PlannedCell(cell=cell, device="cpu", kind="vendor", seconds=4.0) for cell in MEASURED),
        blocks=(Block(case_id=HONEST.case_id, spec=CASE, device="cpu", cells=MEASURED),),
        frameworks={BASE: "torch", OTHER: "torch"},
    )


def run_session(value: Mapping[str, Any]) -> None:
    """Measure, record, and show what was recorded."""
    random.seed(1)
    reports = Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        document, cases = plan_of_cells(), {HONEST.case_id: CASE}
        stored = Run.create(reports, document, cases, MACHINE, header(document, cases), NOW)
        _measure(stored, Backend(value["changes"]))
        stored_records = list(stored.records())
        good = [record for record in stored_records if record.status == "ok" and record.cell == HONEST]
        if len(good) != ROUNDS:
            raise BrokenPropertyError(f"{len(good)} records of the honest server, {ROUNDS} expected")
        stored.path.rename(stored.path.with_name(TONIGHT))
        views.VIEWS[value["view"]](reports)
    except RecordError as error:
        raise BrokenPropertyError(f"a run that was stored cannot be read: {error}") from error
    finally:
        shutil.rmtree(reports)


def _measure(stored: Run, backend: Backend) -> None:
    measured, lines = plan(), list[str]()
    ready = {
        name: Provisioned(environment=name, framework="torch", handle="h", digest="d", seconds=0.0, cached=True)
        for name in measured.frameworks
    }
    recorder = RunRecorder(measured, stored, Progress(lines.append))
    clocks = DeviceSession(None, LEAVE, lines.append)
    limits = Limits(memory=100 * GB, side_by_side=4)  # enough to compile ahead
    hooks = Hooks(say=lines.append, canary=lambda: 0.01)
    with contextlib.closing(ServerPool(measured, ready, backend, limits, lines.append)) as servers:
        for event in measure(measured, servers, Known(Path("/nowhere"), 1), hooks):
            recorder.record(event, 1.0, clocks)
    stored.note("ended", how="done")
    recorder.totals()
