"""Options and arguments that several commands share, and how one dataclass becomes all options of a command."""

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Literal

import typer

from runner.cli import completion
from runner.core.paths import find_matrix
from runner.session.options import MATRIX_HELP, Options

MatrixFile = Annotated[Path, typer.Option("--matrix", help=MATRIX_HELP, callback=find_matrix)]
Reports = Annotated[Path, typer.Option("--reports", help="the folder that holds the runs")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="write to this file instead of stdout")]
Traceback = Annotated[bool, typer.Option("--traceback", help="show the traceback of an error")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:0,1, cuda:all or a UUID")]
Certificates = Annotated[
    Path | None,
    typer.Option(
        "--certificates", metavar="FOLDER", help="TLS for --executor and `runner worker`; see --make-certificates"
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="measure a run that you have not started here, too: it starts the interpreters, environments and networks "
        "that it names, which are listed first",
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION[,...]",
        help="end with exit code 8 if a test is slower, slower:5% for at least 5 %, memory:5% for memory, or undecided",
    ),
]
HistoryUrl = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="URL",
        help="the database of the history: sqlite:///FILE or postgresql://USER@HOST/DATABASE; "
        "by default that of MATRIX_RUNNER_HISTORY, or history.db in the folder of the runs",
    ),
]
RunName = Annotated[
    str | None,
    typer.Argument(metavar="RUN", help="a run's id or folder; the newest by default", autocompletion=completion.runs),
]
Environments = Annotated[
    list[str] | None,
    typer.Argument(help="environments of the matrix; all by default", autocompletion=completion.environments),
]
TableOrJson = Annotated[Literal["table", "json"], typer.Option("--format", help="how to print the result")]


def planning(command: Callable[..., int], without: Collection[str] = ()) -> Callable[..., int]:
    """Give a command one option for each field of Options; its first parameter, ``options``, receives them all.

    Args:
        command: a function.
        without: fields that keep their defaults, and are no options of the command.
    """

    @functools.wraps(command)
    def with_options(**values: object) -> int:
        shared = {field.name: values.pop(field.name) for field in fields(Options) if field.name not in without}
        return command(Options(**shared), **values)  # type: ignore[arg-type]  # typer has checked them

    shared = [_parameter(name) for name in Options.__dataclass_fields__ if name not in without]
    specific = list(inspect.signature(command, eval_str=False).parameters.values())[1:]
    vars(with_options)["__signature__"] = inspect.Signature([*shared, *specific])
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in (*shared, *specific)}
    del with_options.__wrapped__  # typer would read the signature of the wrapped function
    return with_options


def _parameter(name: str) -> inspect.Parameter:
    field = Options.__dataclass_fields__[name]
    assert field.default is not MISSING
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=field.default, annotation=_completed(name, field.type)
    )


def _completed(name: str, annotation: object) -> object:
    """Return the annotation of an option, with its values completed by the shell where they are in the matrix file."""
    completer = completion.COMPLETERS.get(name)
    if completer is None:
        return annotation
    parameter = annotation.__metadata__[0]  # type: ignore[attr-defined]  # every field of Options is Annotated
    parameter.autocompletion = completer
    return annotation
