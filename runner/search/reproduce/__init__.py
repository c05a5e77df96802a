"""`runner reproduce`: build the environment of a stored record again, measure its cells again, and compare.

1. ``stored`` finds the run and its cells, and what the run was measured with.
2. ``rebuilt`` restores each environment by its digest, or builds it from the lock that the run keeps.
3. This module measures the cells with the settings of the run, below ``reports/reproduce/<run>``, and compares.
4. ``result`` says what that shows.
"""

from collections.abc import Mapping
from dataclasses import replace

from runner.analysis import dataset
from runner.analysis.compare.pairing import environment_side
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import MIN_ROUNDS, Dataset
from runner.core.errors import GpuError, Problem, RunnerError, UsageError
from runner.core.model import Provisioned
from runner.core.model.cells import without_environment
from runner.core.model.variant_ids import without_variant
from runner.core.progress import Progress
from runner.plan.pairs import in_turns
from runner.releases.named import as_typed
from runner.search.reproduce.rebuilt import rebuilt
from runner.search.reproduce.result import Reproduction, fact_sentences
from runner.search.reproduce.stored import Stored, find_stored
from runner.session import flow
from runner.session.context import Context, PlannedRun, setup
from runner.session.execution.resume import with_header
from runner.session.networks import with_stored_networks
from runner.session.options import Options
from runner.session.preparation import Prepared, prepare
from runner.session.stored_options import of_stored_plan
from runner.session.trust import require_trust
from runner.watch.nightly.baseline import Baseline, compare_with_baselines

__all__ = ["FOLDER", "reproduce"]

FOLDER = "reproduce"


def reproduce(
    options: Options, record: str, progress: Progress, against: str = "", *, trust: bool = False
) -> Reproduction:
    """Measure the cells of a record or a run again, in the same environments and with the same settings.

    Args:
        options: of these, the matrix file, the reports folder, ``--backend``, ``--device`` and ``--busy-ok`` count.
        record: a record's file, a run, or ``RUN/CELL`` with a cell or a glob over cells.
        progress: shows the work.
        against: an environment of the matrix that is measured in turns with that of the record; empty for none.
        trust: measure a run that was not started here, too.

    Raises:
        UsageError: there is no such record, its run was not started here and is not trusted, or the environment of
            ``against`` does not exist.
        RunnerError: an environment can neither be restored nor built again; or measuring failed.
    """
    stored = find_stored(options.reports, record)
    require_trust(stored.run, stored.header, tuple(stored.environments), progress.note, trust=trust)
    context = _context(options, stored, progress)
    for note in context.notes:
        progress.note(note)
    environments = rebuilt(stored, context, progress)
    context = context.step_of("runner reproduce", options.reports / FOLDER / stored.run.id)
    context = replace(context, settings=with_header(context.settings, stored.header))
    if against:
        return _in_turns(stored, environments, against, context, progress)
    prepared = Prepared(plan=stored.plan, specs=(), survey=context.backend.survey(()), also=environments)
    measured = _measure(prepared, context, progress)
    before, after = dataset.load_dataset(stored.run), measured.analysis.dataset
    return Reproduction(
        run=stored.run.id,
        folder=measured.run.path,
        rows=tuple(_rows(before, after, stored, context.settings.margin)),
        facts=tuple(fact_sentences(before, after, stored.environments)),
    )


def _context(options: Options, stored: Stored, progress: Progress) -> Context:
    """Return the context of the stored run, on its device; if that is not here, on one of the same kind."""
    header = stored.header
    chosen = replace(of_stored_plan(header, tuple(stored.plan.frameworks), options), seed=stored.plan.measurement.seed)
    if header.backend != "host":
        chosen = replace(chosen, selectors=_interpreters(stored) or None)
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


def _interpreters(stored: Stored) -> list[str]:
    """Return the interpreters that the stored cells were measured with as they are, as they are typed."""
    as_is = {name: word for name, word in stored.header.as_is.items() if word.startswith("python:")}
    names = [name for name in dict.fromkeys(map(without_variant, stored.environments)) if name in as_is]
    return as_typed(names, (), as_is)


def _measure(prepared: Prepared, context: Context, progress: Progress) -> flow.RunSession:
    """Measure a plan, and write the report.

    Raises:
        RunnerError: no cell has a good record.
    """
    work = PlannedRun(context, prepared)
    measured = flow.measure_planned(work, progress, without=(flow.remember, flow.answer, flow.propose))
    if not measured.totals.good:
        hint = f"`runner check {measured.run.path}` shows why"
        raise RunnerError(Problem("no test could be measured again", hint=hint))
    return measured


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
        raise UsageError(Problem("--against takes tests of one environment", hint="name RUN/ENVIRONMENT/..."))
    if against not in context.matrix.environments:
        hint = "`runner list environments` lists them"
        raise UsageError(Problem(f"the environment {against!r} is not in the matrix", hint=hint))
    tails = {without_environment(cell.id) for cell in stored.cells}
    request = replace(
        context.request,
        environments=(against,),
        chosen=lambda cell: without_environment(cell) in tails,
        phases=(),
        precisions=(),
        workloads=(),
    )
    matrix = with_stored_networks(context.matrix, stored.plan)
    present = prepare(matrix, request, context.backend, context.settings, context.gpu)
    earlier = f"{name}@{stored.run.id}"
    ready = replace(environments[name], environment=earlier)
    plan = in_turns(stored.plan, present.plan, earlier, MIN_ROUNDS)
    prepared = replace(present, plan=plan, also={earlier: ready})
    measured = _measure(prepared, context, progress)
    comparison: Comparison | None = next(
        (each for each in measured.analysis.comparisons if each.others == (against,)), None
    )
    if comparison is None:
        raise RunnerError(Problem(f"{earlier} and {against} have no test in common that both can compute"))
    return Reproduction(
        run=stored.run.id,
        folder=measured.run.path,
        rows=comparison.rows,
        against=against,
        facts=tuple(fact_sentences(dataset.load_dataset(stored.run), measured.analysis.dataset, {name: earlier})),
    )
