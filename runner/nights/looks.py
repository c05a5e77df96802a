"""What earlier nights left: ``reports/nights/*.json``, read as the looks at each cell against each earlier run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.errors import RecordError
from runner.store.documents import read_shaped
from runner.store.run import NIGHTS, Run
from runner.store.shapes import CONFIG, Count, Number

FOLDER = NIGHTS
MAX_BYTES = 64 << 20
"""The largest stored night that is read."""
OPEN_STATES = frozenset({"no-time", "interrupted", "environment-gone"})
"""States of changes without a verdict in turns. Later nights compare with the same baseline."""
EARLY_STAGES = frozenset({"resolve", "measure"})
"""Stages of a night before it compares: one that ended there says nothing about any cell."""
WITHOUT_CANDIDATES = EARLY_STAGES | {"compare"}
"""Stages of a night before its candidates are stored: if it ended there, all cells of its run are open."""
EARLY_ENDS = frozenset({"killed", "interrupted", "failed"})
WAITING_STATES = frozenset({"no-time", "interrupted"})
"""States of changes that the next night confirms before others."""


@with_config(CONFIG)
class StoredVerdict(TypedDict, total=False):
    """A verdict in turns, as a stored night has it."""

    verdict: str
    ratio_low: Number | None
    rounds: Count
    more_rounds: Count


@with_config(CONFIG)
class StoredChange(TypedDict):
    """A change, as a stored night has it."""

    cell: str
    before: str
    state: str
    again: StoredVerdict | None
    against: NotRequired[str]
    confirmed_in: NotRequired[str]
    digest: NotRequired[str]


@with_config(CONFIG)
class StoredNight(TypedDict):
    """What is read of a stored night."""

    changes: list[StoredChange]
    seconds: NotRequired[dict[str, Number]]
    stage: NotRequired[str]
    state: NotRequired[str]


NIGHT = TypeAdapter[Any](StoredNight)


class Look(NamedTuple):
    """What a night said of a cell against an earlier run.

    Attributes:
        night: the id of the night's first run.
        state: how the change ended, one of ``result.State``.
        verdict: in turns; empty if it was not measured in turns, or if a side failed.
        leans_slower: whether the 95 % interval of the ratio in turns lies above 1.
        rounds: rounds in turns; 0 without.
        more_rounds: forecast of further rounds for an open verdict in turns, else 0.
        confirmed_in: the night that confirmed a regression that still stands; else empty.
        digest: what pinned the environment's content in that night; empty if it was not recorded.
    """

    night: str
    state: str
    verdict: str = ""
    leans_slower: bool = False
    rounds: int = 0
    more_rounds: int = 0
    confirmed_in: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """The stored nights.

    Attributes:
        nights: the ids of their first runs, oldest first.
        looks: (id of a cell, run that it was compared with) -> its looks, oldest first.
        open_cells: run -> ids of the cells that its night neither found ``same`` nor ``faster`` than their baselines;
            all cells of the run if its night ended before it compared them.
        seconds: id of a cell -> (run, median seconds) of the nights that measured it, oldest first.
    """

    nights: tuple[str, ...]
    looks: Mapping[tuple[str, str], tuple[Look, ...]]
    open_cells: Mapping[str, frozenset[str]]
    seconds: Mapping[str, tuple[tuple[str, float], ...]]

    def of(self, cell: str, before: str) -> tuple[Look, ...]:
        """Return the looks at a cell against a run, oldest first."""
        return self.looks.get((cell, before), ())


def nights_waiting(looks: Sequence[Look]) -> int:
    """Return for how many nights in a row a change had no time: the number of such looks at the end."""
    waiting = 0
    for look in reversed(looks):
        if look.state not in WAITING_STATES:
            break
        waiting += 1
    return waiting


def is_confirmed(looks: Sequence[Look]) -> bool:
    """Return True while a confirmed regression stands."""
    return bool(looks and looks[-1].confirmed_in)


def is_slower_once(looks: Sequence[Look]) -> bool:
    """Return True where the newest verdict in turns is ``slower`` and needs another night to confirm it."""
    last = last_in_turns(looks)
    return bool(last and last.verdict == "slower" and not is_confirmed(looks))


def last_in_turns(looks: Sequence[Look]) -> Look | None:
    """Return the newest look with a verdict in turns; None without."""
    return next((look for look in reversed(looks) if look.verdict), None)


def read_history(reports: Path) -> History:
    """Read the stored nights; a file that this program did not write is ignored."""
    stored = dict(sorted(_stored_nights(reports)))
    nights = {run: night for run, night in stored.items() if night.get("stage") not in EARLY_STAGES}
    looks: dict[tuple[str, str], list[Look]] = {}
    seconds: dict[str, list[tuple[str, float]]] = {}
    for run, night in nights.items():
        for change in night["changes"]:
            looks.setdefault((change["cell"], change["before"]), []).append(_look(run, change))
        for cell, median in night.get("seconds", {}).items():
            seconds.setdefault(cell, []).append((run, median))
    return History(
        nights=tuple(nights),
        looks={key: tuple(of_key) for key, of_key in looks.items()},
        open_cells={
            **{
                run: frozenset(change["cell"] for change in night["changes"] if _is_open(change))
                for run, night in nights.items()
            },
            **{run: _cells_of(reports, run) for run, night in stored.items() if _ended_without_candidates(night)},
        },
        seconds={cell: tuple(of_cell) for cell, of_cell in seconds.items()},
    )


def _stored_nights(reports: Path) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return (run, night) of each stored night, in no order."""
    stored = []
    for path in (reports / FOLDER).glob("[!.]*.json"):
        try:
            night = read_shaped(path, NIGHT, MAX_BYTES)
        except RecordError:
            continue
        stored.append((path.stem, night))
    return stored


def _ended_without_candidates(night: Mapping[str, Any]) -> bool:
    """Return True for a night that ended too early: before its candidates were stored."""
    early = night.get("stage") in WITHOUT_CANDIDATES and night.get("state") in EARLY_ENDS
    return early and not night["changes"]


def _cells_of(reports: Path, run: str) -> frozenset[str]:
    """Return the ids of the cells of which a run has records; none if there is no such run."""
    try:
        return frozenset(entry.cell for entry in Run(reports / "runs" / run).journal().entries)
    except (RecordError, OSError):
        return frozenset()


def _look(run: str, change: Mapping[str, Any]) -> Look:
    """Return a stored change as a look; version 1 had no ``confirmed_in`` for what a night confirmed itself."""
    again = change["again"] or {}
    verdict = again.get("verdict", "")
    confirmed_in = change.get("confirmed_in", "")
    if verdict == "slower" and "against" not in change:
        confirmed_in = run
    return Look(
        night=run,
        state=change["state"],
        verdict=verdict if verdict in ("slower", "faster", "same", "inconclusive") else "",
        leans_slower=(again.get("ratio_low") or 0.0) > 1,
        rounds=again.get("rounds", 0),
        more_rounds=again.get("more_rounds", 0),
        confirmed_in=confirmed_in,
        digest=change.get("digest", ""),
    )


def _is_open(change: Mapping[str, Any]) -> bool:
    """Return True where a change keeps its run from becoming a baseline; a change against an anchor does not."""
    if change.get("against", "baseline") != "baseline":
        return False
    again = change["again"]
    return change["state"] in OPEN_STATES if again is None else again.get("verdict") not in ("same", "faster")
