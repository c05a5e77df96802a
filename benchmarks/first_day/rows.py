"""What a check yields: rows, as values and as JSON lines, and what became of the check itself."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["held", "did not hold", "not tested", "read"]
"""A promise held or did not; a check could not be made here; or a value was read, of which nothing was promised."""

End = Literal["finished", "failed", "time limit", "interrupted", "left out"]


@dataclass(frozen=True, slots=True)
class Row:
    """One result of a check.

    Attributes:
        name: what was looked at.
        state: see ``State``.
        detail: what was seen, or why it could not be tested, in a sentence.
        values: figures for the page's tables and for ``predictions``, as JSON values; times are in seconds.
    """

    name: str
    state: State
    detail: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """A check with its rows.

    Attributes:
        check: its name; ``title`` is what the page calls it.
        end: how it ended. ``time limit``: it was ended after ``limit`` seconds; its rows up to then are kept.
        seconds: how long it took.
        limit: the seconds that it was given.
    """

    check: str
    title: str
    end: End
    seconds: float
    limit: float
    rows: Sequence[Row] = ()

    def json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {**asdict(self), "rows": [asdict(row) for row in self.rows]}


class UntestableError(Exception):
    """A check needs something that this machine lacks; the message says what."""


def line(row: Row) -> str:
    """Return a row as a line of JSON."""
    return json.dumps(asdict(row)) + "\n"


def read(lines: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of complete lines; the last line of a process that was killed may be cut."""
    for text in lines:
        if text.endswith("\n"):
            yield Row(**json.loads(text))


def with_end(result: Result) -> Result:
    """Return a result with a row about its end, unless the check finished.

    >>> with_end(Result("nvml", "", "time limit", 30.0, 30.0)).rows[0].detail
    'ended after its time limit of 30 s'
    """
    if result.end == "finished":
        return result
    details: Mapping[End, tuple[State, str]] = {
        "failed": ("did not hold", f"ended with an error: see logs/{result.check}.txt"),
        "time limit": ("did not hold", f"ended after its time limit of {result.limit:.0f} s"),
        "interrupted": ("not tested", "interrupted"),
        "left out": ("not tested", "the time of the session was used up"),
    }
    state, detail = details[result.end]
    row = Row("the check itself", state, detail)
    return Result(result.check, result.title, result.end, result.seconds, result.limit, (*result.rows, row))


def counts(results: Iterable[Result]) -> dict[State, int]:
    """Return how many rows are in each state."""
    total: dict[State, int] = {"held": 0, "did not hold": 0, "not tested": 0, "read": 0}
    for result in results:
        for row in result.rows:
            total[row.state] += 1
    return total
