"""The command that measures what takes a change between two releases back."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import completion, console
from runner.cli.commands import CommandGroup
from runner.cli.params import Output, TableOrJson
from runner.cli.search_params import DryRun, Keep, SearchedMetric, SearchedTest, searching

if TYPE_CHECKING:
    from runner.session.options import Options

app = CommandGroup()


@app.command(short_help="Measure which switches and packages take a change back")
@searching
def explain(
    options: "Options",
    good: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="the release without the change: an environment, or a release such as torch==2.1.2",
            autocompletion=completion.environments,
        ),
    ] = "",
    bad: Annotated[
        str,
        typer.Argument(metavar="B", help="the release with it", autocompletion=completion.environments),
    ] = "",
    cell: SearchedTest = "",
    metric: SearchedMetric = "time",
    keep: Keep = False,
    dry_run: DryRun = False,
    format: TableOrJson = "table",
    output: Output = None,
) -> int:
    """Measure what takes back a change of a CELL or a MODEL from A to B: switches, and packages of A under B.

    The same command continues an interrupted explanation.
    """
    from runner.search import explain as workflow
    from runner.session.context import cache_in_use

    options = replace(options, selectors=[cell])
    typed = workflow.TypedReleases(good=good, bad=bad, metric=metric, keep=keep)
    if dry_run:
        console.show(workflow.dry_run(options, typed), format, output)
        return 0
    with console.progress() as progress, cache_in_use(progress.note):
        result = workflow.explain(options, typed, progress)
    console.show(result, format, output)
    return result.exit_code
