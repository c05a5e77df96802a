"""What a hostile image runs in place of its interpreter; MODE says how it misbehaves."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable

MIB = 1 << 20
ESCAPES = "\x1b]0;pwned\x07\x1b[2J\u202etxt.exe\x9b31m\r\nforged: line"


def write(data: bytes, stream: int = 1) -> None:
    """Write everything to stdout or stderr."""
    while data:
        data = data[os.write(stream, data) :]


def repeat(data: bytes, times: int = 1 << 60, stream: int = 1) -> None:
    """Write something again and again."""
    for _ in range(times):
        write(data, stream)


def hello() -> str:
    """Read the harness and the first request; return the id of the request."""
    sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    return str(json.loads(sys.stdin.buffer.readline())["id"])


def reply(**fields: object) -> None:
    """Answer the first request."""
    write(json.dumps({"id": hello(), **fields}).encode() + b"\n")


def deaf() -> None:
    """Ignore every signal that can be ignored, and the end of stdin."""
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    hello()
    time.sleep(1000)


def heartbeats() -> None:
    """Answer with heartbeats for ever."""
    number = hello()
    while True:
        write(json.dumps({"id": number, "reply": "heartbeat"}).encode() + b"\n")


def numbers() -> None:
    """Answer with three million numbers in a line."""
    number = hello()
    values = b",".join([b"0.123456789"] * 1000)
    write(f'{{"id": "{number}", "status": "ok", "seconds": ['.encode())
    repeat(values + b",", 3000)
    write(b"0.1]}\n")


def then(*actions: Callable[[], object]) -> Callable[[], None]:
    """Return an action that does others in order."""

    def act() -> None:
        for action in actions:
            action()

    return act


def leave() -> None:
    """End with exit 3."""
    sys.exit(3)


MODES: dict[str, Callable[[], object]] = {
    "exits before reading": leave,
    "exits after reading": then(hello, leave),
    "never reads": lambda: time.sleep(1000),
    "deaf": deaf,
    "yes": lambda: repeat(b"y\n" * 10_000),
    "no status": lambda: reply(reply="result"),
    "status is a list": lambda: reply(status=["ok"]),
    "facts are a number": lambda: reply(status="ok", facts=3, bytes="x"),
    "no newline": then(hello, lambda: repeat(b"x" * MIB, 200)),
    "never a newline": then(hello, lambda: repeat(b"x" * MIB)),
    "numbers": numbers,
    "long log": lambda: reply(status="failed", **{"class": "crash"}, reason="r" * 5 * MIB, log="l" * 50 * MIB),
    "escapes": lambda: reply(status="failed", **{"class": "crash"}, reason=ESCAPES, log=ESCAPES),
    "escapes on stderr": then(lambda: write(ESCAPES.encode(), 2), leave),
    "stderr": then(lambda: repeat(b"e" * MIB, 300, 2), leave),
    "stderr for ever": then(hello, lambda: repeat(b"\0" * 60 + b"noise\n", stream=2)),
    "heartbeats": heartbeats,
    "frames": then(hello, lambda: repeat(b"\x02\0\0\0\xff\xff\xff\xff" * 1000, 10), leave),
    "nested": then(hello, lambda: write(b"[" * 200_000 + b"\n")),
    "bytes": then(hello, lambda: write(bytes(range(256)) + b"\n")),
}

if __name__ == "__main__":
    MODES[os.environ["MODE"]]()
