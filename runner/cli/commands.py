"""How every command reads its options: one that takes a single value is refused where it is given twice.

The name of a file says in which format a result is written into it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from runner.cli.groups import EXAMPLES, GROUPS
from runner.core.errors import Problem, UsageError

SEVERAL: Mapping[str, str] = {
    "threads": "--threads 1,2,4 compares these counts in one run",
    "python": "to compare interpreters, give neither --python nor --backend, and select python:PATH for each",
}
"""Option -> what to do for several values, where that is not to repeat the option."""
FORMATS: Mapping[str, str] = {
    ".json": "json",
    ".csv": "csv",
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    **{f".{name}": name for name in ("svg", "png", "jpg", "pdf", "xlsx", "parquet", "tsv", "yaml", "yml", "tex")},
}
"""Suffix of a file -> its format; a file with another suffix, or none, gets what ``--format`` says."""
ALSO: Mapping[str, Collection[str]] = {"compare": (".svg", ".png")}
"""Command -> the suffixes of files that it writes without a format."""
WRITTEN: Mapping[str, str] = {"coverage": ".md"}
"""Format -> a suffix of its files, which alone does not choose it."""


class Command(TyperCommand):
    """A command whose options have one value each, unless they are declared as lists."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; raises UsageError as ``refuse_repeated`` and ``format_of`` do."""
        with _named(ctx):
            refuse_repeated(self, ctx, args)
            rest: list[str] = super().parse_args(ctx, args)
        output, choices = ctx.params.get("output"), _formats(self.callback)
        if output is not None and "table" in choices and not ctx.resilient_parsing:
            also = ALSO.get(str(self.name), ())
            ctx.params["format"] = format_of(Path(output), ctx.params["format"], choices, also)
        return rest

    @override
    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write an example below the options; commands below others have none."""
        if ctx.parent is not None and ctx.parent.parent is None:
            write_example(str(self.name), formatter)


class CommandsBelow(TyperGroup):
    """A command that has commands below it, with options like those of ``Command``."""

    @override
    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write an example below the options of a command that has others below it."""
        if ctx.parent is not None:
            write_example(str(self.name), formatter)

    @override
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of the program in groups, and those below a command in their order."""
        shown = {name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))}
        groups = GROUPS if ctx.parent is None else {"Commands": tuple(shown)}
        limit = formatter.width - 6 - max(map(len, shown))
        for title, names in groups.items():
            with formatter.section(title):
                formatter.write_dl([(name, shown[name].get_short_help_str(limit)) for name in names])

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; raises UsageError as ``refuse_repeated`` does."""
        with _named(ctx):
            refuse_repeated(self, ctx, args)
            return super().parse_args(ctx, args)


def write_example(name: str, formatter: Any) -> None:  # noqa: ANN401  click's
    """Write the example of a command."""
    with formatter.section("Example"):
        formatter.write_dl([(EXAMPLES[name], "")])


def _formats(function: Callable[..., Any] | None) -> tuple[str, ...]:
    """Return the values of the option ``--format`` of a command; none without it."""
    annotation = getattr(function, "__annotations__", {}).get("format")
    return get_args(get_args(annotation)[0]) if annotation else ()


def require_table(option: str, format: str, output: Path | None = None) -> None:
    """Refuse an option that adds lines to the table, where something else is written.

    Raises:
        UsageError: the format is not ``table``, or the output is a chart.
    """
    is_chart = output is not None and any(output.suffix in suffixes for suffixes in ALSO.values())
    if is_chart or format != "table":
        message = f"{option} adds lines to the table, and not to {'a chart' if is_chart else format}"
        raise UsageError(Problem(message, hint=f"leave out {option}"))


@contextmanager
def _named(ctx: Any) -> Iterator[None]:  # noqa: ANN401
    """Let an error of the parser name the command whose help explains it: it names none for an option without value."""
    try:
        yield
    except Exception as error:
        if getattr(error, "ctx", ctx) is None:
            vars(error)["ctx"] = ctx
        raise


class CommandGroup(typer.Typer):
    """A group of commands that are all ``Command``."""

    def __init__(self, *, cls: type[CommandsBelow] = CommandsBelow, **settings: Any) -> None:  # noqa: ANN401  typer's
        """Declare a group; ``settings`` are those of typer."""
        super().__init__(cls=cls, **settings)

    @override
    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        """Declare a function as a command."""
        return super().command(name, cls=Command, **settings)


def format_of(output: Path, chosen: str, choices: Collection[str], also: Collection[str] = ()) -> str:
    """Return the format of a file: the one that its suffix names, or else the chosen one.

    Args:
        output: the file.
        chosen: the value of ``--format``; ``table`` is the default.
        choices: its values.
        also: suffixes that the command writes whatever the format.

    Raises:
        UsageError: the command writes no such files, or another format was chosen.

    >>> format_of(Path("a.json"), "table", ("table", "json")), format_of(Path("a.log"), "json", ("table", "json"))
    ('json', 'json')
    """
    suffix = output.suffix.lower()
    named = FORMATS.get(suffix, chosen)
    if named == chosen or suffix in also or suffix == WRITTEN.get(chosen):
        return chosen
    if named in choices and chosen == "table":
        return named
    if named in choices:
        raise UsageError(Problem(f"{output} is not a file for --format {chosen}", hint="leave --format out"))
    others = [name for name in choices if name in FORMATS.values()]
    names = ", ".join([*(f"{output.stem}.{name}" for name in others), *(f"{output.stem}{each}" for each in also)])
    hint = f"name it {names}, or {output.stem}.txt for text"
    raise UsageError(Problem(f"{output}: this command writes no {named.upper()}", hint=hint))


def refuse_repeated(command: TyperCommand | TyperGroup, ctx: Any, args: list[str]) -> None:  # noqa: ANN401
    """Raise UsageError if an option with one value is given twice, of which the last would count in silence.

    Args:
        command: has the options.
        ctx: of the command; the shell's completion reads half a command line, of which nothing is refused.
        args: the words behind the name of the command.
    """
    if ctx.resilient_parsing:
        return
    _, _, given = command.make_parser(ctx).parse_args(args=list(args))
    options = [each for each in given if each.param_type_name == "option" and not each.multiple]
    for option in options:
        if (count := options.count(option)) > 1:
            times = "twice" if count == 2 else f"{count} times"
            hint = SEVERAL.get(str(option.name), "keep one of them")
            raise UsageError(Problem(f"{option.opts[0]} is given {times}", hint=hint))
