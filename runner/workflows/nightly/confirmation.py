"""Confirm a suspected change: measure an environment as it was and as it is in turns, in one run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.analysis import dataset
from runner.analysis.compare.summary import summarise
from runner.analysis.model import MIN_ROUNDS, Comparison, Row
from runner.backends import restored
from runner.core.model import Cell, Past, Plan, PlannedCell, Survey
from runner.core.progress import Progress
from runner.workflows import run as pipeline
from runner.workflows.context import Context
from runner.workflows.nightly.baseline import Candidate
from runner.workflows.nightly.result import FOLDER, Change, Pair, State
from runner.workflows.preparation import Prepared
from runner.workflows.results import write_report

MAX_ROUNDS = 15  # in turns, while the verdict is open
GONE = "cannot be confirmed: the environment of run {} no longer exists"
NO_TIME = "the budget has no time to confirm it: use a larger --budget"


def groups_by_environment(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return candidates in groups of one environment and one baseline run, which one run in turns confirms.

    Groups and their candidates stay in the order in which they first occur.
    """
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault((candidate.cell.environment, candidate.baseline.run), []).append(candidate)
    return list(groups.values())


def confirm(
    group: Sequence[Candidate], first: Prepared, run_id: str, context: Context, progress: Progress, seconds: float
) -> tuple[list[Change], Pair | None]:
    """Measure one environment as it was and as it is, in turns; return the changes, and the pair that was measured.

    Args:
        group: candidates of one environment and one baseline run.
        first: what the first run of the night measured.
        run_id: the id of that run; the run in turns is stored below its night.
        context: backend, devices and settings.
        progress: shows the work.
        seconds: the time that this confirmation may take.
    """
    environment, baseline = group[0].cell.environment, group[0].baseline
    earlier = restored(context.backend, environment, baseline.digest, baseline.facts)
    if earlier is None:
        return [change(candidate, "environment-gone", GONE.format(baseline.run)) for candidate in group], None
    name = f"{environment}@{baseline.run}"
    earlier = replace(earlier, environment=name, framework=first.plan.frameworks[environment])
    plan = confirmation_plan(first.plan, [candidate.cell for candidate in group], name, seconds)
    progress.note(f"{environment} looks changed: measuring it in turns with {name}")
    specs = tuple(spec for spec in first.specs if spec.environment == environment)
    built = Survey(cached=frozenset({environment}))  # the first run of the night has built it
    prepared = Prepared(plan=plan, specs=specs, survey=built, also={name: earlier})
    comparison, pair = _measure(prepared, environment, run_id, context, progress)
    rows = {(row.implementation, row.case_id, row.phase, row.precision): row for row in comparison.rows}
    measured = {planned.cell for planned in plan.cells}
    changes = []
    for candidate in group:
        cell = candidate.cell
        if cell in measured:
            row = rows.get((cell.implementation, cell.case_id, cell.phase, cell.precision))
            changes.append(_confirmed(candidate, row))
        else:
            changes.append(change(candidate, "no-time", NO_TIME))
    return changes, pair


def confirmation_plan(planned: Plan, cells: Sequence[Cell], earlier: str, budget: float) -> Plan:
    """Return a plan that measures cells in turns with those of the same environment as it was.

    Args:
        planned: the plan that the cells are part of.
        cells: of one environment, the most urgent first; what does not fit the budget is left out, but for the first.
        earlier: the name of the environment as it was; it is the base.
        budget: seconds for all of it.
    """
    measurement = planned.measurement
    rounds = max(measurement.rounds, MIN_ROUNDS)
    planned_cells = {planned_cell.cell: planned_cell for planned_cell in planned.cells}
    seconds_per_round = {cell: planned_cells[cell].seconds / measurement.rounds for cell in cells}
    chosen = _affordable(cells, seconds_per_round, 2 * rounds, budget)
    environment = cells[0].environment

    def as_planned(cell: Cell, name: str) -> PlannedCell:
        sides = replace(cell, environment=name)
        return replace(planned_cells[cell], cell=sides, seconds=seconds_per_round[cell] * rounds)

    blocks = []
    for block in planned.blocks:
        of_block = [cell for cell in block.cells if cell in chosen]
        if of_block:
            both = tuple(replace(cell, environment=name) for name in (earlier, environment) for cell in of_block)
            blocks.append(replace(block, cells=both))
    max_rounds = max(measurement.round_limit, MAX_ROUNDS)
    return replace(
        planned,
        measurement=replace(measurement, rounds=rounds, max_rounds=max_rounds, budget=max(budget, 1.0)),
        cells=tuple(as_planned(cell, name) for name in (earlier, environment) for cell in chosen),
        blocks=tuple(blocks),
        frameworks=dict.fromkeys((earlier, environment), planned.frameworks[environment]),
        past=Past(),
    )


def _affordable(
    cells: Sequence[Cell], seconds_per_round: Mapping[Cell, float], rounds: int, budget: float
) -> list[Cell]:
    """Return the first cell, and those after it that fit the budget with it, for so many rounds each."""
    chosen: list[Cell] = []
    for cell in cells:
        seconds = rounds * sum(seconds_per_round[chosen_cell] for chosen_cell in (*chosen, cell))
        if not chosen or seconds <= budget:
            chosen.append(cell)
    return chosen


def _measure(
    prepared: Prepared, environment: str, run_id: str, context: Context, progress: Progress
) -> tuple[Comparison, Pair]:
    """Measure a plan of two environments in a run of its own, stored below the night's."""
    settings = replace(context.settings, reports=context.settings.reports / FOLDER / run_id)
    totals = pipeline.run(prepared, context.backend, settings, progress, context.gpus)
    if totals.good:
        write_report(totals.run, settings.margin)
    comparison = next(iter(summarise(dataset.load_dataset(totals.run), margin=settings.margin)), None)
    if comparison is None:
        (base,) = prepared.also
        comparison = Comparison(base=base, others=(environment,), device="", device_name="", rows=())
    return comparison, Pair(environment=environment, folder=totals.run.path, comparison=comparison)


def _confirmed(candidate: Candidate, row: Row | None) -> Change:
    """Return a change that was measured in turns; a side may have failed."""
    if row is None:
        return change(candidate, "measured-again", "neither side has a record")
    decided = row.verdict in {"slower", "faster", "same"}
    return change(candidate, "measured-again", "" if decided else row.reason, row)


def change(candidate: Candidate, state: State, reason: str, again: Row | None = None) -> Change:
    """Return a candidate as the night reports it."""
    return Change(
        cell=candidate.cell,
        before=candidate.baseline.run,
        row=candidate.row,
        state=state,
        again=again,
        reason=reason,
    )
