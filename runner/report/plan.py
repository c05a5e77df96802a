"""A plan as text for people: how much runs where, then why the rest does not."""

import io
from collections.abc import Iterable, Sequence

from runner.core.model import Plan, PlannedCell
from runner.core.units import duration

WIDTH = 100
WHOLE = (
    "image-unavailable",
    "no-engine",
    "no-interpreter",
    "arch",
    "driver",
)  # of the environment, where nothing of it runs


def plan_table(plan: Plan, width: int = WIDTH) -> str:
    """Return the plan as text.

    Args:
        plan: the plan.
        width: columns to use, at least 60.
    """
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    console.print(_counts(plan.cells))
    reasons = _reasons(plan.cells)
    if reasons:
        console.print("\nnot run:")
        console.print(_table(reasons))
    running = [found for found in plan.cells if found.skip is None]
    compiled = _compiled(running)
    if compiled:
        console.print("\nslow at the first call:")
        console.print(_table(compiled))
    rounds = plan.measurement.rounds
    console.print(
        f"\n{len(running)} of {len(plan.cells)} cells run, {rounds} round{'s' if rounds > 1 else ''} each, on "
        f"{plan.backend} ({_device(plan)}, {plan.measurement.threads} threads): "
        f"about {duration(plan.seconds)} of measuring{_further(plan)}",
        soft_wrap=True,
    )
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _device(plan: Plan) -> str:
    return f"{plan.devices} x {plan.device}" if plan.devices > 1 else plan.device


def _further(plan: Plan) -> str:
    """Return what more there may be of it, where verdicts stay open."""
    measurement = plan.measurement
    if measurement.round_limit == measurement.rounds:
        return ""
    whole = plan.seconds / measurement.rounds * measurement.round_limit
    most = whole if measurement.budget is None else min(whole, measurement.budget)
    return f", and up to {measurement.round_limit} rounds, {duration(most)} in all, where verdicts stay open"


def _counts(cells: Iterable[PlannedCell]) -> object:
    """Return a table of environment x workload: how many of the cells run, and which implementations."""
    from rich.table import Table

    found: dict[tuple[str, str], list[PlannedCell]] = {}
    for planned in cells:
        found.setdefault((planned.cell.environment, planned.cell.workload), []).append(planned)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("environment", no_wrap=True)
    table.add_column("workload", no_wrap=True)
    table.add_column("cells", justify="right", no_wrap=True)
    table.add_column("implementations that run")
    before = None
    for (environment, workload), group in found.items():
        running = [planned.cell.implementation for planned in group if planned.skip is None]
        count = f"{len(running)}/{len(group)}"
        table.add_row(environment * (environment != before), workload, count, ", ".join(dict.fromkeys(running)))
        before = environment
    return table


def _reasons(cells: Sequence[PlannedCell]) -> list[tuple[str, str, str]]:
    """Return (code, what, reason) for each reason there is, with all it holds back and what would run instead."""
    every: dict[str, set[str]] = {}
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for planned in cells:
        cell = planned.cell
        every.setdefault(cell.environment, set()).add(cell.implementation)
        if planned.skip is not None:
            nearest = f"; nearest that runs: {' or '.join(planned.skip.nearest)}" * bool(planned.skip.nearest)
            group = found.setdefault((planned.skip.code, f"{planned.skip.reason}{nearest}"), {})
            group.setdefault(cell.environment, []).append(cell.implementation)
    running = {planned.cell.environment for planned in cells if planned.skip is None}
    return [
        (
            code,
            "\n".join(
                _what(name, slugs, every[name], whole=code in WHOLE and name not in running)
                for name, slugs in group.items()
            ),
            reason,
        )
        for (code, reason), group in found.items()
    ]


def _compiled(cells: Iterable[PlannedCell]) -> list[tuple[str, str, str]]:
    """Return (``jit``, environment, sentence) for each environment that runs by compiling PTX."""
    return [("jit", *pair) for pair in dict.fromkeys((one.cell.environment, one.jit) for one in cells if one.jit)]


def _what(environment: str, slugs: list[str], every: set[str], *, whole: bool) -> str:
    """Return the environment alone where all of it is held back, else with the implementations that are."""
    names = tuple(dict.fromkeys(slugs))
    if whole or set(names) == every:
        return environment
    return "\n".join(f"{environment}/{name}" for name in names)


def _table(rows: Iterable[tuple[str, str, str]]) -> object:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True)
    table.add_column()
    for code, what, reason in rows:
        table.add_row(code, what, reason)
    return table
