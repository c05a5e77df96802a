"""``runner tune``: the sources of noise on this machine, their effect on times, and the commands that change them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.machine.doctor import table
from runner.machine.doctor.noise import read_noise
from runner.machine.doctor.noise_findings import NoiseSource, judge

VERSION = 1
WIDTH = 100


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of ``runner tune``."""

    sources: Sequence[NoiseSource]

    @property
    def verdict(self) -> str:
        """How many sources are noisy, in a sentence."""
        noisy = [source.name for source in self.sources if source.state == "noisy"]
        if not noisy:
            return "nothing that can be seen here makes times noisy; nothing was changed"
        verb = "makes" if len(noisy) == 1 else "make"
        return f"{len(noisy)} of {len(self.sources)} {verb} times noisy: {', '.join(noisy)}; nothing was changed"

    def json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {"version": VERSION, "sources": [source.json() for source in self.sources]}

    def text(self, width: int = WIDTH, *, colour: bool = False) -> str:
        """Return a table of ``width`` columns, and the verdict."""
        rows = ((source.state, source.name, _description(source)) for source in self.sources)
        return table(rows, self.verdict, width, colour=colour)


def examine() -> Tuning:
    """Examine this machine for about a second; nothing is changed."""
    return Tuning(judge(read_noise()))


def _description(source: NoiseSource) -> str:
    command = f"\nto change it: `{source.command}`" if source.command else ""
    return f"{source.detail} ({source.why}){command}"
