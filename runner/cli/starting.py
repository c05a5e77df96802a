"""What a newcomer starts from: a model file that runs as it is."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from runner.cli import console
from runner.cli.commands import CommandGroup
from runner.cli.params import Traceback
from runner.core.errors import Problem, UsageError
from runner.core.paths import packaged_folder

app = CommandGroup()


@app.command(short_help="Write a model file that runs as it is, to be changed to your network")
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the model file, such as my_network.py")],
    framework: Annotated[
        Literal["torch", "tensorflow", "jax", "numpy"], typer.Option("--framework", help="what it computes with")
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
    console.note(f"{file}: written; measure it with `runner run {framework}==A {framework}==B --model {file}`")
    return 0
