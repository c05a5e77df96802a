"""What a night does about alerts: which cells left an open alert and why, which joined it, which alerts it opens."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from runner.nights.alert_entry import Action, AlertEntry
from runner.report import formatting
from runner.watch.alerts.state import Alert, State, key_of, of_device
from runner.watch.alerts.stored import device_of, in_turns, regressions

STALE_AFTER = timedelta(days=30)
"""A cell that no night measured for so long leaves its alert: it is no longer in the matrix, or not selected."""
RECOVERED = "recovered: {} in turns"
SAME = "its times are the same as in its last good run"
AS_IT_WAS = "the environment is again as in run {}"
STALE = "no night has measured it for 30 days"
ACCEPTED = "run {} was accepted: {}"
WORSE_START = "it became slower again"
WORSE = WORSE_START + ": see {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tonight:
    """What alerts need to know of tonight beyond the stored night.

    Attributes:
        night: as its file has it.
        compared: ids of the cells that were compared with their last good runs.
        digests: environment -> what pins its content tonight.
        accepted: id of a cell -> the run that a person accepted, and who did so and why.
        digest_in: (run, environment) -> what pinned its content in that run; empty if unknown.
    """

    night: Mapping[str, Any]
    compared: Collection[str]
    digests: Mapping[str, str]
    accepted: Mapping[str, tuple[str, str]]
    digest_in: Callable[[str, str], str]


def actions(state: State, nights: Mapping[str, Mapping[str, Any]], tonight: Tonight) -> list[AlertEntry]:
    """Return what tonight does about alerts; nothing of it is sent yet.

    Args:
        state: after the earlier nights.
        nights: the earlier nights, oldest first.
        tonight: the night.
    """
    slower, run = regressions(tonight.night), tonight.night["run"]
    entries: list[AlertEntry] = []
    standing: dict[str, Alert] = {}
    by_change: dict[tuple[str, str], Alert] = {}
    for alert in of_device(state.alerts.values(), device_of(tonight.night)):
        reported = {cell: in_turns(nights, night, cell) for cell, night in alert.cells.items()}
        reasons = {cell: _why_left(cell, reported[cell], nights, tonight, slower) for cell in alert.cells}
        left = {cell: why for cell, why in reasons.items() if why}
        if left:
            entries.append(_leaving(alert, left, state))
        stay = {cell: alert for cell in alert.cells if cell not in left}
        standing.update(stay)
        by_change.update((change, alert) for cell in stay if (change := _change_of(reported[cell])))
    joining: dict[str, list[str]] = {}
    opening: dict[str, list[str]] = {}
    reported_before = {cell for entry in entries for cell in entry.cells}
    for cell in slower.keys() - standing.keys():
        change = None if cell in reported_before else _change_of(slower[cell])
        joined = by_change.get(change) if change else None
        if joined:
            joining.setdefault(joined.key, []).append(cell)
        else:
            opening.setdefault(cell.partition("/")[0], []).append(cell)
    entries += [_entry(key, "joined", cells) for key, cells in sorted(joining.items())]
    entries += [_entry(key_of(name, run), "opened", cells) for name, cells in sorted(opening.items())]
    return entries


def _change_of(change: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what cells of the same change have in common, environment and last good run; None for a creep.

    A cell that becomes slower since the same good run as cells of an open alert was slower then already, and had to
    wait for its confirmation.
    """
    if change.get("against", "baseline") != "baseline" or "cell" not in change:
        return None
    return change["cell"].partition("/")[0], change["before"]


def _entry(key: str, action: Action, cells: Collection[str]) -> AlertEntry:
    """Return an entry for cells of an environment; those that join an alert are not sent."""
    ordered = tuple(sorted(cells))
    environment = ordered[0].partition("/")[0]
    return AlertEntry(key=key, action=action, environment=environment, cells=ordered, delivered=action == "joined")


def _leaving(alert: Alert, left: Mapping[str, str], state: State) -> AlertEntry:
    """Return the entry for cells that left an alert; the last ones close it.

    Nobody gets the end of an alert whose start nobody got, or whose cells are all in a newer alert.
    """
    reasons = Counter(left.values())
    because = "; ".join(
        why if len(reasons) == 1 else f"{formatting.counted(count, 'cell')}: {why}"
        for why, count in reasons.most_common(5)
    )
    is_last = len(left) == len(alert.cells)
    is_news = is_last and state.has_readers(alert.key) and not all(why.startswith(WORSE_START) for why in reasons)
    return AlertEntry(
        key=alert.key,
        action="closed" if is_last else "left",
        environment=alert.environment,
        cells=tuple(left),
        because=because,
        delivered=not is_news,
    )


def _why_left(
    cell: str,
    reported: Mapping[str, Any],
    nights: Mapping[str, Mapping[str, Any]],
    tonight: Tonight,
    slower: Mapping[str, Mapping[str, Any]],
) -> str:
    """Return why a cell is no longer part of its alert; empty while it is."""
    environment = cell.partition("/")[0]
    if cell in slower:
        is_worse = _is_worse(slower[cell], reported)
        return WORSE.format(key_of(environment, tonight.night["run"])) if is_worse else ""
    before = reported.get("before", "")
    run, reason = tonight.accepted.get(cell, ("", ""))
    if run > before:  # ids of runs start with their times
        return ACCEPTED.format(run, reason)
    if cell not in tonight.night.get("seconds", {}):
        return STALE if _is_stale(cell, nights, tonight) else ""
    again = _measured_again(cell, reported, tonight.night)
    if again.get("verdict") in ("same", "faster", "inconclusive"):
        return RECOVERED.format(with_interval(again))
    digest = tonight.digests.get(environment, "")
    if digest and digest == tonight.digest_in(before, environment):
        return AS_IT_WAS.format(before)
    is_candidate = any(each["cell"] == cell for each in tonight.night["changes"])
    against_baseline = reported.get("against", "baseline") == "baseline"
    return SAME if against_baseline and cell in tonight.compared and not is_candidate else ""


def _measured_again(cell: str, reported: Mapping[str, Any], night: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what tonight measured in turns against the run that a cell was slower than; empty if it did not.

    To be the same as the last good run says nothing of a creep since the anchor.
    """
    for change in night["changes"]:
        of_baseline = change.get("against", "baseline") == reported.get("against", "baseline") == "baseline"
        if change["cell"] == cell and change["again"] and (of_baseline or change["before"] == reported.get("before")):
            again: Mapping[str, Any] = change["again"]
            return again
    return {}


def _is_worse(change: Mapping[str, Any], reported: Mapping[str, Any]) -> bool:
    """Return True where a cell became slower again after its alert was sent, so that a second message is due.

    Either its interval in turns, against the same run, lies entirely above the interval of the alert. Or the alert
    reported a creep, and the cell is now slower than its last good run, too.
    """
    against, before = change.get("against", "baseline"), reported.get("against", "baseline")
    if against == "baseline" and before != "baseline":
        return True
    low = (change["again"] or {}).get("ratio_low")
    high = (reported.get("again") or {}).get("ratio_high")
    return change["before"] == reported.get("before") and bool(low and high and low > high)


def _is_stale(cell: str, nights: Mapping[str, Mapping[str, Any]], tonight: Tonight) -> bool:
    """Return True where the last night that measured a cell is too long ago."""
    measured = [night["at"] for night in _of_device(nights, tonight) if cell in night.get("seconds", {})]
    try:
        return datetime.fromisoformat(tonight.night["at"]) - datetime.fromisoformat(measured[-1]) > STALE_AFTER
    except (IndexError, ValueError, TypeError):
        return not measured


def _of_device(nights: Mapping[str, Mapping[str, Any]], tonight: Tonight) -> Iterator[Mapping[str, Any]]:
    return (night for night in nights.values() if device_of(night) == device_of(tonight.night))


def with_interval(row: Mapping[str, Any]) -> str:
    """Return a ratio with its 95 % interval."""
    interval = formatting.interval(row.get("ratio_low"), row.get("ratio_high"))
    return f"{formatting.ratio(row.get('ratio'))} ({interval})"
