"""The commands about the history of stored runs: show, rebuild, prune, accept."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from runner.cli import console
from runner.cli.commands import CommandGroup, CommandsBelow
from runner.cli.params import HistoryUrl, MatrixFile, Output, Reports, Traceback
from runner.core.paths import DEFAULT_MATRIX


class GroupWithDefault(CommandsBelow):
    """A group that shows the history where its first word names no command: `runner history 'torch-2.x/*'`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  its class differs between versions
        """Put the default command before other words."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = CommandGroup(
    cls=GroupWithDefault,
    short_help="Show how tests changed over all stored runs",
    help="The history of all stored runs. `runner history CELL` is short for `runner history show CELL`.",
)


@app.command(short_help="Show the trend of a test, or a list of tests")
def show(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="[CELL]", help="the id of a test, an environment, a release such as torch==2.9.1, or a glob"
        ),
    ] = "*",
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    history: HistoryUrl = None,
    device: Annotated[str | None, typer.Option("--device", help="only this device, as the history names it")] = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="memory, import, size, ... instead of time; or all")
    ] = None,
    last: Annotated[int, typer.Option("--last", min=1, help="how many runs the table of a test lists")] = 30,
    format: Annotated[
        Literal["table", "json", "csv"], typer.Option("--format", help="how to print it; json and csv have every run")
    ] = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show the trend of a cell over all runs, or the first and last value of each cell that matches."""
    from runner.core.metrics import TIME, parse_metrics
    from runner.history.database import History
    from runner.session.remember import history_url
    from runner.watch.series.show import existing, shown, with_release_id

    metrics = parse_metrics(metric or (TIME,))
    cells = with_release_id(pattern, matrix)
    release = pattern if cells != pattern else ""
    with History.open(existing(history_url(reports, history), release), only_reads=True) as opened:
        result = shown(opened, cells, device=device or "", last=last, metrics=metrics, typed=release)
    if format == "csv":
        console.emit(result.csv(), output, is_document=True)
    else:
        console.show(result, format, output)
    return 0


@app.command(short_help="Add every stored run to the history again")
def rebuild(
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    history: HistoryUrl = None,
    traceback: Traceback = False,
) -> int:
    """Add every run of the reports folder to the history; damaged ones are left out, and other runs stay."""
    from runner.history.database import History
    from runner.session.remember import history_url
    from runner.session.results import matrix_margin
    from runner.watch.imports import stored_entries
    from runner.watch.series.rebuild import rebuild as rebuild_history

    url = history_url(reports, history)
    margin = matrix_margin(matrix)
    with History.open(url) as opened:
        result = rebuild_history(reports, opened, margin, console.note, stored_entries(reports, margin))
    console.emit(result.text(), None)
    return 1 if result.damaged else 0


@app.command(short_help="Remove old runs from the history")
def prune(
    reports: Reports = Path("reports"),
    history: HistoryUrl = None,
    days: Annotated[int, typer.Option("--days", min=0, help="days of which every run stays")] = 90,
    folders: Annotated[bool, typer.Option("--folders", help="remove the folders of these runs, too")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list what would be removed")] = False,
    traceback: Traceback = False,
) -> int:
    """Remove runs older than --days, but the newest of each week, imports, anchors, accepted and confirmed runs."""
    from datetime import UTC, datetime

    from runner.core.errors import RunnerError
    from runner.history.database import History
    from runner.history.retention import Policy
    from runner.session.remember import history_url
    from runner.watch.series import prune as pruning
    from runner.watch.series.show import existing

    with History.open(existing(history_url(reports, history)), only_reads=dry_run) as opened:
        policy = Policy(now=pruning.counted_from(opened, datetime.now(UTC)), days=days, dry_run=True)
        pruned = pruning.prune(reports, opened, policy)
        # The folders first: without its row, nothing would name a folder that stays.
        removed = pruning.remove_folders(reports, pruned.removed if folders and not dry_run else ())
        if not dry_run:
            pruned = pruning.prune(reports, opened, replace(policy, keep=policy.keep | removed.kept, dry_run=False))
        name = opened.name
    console.emit(pruning.pruned_text(pruned, name, len(removed.folders), dry_run=dry_run), None)
    if removed.problems:
        raise RunnerError(*removed.problems)
    return 0


@app.command(short_help="Accept the times of tests as the new baseline")
def accept(
    cells: Annotated[
        list[str],
        typer.Argument(metavar="CELLS...", help="ids of environments, or globs over test ids: 'torch-2.x/*/train/*'"),
    ],
    reason: Annotated[str, typer.Option("--reason", help="why these times are good from now on; it is kept")],
    run: Annotated[str | None, typer.Option("--run", help="a run's id; the newest by default")] = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    reports: Reports = Path("reports"),
    history: HistoryUrl = None,
    traceback: Traceback = False,
) -> int:
    """Accept the times of cells in a run: later nights compare with it, and report no regression against older runs."""
    from datetime import UTC, datetime

    from runner.core.user import login_name
    from runner.session.remember import history_url
    from runner.watch.series.accept import AcceptanceRequest, add_levels
    from runner.watch.series.accept import accept as accept_cells
    from runner.watch.series.show import with_release_id

    url = history_url(reports, history)
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    patterns = tuple(with_release_id(each, matrix) for each in cells)
    request = AcceptanceRequest(patterns=patterns, run=run, reason=reason, person=login_name(), at=at)
    acceptance = accept_cells(reports, request)
    add_levels(acceptance, url, console.note)
    console.emit("\n".join(acceptance.cells), None)
    console.note(f"{len(acceptance.cells)} tests: run {acceptance.run} is the baseline and the anchor of later nights")
    return 0
