"""The command about regressions that nights confirmed and that still stand: alerts."""

import os
from pathlib import Path
from typing import Annotated

import typer

from runner.cli import console
from runner.cli.commands import CommandGroup
from runner.cli.params import Output, Reports, TableOrJson, Traceback
from runner.core.errors import Problem, UsageError

app = CommandGroup()


@app.command(short_help="Show the open alerts, or test who gets them")
def alerts(
    reports: Reports = Path("reports"),
    test: Annotated[bool, typer.Option("--test", help="send a test message to everybody who gets alerts")] = False,
    issue: Annotated[
        str | None, typer.Option("--issue", metavar="KEY", help="print the body of an issue about this alert")
    ] = None,
    format: TableOrJson = "table",
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Show the regressions that nights confirmed and that still stand; MATRIX_RUNNER_ALERTS names who gets alerts."""
    from runner.watch.alerts import overview

    if test and issue is not None:
        raise UsageError(Problem("--test and --issue are two commands", hint="leave out one of them"))
    if issue is not None:
        console.emit(overview.issue_body(reports, issue), output, is_document=True)
        return 0
    if test:
        outcome = overview.send_test(os.environ)
        console.show(outcome, format, output)
        return outcome.exit_code
    console.show(overview.overview(reports), format, output)
    return 0
