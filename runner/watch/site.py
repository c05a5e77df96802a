"""Writes a static site: what changed, the trends of the history, and the page of each stored run."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner.analysis.analyse import analyse_run
from runner.core.errors import Problem, RecordError, RunnerError, UsageError
from runner.core.files import read_bounded
from runner.core.metrics import BETTER, BY_NAME, TIME
from runner.core.row_ids import cell_and_metric
from runner.core.unfinished import sweep
from runner.history.entries import ChangeEntry, RunRow, series_device
from runner.history.location import sqlite_path
from runner.report.formatting import counted
from runner.report.last_nights import last_nights, newest_nights
from runner.report.night_page import FOLDER as NIGHTS
from runner.report.night_page import Links, night_address, night_page
from runner.report.page_templates import is_harmless, page_of_site
from runner.report.run_summary import NAME, RunSummary, read_summary
from runner.report.site import site
from runner.report.trend_rows import Week
from runner.report.trends import FOLDER as TRENDS
from runner.report.trends import (
    ConfirmedChange,
    ConfirmedChanges,
    Trend,
    changes_together,
    instant,
    trends_of,
)
from runner.session.last_run import last_run
from runner.session.remember import history_url
from runner.session.results import has_records, write_report
from runner.store.documents import MAX_BYTES, save, unreadable
from runner.store.run import CLOCK_ERROR, Run, runs
from runner.watch.imports import stored_entries
from runner.watch.series.rebuild import rebuild_missing

if TYPE_CHECKING:
    from runner.history.database import History

PAGE = "index.html"
COPIED = (PAGE, "report.md", "plan.json")
"""Files of a run that the site has, too; samples and logs stay in the run's folder."""


def write_site(
    reports: Path,
    folder: Path,
    margin: float,
    note: Callable[[str], None],
    history: str | None = None,
    *,
    now: datetime | None = None,
) -> Path:
    """Write the site; return the path of its index.

    A history that does not exist yet is made of the stored runs.

    Args:
        reports: the folder that holds the runs.
        folder: where the site goes; created if it is missing, and files of the same names are replaced.
        margin: the change that counts as none, for runs whose report has to be written first.
        note: prints a line for people.
        history: the URL of the history, as ``--history`` gives it.
        now: by default, what the clock shows; runs of the future are not taken for the newest.

    Raises:
        UsageError: there is neither a run nor a history, or the site cannot be written.
        HistoryError: the history cannot be read.
    """
    from runner.history.database import History

    url = history_url(reports, history)
    path = sqlite_path(url)
    stored = [run for run in runs(reports) if has_records(run)]
    if not stored and path and not path.exists():
        raise UsageError(Problem(f"{reports} holds no run with results", hint="start one with `runner run`"))
    summaries = []
    for published in (folder, folder / TRENDS, folder / NIGHTS):
        sweep(published)  # a killed process may have left an unfinished file in a folder that is published
    for run in stored:
        sweep(folder / "runs" / run.id)
        try:
            summaries.append(_summary(run, margin, url))
        except RunnerError as error:
            note(f"run {run.id} is left out: {error.problems[0].message}")
            continue
        _copy(run, folder / "runs" / run.id)
    rebuild_missing(reports, url, margin, note, stored_entries(reports, margin))
    with History.open(url, only_reads=True) as database:
        past = _past(database, now or datetime.now(UTC), note)
        newest = max((instant(row.at) for row in past), default=None)
        nights = newest_nights(past)
        pages = {each.run: f"runs/{each.run}/{PAGE}" for each in summaries}
        gone = [night for of_device in nights.values() for night in of_device if night.run not in pages]
        pages |= {night.run: night_address(night.run) for night in gone}
        shown = last_nights(nights, pages, partial(_changes_of, database))
        since = Week.before(newest, margin).since if newest else None
        confirmed = _confirmed(database, [row for row in past if since and instant(row.at) >= since])
        trends: set[str] = set()
        for name, content in site(_trends(database, past, confirmed), summaries, newest, margin, shown, pages):
            save(folder / name, content)
            trends.add(Path(name).name)
        for night in gone:
            points, changes = database.points(night.run), _changes_of(database, night.run)
            save(folder / pages[night.run], night_page(night, points, changes, margin, Links(pages, trends)))
    note(f"{counted(len(summaries), 'run')} in {folder}")
    return folder / "index.html"


def _past(history: "History", now: datetime, note: Callable[[str], None]) -> Sequence[RunRow]:
    """Return the runs of a history that do not lie in the future; all of them where all do."""
    stored = history.runs()
    past = [row for row in stored if instant(row.at) <= now + CLOCK_ERROR]
    if len(past) < len(stored):
        note(f"{counted(len(stored) - len(past), 'run')} of the history in the future, not taken for the newest")
    return past or stored


def _trends(history: "History", past: Sequence[RunRow], confirmed: ConfirmedChanges) -> Iterator[Trend]:
    """Yield the trends of the times of a history, with accepted levels and the regressions that stand.

    Of other metrics, those with such a regression, or with a change of the last week. The history is read twice: the
    change points of a night depend on all cells, and no more than one trend is held.
    """
    changes = changes_together(trends_of(history.all_series(), {}, {}))
    levels, regressions = history.levels(), _regressions(history, past)
    yield from trends_of(history.all_series(), levels, regressions, changes)
    for series in dict.fromkeys(series for series, _, _ in (*regressions, *confirmed)):
        cell, metric = cell_and_metric(series)
        if metric != TIME:
            points = history.all_series(cell, metric=metric)
            of_metric = trends_of(points, levels, regressions, metric=metric, confirmed=confirmed)
            yield from (trend for trend in of_metric if trend.regression or trend.confirmed)


def _regressions(history: "History", past: Sequence[RunRow]) -> dict[tuple[str, str, str], ChangeEntry]:
    """Return (id of a series, device, host) -> the confirmed change of the device's last night that still stands."""
    last = {(series_device(row.backend, row.device_name), row.host): row.run for row in past if row.is_night}
    return {
        (change.series, device, host): change
        for (device, host), run in last.items()
        for change in _changes_of(history, run)
        if change.confirmed_in
    }


def _confirmed(history: "History", past: Sequence[RunRow]) -> ConfirmedChanges:
    """Return the regressions of metrics other than time that a night confirmed, each where it was confirmed first.

    With them go the improvements that it measured alternately, which no night confirms. A quantile of the calls that
    changed as the time did is left out: it repeats the verdict.

    Args:
        history: with the changes of the nights.
        past: the runs to look at, oldest first.
    """
    confirmed: dict[tuple[str, str, str], list[ConfirmedChange]] = {}
    for night in (row for row in past if row.is_night):
        changes = _changes_of(history, night.run)
        of_times = {(change.cell, change.verdict) for change in changes if change.metric == TIME}
        for change in changes:
            is_repeated = BY_NAME[change.metric].quantile and (change.cell, change.verdict) in of_times
            is_confirmed = change.confirmed_in == night.run or change.verdict in BETTER
            if change.metric != TIME and is_confirmed and not is_repeated:
                key = (change.series, series_device(night.backend, night.device_name), night.host)
                confirmed.setdefault(key, []).append(ConfirmedChange(night, change))
    return confirmed


def _changes_of(history: "History", run: str) -> list[ChangeEntry]:
    return [change for _, change in history.changes(run)]


def _summary(run: Run, margin: float, url: str) -> RunSummary:
    """Return the summary of a run; its report is written first if it has none, or one of another program."""
    if not ((run.path / NAME).exists() and _has_harmless_page(run)):
        _write_page(run, margin, url)
    try:
        return read_summary(run.path)
    except RecordError:
        _write_page(run, margin, url)
        return read_summary(run.path)


def _write_page(run: Run, margin: float, url: str) -> None:
    analysis = analyse_run(run, margin)
    write_report(analysis, run, last=last_run(analysis, run, url))


def _has_harmless_page(run: Run) -> bool:
    """Return whether the page of a run can be published: somebody else may have put it into the folder."""
    try:
        return is_harmless(read_bounded(run.path / PAGE, MAX_BYTES).decode(errors="replace"))
    except OSError:
        return False


def _copy(run: Run, folder: Path) -> None:
    for name in COPIED:
        try:
            content = read_bounded(run.path / name, MAX_BYTES)
        except OSError as error:
            raise unreadable(run.path / name, error) from error
        if name == PAGE:
            content = page_of_site(content.decode(errors="replace")).encode()
        save(folder / name, content)
