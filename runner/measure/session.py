"""The runner's side of one harness server: send requests and receive replies, however the server ends."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.backends import Channel
from runner.harness import protocol

SILENCE = 60.0  # seconds without a heartbeat after which a server counts as hung
GRACE = 30.0  # seconds beyond the time-out of a child, in which the server has to report it


class Session:
    """A live server.

    Attributes:
        facts: what the server reported about itself and its framework.
        size: resident bytes of the server after the import of the framework.
        alive: False after the server has ended or no longer answered.
    """

    def __init__(self, channel: Channel, name: str) -> None:
        """Take a channel whose server has the harness; ``name`` is different for each server of an environment."""
        self.channel = channel
        self.name = name
        self.alive = True
        self.facts: Mapping[str, Any] = {}
        self.size = 0
        self.known: set[str] = set()
        self.rounds = 0
        self.unsettled = False
        self._request_id = 0
        self._ids = itertools.count(1)

    def ask(self, message: dict[str, Any], timeout: float, silence: float = SILENCE) -> dict[str, Any]:
        """Return the server's result; a failed one if the server ends.

        Args:
            message: a request without its id.
            timeout: seconds in which the server has to answer, above 0.
            silence: seconds without a message after which it counts as hung, above 0.
        """
        self.settle()
        self._request_id = next(self._ids)
        return self._answer(dict(message, id=self._request_id), timeout, silence)

    def go_on(self, timeout: float) -> dict[str, Any]:
        """Give the waiting child its turn; return as ``ask`` does."""
        return self._answer({"op": "go", "id": self._request_id}, timeout, SILENCE)

    def _answer(self, message: dict[str, Any], timeout: float, silence: float) -> dict[str, Any]:
        data = protocol.encode(message)
        reply = self._await(lambda reply: reply.get("id") == self._request_id, timeout, silence, data)
        self.unsettled = bool(reply.get("settles"))
        return reply

    def _await(
        self, matches: Callable[[dict[str, Any]], bool], timeout: float, silence: float, data: bytes = b""
    ) -> dict[str, Any]:
        """Send data and return the first reply that matches; a failed one if the server ends."""
        deadline = time.monotonic() + timeout
        try:
            self.channel.send(data)
            while (line := self.channel.receive(min(silence, _remaining(deadline)))) is not None:
                reply = protocol.decode(line)
                if matches(reply):
                    return reply
        except TimeoutError:
            return self._failed("timeout", f"the harness server said nothing for {min(silence, timeout):g} s")
        except ValueError:
            return self._failed("crash", "the harness server wrote something that is not its protocol")
        except BrokenPipeError:
            pass
        return self._failed(*self.channel.ending())

    def _failed(self, kind: str, reason: str) -> dict[str, Any]:
        self.alive = False
        return {"status": "failed", "class": kind, "reason": reason, "log": self.channel.words()}

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
                the framework in each child instead.
        """
        request = {"op": "hello", "framework": framework, "threads": threads, "device": device, "timeout": timeout}
        request |= {"cpus": list(cpus)} | settings
        reply = self.ask(request, timeout + GRACE, silence=timeout + GRACE)  # no heartbeat while it imports
        server: dict[str, Any] = {name: reply[name] for name in ("python", "import_seconds") if name in reply}
        self.facts = {**reply.get("facts", {}), **server, "server": self.name, "packages": reply.get("packages", {})}
        self.size = int(reply.get("bytes", 0))
        return reply

    def cold(self, cache: str, cells: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
        """Return the estimated compile seconds by index of the cells that are not compiled.

        See ``harness.compile_cache.cold_cells``.
        """
        request = {"op": "cold", "cache": cache, "cells": list(cells)}
        seconds_by_index: Mapping[str, float] = self.ask(request, GRACE).get("cold", {})
        return seconds_by_index

    def measure(self, request: dict[str, Any], truth: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Measure one cell once; the reference is sent first if this server does not have it.

        If the request has ``turns``, the reply may be ``turn``: the child waits for ``go_on``.

        Args:
            request: what ``child.measure`` takes, and ``key``, ``timeout``, ``memory``, ``turns``.
            truth: returns the packed reference of the case.
        """
        if request["key"] not in self.known:
            reply = self.ask({**truth(), "op": "reference", "key": request["key"]}, GRACE)
            if reply["status"] != "ok":
                return reply
            self.known = {request["key"]}  # a server keeps only the newest
        phases = 2 if request["phase"] == "compile-warm" else 1
        return self.ask({**request, "op": "measure"}, phases * request["timeout"] + GRACE)

    def settle(self) -> None:
        """Wait until the last child is gone and its memory is free, so that it does not disturb the next one."""
        if self.alive and self.unsettled:
            self.unsettled = False
            self._await(lambda reply: reply.get("reply") == "gone", GRACE, GRACE)

    def close(self) -> None:
        """End the server."""
        self.alive = False
        self.channel.close()


def _remaining(deadline: float) -> float:
    """Return the seconds until a deadline; raises TimeoutError after it, whatever the server still sends."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
