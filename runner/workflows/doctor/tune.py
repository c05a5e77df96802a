"""What makes this machine noisy, why that matters for times, and the command that changes each; changes nothing."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.workflows.doctor import table
from runner.workflows.doctor.noise import look
from runner.workflows.doctor.noise_findings import Source, judge

VERSION = 1
WIDTH = 100


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was found."""

    sources: Sequence[Source]

    @property
    def verdict(self) -> str:
        """How much of it is noisy, in a sentence."""
        noisy = [one.what for one in self.sources if one.state == "noisy"]
        if not noisy:
            return "nothing that can be seen here makes times noisy; nothing was changed"
        word = "makes" if len(noisy) == 1 else "make"
        return f"{len(noisy)} of {len(self.sources)} {word} times noisy: {', '.join(noisy)}; nothing was changed"

    def json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {"version": VERSION, "sources": [asdict(one) for one in self.sources]}

    def text(self, width: int = WIDTH) -> str:
        """Return a table of ``width`` columns, and the verdict."""
        return table(((one.state, one.what, _words(one)) for one in self.sources), self.verdict, width)


def examine() -> Tuning:
    """Look at this machine for about a second; nothing is changed."""
    return Tuning(judge(look()))


def _words(one: Source) -> str:
    return f"{one.found} ({one.why})" + (f"\nto change it: `{one.command}`" if one.command else "")
