"""The options that every planning command shares: declared once, passed on as one value."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from runner.core.model import Protocol
from runner.core.paths import DEFAULT_REPORTS
from runner.core.units import MAX_COUNT, MAX_SECONDS

SELECTOR = "an id, a glob (torch-*), a range (torch>=1.0,<2), framework:tf, or a glob over cell ids; !X excludes X"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user typed: each field is one option of ``plan``, ``build``, ``run`` and ``nightly``."""

    selectors: Annotated[list[str] | None, typer.Argument(help=SELECTOR)] = None
    matrix: Annotated[Path, typer.Option("--matrix", help="the matrix file")] = Path("matrix.yaml")
    reports: Annotated[Path, typer.Option("--reports", help="the folder that holds the runs")] = DEFAULT_REPORTS
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="plan only this workload; may be repeated")
    ] = None
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", help="measure your network: a model file, or a folder with model.py; may be repeated"),
    ] = None
    preset: Annotated[str | None, typer.Option("--preset", help="a preset of the matrix file")] = None
    precision: Annotated[
        list[str] | None, typer.Option("--precision", help="plan only this precision; may be repeated")
    ] = None
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:0,1, cuda:all or a UUID")] = None
    backend: Annotated[
        str, typer.Option("--backend", help="docker, venv or host; auto is docker where an engine answers, else venv")
    ] = "auto"
    python: Annotated[str | None, typer.Option("--python", help="the interpreter that --backend host measures")] = None
    framework: Annotated[
        str | None, typer.Option("--framework", help="the framework that --backend host measures; default: the first")
    ] = None
    name: Annotated[str, typer.Option("--name", help="the id of the environment of --backend host")] = "host"
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", min=1, max=MAX_COUNT, help="how often to measure each cell, in a new process"),
    ] = None
    max_rounds: Annotated[
        int | None,
        typer.Option("--max-rounds", min=1, max=MAX_COUNT, help="upper limit of rounds for undecided comparisons"),
    ] = None
    budget: Annotated[
        str | None, typer.Option("--budget", help="time limit for measuring the whole run: 90s, 30m, 8h")
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0.01, max=MAX_SECONDS, help="time budget per cell and round, in seconds"),
    ] = None
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, max=MAX_COUNT, help="CPU threads per process; default: all cores")
    ] = None
    protocol: Annotated[
        Protocol | None, typer.Option("--protocol", help="published repeats what the original programs did")
    ] = None
    seed: Annotated[
        int | None, typer.Option("--seed", help="seed of the order of cells; drawn and recorded by default")
    ] = None
    corpus: Annotated[
        Path | None, typer.Option("--corpus", help="a UTF-8 text whose words lm-lstm learns instead of random ones")
    ] = None
    allow_jit: Annotated[
        bool, typer.Option("--allow-jit", help="run builds that reach this GPU only by PTX JIT, too")
    ] = False
    pin: Annotated[
        bool | None,
        typer.Option(
            "--pin/--no-pin",
            help="lock GPU clocks even where others compute; or neither lock clocks nor pin CPU cores; "
            "default: lock where nobody else computes",
        ),
    ] = None
    busy_ok: Annotated[
        bool, typer.Option("--busy-ok", help="measure at once, even while other programs keep the machine busy")
    ] = False
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="after the rounds, also keep the framework's profile of a step of each cell, for the report",
        ),
    ] = False
    traceback: Annotated[bool, typer.Option("--traceback", help="show the traceback of an error")] = False

    def to_argv(self) -> list[str]:
        """Return the arguments that give these options again: selectors first, then what is not a default.

        The options' own declarations name the flags, so that a new option needs nothing here.

        >>> Options(selectors=["torch-*"], rounds=5, pin=False).to_argv()
        ['torch-*', '--rounds', '5', '--no-pin']
        """
        arguments: list[str] = list(self.selectors or ())
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "selectors" and value != field.default:
                arguments += _flags(field.type, value)
        return arguments


def _flags(annotation: object, value: object) -> Iterator[str]:
    """Yield the flag of an option with its value, once for each value of an option that may be repeated."""
    declaration = vars(annotation)["__metadata__"][0]  # within Annotated, typer keeps the first flag as `default`
    flag = next(text for text in (declaration.default, *declaration.param_decls) if str(text).startswith("--"))
    if isinstance(value, bool):
        yes, _, no = flag.partition("/")
        yield yes if value else no
        return
    for item in value if isinstance(value, list) else [value]:
        yield from (flag, f"{item:g}" if isinstance(item, float) else str(item))
