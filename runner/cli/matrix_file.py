"""The commands about environments and the matrix file: lock, schema."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from runner.cli import completion, console
from runner.cli.commands import CommandGroup
from runner.cli.params import MatrixFile, Output, Traceback
from runner.core.errors import Problem, UsageError
from runner.core.paths import DEFAULT_MATRIX

app = CommandGroup()


@app.command(short_help="Write the locks of environments, or pin the images; or check both")
def lock(
    environments: Annotated[
        list[str] | None,
        typer.Argument(
            help="environments of the matrix, or releases such as torch==2.9.1; with --check all by default",
            autocompletion=completion.environments,
        ),
    ] = None,
    matrix: MatrixFile = DEFAULT_MATRIX,
    find_links: Annotated[str | None, typer.Option("--find-links", help="a folder of wheels to look in first")] = None,
    images: Annotated[bool, typer.Option("--images", help="pin all images to their registries' digests")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="only check that the locks fit the matrix; with --images the pins, too")
    ] = False,
    traceback: Traceback = False,
) -> int:
    """Resolve what environments require and write their locks, with a hash for every file; or pin the images."""
    if check:
        _check(environments or [], matrix, images=images)
        return 0
    if not environments and not images:
        raise UsageError(Problem("there is nothing to lock", hint="name environments, or pin all images with --images"))
    if environments:
        _lock(environments, matrix, find_links)
    if images:
        from runner.releases.image_pins import renew

        for line in renew(matrix):
            console.note(line)
    return 0


def _lock(environments: Sequence[str], matrix: Path, find_links: str | None) -> None:
    """Write the locks of environments of the matrix file, and renew those that are kept for other releases."""
    from runner.releases.excluded import undeclared
    from runner.releases.lock import lock_environments
    from runner.session.named_releases import locked_again

    named, others = undeclared(matrix, environments)
    if named and find_links:
        hint = "name the releases in a command of their own"
        raise UsageError(Problem("--find-links is for environments of the matrix", hint=hint))
    for note in locked_again(matrix, named) if named else ():
        console.note(note)
    for path, changed in lock_environments(matrix, others, find_links) if others else ():
        console.note(f"{path}: {'written' if changed else 'unchanged'}")


def _check(environments: Sequence[str], matrix: Path, *, images: bool) -> None:
    """Check the locks and the pins, and say what was checked."""
    from runner.releases.lock_check import check_locks, check_pins

    locks = check_locks(matrix, environments)
    unpinned = check_pins(matrix, complete=images)
    console.note(f"{locks} locks fit {matrix}")
    if unpinned:
        console.note(f"{len(unpinned)} images have no pin: `runner lock --images` pins them")


@app.command(short_help="Print the JSON Schema of the matrix file")
def schema(
    check: Annotated[Path | None, typer.Option("--check", help="check this matrix file instead of printing")] = None,
    output: Output = None,
    traceback: Traceback = False,
) -> int:
    """Print the JSON Schema of the matrix file, for editors."""
    from runner.matrix import load
    from runner.matrix import schema as matrix_schema

    if check:
        load(check)
    else:
        console.emit(console.json_text(matrix_schema()), output, is_document=True)
    return 0
