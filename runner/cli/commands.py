"""How every command reads its options: one that takes a single value is refused where it is given twice."""

from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from runner.core.errors import Problem, UsageError

SEVERAL: Mapping[str, str] = {
    "threads": "--threads 1,2,4 compares these counts in one run",
    "python": "each interpreter is a run of its own: name it with --name, then `runner compare` the names",
}
"""Option -> what to do for several values, where that is not to repeat the option."""


class Command(TyperCommand):
    """A command whose options have one value each, unless they are declared as lists."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; raises UsageError as ``refuse_repeated`` does."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)


class CommandsBelow(TyperGroup):
    """A command that has commands below it, with options like those of ``Command``."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; raises UsageError as ``refuse_repeated`` does."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)


class CommandGroup(typer.Typer):
    """A group of commands that are all ``Command``."""

    def __init__(self, *, cls: type[CommandsBelow] = CommandsBelow, **settings: Any) -> None:  # noqa: ANN401  typer's
        """Declare a group; ``settings`` are those of typer."""
        super().__init__(cls=cls, **settings)

    @override
    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        """Declare a function as a command."""
        return super().command(name, cls=Command, **settings)


def refuse_repeated(command: TyperCommand | TyperGroup, ctx: Any, args: list[str]) -> None:  # noqa: ANN401
    """Raise UsageError if an option with one value is given twice, of which the last would count in silence.

    Args:
        command: has the options.
        ctx: of the command; the shell's completion reads half a command line, of which nothing is refused.
        args: the words behind the name of the command.
    """
    if ctx.resilient_parsing:
        return
    given = command.make_parser(ctx).parse_args(args=list(args))[2]
    options = [each for each in given if each.param_type_name == "option" and not each.multiple]
    for option in options:
        if (count := options.count(option)) > 1:
            times = "twice" if count == 2 else f"{count} times"
            hint = SEVERAL.get(str(option.name), "keep one of them")
            raise UsageError(Problem(f"{option.opts[0]} is given {times}", hint=hint))
