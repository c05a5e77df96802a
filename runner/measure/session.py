"""The runner's side of one harness server: send requests and receive replies, however the server ends."""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.backends import Channel
from runner.backends.sending import UnreadError
from runner.core.text import REASON_LENGTH, printable
from runner.harness import plain, protocol, turn_plan
from runner.harness.link import BUILT, CALLED, FIRST, TIMED, TURN, WARM
from runner.measure import replies

SILENCE = 60.0  # seconds without a heartbeat after which a server counts as hung
GRACE = 30.0  # seconds beyond the time-out of a child, in which the server has to report it
STAGE_ORDER = (FIRST, CALLED, BUILT, WARM, TURN, TIMED)
ID_BYTES = 16
"""Of a request's id, which nobody can guess: a child that writes replies of its server answers no other request."""
EXTRA_TURNS = 10  # beyond those that the time budget has room for: a child takes at least 3 samples, each in a turn
POOL_FACTS = ("server", "gpu_affinity", "opened_by_import", "env")  # the runner's, whatever a server reports


class Session:
    """A live server.

    Attributes:
        facts: what the server reported about itself and its framework.
        size: resident bytes of the server after the import of the framework.
        networks: see ``Limits.networks``.
        alive: False after the server has ended or no longer answered.
    """

    def __init__(
        self, channel: Channel, name: str, clock: Callable[[], float] = time.monotonic, networks: str = ""
    ) -> None:
        """Take a channel whose server has the harness; ``name`` is different for each server of an environment."""
        self.networks = networks
        self.channel = channel
        self.clock = clock
        self.name = name
        self.alive = True
        self.facts: Mapping[str, Any] = {}
        self.size = 0
        self.known: set[str] = set()  # keys of references
        self.models: set[str] = set()  # digests of users' networks
        self.rounds = 0
        self.unsettled = False
        self._request_id = ""
        self._request: Mapping[str, Any] = {}
        self._stages = Counter[str]()  # at which the child has waited
        self._seconds_used = 0.0  # by the request

    def ask(self, message: dict[str, Any], timeout: float, silence: float = SILENCE) -> dict[str, Any]:
        """Return the server's result, whose shape ``replies`` has checked; a failed one if the server ends.

        Args:
            message: a request without its id.
            timeout: seconds in which the server has to answer, above 0.
            silence: seconds without a message after which it counts as hung, above 0.
        """
        self.settle()
        self.channel.discard()
        self._request_id = secrets.token_hex(ID_BYTES)
        self._request, self._stages, self._seconds_used = message, Counter(), 0.0
        return self._answer(dict(message, id=self._request_id), timeout, silence)

    def go_on(self, timeout: float, plan: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Give the waiting child its turn; return as ``ask`` does. All turns of a request share its ``timeout``.

        Args:
            timeout: seconds, above 0.
            plan: of its turns, see ``harness.turn_plan.plans``, if it waits for that.
        """
        with_plan = {"plan": dict(plan)} if plan else {}
        return self._answer({"op": "go", "id": self._request_id, **with_plan}, timeout, SILENCE)

    def _answer(self, message: dict[str, Any], timeout: float, silence: float) -> dict[str, Any]:
        begin = self.clock()
        reply = self._await(self._result, timeout, silence, protocol.encode(message), begin - self._seconds_used)
        self._seconds_used += self.clock() - begin
        self.unsettled = bool(reply.get("settles"))
        return reply

    def _result(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the checked reply in a message; None if it does not answer the request. Raises ValueError."""
        if message.get("id") != self._request_id:
            return None
        turns = bool(self._request.get("turns"))
        reply = replies.check(message, self._request["op"], turns=turns)
        if reply.get("reply") == "turn":
            self._note_stage(reply["stage"])
        elif self._request["op"] == "measure" and reply["status"] == "ok":
            replies.check_verified(self._request, reply)
        return reply

    def _note_stage(self, stage: str) -> None:
        """Count the stages at which a child waits; raise ValueError for one out of order or beyond the time budget."""
        later = STAGE_ORDER[STAGE_ORDER.index(stage) + 1 :]
        limit = turn_plan.turn_limit(self._request["seconds"]) + EXTRA_TURNS if stage == TURN else 1
        if self._stages[stage] >= limit or any(self._stages[name] for name in later):
            raise ValueError(f"that its child waits at the stage {stage!r} after {self._stages.total()} others")
        self._stages[stage] += 1

    def _await(
        self,
        accept: Callable[[dict[str, Any]], dict[str, Any] | None],
        timeout: float,
        silence: float,
        data: bytes = b"",
        begin: float | None = None,
    ) -> dict[str, Any]:
        """Send data and return the first reply that is accepted; a failed one if the server ends.

        ``timeout`` counts from ``begin``, by default from now.
        """
        deadline = (self.clock() if begin is None else begin) + timeout
        try:
            if data:
                self.channel.send(data, self._remaining(deadline))
            while (line := self.channel.receive(min(silence, self._remaining(deadline)))) is not None:
                reply = accept(replies.parse(line))
                if reply is not None:
                    return reply
        except TimeoutError as error:
            late = self.clock() >= deadline
            silent = str(error) if isinstance(error, UnreadError) else f"said nothing for {silence:g} s"
            reason = f"sent no result within {timeout:g} s" if late else silent
            return self._failed("timeout", f"the harness server {reason}")
        except ValueError as error:
            return self._failed("crash", f"the harness server sent {error}")
        except BrokenPipeError:
            pass
        return self._failed(*self.channel.ending())

    def _remaining(self, deadline: float) -> float:
        """Return the seconds until a deadline; raises TimeoutError after it, whatever the server still sends."""
        seconds = deadline - self.clock()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def _failed(self, kind: str, reason: str) -> dict[str, Any]:
        self.alive = False
        log = printable(self.channel.words(), multiline=True)
        return {"status": "failed", "class": kind, "reason": printable(reason, REASON_LENGTH), "log": log}

    def hello(
        self, framework: str, threads: int, device: str, timeout: float, cpus: Sequence[int] = (), **settings: object
    ) -> dict[str, Any]:
        """Have the server import its framework, on some CPUs or any; return its reply and keep its facts and size.

        Args:
            framework: the name of its adapter.
            threads: CPU threads that it is given.
            device: ``cpu`` or ``cuda``.
            timeout: seconds for the import and for the first context on the device, above 0.
            cpus: the CPUs that it keeps to; empty for any.
            settings: ``cache``, the folder of the compiler caches, as the server sees it; ``load_in_child``, to import
                the framework in each child instead; ``variables``, the names of those that the user has set.
        """
        request = {"op": "hello", "framework": framework, "threads": threads, "device": device, "timeout": timeout}
        request |= {"cpus": list(cpus)} | settings
        reply = self.ask(request, timeout + GRACE, silence=timeout + GRACE)  # no heartbeat while it imports
        server: dict[str, Any] = {
            name: reply[name] for name in ("python", "import_seconds", "import_cpu_seconds") if name in reply
        }
        reported = {name: fact for name, fact in reply.get("facts", {}).items() if name not in POOL_FACTS}
        self.facts = {**reported, **server, "server": self.name, "packages": reply.get("packages", {})}
        self.size = reply.get("bytes", 0)
        return reply

    def cold(self, cache: str, cells: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
        """Return the estimated compile seconds by index, as text, of the cells that are not compiled.

        See ``harness.compile_cache.cold_cells``.
        """
        request = {"op": "cold", "cache": cache, "cells": list(cells)}
        seconds_by_index: Mapping[str, float] = self.ask(request, GRACE).get("cold", {})
        return {index: seconds for index, seconds in seconds_by_index.items() if int(index) < len(cells)}

    def measure(self, request: dict[str, Any], truth: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Measure one cell once; the reference is sent first if this server does not have it.

        If the request has ``turns``, the reply may be ``turn``: the child waits for ``go_on``.

        Args:
            request: what ``worker.measure`` takes, and ``key``, ``timeout``, ``memory``, ``turns``. Where ``op`` is
                "profile", the cell is not measured, but profiled.
            truth: returns the packed reference of the case.
        """
        if plain.needs_reference(request) and request["key"] not in self.known:
            reply = self.ask({**truth(), "op": "reference", "key": request["key"]}, GRACE)
            if reply["status"] != "ok":
                return reply
            self.known = {request["key"]}  # a server keeps only the newest
        in_two = request["phase"] == "compile-warm" or plain.is_for_fresh_interpreter(request)
        return self.ask({"op": "measure", **request}, (2 if in_two else 1) * request["timeout"] + GRACE)

    def settle(self) -> None:
        """Wait until the last child is gone and its memory is free, so that it does not disturb the next one."""
        if self.alive and self.unsettled:
            self.unsettled = False
            self._await(lambda message: message if message.get("reply") == "gone" else None, GRACE, GRACE)

    def close(self) -> None:
        """End the server."""
        self.alive = False
        self.channel.close()
