"""A plan as text for people: how much runs where, then why the rest does not run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from runner.catalog.cases import is_network_of_user
from runner.core.grouping import grouped
from runner.core.model import Plan, PlannedCell
from runner.core.model.cells import is_control, is_plain
from runner.core.units import duration
from runner.plan.estimate import SHORT_CALL
from runner.plan.pairs import with_controls
from runner.report.formatting import counted
from runner.report.rich_text import as_text, listed

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

WIDTH = 100
COUNT_WIDTH = 4
"""Columns of a count of cells, ``12/4``; a larger one widens its column."""
LONG_WORD = 6
"""Letters of a word of a workload's name above which the head of a narrow grid breaks it."""
ENVIRONMENT_CODES = ("image-unavailable", "no-engine", "no-interpreter", "arch", "driver")
"""Skip codes about an environment rather than its implementations, if nothing of the environment runs."""


def plan_table(
    plan: Plan, width: int = WIDTH, *, why: bool = False, colour: bool = False, controls: bool = True
) -> str:
    """Return the plan as text: a grid of environments and workloads, and how many cells do not run for which reason.

    Args:
        plan: the plan.
        width: columns to use, at least 60.
        why: list the implementations that run, and what does not run for each reason, instead.
        colour: whether the lines have ANSI colours.
        controls: whether a run measures the controls of the plan, too; they count in its time.
    """
    return as_text(_parts(plan, width, why=why, controls=controls), width, colour=colour)


def _parts(plan: Plan, width: int, *, why: bool, controls: bool) -> Iterator["RenderableType"]:
    from rich.text import Text

    if why:
        yield _cell_counts(plan.cells)
    else:
        yield from _grid(plan.cells, width)
    reasons = _reasons(plan.cells) if why else _counted_reasons(plan.cells)
    if reasons:
        yield "\nnot run:" if why else "\nnot run (--why lists them):"
        yield from _table(reasons, width)
    running = [planned for planned in plan.cells if planned.skip is None]
    deferred = _deferred(running, why=why)
    if deferred:
        yield "\nmeasured last:" if why else "\nmeasured last (--why lists them):"
        yield from _table(deferred, width)
    compiled = _compiled(running)
    if compiled:
        yield "\nslow at the first call:"
        yield from _table(compiled, width)
    yield Text(f"\n{extent(plan, controls=controls)}")
    if any(is_network_of_user(planned.cell.case_id) for planned in running):
        longest = SHORT_CALL * plan.measurement.seconds
        yield Text(f"That is for networks whose calls take up to {longest:.2g} s; with longer calls, it takes longer.")


def _device(plan: Plan) -> str:
    return f"{plan.devices} x {plan.device}" if plan.devices > 1 else plan.device


def extent(plan: Plan, *, controls: bool) -> str:
    """Return how many tests run, where, and how long that takes: the plan ends with it, and a run begins with it.

    ``67 of 283 tests run here (docker, cpu, 2 threads): about 6 min, at most 16 min if results stay open``

    Args:
        plan: the plan, with its controls or without.
        controls: whether a run measures controls, too; they count in its time.
    """
    running = [planned for planned in plan.cells if planned.skip is None and not _is_control(planned)]
    every = [planned for planned in plan.cells if not _is_control(planned)]
    threads = counted(plan.measurement.threads, "thread")
    counts = (
        f"{len(running)} of {counted(len(every), 'test')}" if len(running) < len(every) else counted(len(every), "test")
    )
    where = f"run here ({plan.backend}, {_device(plan)}, {threads})" if running else "run here"
    if not running:
        return f"{counts} {where}"
    return f"{counts} {where}: {_time(plan, controls=controls)}"


def _is_control(planned: PlannedCell) -> bool:
    return is_control(planned.cell.environment) or is_plain(planned.cell.environment)


def _time(plan: Plan, *, controls: bool) -> str:
    """Return how long measuring takes, and how long at most if verdicts stay open."""
    has_controls = any(map(_is_control, plan.cells))
    measurement = plan.measurement
    seconds = with_controls(plan).seconds if controls and not has_controls else plan.seconds
    deferred = " without those measured last" * any(planned.deferred for planned in plan.cells)
    text = f"about {duration(seconds)} in {counted(measurement.rounds, 'round')}{deferred}"
    if measurement.round_limit == measurement.rounds:  # rounds are fixed
        return text
    longest = seconds / measurement.rounds * measurement.round_limit
    limit = longest if measurement.budget is None else min(longest, measurement.budget)
    return f"{text}, at most {duration(limit)} if results stay open" if limit > seconds else text


def _grid(cells: Iterable[PlannedCell], width: int) -> Iterator["RenderableType"]:
    """Yield tables of environments by workloads: how many cells run; then the environments of which nothing runs."""
    from rich.text import Text

    by_environment = grouped((planned.cell.environment, planned) for planned in cells)
    groups = {
        name: grouped((planned.cell.workload, planned.skip is None) for planned in of_environment)
        for name, of_environment in by_environment.items()
    }
    workloads = list(dict.fromkeys(name for by_workload in groups.values() for name in by_workload))
    running = {name: group for name, group in groups.items() if any(map(any, group.values()))}
    if running:
        first = max(map(len, ("environment", *running)))
        for position, names in enumerate(_fitting(workloads, width - first)):
            yield from [""] * (position > 0)
            yield _environment_table(running, names)
    others = [name for name in groups if name not in running]
    if others:
        yield Text(("\n" if running else "") + f"nothing runs in {', '.join(others)}")


def _fitting(workloads: Sequence[str], width: int) -> list[dict[str, str]]:
    """Return tables of workload -> its head, each of which fits ``width`` columns; long words of heads are broken."""
    heads = {name: name.replace("-", "\n") for name in workloads}
    if sum(map(_head_width, heads.values())) > width:
        heads = {name: "\n".join(map(_halves, name.split("-"))) for name in workloads}
    tables: list[dict[str, str]] = [{}]
    for name, head in heads.items():
        if tables[-1] and sum(map(_head_width, tables[-1].values())) + _head_width(head) > width:
            tables.append({})
        tables[-1][name] = head
    return tables


def _head_width(head: str) -> int:
    return 1 + max(COUNT_WIDTH, *map(len, head.split("\n")))


def _halves(word: str) -> str:
    middle = -(-len(word) // 2)
    return word if len(word) <= LONG_WORD else f"{word[:middle]}-\n{word[middle:]}"


def _environment_table(groups: Mapping[str, Mapping[str, Sequence[bool]]], heads: Mapping[str, str]) -> "Table":
    """Return a table with a row for each environment and a column for each workload: how many of its cells run."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("environment", no_wrap=True, vertical="bottom")
    for head in heads.values():
        table.add_column(head, justify="right", no_wrap=True)
    for environment, group in groups.items():
        counts = [group.get(name, []) for name in heads]
        texts = [f"{sum(runs)}/{len(runs)}" if any(runs) else "·" for runs in counts]
        styles = ["green" if runs and all(runs) else "" if any(runs) else "dim" for runs in counts]
        table.add_row(environment, *map(Text, texts, styles))
    return table


def _counted_reasons(cells: Iterable[PlannedCell]) -> list[tuple[str, str, str]]:
    """Return (code, count, reason or number of reasons) for each code, the most frequent first."""
    reasons = grouped((planned.skip.code, planned.skip.reason) for planned in cells if planned.skip is not None)
    ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
    return [(code, counted(len(texts), "test"), _first_reason(texts)) for code, texts in ordered]


def _first_reason(reasons: Sequence[str]) -> str:
    """Return the reason, or the first of several with the number of the others."""
    distinct = list(dict.fromkeys(reasons))
    return distinct[0] if len(distinct) == 1 else f"{distinct[0]}; and {counted(len(distinct) - 1, 'other reason')}"


def _cell_counts(cells: Iterable[PlannedCell]) -> "Table":
    """Return a table of environment x workload: how many of the cells run, and which implementations."""
    from rich.table import Table

    groups = grouped(((planned.cell.environment, planned.cell.workload), planned) for planned in cells)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("environment", no_wrap=True)
    table.add_column("workload", no_wrap=True)
    table.add_column("tests", justify="right", no_wrap=True)
    table.add_column("APIs that run")
    previous = None
    for (environment, workload), group in groups.items():
        running = [planned.cell.implementation for planned in group if planned.skip is None]
        count = f"{len(running)}/{len(group)}"
        table.add_row(environment * (environment != previous), workload, count, ", ".join(dict.fromkeys(running)))
        previous = environment
    return table


def _reasons(cells: Sequence[PlannedCell]) -> list[tuple[str, str, str]]:
    """Return (code, what does not run, reason) for each reason; the reason names the nearest that runs."""
    all_slugs: dict[str, set[str]] = {}
    skipped: dict[tuple[str, str], dict[str, list[str]]] = {}
    for planned in cells:
        cell = planned.cell
        all_slugs.setdefault(cell.environment, set()).add(cell.implementation)
        if planned.skip is not None:
            nearest = f"; nearest that runs: {' or '.join(planned.skip.nearest)}" * bool(planned.skip.nearest)
            group = skipped.setdefault((planned.skip.code, f"{planned.skip.reason}{nearest}"), {})
            group.setdefault(cell.environment, []).append(cell.implementation)
    running = {planned.cell.environment for planned in cells if planned.skip is None}
    return [
        (
            code,
            "\n".join(
                _skipped(name, slugs, all_slugs[name], by_environment=code in ENVIRONMENT_CODES and name not in running)
                for name, slugs in group.items()
            ),
            reason,
        )
        for (code, reason), group in skipped.items()
    ]


def _deferred(cells: Iterable[PlannedCell], *, why: bool) -> list[tuple[str, str, str]]:
    """Return (``estimate``, what is measured last, why): a row for each reason, or one for all of them."""
    groups = grouped((planned.deferred, planned) for planned in cells if planned.deferred)
    if why or not groups:
        return [
            ("estimate", "\n".join(dict.fromkeys(planned.cell.case_id for planned in group)), reason)
            for reason, group in groups.items()
        ]
    count = sum(map(len, groups.values()))
    return [("estimate", counted(count, "test"), _first_reason(list(groups)))]


def _compiled(cells: Iterable[PlannedCell]) -> list[tuple[str, str, str]]:
    """Return (``jit``, environment, sentence) for each environment that runs by compiling PTX."""
    pairs = dict.fromkeys((planned.cell.environment, planned.jit) for planned in cells if planned.jit)
    return [("jit", *pair) for pair in pairs]


def _skipped(environment: str, slugs: list[str], all_slugs: set[str], *, by_environment: bool) -> str:
    """Return the environment if nothing of it runs, else each implementation that does not run."""
    names = tuple(dict.fromkeys(slugs))
    if by_environment or set(names) == all_slugs:
        return environment
    return "\n".join(f"{environment}/{name}" for name in names)


def _table(rows: Iterable[tuple[str, str, str]], width: int) -> "Iterator[RenderableType]":
    from rich.text import Text

    return listed(((Text(first, style="bold"), Text(second), Text(last)) for first, second, last in rows), width)
