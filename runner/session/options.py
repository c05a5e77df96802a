"""The options that every planning command shares: declared once, passed on as one value."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import TypeAdapter

from runner.core.model import Process, Protocol
from runner.core.paths import DEFAULT_MATRIX, DEFAULT_REPORTS, find_matrix
from runner.core.units import MAX_COUNT, MAX_SECONDS

SELECTOR = (
    "an id, a glob (torch-*), a release (torch==2.9.1), a range (torch>=1.0,<2), framework:tf, an interpreter or an "
    "image as it is (python:PATH, image:NAME, NAME=python:PATH), or a glob over test ids; !X excludes X; X@env:A=1,B=2 "
    "and X@threads:4 are X with other variables or threads"
)
MATRIX_HELP = "the matrix file; by default that of this folder, of one above it, or of the program"
MODEL = "FILE[:NAME]|LIBRARY:NAME"
MODEL_HELP = (
    "measure your network: a class or a function of a file, such as nets.py:UNet or 'nets.py:UNet(3)', a network of "
    "timm, torchvision, keras or hf (timm:resnet18), a model file, or a folder with model.py; NAME=FILE names it; may "
    "be repeated"
)
INPUT = "SHAPE[:TYPE[<BOUND]]"
INPUT_HELP = (
    "an example of an input of --model FILE:NAME, such as 1x3x64x64 or '8x128:int64<1000'; repeat it for further inputs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user typed: each field is one option of ``plan``, ``build``, ``run`` and ``nightly``."""

    selectors: Annotated[list[str] | None, typer.Argument(help=SELECTOR)] = None
    matrix: Annotated[Path, typer.Option("--matrix", help=MATRIX_HELP)] = DEFAULT_MATRIX
    reports: Annotated[Path, typer.Option("--reports", help="the folder that holds the runs")] = DEFAULT_REPORTS
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="plan only this workload; may be repeated")
    ] = None
    model: Annotated[list[str] | None, typer.Option("--model", metavar=MODEL, help=MODEL_HELP)] = None
    input: Annotated[list[str] | None, typer.Option("--input", metavar=INPUT, help=INPUT_HELP)] = None
    preset: Annotated[str | None, typer.Option("--preset", help="a preset of the matrix file")] = None
    phase: Annotated[
        list[str] | None,
        typer.Option("--phase", help="plan only this phase, such as train or compile; may be repeated"),
    ] = None
    precision: Annotated[
        list[str] | None, typer.Option("--precision", help="plan only this precision; may be repeated")
    ] = None
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:0,1, cuda:all or a UUID")] = None
    backend: Annotated[
        str, typer.Option("--backend", help="docker, venv or host; auto is docker where an engine answers, else venv")
    ] = "auto"
    python: Annotated[str | None, typer.Option("--python", help="the interpreter that --backend host measures")] = None
    framework: Annotated[
        str | None,
        typer.Option(
            "--framework", help="the framework of python:PATH, image:NAME and --backend host; default: the first"
        ),
    ] = None
    name: Annotated[str, typer.Option("--name", help="the id of the environment of --backend host")] = "host"
    all: Annotated[
        bool,
        typer.Option(
            "--all",
            help="however long it takes; and without --preset, --model, --workload or a glob over test ids, every test "
            "instead of the preset quick",
        ),
    ] = False
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", min=1, max=MAX_COUNT, help="how often to measure each test, in a new process"),
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
        typer.Option("--seconds", min=0.01, max=MAX_SECONDS, help="time budget per test and round, in seconds"),
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME=VALUE",
            help="a variable of all selected environments, set before their interpreters start; may be repeated",
        ),
    ] = None
    threads: Annotated[
        str | None,
        typer.Option(
            "--threads",
            metavar="N[,N...]",
            help="CPU threads per process; default: all cores. 1,2,4 compares these counts, the first is the base",
        ),
    ] = None
    protocol: Annotated[
        Protocol | None, typer.Option("--protocol", help="published repeats what the original programs did")
    ] = None
    process: Annotated[
        Process | None,
        typer.Option("--process", help="plain times each test in a new interpreter, as a script does; default: fork"),
    ] = None
    seed: Annotated[
        int | None, typer.Option("--seed", help="seed of the order of tests; drawn and recorded by default")
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
        bool,
        typer.Option(
            "--busy-ok",
            help="measure at once and each round once, even while other programs keep the machine busy",
        ),
    ] = False
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="after the rounds, also keep the framework's profile of a step of each test, for the report",
        ),
    ] = False
    upgrade: Annotated[
        bool,
        typer.Option("--upgrade", help="resolve the releases that are named again, and keep these locks from now on"),
    ] = False
    traceback: Annotated[bool, typer.Option("--traceback", help="show the traceback of an error")] = False

    @property
    def matrix_file(self) -> Path:
        """The matrix file that is read, see ``find_matrix``."""
        return find_matrix(self.matrix)

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

    @classmethod
    def of_argv(cls, arguments: Iterable[str]) -> "Options":
        """Return the options that ``to_argv`` wrote.

        Args:
            arguments: selectors first, then options with their values.

        Raises:
            ValueError: there is no such option, or its value is none.

        >>> Options.of_argv(["torch-*", "--rounds", "5", "--no-pin"]) == Options(
        ...     selectors=["torch-*"], rounds=5, pin=False
        ... )
        True
        """
        given: dict[str, Any] = {}
        known, words = _known_flags(), iter(arguments)
        for word in words:
            if not word.startswith("--"):
                given.setdefault("selectors", []).append(word)
            elif word not in known:
                message = f"there is no option {word}"
                raise ValueError(message)
            else:
                name, switch = known[word]
                given.setdefault(name, []).append(next(words, "") if switch is None else switch)
        return cls(
            **{field.name: _value(field.type, given[field.name]) for field in fields(cls) if field.name in given}
        )


@cache
def _known_flags() -> Mapping[str, tuple[str, bool | None]]:
    """Return each flag -> the option, and what the flag switches it to; None for one that takes a value."""
    known: dict[str, tuple[str, bool | None]] = {}
    for field in fields(Options):
        if field.name != "selectors":
            yes, _, no = _flag(field.type).partition("/")
            is_switch = bool in get_args(_plain_type(field.type)) or _plain_type(field.type) is bool
            known[yes] = field.name, True if is_switch else None
            if no:
                known[no] = field.name, False
    return known


def _value(annotation: object, given: list[Any]) -> Any:  # noqa: ANN401 - each option has its type
    """Return the value of an option from the words that it was given; raises ValueError where it is none."""
    plain = _plain_type(annotation)
    is_list = any(get_origin(part) is list for part in (plain, *get_args(plain)))
    return _adapter(plain).validate_python(given if is_list else given[-1])


@cache
def _adapter(plain: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type, or a union of types
    """Return what checks values of a type."""
    return TypeAdapter(plain)


def _plain_type(annotation: object) -> Any:  # noqa: ANN401 - a type, or a union of types
    """Return the type of an option without its declaration."""
    return get_args(annotation)[0]


def _flag(annotation: object) -> str:
    """Return the flag of an option; ``--pin/--no-pin`` for one that is switched on or off."""
    declaration = vars(annotation)["__metadata__"][0]  # within Annotated, typer keeps the first flag as `default`
    return next(str(text) for text in (declaration.default, *declaration.param_decls) if str(text).startswith("--"))


def _flags(annotation: object, value: object) -> Iterator[str]:
    """Yield the flag of an option with its value, once for each value of an option that may be repeated."""
    flag = _flag(annotation)
    if isinstance(value, bool):
        yes, _, no = flag.partition("/")
        yield yes if value else no
        return
    for item in value if isinstance(value, list) else [value]:
        yield from (flag, _number(item) if isinstance(item, float) else str(item))


def _number(value: float) -> str:
    """Return a number in its shortest form that is still exact."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
