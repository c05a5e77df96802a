"""Compares environments with a base, in the newest run that has both, and makes the comparisons that a run is about."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

from runner.analysis.compare.differences import environment_differences
from runner.analysis.compare.drafts import Draft, widenings
from runner.analysis.compare.forecasts import detectable_by_kind
from runner.analysis.compare.geometric_mean import geometric_means
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.metric_rows import absences, metric_rows
from runner.analysis.compare.missing_sides import notes, nothing_comparable, refuse_unknown
from runner.analysis.compare.noise_floor import apply_noise_floors, flag_noisy_means
from runner.analysis.compare.plain_rows import in_plain_processes
from runner.analysis.compare.run_sides import Match, RunReader, choose_sides, passed_over
from runner.analysis.compare.verdicts import with_verdicts
from runner.analysis.compare.withheld import withhold
from runner.analysis.comparison_model import Comparison, Detectable, GeometricMean, Row
from runner.analysis.model import Dataset
from runner.analysis.process_states import TWO_STATES
from runner.analysis.releases import releases
from runner.core.errors import Problem, RunnerError, UsageError
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.model.cells import is_plain, is_twin, without_control
from runner.stats.intervals import MARGIN


def compare(  # noqa: PLR0913  all but the first three are keywords
    runs: Iterable[Dataset | MeasuredRun],
    base: str,
    others: Sequence[str],
    *,
    margin: float = MARGIN,
    best: bool = False,
    known: Collection[str] = (),
    words: Mapping[str, str] = MappingProxyType({}),
    without: Collection[Cell] = (),
) -> Comparison:
    """Return the comparison of each other environment with the base, from the newest run with both sides.

    Args:
        runs: newest first; only as many are read as needed.
        base: environment id, or ``published:SOURCE/ENVIRONMENT``.
        others: likewise.
        margin: the relative change that counts as none, above 0.
        best: compare the fastest implementation of each side instead of equal ones.
        known: further valid environment ids, those of the matrix.
        words: environment id -> the word that a command names it by, ``torch==2.9.1``, where that is not the id.
        without: cells of the others that are not compared.

    Raises:
        UsageError: an id is neither in a run nor in ``known`` or ``words``, or is given twice.
        RunnerError: nothing can be compared; it says what is missing, why, and what to do.
    """
    _refuse_sides(base, others)
    reader = RunReader(runs, (base, *others), words)
    choices = {other: choose_sides(reader, base, other, best=best) for other in others}
    matches = {other: match and match.without(without) for other, match in choices.items()}
    refuse_unknown(reader, (base, *others), known)
    usable = [match for match in matches.values() if match is not None and match.usable]
    if not usable:
        raise RunnerError(*nothing_comparable(reader, base, others))
    planned = (draft for match in matches.values() if match for draft in match.drafts())
    drafts = [*in_plain_processes(planned, reader.measured())]
    judged = with_verdicts(drafts, margin, inflations=reader.inflations())
    by_kind = detectable_by_kind(judged, [draft.looks for draft in drafts], margin)
    detected = next(iter(by_kind.values())) if len(by_kind) == 1 else Detectable()
    rows = [*withhold(apply_noise_floors(judged, reader.noise_floors()), reader.states(), margin)]
    averaged = [draft for draft, row in zip(drafts, rows, strict=True) if row.code != TWO_STATES]
    passed = (each for match in usable for each in passed_over(reader.already_read(), match))
    sides = ((match.base, match.other, match.pairs) for match in usable)
    metrics = metric_rows(usable, reader.measured())
    return Comparison(
        base=base,
        others=tuple(others),
        device=usable[0].base.names("device"),
        device_name=usable[0].base.names("device_name"),
        rows=tuple(_sorted(rows, others)),
        only=tuple(note for other, match in choices.items() for note in notes(reader, match, base, other)),
        margin=margin,
        devices=_devices(usable) if reader.published else {},
        figures=tuple(dict.fromkeys(figure for match in usable for figure in match.figures())),
        differences=environment_differences(sides, reader.facts()),
        overall=() if best else tuple(_means(reader, averaged, base, usable)),
        widenings=widenings(drafts, reader.inflations()),
        passed_over=tuple(dict.fromkeys(passed)),
        detectable_change=detected.change,
        detectable_rounds=detected.rounds,
        detectable_by_kind=by_kind,
        metrics=tuple(row for of_metric in metrics.values() for row in _sorted(of_metric, others)),
        absent=absences(usable, metrics),
    )


def summarise(run: Dataset | MeasuredRun, *, margin: float = MARGIN) -> tuple[Comparison, ...]:
    """Return, for each framework of a run, the comparison of its other measured environments with the first.

    The order is that of the matrix. A test that the first environment lacks is in a further comparison, whose base is
    the first environment that has it. A framework with fewer than two measured environments, or without a test that two
    of them have, is left out. If no framework has two environments, the first of the run is compared with those of the
    other frameworks. A/A pairs come last.
    """
    shared = MeasuredRun.of(run)
    dataset = shared.dataset
    rounds = dataset.rounds
    measured = dict(zip(rounds["environment"].tolist(), rounds["framework"].tolist(), strict=True))
    planned = _in_order(planned.cell for planned in dataset.plan)
    families: dict[str, list[str]] = {}
    twins: list[list[str]] = []
    for name in dict.fromkeys([*planned, *measured]):
        if name in measured and is_twin(name):
            twins.append([without_control(name), name])
        elif name in measured and not is_plain(name):
            families.setdefault(measured[name], []).append(name)
    if all(len(names) == 1 for names in families.values()):
        families = {"": [name for (name,) in families.values()]}
    comparisons = []
    known = releases(dataset)
    for names in [*families.values(), *twins]:
        for comparison in _chained(shared, names, margin):
            sides = comparison.base, *comparison.others
            comparisons.append(replace(comparison, releases={name: known[name] for name in sides}))
    return tuple(comparisons)


def _in_order(cells: Iterable[Cell]) -> list[str]:
    """Return the environments of a plan in the order of appearance, each after those that come before it in any case.

    A case that lacks the oldest may come first. Without an order that fits all cases, as in a run whose plan was joined
    from several, it is that of appearance.
    """
    by_work = grouped(((cell.case_id, cell.phase, cell.precision, cell.implementation), cell) for cell in cells)
    names = [[cell.environment for cell in of_work] for of_work in by_work.values()]
    appeared = [*dict.fromkeys(itertools.chain.from_iterable(names))]
    sorter = TopologicalSorter[str](dict.fromkeys(appeared, ()))
    for before, after in (pair for each in names for pair in itertools.pairwise(each)):
        sorter.add(after, before)
    try:
        sorter.prepare()
    except CycleError:
        return appeared
    ready, ordered = set[str](), list[str]()
    while sorter.is_active():
        ready.update(sorter.get_ready())
        ordered.append(min(ready, key=appeared.index))
        ready.remove(ordered[-1])
        sorter.done(ordered[-1])
    return ordered


def _chained(run: MeasuredRun, names: Sequence[str], margin: float) -> Iterator[Comparison]:
    """Yield the comparison of some environments with the first of them, and those of the tests that it lacks."""
    compared: set[Cell] = set()
    for index, base in enumerate(names[:-1]):
        others = [name for name in names[index + 1 :] if not index or run.side(name).measured.keys() - compared]
        try:
            comparison = compare([run], base, others, margin=margin, without=compared) if others else None
        except RunnerError:  # they share no case; the tables of times show both
            continue
        if comparison is None:
            return
        with_rows = {row.environment for row in comparison.rows}
        yield replace(comparison, others=tuple(name for name in others if not index or name in with_rows))
        compared.update(row.other for row in comparison.rows if None not in row.values)


def _refuse_sides(base: str, others: Sequence[str]) -> None:
    """Raise UsageError for a base alone, and for a side that is named twice."""
    names = (base, *others)
    if not others:
        raise UsageError(Problem("compare needs a base and others", hint="runner compare BASE OTHER..."))
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageError(Problem(f"{twice[0]} was named twice", hint=f"{twice[0]}@RUN is a side of a certain run"))


def _means(runs: RunReader, drafts: Sequence[Draft], base: str, usable: Sequence[Match]) -> Iterator[GeometricMean]:
    """Return the mean over the cells of each environment, with a note where its noise floor is as large."""
    return flag_noisy_means(geometric_means(drafts, runs.inflations()), base, runs.mean_noise_floors(usable))


def _devices(usable: Sequence[Match]) -> dict[str, str]:
    """Return side -> the names of its devices."""
    return {side.environment: side.names("device_name") for match in usable for side in (match.base, match.other)}


def _sorted(rows: Iterable[Row], others: Sequence[str]) -> list[Row]:
    order = {name: index for index, name in enumerate(others)}
    return sorted(
        rows,
        key=lambda row: (
            row.case_id,
            row.phase,
            row.precision,
            row.implementation,
            row.base_implementation,
            order[row.environment],
        ),
    )
