"""The engine's messages of a build or a pull, reduced to what a person wants to read."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from runner.backends.pip_log import pip_hint, pip_progress
from runner.core.text import printable

MAX_LINES = 15
KEPT_LINES = 10_000  # of a log; what a build prints before them is forgotten
LINE_LENGTH = 1000  # characters
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STEP = re.compile(r"^(?:Step|STEP) (\d+)/(\d+) ?: ((?:FROM|RUN|COPY) .*)")  # Docker, and Buildah in Podman
_NOISE = re.compile(
    r"^\s*(?:$|Step \d|STEP \d|---?> |COMMIT |Removing (?:intermediate )?container|Collecting |Downloading |"
    r"Using cached |Looking in |Obtaining dependency|Processing |Requirement already|Preparing metadata|"
    r"Getting requirements|Installing build dep|Installing backend dep|Stored in|Created wheel|Building wheel|"
    r"WARNING: Running pip as|\[notice\]|.*[━]|Link requires a different|WARNING: Retrying)"
)
_RETURNED = re.compile(
    r"^(?:The command .* returned a non-zero code:|building at STEP .*: while running runtime: exit status) (\d+)",
    re.DOTALL,
)
_LAYER_IS_DONE = frozenset({"Download complete", "Pull complete", "Pushed"})
_ERROR = re.compile(r"^\s*(?:ERROR|error|E|FATAL)\b[: ]")
_HINTS = (
    ("No space left on device", "free space on the engine's disk: `docker system df` shows what uses it"),
    ("name resolution", "containers of this engine cannot resolve names: check its DNS settings"),
    ("No such file or directory: 'gcc'", "a package is built from source: use the base image without `-slim`"),
)


def plain(text: str) -> str:
    """Return a line without colours and trailing spaces, printable, and cut to LINE_LENGTH characters."""
    return printable(_COLOUR.sub("", text[: 2 * LINE_LENGTH]).rstrip(), LINE_LENGTH)


def useful(lines: Sequence[str], limit: int = MAX_LINES) -> tuple[str, ...]:
    """Return the last ``limit`` lines without progress and empty ones; up to a third are errors from further up."""
    kept = [line for line in map(plain, lines) if _NOISE.match(line) is None]
    if len(kept) <= limit:
        return tuple(kept)
    last = kept[-limit:]
    errors = [line for line in kept[:-limit] if _ERROR.match(line)][-limit // 3 :]
    return tuple(errors + last[len(errors) :])


def reason(lines: Sequence[str], message: str) -> str:
    """Return the one line that says why a build failed: the last error in its log, else the engine's message."""
    errors = [line for line in map(plain, lines) if _ERROR.match(line)]
    return errors[-1].strip() if errors else step_end(message)


def step_end(message: str) -> str:
    """Return the engine's message about a failed step without the command, which it repeats in full."""
    code = _RETURNED.search(message)
    return f"the step ended with exit {code[1]}" if code else plain(" ".join(message[: 2 * LINE_LENGTH].split()))


def hint(text: str) -> str:
    """Return what to do about a build whose log has this text."""
    hints = [advice for sign, advice in _HINTS if sign in text]
    return hints[0] if hints else pip_hint(text) or "the log's last lines are kept with the record"


def progress_line(line: str) -> str | None:
    """Return the progress that a line of a build's log shows, None if it shows none."""
    line = plain(line)
    if step := _STEP.match(line):
        return f"step {step[1]}/{step[2]}: {shortened(step[3])}"
    return pip_progress(line)


def shortened(text: str, width: int = 60) -> str:
    """Return a text cut to ``width`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 3]}..."


class LayerProgress:
    """The sum over the layers of an image that is being pulled or pushed."""

    def __init__(self, verb: str) -> None:
        """Start with no layers; ``verb`` is ``pulling`` or ``pushing``."""
        self._verb = verb
        self._layers: dict[str, tuple[int, int]] = {}
        self._last_tenth = -1

    def line(self, message: Mapping[str, Any]) -> str | None:
        """Return the total in MB each time it has grown by a tenth, else None."""
        detail = message.get("progressDetail") or {}
        if message.get("status") in {"Downloading", "Pushing"} and detail.get("total"):
            self._layers[str(message.get("id"))] = (min(detail["current"], detail["total"]), detail["total"])
        elif message.get("status") in _LAYER_IS_DONE and message.get("id") in self._layers:
            total = self._layers[message["id"]][1]
            self._layers[message["id"]] = (total, total)
        current, total = (sum(sizes) for sizes in zip(*self._layers.values(), strict=True)) if self._layers else (0, 0)
        tenth = 10 * current // total if total else -1
        if tenth <= self._last_tenth:
            return None
        self._last_tenth = tenth
        return f"{self._verb} {current / 1e6:.0f} of {total / 1e6:.0f} MB"
