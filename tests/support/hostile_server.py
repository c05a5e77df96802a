"""A harness server that sends what it likes: ``python hostile_server.py MODE``, with the protocol on stdin and stdout.

It is no module of the tests but a program that stands for an interpreter, and needs nothing but the standard library.
``HELLOS`` and ``RESULTS`` say what each mode sends; all else is as a sound server does it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

MIB = 1 << 20
TERMINAL = "\x1b]0;pwned\x07\x1b[2J \u202etxet <script>alert(1)</script>"
OK = {"status": "ok"}
SOUND = {
    **OK,
    "seconds": [0.011, 0.012, 0.013],
    "warmup": [0.02],
    "turns": [1, 1, 1],
    "batch": 1,
    "compile_seconds": 0.1,
    "loss": [3.0, 2.0, 1.0],
    "reference_loss": [3.0, 2.0, 1.0],
    "loss_error": 0.0,
    "gradient_errors": {"a": 1e-7},
    "forward_error": 1e-7,
    "steady": True,
}
FAILED = {"status": "failed", "class": "crash", "reason": "why"}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def forever(part: bytes) -> Iterator[bytes]:
    while True:
        yield part


def flood_stderr() -> Iterator[bytes]:
    for _ in range(20):
        sys.stderr.buffer.write(b"\x00\x1b[2J" * (MIB // 5))
    sys.stderr.buffer.write(b"\nthe last \x1b[2J words")
    sys.stderr.flush()
    sys.exit(1)


HELLOS: dict[str, Any] = {
    "hello-without-status": {},
    "hello-facts-number": {**OK, "facts": 3},
    "hello-bytes-text": {**OK, "bytes": "x"},
    "hello-version-number": {**OK, "facts": {"version": 5}},
    "hello-nested": {**OK, "facts": {"a": nested(500)}},
    "hello-turn": {"reply": "turn", "stage": "turn"},
    "hello-opened": {**OK, "opened": "/dev/x"},
    "hello-unknown-class": {"status": "failed", "class": "engine", "reason": "the engine is gone"},
    "hello-import-error": {"status": "failed", "class": "import", "reason": "ImportError: no such library"},
    "hello-garbage": b"Using TensorFlow backend. \x00\xff\n",
    "hello-brackets": b"[" * 200_000 + b"\n",
    "hello-list": b"[1, 2]\n",
    "hello-long-number": b'{"id": ' + b"9" * 5000 + b"}\n",
    "hello-endless": lambda: forever(b"x" * MIB),
    "hello-many-values": lambda: iter([b'{"a": [', b"[]," * 3_000_000, b"0]}\n"]),
    "hello-exit": lambda: sys.exit(3),
    "hello-signal": lambda: os.kill(os.getpid(), 35),
    "hello-stderr": flood_stderr,
}
"""Mode -> the answer to ``hello``: fields, bytes, or a function that returns bytes or ends the process."""

RESULTS: dict[str, Any] = {
    "class-list": {**FAILED, "class": ["x"]},
    "class-unknown": {**FAILED, "class": "tired"},
    "reason-mapping": {**FAILED, "reason": {"a": 1}},
    "no-status": {"seconds": [0.1]},
    "seconds-number": {**SOUND, "seconds": 5},
    "seconds-text": {**SOUND, "seconds": ["0.1"]},
    "seconds-nan": {**SOUND, "seconds": [float("nan")]},
    "seconds-negative": {**SOUND, "seconds": [-1.0]},
    "seconds-none": {**SOUND, "seconds": []},
    "loss-number": {**SOUND, "loss": 5},
    "compile-text": {**SOUND, "compile_seconds": "x"},
    "forward-text": {**SOUND, "forward_error": "boo"},
    "gradients-text": {**SOUND, "gradient_errors": {"a": "b"}},
    "throttled-text": {**SOUND, "throttled": "text"},
    "turns-nested": {**SOUND, "turns": [[1]]},
    "batch-text": {**SOUND, "batch": "x"},
    "deep": {**SOUND, "checked_case": nested(500)},
    "log-mapping": {**FAILED, "log": {"a": 1}},
    "seconds-3-million": lambda: iter([b'{"id": "%d", "seconds": [', b"0.5," * 3_000_000, b"0.5]}\n"]),
    "endless": lambda: forever(b"x" * MIB),
    "exit": lambda: sys.exit(3),
    "built-twice": {"reply": "turn", "stage": "built"},
    "turns-forever": {"reply": "turn", "stage": "turn"},
    "terminal": {**FAILED, "reason": TERMINAL + "r" * 5 * MIB, "log": TERMINAL + "\n" + "l" * MIB},
    "answers-50": SOUND,
    "half-million": {**SOUND, "seconds": [0.011234567890123] * 480_000, "turns": [160_000] * 3},
    "liar": {**SOUND, "new": 1, "turns_with": TERMINAL, "arithmetic": TERMINAL},
}
"""Mode -> the result of ``measure``, likewise; in ``answers-50`` it is sent fifty times."""

LIES = {
    "version": "=cmd|' /C calc'!A0",
    "device_name": "H200",
    "throttled": "always",
    "blas": TERMINAL,
    "server": "b#1",
}


def send(answer: Any, number: str) -> None:
    """Write an answer to the request with an id."""
    if isinstance(answer, Callable):  # type: ignore[arg-type]
        parts = answer()
    elif isinstance(answer, bytes):
        parts = [answer]
    else:
        parts = [json.dumps({"id": number, "reply": "result", "settles": False, **answer}).encode() + b"\n"]
    for part in parts:
        sys.stdout.buffer.write(part.replace(b"%d", number.encode()))
    sys.stdout.buffer.flush()


def measure(mode: str, number: str, *, turns: bool) -> None:
    """Answer ``measure``: wait as often as a sound child does, and send the result."""
    result = RESULTS.get(mode, SOUND)
    for stage in ("built", "turn", "timed") if turns else ():
        send({"reply": "turn", "stage": stage}, number)
        sys.stdin.buffer.readline()
        while isinstance(result, dict) and result.get("stage") == stage:
            send(result, number)
            sys.stdin.buffer.readline() or sys.exit()
    for _ in range(50 if mode == "answers-50" else 1):
        send(result, number)


def probe() -> None:
    """Answer what the host backend asks an interpreter first: framework, release, Python, all frameworks."""
    sys.stdout.write("numpy 2.4.6 3.11 numpy\n")


def main(mode: str) -> None:
    """Serve until stdin ends."""
    source = sys.stdin.buffer
    source.read(int(source.readline()))  # the harness, which is not needed
    for line in iter(source.readline, b""):
        request = json.loads(line)
        number = request["id"]
        if request["op"] == "hello":
            facts = LIES if mode == "liar" else {"version": "2.4.6"}
            sound = {
                **OK,
                "facts": facts,
                "bytes": 10 * MIB,
                "python": "3.11.7",
                "import_seconds": 0.1,
                "import_cpu_seconds": 0.1,
            }
            send(HELLOS.get(mode, sound), number)
        elif request["op"] == "measure":
            measure(mode, number, turns=bool(request.get("turns")))
        else:
            send({**OK, "cold": {}}, number)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if any("find_spec" in argument for argument in sys.argv):
        probe()
    else:
        main(sys.argv[1])
