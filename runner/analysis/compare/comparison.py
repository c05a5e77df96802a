"""Compares environments with a base, in the newest run that has both, and makes the comparisons that a run is about."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from runner.analysis.compare.differences import environment_differences
from runner.analysis.compare.drafts import Draft, widenings
from runner.analysis.compare.forecasts import detectable_by_kind
from runner.analysis.compare.geometric_mean import geometric_means
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.metric_rows import absences, metric_rows
from runner.analysis.compare.noise_floor import apply_noise_floors, flag_noisy_means
from runner.analysis.compare.plain_rows import in_plain_processes
from runner.analysis.compare.run_sides import Match, RunReader, choose_sides, passed_over
from runner.analysis.compare.verdicts import with_verdicts
from runner.analysis.compare.withheld import withhold
from runner.analysis.comparison_model import Comparison, Detectable, GeometricMean, Row
from runner.analysis.model import Dataset
from runner.analysis.process_states import TWO_STATES
from runner.analysis.releases import releases
from runner.catalog import published
from runner.core.errors import Problem, RunnerError, UsageError
from runner.core.model.cells import is_control, is_plain, is_twin, without_control
from runner.stats.intervals import MARGIN


def compare(
    runs: Iterable[Dataset | MeasuredRun],
    base: str,
    others: Sequence[str],
    *,
    margin: float = MARGIN,
    best: bool = False,
    known: Collection[str] = (),
) -> Comparison:
    """Return the comparison of each other environment with the base, from the newest run with both sides.

    Args:
        runs: newest first; only as many are read as needed.
        base: environment id, or ``published:SOURCE/ENVIRONMENT``.
        others: likewise.
        margin: the relative change that counts as none, above 0.
        best: compare the fastest implementation of each side instead of equal ones.
        known: further valid environment ids, those of the matrix.

    Raises:
        UsageError: an id is neither in a run nor in ``known``, or is given twice.
        RunnerError: nothing can be compared; it says what is missing, why, and what to do.
    """
    _refuse_sides(base, others)
    reader = RunReader(runs, (base, *others))
    matches = {other: choose_sides(reader, base, other, best=best) for other in others}
    _refuse_unknown(reader, (base, *others), known)
    usable = [match for match in matches.values() if match is not None and match.usable]
    if not usable:
        raise RunnerError(*_nothing_comparable(reader, base, others))
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
        only=tuple(note for other, match in matches.items() for note in _notes(reader, match, base, other)),
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

    The order is the plan's. A framework with fewer than two measured environments, or none in common, is left out. If
    no framework has two, the first environment of the run is compared with those of the other frameworks. A/A pairs
    come last.
    """
    shared = MeasuredRun.of(run)
    dataset = shared.dataset
    rounds = dataset.rounds
    measured = dict(zip(rounds["environment"].tolist(), rounds["framework"].tolist(), strict=True))
    families: dict[str, list[str]] = {}
    twins: list[list[str]] = []
    for name in dict.fromkeys([*(planned.cell.environment for planned in dataset.plan), *measured]):
        if name in measured and is_twin(name):
            twins.append([without_control(name), name])
        elif name in measured and not is_plain(name):
            families.setdefault(measured[name], []).append(name)
    if all(len(names) == 1 for names in families.values()):
        families = {"": [name for (name,) in families.values()]}
    comparisons = []
    known = releases(dataset)
    for names in [*families.values(), *twins]:
        try:
            if len(names) > 1:
                compared = compare([shared], names[0], names[1:], margin=margin)
                comparisons.append(replace(compared, releases={name: known[name] for name in names}))
        except RunnerError:  # they share no case; the tables of times show both
            continue
    return tuple(comparisons)


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


def _refuse_unknown(runs: RunReader, requested: Sequence[str], known: Collection[str]) -> None:
    names = sorted(runs.environments.union(known))
    problems = []
    shown = [name for name in names if not is_control(name)]
    for name in requested:
        if names and name not in names and name not in runs.published:
            releases = [each for each in shown if each.startswith(f"{name}-")]
            if releases:
                hint = f"name a release: {', '.join(releases)}"
                problems.append(Problem(f"{name!r} is a framework, not an environment", hint=hint))
                continue
            near = difflib.get_close_matches(name, [*shown, *published.figures_by_side()], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(shown)}"
            problems.append(Problem(f"unknown environment {name!r}", hint=hint))
    if problems:
        raise UsageError(*problems)


def _nothing_comparable(runs: RunReader, base: str, others: Sequence[str]) -> list[Problem]:
    """Return why none of the others can be compared with the base, and what to do."""
    measurable = [name for name in (base, *others) if name not in runs.published]
    missing = [name for name in measurable if not any(run.sides[name].measured for run in runs)]
    command = _command(runs, measurable)
    if missing:
        pronoun = {1: "it", 2: "both"}.get(len(measurable), "all")
        problems = [Problem(f"{name} has no measurements: {_failures(runs, name)}") for name in missing]
        return [*problems[:-1], Problem(problems[-1].message, hint=f"to measure {pronoun}: {command}")]
    cells = "; ".join(f"{name} has {_measured_cells(runs, name)}" for name in (base, *others))
    hint = "compare the fastest of each with --best"
    hint += f", or measure the same on all: {command}" if measurable else ""
    return [Problem(f"{base} and {', '.join(others)} have no measured test in common: {cells}", hint=hint)]


def _command(runs: RunReader, names: Sequence[str]) -> str:
    """Return the command that measures environments; what published sides have of their workloads takes hours."""
    workloads = sorted({cell.workload for side in runs.published.values() for cell in side.measured})
    words = [*(f"--workload {name}" for name in workloads), "--budget 2h"] if workloads else []
    return f"`runner run {' '.join([*names, *words])}`"


def _failures(runs: RunReader, name: str) -> str:
    """Return the distinct failures and skips of an environment in the newest run that includes it."""
    for run in runs:
        ends = list(dict.fromkeys(f"{code}: {reason}" for code, reason in run.sides[name].ends.values()))
        if ends:
            return "; ".join(ends[:3]) + (f"; and {len(ends) - 3} more" if len(ends) > 3 else "")
    return "no run includes it"


def _measured_cells(runs: RunReader, name: str) -> str:
    """Return the measured cells of an environment in the newest run that has any."""
    for run in runs:
        if run.sides[name].measured:
            return _first_three({f"{cell.implementation} on {cell.case_id}" for cell in run.sides[name].measured})
    return "nothing"


def _first_three(texts: Collection[str]) -> str:
    """Return the first three in one line, and the number of the others."""
    first, others = sorted(texts)[:3], len(texts) - 3
    return ", ".join(first) + (f" and {others} more" if others > 0 else "")


def _notes(runs: RunReader, match: Match | None, base: str, other: str) -> Iterator[str]:
    """Yield a sentence for each implementation or case that only one side has."""
    if match is None or not match.usable:
        if not any(run.sides[other].measured for run in runs):
            measurable = [name for name in (base, other) if name not in runs.published]
            pronoun = "both" if len(measurable) == 2 else "it"
            command = _command(runs, measurable)
            yield f"{other} has no measurements: {_failures(runs, other)}; {command} measures {pronoun}"
        else:
            yield f"{base} and {other} have no measured test in common"
        return
    sides = (
        (match.base, {pair.base for pair in match.pairs}, match.other),
        (match.other, {pair.other for pair in match.pairs}, match.base),
    )
    for side, partners, lacking in sides:
        slugs, cases = {cell.implementation for cell in partners}, {cell.case_id for cell in partners}
        unmatched = [cell for cell in side.measured if cell not in partners]
        for slug in sorted({cell.implementation for cell in unmatched} - slugs):
            reasons = {lacking.ends[cell][1] for cell in lacking.skipped if cell.implementation == slug}
            yield f"only {side.environment} has {slug}" + (f": {', '.join(sorted(reasons))}" if reasons else "")
        unmatched_cases = {cell.case_id for cell in unmatched} - cases
        if unmatched_cases:
            yield f"only {side.environment} has {'' if side.figures else 'measured '}{_first_three(unmatched_cases)}"
