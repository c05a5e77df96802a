"""What a night does about alerts: which cells left an open alert and why, which joined it, which alerts it opens."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from runner.core.metrics import BY_NAME, TIME, margin_of
from runner.core.model.cells import environment_of
from runner.core.row_ids import cell_and_metric, cell_of
from runner.nights.alert_entry import Action, AlertEntry, alert_key
from runner.nights.looks import is_over
from runner.nights.night import Night, NightChange, NightRatio
from runner.report import formatting, wording
from runner.watch.accepted import accepted_of
from runner.watch.alerts.state import Alert, AlertState, Nights, of_device, regressions, reported

STALE_AFTER = timedelta(days=30)
"""A cell that no night measured for so long leaves its alert: it is no longer in the matrix, or not selected."""
RECOVERED = "recovered: {}, measured alternately"
SAME = "its {} the same as in its last good run"
AS_IT_WAS = "the environment is again as in run {}"
STALE = "no night has measured it for 30 days"
ACCEPTED = "run {} was accepted: {}"
WORSE_START = "it became slower again"
WORSE = WORSE_START + ": see {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tonight:
    """What alerts need to know of tonight.

    Attributes:
        night: what it found.
        compared: ids of the rows that were compared with their last good runs.
        digests: environment -> what pins its content tonight.
        accepted: id of a cell -> the run that a person accepted, and who did so and why.
        digest_in: (run, environment) -> what pinned its content in that run; empty if unknown.
        margin: the relative change that counts as none.
    """

    night: Night
    compared: Collection[str]
    digests: Mapping[str, str]
    accepted: Mapping[str, tuple[str, str]]
    digest_in: Callable[[str, str], str]
    margin: float


def actions(state: AlertState, nights: Nights, tonight: Tonight) -> list[AlertEntry]:
    """Return what tonight does about alerts; nothing of it is sent yet.

    Args:
        state: after the earlier nights.
        nights: the earlier nights.
        tonight: the night.
    """
    slower, run = regressions(tonight.night), tonight.night.run
    entries: list[AlertEntry] = []
    standing: set[str] = set()
    by_change: dict[tuple[str, str], Alert] = {}
    for alert in of_device(state.alerts.values(), tonight.night.series_device):
        changes = {cell: reported(nights, night, cell) for cell, night in alert.cells.items()}
        reasons = {cell: _why_left(cell, changes[cell], nights, tonight, slower) for cell in alert.cells}
        left = {cell: why for cell, why in reasons.items() if why}
        if left:
            entries.append(_leaving(alert, left, state))
        stay = alert.cells.keys() - left
        standing |= stay
        by_change.update((change, alert) for cell in stay if (change := _change_of(changes[cell])))
    joining: dict[str, list[str]] = {}
    opening: dict[str, list[str]] = {}
    reported_before = {cell for entry in entries for cell in entry.cells}
    for cell in slower.keys() - standing:
        change = None if cell in reported_before else _change_of(slower[cell])
        joined = by_change.get(change) if change else None
        if joined and not _is_later(cell, joined, nights):
            joining.setdefault(joined.key, []).append(cell)
        else:
            opening.setdefault(environment_of(cell), []).append(cell)
    entries += [_entry(key, "joined", cells) for key, cells in sorted(joining.items())]
    entries += [_entry(alert_key(name, run), "opened", cells) for name, cells in sorted(opening.items())]
    return entries


def _change_of(change: NightChange | None) -> tuple[str, str] | None:
    """Return what cells of the same change have in common, environment and last good run; None for a creep.

    A cell that becomes slower since the same good run as cells of an open alert was slower then already, and had to
    wait for its confirmation. A cell that creeps joins no alert, it opens another.
    """
    if change is None or change.against != "baseline":
        return None
    return environment_of(change.cell), change.before


def _is_later(row: str, alert: Alert, nights: Nights) -> bool:
    """Return whether a row of another metric became worse after an alert opened: its nights did not suspect that row.

    A cell keeps its last good run while another of its metrics is worse, so the same run alone does not tell.
    """
    if cell_and_metric(row)[1] in {cell_and_metric(each)[1] for each in alert.cells}:
        return False
    of_alert = [nights[run] for run in set(alert.cells.values()) if run in nights]
    return any(night.has_measured(row) and not any(each.row == row for each in night.changes) for night in of_alert)


def _entry(key: str, action: Action, cells: Collection[str]) -> AlertEntry:
    """Return an entry for cells of an environment; those that join an alert are not sent."""
    ordered = tuple(sorted(cells))
    environment = environment_of(ordered[0])
    return AlertEntry(key=key, action=action, environment=environment, cells=ordered, delivered=action == "joined")


def _leaving(alert: Alert, left: Mapping[str, str], state: AlertState) -> AlertEntry:
    """Return the entry for cells that left an alert; the last ones close it.

    Nobody gets the end of an alert whose start nobody got, or whose cells are all in a newer alert.
    """
    reasons = Counter(left.values())
    because = "; ".join(
        why if len(reasons) == 1 else f"{formatting.counted(count, 'test')}: {why}"
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
    cell: str, change: NightChange | None, nights: Nights, tonight: Tonight, slower: Mapping[str, NightChange]
) -> str:
    """Return why a cell is no longer part of its alert; empty while it is."""
    environment, night = environment_of(cell), tonight.night
    if cell in slower:
        is_worse = _is_worse(slower[cell], change)
        return WORSE.format(alert_key(environment, night.run)) if is_worse else ""
    before = change.before if change else ""
    run, reason = max(accepted_of(cell_of(cell), tonight.accepted), default=("", ""))
    if run > before:  # ids of runs start with their times
        return ACCEPTED.format(run, reason)
    if not night.has_measured(cell):
        return STALE if _is_stale(cell, nights, night) else ""
    again = _measured_again(cell, change, night)
    metric = cell_and_metric(cell)[1]
    if again and is_over(again.verdict, again.ratio_high, margin_of(metric, tonight.margin)):
        return RECOVERED.format(wording.change_with_range(BY_NAME[metric], again))
    digest = tonight.digests.get(environment, "")
    if digest and digest == tonight.digest_in(before, environment):
        return AS_IT_WAS.format(before)
    is_candidate = any(each.row == cell for each in night.changes)
    same = SAME.format("times are" if metric == TIME else f"{BY_NAME[metric].title} is")
    return same if _is_since_baseline(change) and cell in tonight.compared and not is_candidate else ""


def _is_since_baseline(change: NightChange | None) -> bool:
    """Return True for a change since the last good run; a night that is gone reported no creep."""
    return change is None or change.against == "baseline"


def _measured_again(cell: str, change: NightChange | None, night: Night) -> NightRatio | None:
    """Return what a night measured in turns against the run that a cell was slower than; None if it did not.

    To be the same as the last good run says nothing of a creep since the anchor.
    """
    for each in night.changes:
        of_baseline = each.against == "baseline" and _is_since_baseline(change)
        if each.row == cell and each.again and (of_baseline or (change and each.before == change.before)):
            return each.again
    return None


def _is_worse(change: NightChange, before: NightChange | None) -> bool:
    """Return True where a cell became slower again after its alert was sent, so that a second message is due.

    Either its interval in turns, against the same run, lies entirely above the interval of the alert. Or the alert
    reported a creep, and the cell is now slower than its last good run, too.
    """
    if before is None:
        return False
    if change.against == "baseline" and before.against != "baseline":
        return True
    low = change.again.ratio_low if change.again else None
    high = before.again.ratio_high if before.again else None
    return change.before == before.before and bool(low and high and low > high)


def _is_stale(cell: str, nights: Nights, tonight: Night) -> bool:
    """Return True where the last night that measured a cell is too long ago."""
    of_device = (night for night in nights.values() if night.series_device == tonight.series_device)
    measured = [night.at for night in of_device if night.has_measured(cell)]
    try:
        return datetime.fromisoformat(tonight.at) - datetime.fromisoformat(measured[-1]) > STALE_AFTER
    except (IndexError, ValueError, TypeError):
        return not measured
