"""Long runs: many inputs, the places that break with their smallest inputs, and the totals."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.draws import Draws
from tests.fuzz.limits import Broken, attempt, peak_bytes
from tests.fuzz.strategies import GENERATORS
from tests.fuzz.targets import TARGETS, to_bytes

SHORTER_TRIES = 60
MIXED = 1 / 8
"""The share of inputs that also have the changes of an earlier input which broke something or was kept."""


@dataclass(slots=True)
class Totals:
    """What a run of a target came to.

    Attributes:
        broken: place and kind -> (how often, what broke, the shortest input).
        slowest: seconds of the processor, and the input that took them.
    """

    target: str
    inputs: int = 0
    rejected: int = 0
    seconds: float = 0.0
    slowest: tuple[float, Any] = (0.0, None)
    broken: dict[tuple[str, str], tuple[int, Broken, Any]] = field(default_factory=dict)

    def try_input(self, value: Any) -> None:
        """Give an input to the target, and count how it ended."""
        trial = attempt(TARGETS[self.target], value)
        self.inputs += 1
        self.rejected += trial.rejected
        if trial.seconds > self.slowest[0]:
            self.slowest = trial.seconds, value
        if trial.broken is not None:
            count, _, before = self.broken.get(trial.broken.key, (0, trial.broken, None))
            if before is None:
                before = shorter(self.target, value, trial.broken.key)
            self.broken[trial.broken.key] = count + 1, trial.broken, before

    def lines(self) -> Iterator[str]:
        """Yield the totals, and a line for each place."""
        yield (
            f"{self.target}: {self.inputs:,} inputs ({self.rejected:,} rejected) in {self.seconds:.0f} s; "
            f"{sum(count for count, *_ in self.broken.values()):,} broke something in {len(self.broken)} places; "
            f"slowest {self.slowest[0]:.2f} s; peak {peak_bytes() / 1e6:.0f} MB"
        )
        for count, broken, value in sorted(self.broken.values(), key=lambda entry: -entry[0]):
            yield f"  {count:6} {broken.where}  {broken.what}: {broken.message[:120]!r}  {_compact(value)[:200]}"


def _compact(value: Any) -> str:
    return repr(value) if isinstance(value, bytes) else json.dumps(value)


def shorter(target: str, value: Any, key: tuple[str, str]) -> Any:
    """Return an input with as few changes as break the same place."""
    if isinstance(value, dict) and "changes" in value:
        for change in list(value["changes"]):
            without = {**value, "changes": [other for other in value["changes"] if other is not change]}
            trial = attempt(TARGETS[target], without)
            if trial.broken is not None and trial.broken.key == key:
                value = without
    return _shorter_bytes(target, value, key) if isinstance(value, bytes) else value


def _shorter_bytes(target: str, content: bytes, key: tuple[str, str]) -> bytes:
    """Return bytes without the pieces that do not matter: halves, then smaller pieces, with at most SHORTER_TRIES."""
    size, tries = len(content) // 2, 0
    while size and tries < SHORTER_TRIES:
        start = 0
        while start < len(content) and tries < SHORTER_TRIES:
            tries += 1
            without = content[:start] + content[start + size :]
            trial = attempt(TARGETS[target], without)
            if trial.broken is not None and trial.broken.key == key:
                content = without
            else:
                start += size
        size //= 2
    return content


def generate(target: str, seed: int, kept: list[Any]) -> Iterator[Any]:
    """Yield inputs without end, from numbers that follow a seed; some go on from a kept input."""
    draw = random.Random(seed)
    generator = GENERATORS[target]
    while True:
        value = generator(Draws.from_seed(draw.getrandbits(64)))
        if kept and isinstance(value, dict) and "changes" in value and draw.random() < MIXED:
            base = draw.choice(kept)
            value = {**value, **base, "changes": [*base["changes"], *value["changes"]]}
        yield value


def run(target: str, inputs: int, seconds: float, seed: int, kept: list[Any], say: Callable[[str], None]) -> Totals:
    """Give inputs to a target until there were enough of them, or the time is over."""
    totals, begin, last = Totals(target), time.monotonic(), time.monotonic()
    for value in kept:
        totals.try_input(value)
    for value in generate(target, seed, kept):
        now = time.monotonic()
        totals.seconds = now - begin
        if totals.inputs >= inputs or totals.seconds > seconds:
            break
        if now - last > 20:
            last = now
            say(next(totals.lines()))
        totals.try_input(value)
    return totals


def keep(totals: Totals, folder: Path) -> None:
    """Write the shortest input for each distinct failure, named after where it was raised, and a summary of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    suffix = ".yaml" if totals.target == "matrix" else ".json"
    names = Counter[str]()
    for (where, what), (_, broken, value) in totals.broken.items():
        name = (
            f"{where}-{what}".replace("/", ".").replace(": ", "-").replace(".py", "").replace("<", "").replace(">", "")
        )
        names[name] += 1
        (folder / f"{name}{suffix}").write_bytes(to_bytes(value))
        (folder / f"{name}.txt").write_text(broken.traceback, errors="backslashreplace")
    summary: Mapping[str, Any] = {
        "target": totals.target,
        "inputs": totals.inputs,
        "rejected": totals.rejected,
        "seconds": totals.seconds,
        "slowest": totals.slowest[0],
        "peak_bytes": peak_bytes(),
        "places": [[where, what, count] for (where, what), (count, _, _) in totals.broken.items()],
    }
    with (folder / "summary.jsonl").open("a") as stream:
        stream.write(json.dumps(summary) + "\n")
