"""The running servers of a device: started when needed, replaced every few rounds, as many as memory holds."""

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from runner.backends import Backend
from runner.backends.sending import UnreadError
from runner.core.errors import EngineError, Problem
from runner.core.model import Block, Cell, Limits, Outcome, Plan, Process, Provisioned, file_name
from runner.core.model.cells import is_called, is_plain, without_control
from runner.core.threads import run_concurrently
from runner.harness import turn_plan
from runner.harness.link import FORK, PLAIN, WARM
from runner.measure.server_start import HELLO_SECONDS, JIT_SECONDS, Numbers, ServerStart, StartTimes
from runner.measure.session import GRACE, Session
from runner.measure.tenants import is_of_user, shipped_networks


class WaitingChild(NamedTuple):
    """A child that waits: the round that it measures, its stage, see ``harness.link.STAGES``, and its pace at WARM."""

    round: int
    stage: str
    pace: Mapping[str, Any] | None = None


class OpenedServer(NamedTuple):
    """A server that has imported nothing yet: its environment, its session, and the clock when it was started."""

    name: str
    session: Session
    begin: float


class ServerPool:
    """At most one session for each environment."""

    def __init__(
        self,
        plan: Plan,
        ready: Mapping[str, Provisioned],
        backend: Backend,
        limits: Limits,
        say: Callable[[str], None],
        numbers: Numbers | None = None,
    ) -> None:
        """Start no server; without ``numbers``, servers are counted from those in the plan's past."""
        self.plan = plan
        self.ready = ready
        self.backend = backend
        self.limits = limits
        self.say = self.note = say  # ``note`` takes what should stay on the screen; the caller may set another function
        self.sessions: dict[str, Session] = {}
        self.sizes: dict[str, int] = {}
        self.starts = StartTimes()
        self.broken: dict[str, dict[str, Any]] = {}
        self.numbers = numbers or Numbers(plan.past.servers)
        self.jit = frozenset(cell.cell.environment for cell in plan.cells if cell.jit and cell.skip is None)
        self.primed: set[str] = set()  # environments of ``jit`` whose GPU code has been compiled in this run
        self.opened_by_import: dict[str, str] = {}  # environment -> devices that its import opens: children import it
        self.verified: set[Cell] = set()  # a measurement of this run has checked their results
        self.shipped = shipped_networks(plan)
        self.networks = digest_of(plan.models.keys() - self.shipped)
        self.tenant = self.networks if {self.tenant_of(block) for block in plan.blocks} == {self.networks} else ""
        self.lock, self.closed = threading.Lock(), False  # several threads start servers
        self.waiting: dict[Cell, WaitingChild] = {}  # the cells whose children wait to go on

    def serve(self, block: Block | None) -> str:
        """Say which case is measured next, None for one of the program; return its tenant, see ``tenant_of``."""
        self.tenant = self.tenant_of(block)
        return self.tenant

    def tenant_of(self, block: Block | None) -> str:
        """Return what ``Limits.networks`` says of the servers of a case: those of users' networks measure nothing else.

        What compilers keep is code, which a network could have changed, decision 0094.
        """
        return self.networks if block is not None and is_of_user(block, self.shipped) else ""

    def groups(self, environments: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return groups of environments that fit in memory together; each has the first environment, the base.

        Their first servers start side by side, and read from the disk what later ones have in memory, see
        ``Metric.first_differs``.
        """
        memory = self.limits.memory // 2  # the other half is for the children that take turns
        new = [name for name in environments if name not in self.sizes and name not in self.broken]
        for name, _ in run_concurrently(self.session, new, self.limits.side_by_side):
            if sum(self.sizes.get(alive, 0) for alive in tuple(self.sessions)) > memory:
                self.retire(name)  # it was started to learn its size
        groups = admit([name for name in environments if not is_plain(name)], self.sizes, memory)
        groups = tuple((*group, *_controls_of(group, environments)) for group in groups)
        for name in set(self.sessions) - set(groups[0]):
            self.retire(name)
        return groups

    def session(self, name: str) -> Session | None:
        """Return the live session of an environment, started if needed; None if its server cannot start.

        Raises:
            EngineError: the engine is gone.
        """
        if name in self.broken:
            return None
        session = self._alive(name)
        if session is not None:
            return session
        opened = self._opened(name)
        return None if opened is None else self._greeted(opened)

    def _alive(self, name: str) -> Session | None:
        """Return the session of an environment if it lives and may serve what is measured now."""
        session = self.sessions.get(name)
        return session if session is not None and session.alive and session.networks == self.tenant else None

    def _opened(self, name: str) -> OpenedServer | None:
        """Open a new server of an environment, which imports nothing yet; return None if it cannot be started."""
        self.retire(name)
        self.say(f"{name}: starting")
        begin = time.monotonic()
        try:
            channel = self.backend.open(self.ready[name], replace(self.limits, networks=self.tenant))
        except (OSError, EngineError) as error:
            self.broken[name] = self._start_failure(error)
            return None
        session = Session(channel, f"{name}#{self.numbers.next(name)}", networks=self.tenant)
        self._add(name, session)
        return OpenedServer(name, session, begin)

    def _greeted(self, opened: OpenedServer) -> Session | None:
        """Have a server import its framework; return its session, or None if it cannot."""
        name, session, begin = opened
        reply = self._hello(name, session)
        if reply["status"] == "failed" and reply.get("opened") and name not in self.opened_by_import:
            self.opened_by_import[name] = reply["opened"]
            self.note(f"{name}: {reply['reason']}; each child imports the framework instead")
            self.retire(name)
            return self.session(name)
        if reply["status"] != "ok":
            self.check(reply)
            # A server that dies during the import would die again, unlike after other crashes.
            self.broken[name] = {**reply, "class": "import"} if reply["class"] == "crash" else reply
            self.retire(name)
            return None
        self.sizes[name] = session.size
        seconds = time.monotonic() - begin
        self.starts.add(ServerStart(seconds, float(session.facts.get("import_seconds", 0.0))))
        self.say(f"{name}: ready after {seconds:.1f} s")
        return session

    def _hello(self, name: str, session: Session) -> dict[str, Any]:
        """Return the server's answer after the import; the session has its facts, and those of this pool."""
        reply = session.hello(
            self.ready[name].framework,
            self.plan.threads_of(name),
            self.plan.device,
            JIT_SECONDS if without_control(name) in self.jit else HELLO_SECONDS,
            self._cpus(name),
            cache=self.cache(self.ready[name]),
            load_in_child=name in self.opened_by_import or self.process_of(name) == PLAIN,
            variables=sorted(self.ready[name].variables),
        )
        facts: dict[str, Any] = {"gpu_affinity": self.limits.affinity, "env": dict(self.ready[name].variables)}
        facts["opened_by_import"] = self.opened_by_import.get(name)
        session.facts = {**session.facts, **{key: fact for key, fact in facts.items() if fact}}
        return reply

    def _cpus(self, name: str) -> Sequence[int]:
        """Return the CPUs that the server of an environment keeps to: on a CPU, as many as it has threads."""
        threads, cpus = self.plan.threads_of(name), self.limits.cpus
        if self.plan.device != "cpu":
            return cpus
        return cpus[-threads:] if threads <= len(cpus) else ()  # the last ones: CPU 0 handles most interrupts

    def _add(self, name: str, session: Session) -> None:
        """Add a session, unless the pool was closed while its server was starting."""
        with self.lock:
            if not self.closed:
                self.sessions[name] = session
                return
        self._end(session)
        raise EngineError(Problem(f"{name} was started too late"))

    def _start_failure(self, error: OSError | EngineError) -> dict[str, Any]:
        """Return the failed reply of an environment whose server cannot be started."""
        if isinstance(error, EngineError):
            self._must_answer(error.problems[0].message)
            return {"status": "failed", "class": "engine", "reason": error.problems[0].message}
        if isinstance(error, UnreadError):
            return {"status": "failed", "class": "timeout", "reason": f"the harness server {error}"}
        return {"status": "failed", "class": "import", "reason": f"the harness server cannot be started: {error}"}

    def check(self, reply: Mapping[str, Any]) -> None:
        """Raise EngineError if a server was lost because its engine is gone: then the cell has not failed."""
        if reply.get("class") == "engine":
            self._must_answer(str(reply.get("reason")))

    def _must_answer(self, reason: str) -> None:
        if not self.backend.answers():
            raise EngineError(Problem(reason))

    def next_round(self, environments: Sequence[str]) -> None:
        """Start a round: replace servers that have served their rounds, and start those that are missing.

        Those that start import at the same time, on the same CPUs: what slows the machine meanwhile slows all of them.
        """
        for name in set(self.sessions) - set(environments):
            self.retire(name)
        for name in environments:
            session = self.sessions.get(name)
            if session is not None and session.rounds >= self.plan.measurement.restart:
                self.retire(name)
        self._start([name for name in environments if name not in self.broken and self._alive(name) is None])
        for name in environments:
            if name not in self.broken:
                self.sessions[name].rounds += 1

    def _start(self, names: Sequence[str]) -> None:
        """Start the servers of some environments: none imports before all are opened, or cannot be started."""
        opened = [each for _, each in run_concurrently(self._opened, names, self.limits.side_by_side) if each]
        for _ in run_concurrently(self._greeted, opened, len(opened)):
            pass

    def ask(
        self,
        cell: Cell,
        number: int,
        common: dict[str, Any],
        truth: Callable[[], dict[str, Any]],
        *,
        turns: bool = False,
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> Outcome | None:
        """Measure one cell in one round; the outcome is failed if its server cannot start or dies.

        Cells of different environments that take ``turns`` may be asked from several threads, after ``settle``. The
        request of the cell has ``extra`` as well. Round 0 is none: the cell is profiled.

        Returns:
            None if a cell that takes ``turns`` waits, see ``go_on``.

        Raises:
            EngineError: the engine is gone.
        """
        ready = self.ready[cell.environment]
        session = self.session(cell.environment)
        self.say(f"round {number}: {cell.id}" if number else f"profile: {cell.id}")
        if session is None:
            return Outcome(cell=cell, round=number, reply=self.broken[cell.environment], facts={}, ready=ready)
        if not turns:
            self.settle()
        request = {**common, **self.request_of(cell), **extra, "turns": turns}
        return self._outcome(cell, number, session, session.measure(request, truth))

    def process_of(self, name: str) -> Process:
        """Return how the processes start that time the cells of an environment."""
        return "plain" if is_plain(name) else self.plan.measurement.process

    def cache(self, ready: Provisioned) -> str:
        """Return the folder of an environment's compiler caches for the device."""
        folder, device = self.backend.cache(ready), self.limits.device
        parts = [folder, f"networks-{self.tenant}" if self.tenant else "", "" if device == "cpu" else file_name(device)]
        return "/".join(filter(None, parts))

    def request_of(self, cell: Cell) -> dict[str, Any]:
        """Return the part of a measuring request that differs between the cells of a case."""
        ready = self.ready[cell.environment]
        cache = self.cache(ready)
        return {
            "framework": ready.framework,
            "implementation": cell.implementation,
            "phase": cell.phase,
            "precision": cell.precision,
            "cache": cache,
            "already_verified": cell in self.verified or is_plain(cell.environment),
            "process": self.process_of(cell.environment) if is_called(cell.phase) else FORK,
            # A cold start has an empty cache, but its driver does not compile the framework anew.
            **({"driver_cache": cache} if without_control(cell.environment) in self.jit else {}),
        }

    def waiting_at(self, stage: str) -> list[Cell]:
        """Return the cells whose children wait at a stage, in the order in which they reached it."""
        return [cell for cell, waiting in self.waiting.items() if waiting.stage == stage]

    def plans(self) -> dict[Cell, dict[str, Any]]:
        """Return the plan of the turns of each cell whose child has warmed up, see ``harness.turn_plan``."""
        paces = {cell: waiting.pace for cell, waiting in self.waiting.items() if waiting.pace and waiting.stage == WARM}
        plans = turn_plan.plans(list(paces.values()), self.plan.measurement.seconds) if paces else []
        return dict(zip(paces, plans, strict=True))

    def go_on(self, cell: Cell, plan: Mapping[str, Any] | None = None) -> Outcome | None:
        """Let the child of a cell continue, with the plan of its turns; return its outcome, or None if it waits again.

        Raises:
            EngineError: the engine is gone.
        """
        number, session = self.waiting.pop(cell).round, self.sessions[cell.environment]
        return self._outcome(cell, number, session, session.go_on(self.plan.measurement.timeout + GRACE, plan))

    def _outcome(self, cell: Cell, number: int, session: Session, reply: dict[str, Any]) -> Outcome | None:
        self.check(reply)
        if not session.alive:
            self.retire(cell.environment)  # at once: its child may still be running and disturb the others
        if reply.get("reply") == "turn":
            self.waiting[cell] = WaitingChild(number, reply["stage"], reply.get("pace"))
            return None
        return Outcome(cell=cell, round=number, reply=reply, facts=session.facts, ready=self.ready[cell.environment])

    def settle(self) -> None:
        """Wait until every child that has answered is gone and its memory is free."""
        for session in self.sessions.values():
            session.settle()

    def retire(self, name: str) -> None:
        """End the server of an environment, if it has one.

        Raises:
            EngineError: the engine is gone.
        """
        session = self.sessions.get(name)
        if session is None:
            return
        try:
            session.close()
        except EngineError as error:
            del self.sessions[name]
            self._must_answer(error.problems[0].message)
            self.say(error.problems[0].message)
        else:
            del self.sessions[name]  # not before: ``close`` ends a session whose end a signal has interrupted

    def retire_all(self) -> None:
        """End every server; others may be started later. Raises EngineError if the engine is gone."""
        for name in tuple(self.sessions):
            self.retire(name)

    def close(self) -> None:
        """End every server, even if one of them cannot be ended; the next run removes what a lost engine keeps."""
        with self.lock:
            self.closed, alive = True, list(self.sessions.values())
            self.sessions.clear()
        with contextlib.ExitStack() as stack:
            for session in alive:
                stack.callback(self._end, session)

    def _end(self, session: Session) -> None:
        try:
            session.close()
        except EngineError as error:
            self.say(error.problems[0].message)


def digest_of(networks: Iterable[str]) -> str:
    """Return 12 hexadecimal digits that identify some networks together, given by their digests; empty without any."""
    digests = "\n".join(sorted(networks))
    return hashlib.sha256(digests.encode()).hexdigest()[:12] if digests else ""


def _controls_of(group: Sequence[str], environments: Iterable[str]) -> list[str]:
    """Return the plain-process controls of a group's environments; their servers import nothing, and are small."""
    return [name for name in environments if is_plain(name) and without_control(name) in group]


def admit(environments: Sequence[str], sizes: Mapping[str, int], memory: int) -> tuple[tuple[str, ...], ...]:
    """Return groups of environments whose sizes add up to at most ``memory`` bytes, each with the first environment.

    An environment of unknown size counts as 0. A pair that is too large together is a group all the same, as the kernel
    may still let it run.

    >>> admit(["a", "b", "c", "d"], {"a": 2, "b": 2, "c": 2, "d": 1}, 5)
    (('a', 'b', 'd'), ('a', 'c'))
    """
    base, others = environments[0], environments[1:]
    groups: list[list[str]] = []
    free: list[int] = []
    for name in others:
        size = sizes.get(name, 0)
        index = next((k for k, free_bytes in enumerate(free) if size <= free_bytes), None)
        if index is None:
            groups.append([base])
            free.append(memory - sizes.get(base, 0))
            index = len(groups) - 1
        groups[index].append(name)
        free[index] -= size
    return tuple(tuple(group) for group in groups) or ((base,),)
