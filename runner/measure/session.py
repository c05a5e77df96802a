"""One environment's harness server, seen from the runner: requests out, results in, however the server ends."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.backends import Channel
from runner.harness import protocol

SILENCE = 60.0  # seconds without a heartbeat after which a server counts as hung
GRACE = 30.0  # seconds a server gets beyond a child's time-out to say so


class Session:
    """A live server.

    Attributes:
        facts: what the server said of itself and its framework.
        size: resident bytes of the server after the framework's import.
        alive: False once the server has ended or was given up.
    """

    def __init__(self, channel: Channel, name: str) -> None:
        """Take a channel whose server has been sent the harness; ``name`` tells this server from its successors."""
        self.channel = channel
        self.name = name
        self.alive = True
        self.facts: Mapping[str, Any] = {}
        self.size = 0
        self.known: set[str] = set()
        self.rounds = 0
        self.unsettled = False
        self._asked = 0
        self._ids = itertools.count(1)

    def ask(self, message: dict[str, Any], timeout: float, silence: float = SILENCE) -> dict[str, Any]:
        """Return the server's result, or a failed one with the class of the server's own end.

        Args:
            message: a request without its id.
            timeout: seconds within which the server is to answer, above 0.
            silence: seconds without a word after which it counts as hung, above 0.
        """
        self.settle()
        self._asked = next(self._ids)
        return self._answer(dict(message, id=self._asked), timeout, silence)

    def go_on(self, timeout: float) -> dict[str, Any]:
        """Let the child that waits for its turn go on; return what ``ask`` would have."""
        return self._answer({"op": "go", "id": self._asked}, timeout, SILENCE)

    def _answer(self, message: dict[str, Any], timeout: float, silence: float) -> dict[str, Any]:
        found = self._await(lambda reply: reply.get("id") == self._asked, timeout, silence, protocol.encode(message))
        self.unsettled = bool(found.get("settles"))
        return found

    def _await(
        self, wanted: Callable[[dict[str, Any]], bool], timeout: float, silence: float, sent: bytes = b""
    ) -> dict[str, Any]:
        """Send something and return the first line that is wanted, or a failure with the class of the server's end."""
        deadline = time.monotonic() + timeout
        try:
            self.channel.send(sent)
            while (line := self.channel.receive(min(silence, _left(deadline)))) is not None:
                reply = protocol.decode(line)
                if wanted(reply):
                    return reply
        except TimeoutError:
            return self._gone("timeout", f"the harness server said nothing for {min(silence, timeout):g} s")
        except ValueError:
            return self._gone("crash", "the harness server wrote something that is not its protocol")
        except BrokenPipeError:
            pass
        return self._gone(*self.channel.ending())

    def _gone(self, kind: str, reason: str) -> dict[str, Any]:
        self.alive = False
        return {"status": "failed", "class": kind, "reason": reason, "log": self.channel.words()}

    def hello(
        self, framework: str, threads: int, device: str, timeout: float, cpus: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Have the server import its framework, on some processors or any; its facts and size are kept."""
        request = {"op": "hello", "framework": framework, "threads": threads, "device": device, "timeout": timeout}
        request["cpus"] = list(cpus)
        found = self.ask(request, timeout + GRACE, silence=timeout + GRACE)  # no heartbeat while it imports
        own: dict[str, Any] = {name: found[name] for name in ("python", "import_seconds") if name in found}
        self.facts = {**found.get("facts", {}), **own, "server": self.name, "packages": found.get("packages", {})}
        self.size = int(found.get("bytes", 0))
        return found

    def cold(self, cache: str, cells: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
        """Return about how many seconds cells will compile, by place; see ``harness.ahead.cold``."""
        request = {"op": "cold", "cache": cache, "cells": list(cells)}
        found: Mapping[str, float] = self.ask(request, GRACE).get("cold", {})
        return found

    def measure(self, request: dict[str, Any], truth: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Measure one cell once; the reference is sent first where this server has not seen the case.

        Where the request has ``turns``, the reply may be ``turn``: the child waits until it may ``go_on``.

        Args:
            request: what ``child.measure`` takes, and ``key``, ``timeout``, ``memory``, ``turns``.
            truth: gives the packed reference of the case.
        """
        if request["key"] not in self.known:
            found = self.ask({**truth(), "op": "reference", "key": request["key"]}, GRACE)
            if found["status"] != "ok":
                return found
            self.known = {request["key"]}  # a server keeps the newest alone
        phases = 2 if request["phase"] == "compile-warm" else 1
        return self.ask({**request, "op": "measure"}, phases * request["timeout"] + GRACE)

    def settle(self) -> None:
        """Wait until the last child is gone with its memory, so that it does not disturb whoever comes next."""
        if self.alive and self.unsettled:
            self.unsettled = False
            self._await(lambda reply: reply.get("reply") == "gone", GRACE, GRACE)

    def close(self) -> None:
        """End the server."""
        self.alive = False
        self.channel.close()


def _left(deadline: float) -> float:
    """Return the seconds until a deadline; raises TimeoutError once it has passed, however talkative the server."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
