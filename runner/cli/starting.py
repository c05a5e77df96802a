"""What a newcomer starts from: a model file that runs as it is, and a small matrix file."""

import os
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from runner.cli import console
from runner.cli.commands import CommandGroup
from runner.cli.params import Device, Traceback
from runner.core.errors import Problem, UsageError
from runner.core.paths import DEFAULT_MATRIX, cache_folder, packaged_folder

app = CommandGroup()

FIRST_RELEASES = {
    "torch": ("2.8.0", "2.9.1"),
    "tensorflow": ("2.18.1", "2.20.0"),
    "keras": ("3.10.0", "3.12.0"),
    "jax": ("0.5.3", "0.6.2"),
    "numpy": ("1.26.4", "2.3.0"),
}
"""Framework -> two releases with a wheel for one Python, which the next step after ``runner new`` compares."""


@app.command(short_help="Write a model file that runs as it is, to be changed to your network")
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the model file, such as my_network.py")],
    framework: Annotated[
        Literal["torch", "tensorflow", "keras", "jax", "numpy"],
        typer.Option("--framework", help="what it computes with"),
    ] = "torch",
    traceback: Traceback = False,
) -> int:
    """Write a model file that runs as it is; a file that exists is not replaced."""
    from runner.core.files import write_whole
    from runner.matrix.model_file import network_name

    if file.suffix != ".py":
        raise UsageError(Problem(f"{file} does not end in .py", hint="name it as a Python file, such as my_network.py"))
    network_name(file)
    if os.path.lexists(file):  # also a link that leads nowhere: somebody else may have made it
        hint = "name another file, or measure this one: runner run RELEASE RELEASE --model FILE"
        raise UsageError(Problem(f"{file} exists already", hint=hint))
    write_whole(file, (packaged_folder() / "examples" / "starters" / f"{framework}.py").read_bytes())
    releases = [f"{framework}=={version}" for version in FIRST_RELEASES[framework]]
    command = shlex.join(["runner", "run", *releases, "--model", str(file)])
    console.note(f"{file}: written; `{command}` says which of these releases is faster, and takes any others")
    return 0


@app.command(short_help="Write a small matrix file for some releases and a network")
def init(
    releases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RELEASES",
            help="such as torch==2.9.1, or an id of the program's matrix; by default the two newest for the network",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="FILE", help="a model file below this folder")] = None,
    device: Device = None,
    traceback: Traceback = False,
) -> int:
    """Write matrix.yaml and the locks of its releases into this folder; what exists is not replaced."""
    from runner.core.files import write_all
    from runner.gpu.selection import choose_devices
    from runner.releases.release_locks import FOLDER
    from runner.session.context import cache_in_use
    from runner.session.starter_matrix import LOCKS, starter_matrix

    folder = Path.cwd()
    _refuse_existing(folder / DEFAULT_MATRIX)
    kind, _ = choose_devices(device, console.note)
    with cache_in_use(console.note):
        made = starter_matrix(releases or (), model, folder, kind, cache_folder(os.environ) / FOLDER)
    files = {folder / name: content for name, content in made.locks.items()}
    _refuse_existing(*files)
    for note in made.notes:
        console.note(note)
    (folder / LOCKS).mkdir(exist_ok=True)
    write_all([*files.items(), (folder / DEFAULT_MATRIX, made.text.encode())])
    console.note(f"{DEFAULT_MATRIX} and {LOCKS}/: written; `runner plan` shows what `runner run` measures")
    return 0


def _refuse_existing(*paths: Path) -> None:
    """Raise UsageError where one of some files to be written exists."""
    for path in paths:
        if path.exists() or path.is_symlink():
            hint = "remove it, or run this command in another folder"
            raise UsageError(Problem(f"{path.relative_to(Path.cwd())} exists already", hint=hint))
