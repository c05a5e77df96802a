"""The options that every planning command shares: declared once, handed over as one value."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from runner.core.errors import Problem, UsageError
from runner.core.model import Protocol

SELECTOR = "an id, a glob (torch-*), a range (torch>=1.0,<2), framework:tf, or a glob over cell ids; !X takes X out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was typed. Each field is one option of ``plan``, ``build`` and ``run``."""

    selectors: Annotated[list[str] | None, typer.Argument(help=SELECTOR)] = None
    matrix: Annotated[Path, typer.Option("--matrix", help="the matrix file")] = Path("matrix.yaml")
    reports: Annotated[Path, typer.Option("--reports", help="where runs are kept")] = Path("reports")
    workload: Annotated[list[str] | None, typer.Option("--workload", help="only this one; may be repeated")] = None
    preset: Annotated[str | None, typer.Option("--preset", help="a preset of the matrix")] = None
    precision: Annotated[
        list[str] | None, typer.Option("--precision", help="bf16, say, for what the matrix has; may be repeated")
    ] = None
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:0,1, cuda:all or a UUID")] = None
    backend: Annotated[str, typer.Option("--backend", help="auto, docker, venv or host")] = "auto"
    python: Annotated[str | None, typer.Option("--python", help="the interpreter --backend host measures")] = None
    name: Annotated[str, typer.Option("--name", help="what --backend host calls its environment")] = "host"
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="fresh processes for each cell")] = None
    max_rounds: Annotated[int | None, typer.Option("--max-rounds", min=1, help="while a verdict is open")] = None
    budget: Annotated[str | None, typer.Option("--budget", help="time for all the measuring: 90s, 30m, 8h")] = None
    seconds: Annotated[float | None, typer.Option("--seconds", min=0.01, help="measured, a cell and round")] = None
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads; default: all cores")] = None
    protocol: Annotated[Protocol | None, typer.Option("--protocol", help="published: what the originals did")] = None
    seed: Annotated[int | None, typer.Option("--seed", help="orders the cells; drawn and recorded by default")] = None
    corpus: Annotated[Path | None, typer.Option("--corpus", help="a text whose words lm-lstm learns; UTF-8")] = None
    allow_jit: Annotated[bool, typer.Option("--allow-jit", help="also what only runs by PTX JIT on this GPU")] = False
    no_pin: Annotated[bool, typer.Option("--no-pin", help="hold no clocks and keep to no cores, only read them")] = (
        False
    )
    traceback: Annotated[bool, typer.Option("--traceback", help="show where an error came from")] = False


def check_format(wanted: str, known: Sequence[str]) -> None:
    """Refuse a ``--format`` that a command has not; raises UsageError, which names those it has."""
    if wanted not in known:
        raise UsageError(Problem(f"there is no format {wanted!r}", hint=f"there are {', '.join(known)}"))


def planning(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command, whose first parameter is ``options``, one option for each field of Options."""

    @functools.wraps(command)
    def typed(**values: object) -> int:
        shared = {field.name: values.pop(field.name) for field in fields(Options)}
        return command(Options(**shared), **values)  # type: ignore[arg-type]  # typer has checked them

    shared = [_parameter(name) for name in Options.__dataclass_fields__]
    own = list(inspect.signature(command, eval_str=False).parameters.values())[1:]
    vars(typed)["__signature__"] = inspect.Signature([*shared, *own])
    typed.__annotations__ = {parameter.name: parameter.annotation for parameter in (*shared, *own)}
    del typed.__wrapped__  # or typer would read the signature behind this one
    return typed


def _parameter(name: str) -> inspect.Parameter:
    field = Options.__dataclass_fields__[name]
    assert field.default is not MISSING
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=field.default, annotation=field.type
    )
