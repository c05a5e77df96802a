"""`runner reproduce`: build the environment of a stored record again, measure its cells again, and compare.

1. ``stored`` finds the run and its cells, and what the run was measured with.
2. ``rebuilt`` restores each environment by its digest, or builds it from the lock that the run keeps.
3. This module measures the cells with the settings of the run, below ``reports/reproduce/<run>``, and compares.
4. ``result`` says what that shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare.pairing import environment_side
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import MIN_ROUNDS, Dataset
from runner.core.errors import GpuError, Problem, RunnerError, UsageError
from runner.core.model import Cell, Past, Plan, PlannedCell, Provisioned
from runner.core.progress import Progress
from runner.search.reproduce.rebuilt import rebuilt
from runner.search.reproduce.result import Reproduction, fact_sentences
from runner.search.reproduce.stored import Stored, find_stored
from runner.session import execution as pipeline
from runner.session.context import Context, setup
from runner.session.execution.resume import with_header
from runner.session.networks import with_stored_networks
from runner.session.options import Options
from runner.session.preparation import Prepared, prepare
from runner.session.stored_options import of_stored_plan
from runner.store.run import Run
from runner.watch.nightly.baseline import Baseline, compare_with_baselines

__all__ = ["FOLDER", "reproduce"]

FOLDER = "reproduce"
MAX_ROUNDS = 20  # in turns, while the verdict is open; as in a night


def reproduce(options: Options, record: str, progress: Progress, against: str = "") -> Reproduction:
    """Measure the cells of a record or a run again, in the same environments and with the same settings.

    Args:
        options: of these, the matrix file, the reports folder, ``--backend``, ``--device`` and ``--busy-ok`` count.
        record: a record's file, a run, or ``RUN/CELL`` with a cell or a glob over cells.
        progress: shows the work.
        against: an environment of the matrix that is measured in turns with that of the record; empty for none.

    Raises:
        UsageError: there is no such record, or the environment of ``against`` does not exist.
        RunnerError: an environment can neither be restored nor built again; or measuring failed.
    """
    stored = find_stored(options.reports, record)
    context = _context(options, stored, progress)
    for note in context.notes:
        progress.note(note)
    environments = rebuilt(stored, context, progress)
    reports = options.reports / FOLDER / stored.run.id
    settings = replace(context.settings, reports=reports, part_of="runner reproduce")
    context = replace(context, settings=with_header(settings, stored.header))
    if against:
        return _in_turns(stored, environments, against, context, progress)
    prepared = Prepared(plan=stored.plan, specs=(), survey=context.backend.survey(()), also=environments)
    measured = _measure(prepared, context, progress)
    before, after = dataset.load_dataset(stored.run), dataset.load_dataset(measured)
    return Reproduction(
        run=stored.run.id,
        folder=measured.path,
        rows=tuple(_rows(before, after, stored, context.settings.margin)),
        facts=tuple(fact_sentences(before, after, stored.environments)),
    )


def _context(options: Options, stored: Stored, progress: Progress) -> Context:
    """Return the context of the stored run, on its device; if that is not here, on one of the same kind."""
    header = stored.header
    chosen = replace(of_stored_plan(header, tuple(stored.plan.frameworks), options), seed=stored.plan.measurement.seed)
    if header.backend != "host":
        chosen = replace(chosen, selectors=None)
    if options.backend != Options().backend:
        chosen = replace(chosen, backend=options.backend)
    if options.device:
        return setup(replace(chosen, device=options.device))
    try:
        return setup(chosen)
    except GpuError:
        if stored.plan.device == "cpu":
            raise
        progress.note(f"the GPU of run {stored.run.id}, {header.device_name}, is not here: measuring on another")
        return setup(replace(chosen, device="cuda"))


def _measure(prepared: Prepared, context: Context, progress: Progress) -> Run:
    """Measure a plan; return its run.

    Raises:
        RunnerError: no cell has a good record.
    """
    totals = pipeline.run(prepared, context.backend, context.settings, progress, context.gpus)
    if not totals.good:
        hint = f"`runner check {totals.run.path}` shows why"
        raise RunnerError(Problem("no cell could be measured again", hint=hint))
    return totals.run


def _rows(before: Dataset, after: Dataset, stored: Stored, margin: float) -> list[Row]:
    """Return each cell's row of the new run against the stored one; their rounds were not in turns."""
    sides = {name: environment_side(before, name) for name in stored.environments}
    new_sides = {name: environment_side(after, name) for name in stored.environments}
    baselines = {
        cell: Baseline(
            run=before.run,
            side=sides[cell.environment],
            digest=str(stored.header.digests.get(cell.environment, "")),
            facts=before.environments.get(cell.environment, {}),
        )
        for cell in stored.cells
        if cell in sides[cell.environment].measured and cell in new_sides[cell.environment].measured
    }
    return [row for _, row in compare_with_baselines(after, baselines, margin)]


def _in_turns(
    stored: Stored, environments: Mapping[str, Provisioned], against: str, context: Context, progress: Progress
) -> Reproduction:
    """Measure the stored environment and one of the matrix in turns."""
    (name,) = stored.environments if len(stored.environments) == 1 else ("",)
    if not name:
        raise UsageError(Problem("--against takes cells of one environment", hint="name RUN/ENVIRONMENT/..."))
    if against not in context.matrix.environments:
        hint = "`runner list environments` lists them"
        raise UsageError(Problem(f"the environment {against!r} is not in the matrix", hint=hint))
    tails = {cell.id.partition("/")[2] for cell in stored.cells}
    request = replace(
        context.request,
        environments=(against,),
        chosen=lambda cell: cell.partition("/")[2] in tails,
        precisions=(),
        workloads=(),
    )
    matrix = with_stored_networks(context.matrix, stored.plan)
    present = prepare(matrix, request, context.backend, context.settings, context.gpu)
    earlier = f"{name}@{stored.run.id}"
    ready = replace(environments[name], environment=earlier)
    plan = turns_plan(stored.plan, present.plan, earlier)
    prepared = replace(present, plan=plan, also={earlier: ready})
    measured = _measure(prepared, context, progress)
    after = dataset.load_dataset(measured)
    comparison: Comparison | None = next(
        (each for each in analyse(after, context.settings.margin).comparisons if each.others == (against,)), None
    )
    if comparison is None:
        raise RunnerError(Problem(f"{earlier} and {against} have no cell in common that both can compute"))
    return Reproduction(
        run=stored.run.id,
        folder=measured.path,
        rows=comparison.rows,
        against=against,
        facts=tuple(fact_sentences(dataset.load_dataset(stored.run), after, {name: earlier})),
    )


def turns_plan(stored: Plan, present: Plan, earlier: str) -> Plan:
    """Return a plan that measures stored cells in turns with those of a present environment.

    Args:
        stored: cells of one environment.
        present: the same cells of another.
        earlier: what the environment of the stored cells is called; it is the base.
    """
    rounds, before = max(stored.measurement.rounds, MIN_ROUNDS), stored.measurement.rounds

    def renamed(cell: Cell) -> Cell:
        return replace(cell, environment=earlier)

    cases = {block.case_id: block for block in present.blocks}
    blocks = [
        replace(block, cells=(*map(renamed, block.cells), *cases[block.case_id].cells))
        for block in stored.blocks
        if block.case_id in cases
    ]
    in_blocks = {cell for block in blocks for cell in block.cells}

    def planned(cells: Sequence[PlannedCell], of: int) -> list[PlannedCell]:
        return [replace(cell, seconds=cell.seconds / of * rounds) for cell in cells if cell.cell in in_blocks]

    of_stored = [replace(cell, cell=renamed(cell.cell)) for cell in stored.cells]
    measurement = replace(stored.measurement, rounds=rounds, max_rounds=max(stored.measurement.round_limit, MAX_ROUNDS))
    return replace(
        stored,
        measurement=measurement,
        cells=(*planned(of_stored, before), *planned(present.cells, present.measurement.rounds)),
        blocks=tuple(blocks),
        frameworks={earlier: next(iter(stored.frameworks.values())), **present.frameworks},
        past=Past(),
    )
