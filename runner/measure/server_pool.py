"""The live servers of a run: started when they are needed, replaced every few rounds, as many as memory holds."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runner.backends import Backend
from runner.core.errors import EngineError, Problem
from runner.core.model import Cell, Limits, Outcome, Plan, Provisioned, file_name
from runner.core.threads import run_concurrently
from runner.measure.session import GRACE, Session

HELLO_SECONDS = 300.0  # a cold import of an old framework from a slow disk, at worst


class Numbers:
    """Numbers the servers of each environment in a run, those of all its devices together."""

    def __init__(self, behind: Mapping[str, int]) -> None:
        """Number on from those that a resumed run has behind it."""
        self.last = dict(behind)
        self.lock = threading.Lock()

    def next(self, name: str) -> int:
        """Return the number of an environment's next server."""
        with self.lock:
            self.last[name] = self.last.get(name, 0) + 1
            return self.last[name]


class ServerPool:
    """One session for each environment at most."""

    def __init__(
        self,
        plan: Plan,
        ready: Mapping[str, Provisioned],
        backend: Backend,
        limits: Limits,
        say: Callable[[str], None],
        numbers: Numbers | None = None,
    ) -> None:
        """Start nothing yet; without ``numbers``, servers are numbered on from those of the plan's past."""
        self.plan = plan
        self.ready = ready
        self.backend = backend
        self.limits = limits
        self.say = say
        self.sessions: dict[str, Session] = {}
        self.sizes: dict[str, int] = {}
        self.broken: dict[str, dict[str, Any]] = {}
        self.numbers = numbers or Numbers(plan.past.servers)
        self.proven: set[Cell] = set()  # those that a measurement which counts has found right in this run
        self.lock, self.closed = threading.Lock(), False  # servers are started in several threads
        self.waiting: dict[Cell, int] = {}  # the round of each cell whose child waits for its turn

    def groups(self, environments: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the environments in groups that fit in memory side by side; each holds the first one, the base."""
        room = self.limits.memory // 2  # the other half is for the children that take turns
        new = [name for name in environments if name not in self.sizes and name not in self.broken]
        for name, _ in run_concurrently(self.session, new, self.limits.side_by_side):
            if sum(self.sizes.get(alive, 0) for alive in tuple(self.sessions)) > room:
                self.retire(name)  # its size is known now, and that is all it was started for
        found = admit(environments, self.sizes, room)
        for name in set(self.sessions) - set(found[0]):
            self.retire(name)
        return found

    def session(self, name: str) -> Session | None:
        """Return the live session of an environment, started if need be; None where it cannot say hello.

        Raises:
            EngineError: the engine is gone.
        """
        if name in self.broken:
            return None
        session = self.sessions.get(name)
        if session is not None and session.alive:
            return session
        self.retire(name)
        self.say(f"{name}: starting")
        begin = time.monotonic()
        try:
            channel = self.backend.open(self.ready[name], self.limits)
        except (OSError, EngineError) as error:
            self.broken[name] = self._unstarted(error)
            return None
        session = Session(channel, f"{name}#{self.numbers.next(name)}")
        self._live(name, session)
        threads = self.plan.measurement.threads
        framework, device = self.plan.frameworks[name], self.plan.device
        found = session.hello(framework, threads, device, HELLO_SECONDS, self.limits.cpus)
        if found["status"] != "ok":
            self.check(found)
            # A server that dies while it imports would do so again: it is not a crash that may not come back.
            self.broken[name] = {**found, "class": "import"} if found["class"] == "crash" else found
            self.retire(name)
            return None
        self.sizes[name] = session.size
        self.say(f"{name}: ready after {time.monotonic() - begin:.1f} s")
        return session

    def _live(self, name: str, session: Session) -> None:
        """Count a server among those that are alive, unless all of them have been ended while it was started."""
        with self.lock:
            if not self.closed:
                self.sessions[name] = session
                return
        self._end(session)
        raise EngineError(Problem(f"{name} was started too late"))

    def _unstarted(self, error: OSError | EngineError) -> dict[str, Any]:
        """Return the failure of an environment whose server cannot be started."""
        if isinstance(error, EngineError):
            self._must_answer(error.problems[0].message)
            return {"status": "failed", "class": "engine", "reason": error.problems[0].message}
        return {"status": "failed", "class": "import", "reason": f"the harness server cannot be started: {error}"}

    def check(self, reply: Mapping[str, Any]) -> None:
        """Raise EngineError where a server was lost because its engine is gone: that is no failure of a cell."""
        if reply.get("class") == "engine":
            self._must_answer(str(reply.get("reason")))

    def _must_answer(self, reason: str) -> None:
        if not self.backend.answers():
            raise EngineError(Problem(reason))

    def next_round(self, environments: Iterable[str]) -> None:
        """Begin a round: servers that have served their rounds are replaced, and all of the group are alive."""
        wanted = set(environments)
        for name in set(self.sessions) - wanted:
            self.retire(name)
        for name in sorted(wanted):
            session = self.sessions.get(name)
            if session is not None and session.rounds >= self.plan.measurement.restart:
                self.retire(name)
        for _, session in run_concurrently(self.session, sorted(wanted), self.limits.side_by_side):
            if session is not None:
                session.rounds += 1

    def ask(
        self,
        cell: Cell,
        number: int,
        common: dict[str, Any],
        truth: Callable[[], dict[str, Any]],
        *,
        turns: bool = False,
    ) -> Outcome | None:
        """Measure one cell in one round; a server that cannot start or dies gives a failed outcome.

        Returns:
            None where a cell that takes ``turns`` waits for one: it may ``go_on``.

        Raises:
            EngineError: the engine is gone.
        """
        ready = self.ready[cell.environment]
        session = self.session(cell.environment)
        self.say(f"round {number}: {cell.id}")
        if session is None:
            return Outcome(cell=cell, round=number, reply=self.broken[cell.environment], facts={}, ready=ready)
        self.settle()
        request = {**common, **self.own(cell), "turns": turns}
        return self._outcome(cell, number, session, session.measure(request, truth))

    def cache(self, ready: Provisioned) -> str:
        """Return the folder where compilers keep what they made for an environment on the device."""
        folder, device = self.backend.cache(ready), self.limits.device
        return folder if device == "cpu" else f"{folder}/{file_name(device)}"

    def own(self, cell: Cell) -> dict[str, Any]:
        """Return the part of a measuring request that is a cell's own."""
        ready = self.ready[cell.environment]
        return {
            "framework": ready.framework,
            "implementation": cell.implementation,
            "phase": cell.phase,
            "precision": cell.precision,
            "cache": self.cache(ready),
            "proven": cell in self.proven,
        }

    def go_on(self, cell: Cell) -> Outcome | None:
        """Give a cell its turn; return its outcome, or None where it waits for another turn.

        Raises:
            EngineError: the engine is gone.
        """
        number, session = self.waiting.pop(cell), self.sessions[cell.environment]
        self.settle()
        return self._outcome(cell, number, session, session.go_on(self.plan.measurement.timeout + GRACE))

    def _outcome(self, cell: Cell, number: int, session: Session, reply: dict[str, Any]) -> Outcome | None:
        self.check(reply)
        if not session.alive:
            self.retire(cell.environment)  # at once: its child may still be at work, beside everybody else's
        if reply.get("reply") == "turn":
            self.waiting[cell] = number
            return None
        return Outcome(cell=cell, round=number, reply=reply, facts=session.facts, ready=self.ready[cell.environment])

    def settle(self) -> None:
        """Wait until every child that has answered is gone with its memory."""
        for session in self.sessions.values():
            session.settle()

    def retire(self, name: str) -> None:
        """End the server of an environment, if it has one.

        Raises:
            EngineError: the engine is gone.
        """
        session = self.sessions.pop(name, None)
        if session is None:
            return
        try:
            session.close()
        except EngineError as error:
            self._must_answer(error.problems[0].message)
            self.say(error.problems[0].message)

    def close(self) -> None:
        """End every server, also when one of them cannot be ended; what a lost engine holds, the next start removes."""
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


def admit(environments: Sequence[str], sizes: Mapping[str, int], room: int) -> tuple[tuple[str, ...], ...]:
    """Return groups of environments whose sizes add up to at most ``room`` bytes, each with the first environment.

    An environment of unknown size counts as nothing; a pair that is too large together still makes a group, since
    the kernel may yet let it run.

    >>> admit(["a", "b", "c", "d"], {"a": 2, "b": 2, "c": 2, "d": 1}, 5)
    (('a', 'b', 'd'), ('a', 'c'))
    """
    base, rest = environments[0], environments[1:]
    groups: list[list[str]] = []
    free: list[int] = []
    for name in rest:
        size = sizes.get(name, 0)
        place = next((k for k, left in enumerate(free) if size <= left), None)
        if place is None:
            groups.append([base])
            free.append(room - sizes.get(base, 0))
            place = len(groups) - 1
        groups[place].append(name)
        free[place] -= size
    return tuple(tuple(group) for group in groups) or ((base,),)
