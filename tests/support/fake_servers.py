"""A backend whose servers live in memory and speak the real protocol; each does what the test says."""

import contextlib
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from runner.backends import Installed, Say
from runner.core.errors import EngineError, RunnerError
from runner.core.model import (
    Block,
    Cell,
    Event,
    Limits,
    Measurement,
    Outcome,
    Past,
    Plan,
    PlannedCell,
    Provisioned,
    Spec,
    Survey,
)
from runner.core.model.cells import without_control
from runner.harness import protocol, turn_plan
from runner.harness.link import STAGES
from runner.measure.references import References
from runner.measure.rounds import Hooks, measure
from runner.measure.server_pool import ServerPool
from tests.support.cases import TINY

GB = 1 << 30
CASE = TINY
VERIFIED = {"forward_error": 0.0, "loss_error": 0.0, "gradient_errors": {"w": 0.0}}
"""What a good result says of the comparison with the reference."""


class FakeServer:
    """A Channel; ``deeds`` says what happens at a cell: ok, a failure class, or what ``act`` knows."""

    def __init__(self, backend: "FakeBackend", environment: str, device: str) -> None:
        """Serve one environment."""
        self.backend = backend
        self.environment = environment
        self.device = device
        self.lines: deque[bytes] = deque()
        self.requests: list[dict[str, Any]] = []
        self.patience: list[float] = []
        self.closed = 0
        self.state = "lives"
        self.waiting: dict[str, Any] = {}  # the request whose child waits for its turn
        self.stage = ""  # of that child
        self.turns = Counter[str]()

    def send(self, data: bytes, timeout: float) -> None:
        """See Channel."""
        assert timeout > 0
        request = protocol.decode(data)
        self.requests.append(request)
        assert not self.closed
        self.backend.threads[self.stage if request["op"] == "go" else request["op"]].add(
            threading.current_thread().name
        )
        if self.backend.together and request["op"] == "hello":
            self.backend.together.wait(10)
        if request["op"] == "hello":
            self.backend.opened_at_hello.append(len(self.backend.opened))
            self.hello(request)
        elif request["op"] == "cold":
            slugs = [cell["implementation"] for cell in request["cells"]]
            cold = {
                str(position): self.backend.cold[slug]
                for position, slug in enumerate(slugs)
                if slug in self.backend.cold
            }
            self.reply(request, status="ok", cold=cold)
        elif request["op"] == "reference":
            self.reply(request, status="ok")
        elif request["op"] == "model":
            self.reply(request, status="failed", **{"class": "crash"}, reason="it takes no network")
        elif request["op"] == "profile":
            self.profile(request)
        elif request["op"] == "go":
            self.go(request)
        else:
            self.measure(request)

    def go(self, request: dict[str, Any]) -> None:
        """Let the waiting child go on."""
        name = f"{self.environment}/{self.waiting['implementation']}"
        if "plan" in request:
            self.backend.plans[name] = request["plan"]
        if self.stage == "turn":
            self.backend.turns.append(name)
        self.turn(self.waiting)

    def profile(self, request: dict[str, Any]) -> None:
        """Send a profile of one operator, or do what the test says at a cell."""
        deed = self.backend.deed(self.environment, request["implementation"])
        self.backend.alive.append({server.environment for server in self.backend.opened if not server.closed})
        row = {"name": "mm", "calls": 1.0, "host_seconds": 0.25, "device_seconds": 0.0, "total_seconds": 0.25}
        profile = {"reason": "", "profiler": "fake", "steps": 3, "step_seconds": 0.5, "plain_step_seconds": 0.4}
        self.act(request, deed, profile={**profile, "rows": [row]})

    def measure(self, request: dict[str, Any]) -> None:
        """Do what the test says at a cell."""
        assert not self.waiting, "a server has one child at a time"
        if self.backend.building and request.get("turns"):
            self.backend.building.wait(3)
        if self.backend.compiling and request.get("precompile"):
            self.backend.compiling.wait(3)
        self.backend.alive.append({server.environment for server in self.backend.opened if not server.closed})
        self.act(request, self.backend.deed(self.environment, request["implementation"]))

    def hello(self, request: dict[str, Any]) -> None:
        """Say hello, or do what the test says instead."""
        deed = self.backend.hellos.get(self.environment, deque()) or deque(["ok"])
        self.lines.append(protocol.encode({"reply": "heartbeat"}))
        if self.environment in self.backend.opening and not request.get("load_in_child"):
            self.reply(request, status="failed", **{"class": "device"}, reason="it opens /dev/x", opened="/dev/x")
            return
        reply = {"status": "ok", "facts": {"version": "1.0"}, "python": "3.6.1", "import_seconds": 0.5}
        reply["import_cpu_seconds"] = 0.4
        self.act(request, deed.popleft(), **reply, bytes=self.backend.sizes.get(self.environment, 0))

    def act(self, request: dict[str, Any], deed: str, **reply: Any) -> None:
        """Do a deed in answer to a request."""
        if deed == "is-gone":
            self.state = "dies"
            raise BrokenPipeError
        if deed == "loses-its-engine":
            self.backend.gone = self.backend.stays_gone
        if deed in {"dies", "hangs", "loses-its-engine"}:
            self.state = deed
        elif deed == "babbles":
            self.lines.append(b"Using TensorFlow backend.")
        elif deed == "ok" and request.get("turns"):
            self.turn(request)
        elif deed == "ok":
            others = self.backend.others_of(self.environment, request.get("implementation", ""))
            self.reply(request, **{"status": "ok", "seconds": [0.5], **VERIFIED, **others, **reply})
        else:
            self.reply(request, status="failed", **{"class": deed}, reason=f"it was {deed}")

    def turn(self, request: dict[str, Any]) -> None:
        """Let a child wait for a turn, as often as the test says, or do what else it says; then let it end."""
        slug, self.waiting = request["implementation"], request
        deed = self.backend.turn(self.environment, slug, self.turns[slug])
        self.turns[slug] += 1
        if deed in STAGES.values():
            self.stage = deed
            message = {"id": request["id"], "reply": "turn", "stage": deed}
            if deed == "warm":
                message["pace"] = self.backend.paces.get(f"{self.environment}/{slug}", turn_plan.pace(10, 1, 0.5))
            self.lines.append(protocol.encode(message).rstrip(b"\n"))
            return
        self.waiting = {}
        count = self.turns.pop(slug) - 6
        if deed == "ok":
            others = self.backend.others_of(self.environment, slug)
            self.reply(request, status="ok", seconds=[0.5] * count or [0.5], turns=[1] * count, **VERIFIED, **others)
        else:
            self.act(request, deed)

    def reply(self, request: dict[str, Any], **message: Any) -> None:
        """Answer a request."""
        self.lines.append(protocol.encode({**message, "id": request["id"], "reply": "result"}).rstrip(b"\n"))

    def receive(self, timeout: float) -> bytes | None:
        """See Channel."""
        self.patience.append(timeout)
        if self.lines:
            return self.lines.popleft()
        if self.state == "hangs":
            raise TimeoutError
        return None

    def discard(self) -> None:
        """See Channel."""
        self.lines.clear()

    def words(self) -> str:
        """See Channel."""
        return f"last words of {self.environment}"

    def ending(self) -> tuple[str, str]:
        """See Channel."""
        if self.state == "loses-its-engine":
            return "engine", "the container engine stopped answering"
        return "crash", "killed by signal SIGSEGV"

    def close(self) -> None:
        """See Channel."""
        self.closed += 1
        if self.backend.stuck == self.environment:
            raise OSError("cannot be ended")
        if self.backend.gone:
            raise EngineError("cannot remove the container")


class FakeBackend:
    """A Backend that starts FakeServers and remembers them."""

    name = "fake"

    def __init__(self, *, limits_memory: bool = False) -> None:
        """Start nothing yet; all cells go well unless the test says otherwise."""
        self.limits_memory = limits_memory
        self.opened: list[FakeServer] = []
        self.opened_at_hello: list[int] = []  # how many servers had been opened when each was asked to import
        self.kept: list[str] = []
        self.alive: list[set[str]] = []
        self.turns: list[str] = []  # who had a turn, in order
        self.threads: dict[str, set[str]] = defaultdict(
            set
        )  # operation, or stage after which a child goes on -> of whom
        self.patterns: dict[str, list[str]] = {}
        self.paces: dict[str, dict[str, float]] = {}  # what children find in their warm-up
        self.plans: dict[str, dict[str, int]] = {}  # of the turns, as they got them
        self.deeds: dict[str, deque[str]] = {}
        self.others_busy: dict[str, deque[float]] = {}
        self.hellos: dict[str, deque[str]] = {}
        self.sizes: dict[str, int] = {}
        self.cold: dict[str, float] = {}  # implementations that compile, and for how many seconds
        self.opening: set[str] = set()  # environments whose import opens a GPU
        self.stuck = ""
        self.refused = ""
        self.gone = False
        self.stays_gone = True
        self.compiling: threading.Barrier | None = None  # they compile when so many were asked to
        self.building: threading.Barrier | None = None  # they build when so many were asked to
        self.together: threading.Barrier | None = None  # servers answer when so many were asked

    def does(self, cell: str, *deeds: str) -> None:
        """Say what happens at ``environment/implementation``, time after time; ok afterwards."""
        self.deeds[cell] = deque(deeds)

    def is_beside(self, cell: str, *others_busy: float) -> None:
        """Say how many CPUs other programs keep busy beside ``environment/implementation``, in turn; then none."""
        self.others_busy[cell] = deque(others_busy)

    def others_of(self, environment: str, implementation: str) -> dict[str, float]:
        """Return the facts about other programs of an answer."""
        left = self.others_busy.get(f"{environment}/{implementation}")
        return {} if left is None else {"others_busy": left.popleft() if left else 0.0}

    def takes(self, cell: str, *pattern: str) -> None:
        """Say what happens at a cell that takes turns, turn by turn; ok afterwards."""
        self.patterns[cell] = list(pattern)

    def turn(self, environment: str, implementation: str, number: int) -> str:
        """Return what happens in a turn of a cell: two turns and then ok, unless the test says otherwise."""
        pattern = self.patterns.get(f"{environment}/{implementation}", ["turn", "turn"])
        stages = ["first", "called", "built", "warm", *pattern, *(["timed"] if set(pattern) == {"turn"} else [])]
        return stages[number] if number < len(stages) else "ok"

    def deed(self, environment: str, implementation: str) -> str:
        """Return what happens next at a cell."""
        left = self.deeds.get(f"{environment}/{implementation}")
        return left.popleft() if left else "ok"

    def installed(self) -> None:
        """See Backend."""

    def probe(self, source: str, environment: str, framework: str | None = None) -> Installed:
        """See Backend."""
        raise NotImplementedError

    def describe(self) -> None:
        """See Backend."""

    def restore(self, environment: str, digest: str) -> None:
        """See Backend."""

    def survey(self, specs: Sequence[Spec]) -> Survey:
        """See Backend."""
        return Survey(cached=frozenset(spec.environment for spec in specs))

    def provision(self, spec: Spec, say: Say) -> Provisioned:
        """See Backend."""
        raise NotImplementedError

    def keep(self, ready: Iterable[Provisioned]) -> AbstractContextManager[None]:
        """See Backend."""
        self.kept = [environment.environment for environment in ready]
        return nullcontext()

    def others_need(self, ready: Provisioned) -> tuple[str, ...]:  # noqa: ARG002  nobody else is there
        """See Backend."""
        return ()

    def cancel(self) -> None:
        """See Backend."""
        raise NotImplementedError

    def cache(self, ready: Provisioned) -> str:
        """See Backend."""
        return f"/cache/{ready.environment}"

    def open(self, ready: Provisioned, limits: Limits) -> FakeServer:
        """See Backend; one server of an environment at a time on each device."""
        assert limits.run
        if self.gone or self.refused == ready.environment:
            raise EngineError(f"cannot start a container for {ready.environment!r}")
        name, device = ready.environment, limits.device
        assert not [
            server
            for server in self.opened
            if (server.environment, server.device) == (name, device) and not server.closed
        ]
        self.opened.append(server := FakeServer(self, name, device))
        return server

    def answers(self) -> bool:
        """See Backend."""
        return not self.gone

    def close(self) -> None:
        """See Backend."""
        raise NotImplementedError

    def measured(self) -> list[dict[str, Any]]:
        """Return every measuring request, by server."""
        return [request for server in self.opened for request in server.requests if request["op"] == "measure"]


class Known(References):
    """References that are known already; the one of a case called ``unknown`` cannot be computed."""

    def known(self, case: Mapping[str, Any]) -> bool:
        """See References."""
        return bool(case["name"] != "unknown")

    def get(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """See References."""
        if case["name"] == "unknown":
            raise RunnerError("the reference could not be computed")
        return {"loss": [1.0], "gradients": {}, "digest": "d"}


def cells(*names: str, case: str = "tiny") -> tuple[Cell, ...]:
    """Return the cells of ``environment/implementation`` names."""
    parts = [name.split("/") for name in names]
    return tuple(
        Cell(environment=env, implementation=slug, workload="rnn-step", case=case, phase="train") for env, slug in parts
    )


def by_jit(cell: Cell, environments: Collection[str]) -> PlannedCell:
    """Return a planned cell; it runs by JIT in some environments. An implementation ``vendor...`` calls cuDNN."""
    kind = "vendor" if cell.implementation.startswith("vendor") else "flexible"
    jit = "by PTX" if without_control(cell.environment) in environments else ""
    return PlannedCell(cell=cell, device="cpu", kind=kind, seconds=float(len(cell.case)), jit=jit)


def block(*members: Cell) -> Block:
    """Return one block of cells of one case."""
    return Block(case_id=members[0].case_id, spec={**CASE, "name": members[0].case}, device="cpu", cells=members)


def events(
    backend: FakeBackend,
    *blocks: Block,
    missing: str = "",
    lines: list[str] | None = None,
    memory: int = 100 * GB,
    past: Past = Past(),  # noqa: B008  frozen
    extra_rounds: Callable[[int], Collection[Cell]] | None = None,
    **how: Any,
) -> Iterator[Event]:
    """Measure blocks with a fake backend; the environment ``missing`` could not be made."""
    given = {name: how.pop(name, None) for name in ("canary", "over_budget", "busy_allowed", "has_time_for")}
    planned_cells = how.pop("planned", ())
    jit, models = how.pop("jit", ()), how.pop("models", {})
    limits = Limits(memory=memory, side_by_side=how.pop("side_by_side", 1))
    environments = list(dict.fromkeys(name for part in blocks for name in part.environments))
    plan = Plan(
        device="cpu",
        backend="fake",
        measurement=Measurement(**{"rounds": 3, "restart": 100, **how}),
        cells=planned_cells or tuple(by_jit(cell, jit) for part in blocks for cell in part.cells),
        blocks=blocks,
        frameworks=dict.fromkeys(environments, "torch"),
        models=models,
        past=past,
    )
    ready = {
        name: Provisioned(environment=name, framework="torch", handle="h", digest="d", seconds=0.0, cached=True)
        for name in environments
        if name != missing
    }
    say = (lines if lines is not None else []).append
    hooks = Hooks(say=say, next_cells=extra_rounds, **given)
    with contextlib.closing(ServerPool(plan, ready, backend, limits, hooks.say)) as servers:
        yield from measure(plan, servers, Known(Path("/nowhere"), 1), hooks)


def outcomes(backend: FakeBackend, *blocks: Block, **how: Any) -> Iterator[Outcome]:
    """Give the outcomes among ``events``."""
    run_events = events(backend, *blocks, **how)
    with contextlib.closing(run_events):  # type: ignore[type-var]
        for event in run_events:
            if isinstance(event, Outcome):
                yield event
