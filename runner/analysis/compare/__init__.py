"""Which of two environments is faster, cell by cell, and how far the stored rounds can tell."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.analysis import statistics
from runner.analysis.compare import differences
from runner.analysis.compare.geometric_mean import geometric_means
from runner.analysis.compare.noise_floor import (
    Floor,
    Work,
    apply_noise_floors,
    flag_noisy_means,
    mean_noise_floors,
    noise_floors,
)
from runner.analysis.compare.pairing import Pair, Side, environment_side, pairs
from runner.analysis.compare.published import published_side
from runner.analysis.compare.verdicts import Draft, draft, with_verdicts
from runner.analysis.model import Comparison, Dataset, Row
from runner.catalog import published
from runner.core.errors import Problem, RunnerError, UsageError


def compare(
    results: Iterable[Dataset],
    base: str,
    others: Sequence[str],
    *,
    margin: float = statistics.MARGIN,
    best: bool = False,
    known: Collection[str] = (),
) -> Comparison:
    """Return what the newest run with both sides says of each other environment against the base.

    Args:
        results: newest first; only as many are taken as it needs.
        base: environment id, or ``published:SOURCE/ENVIRONMENT``.
        others: likewise.
        margin: the change that counts as none, above 0.
        best: take the fastest implementation of each side, instead of equal ones.
        known: further environment ids that are no mistake, those of the matrix.

    Raises:
        UsageError: an id that neither a run nor ``known`` has, or one that is asked for twice.
        RunnerError: nothing can be compared; it says what is missing, why, and what to do.
    """
    asked = (base, *others)
    if not others or len(set(asked)) < len(asked):
        raise UsageError(Problem("compare needs a base and others, each once", hint="runner compare BASE OTHER..."))
    runs = _Runs(results, asked)
    found = {other: _choose(runs, base, other, best=best) for other in others}
    _refuse_unknown(runs, asked, known)
    usable = [match for match in found.values() if match is not None and match.usable]
    if not usable:
        raise RunnerError(*_nothing(runs, found, base))
    drafts = [one for match in found.values() if match for one in match.drafts()]
    return Comparison(
        base=base,
        others=tuple(others),
        device=usable[0].base.names("device"),
        device_name=usable[0].base.names("device_name"),
        rows=tuple(_sorted(apply_noise_floors(with_verdicts(drafts, margin), runs.floors), others)),
        only=tuple(note for other, match in found.items() for note in _notes(runs, match, base, other)),
        margin=margin,
        devices=_devices(usable) if runs.published else {},
        figures=tuple(dict.fromkeys(figure for match in usable for figure in match.figures())),
        differences=differences.environment_differences(
            ((one.base, one.other, one.pairs) for one in usable), runs.told
        ),
        overall=() if best else tuple(flag_noisy_means(geometric_means(drafts), base, runs.mean_floors(usable))),
    )


@dataclass(frozen=True, slots=True)
class _Match:
    """Two sides and the cells of them that belong together."""

    base: Side
    other: Side
    pairs: Sequence[Pair]

    @property
    def usable(self) -> bool:
        return any(pair.base in self.base.measured and pair.other in self.other.measured for pair in self.pairs)

    def figures(self) -> Iterator[published.Figure]:
        for pair in self.pairs:
            for figures, cell in zip((self.base.figures, self.other.figures), pair, strict=True):
                if cell in figures:
                    yield figures[cell]

    def drafts(self) -> Iterator[Draft]:
        return (draft(self.base, self.other, pair) for pair in self.pairs)


class _Runs:
    """The sides of each run, newest first; a run is read when it is asked for and then kept.

    What was published is a side of every run, and of an empty one where there is none.
    """

    def __init__(self, results: Iterable[Dataset], asked: Sequence[str]) -> None:
        self.environments: set[str] = set()
        self.published = {name: published_side(name) for name in asked if published.is_published(name)}
        self._asked = [name for name in asked if name not in self.published]
        self._source = iter(results if self._asked else ())
        self._kept: list[Mapping[str, Side]] = []
        self.told: dict[str, differences.RunFacts] = {}
        self.floors: dict[str, Mapping[Work, Floor]] = {}
        self._mean_floors: dict[str, Mapping[str, float]] = {}

    def __iter__(self) -> Iterator[Mapping[str, Side]]:
        yield from self._kept
        for results in self._source:
            self.environments |= {one.cell.environment for one in results.plan} | set(results.environments)
            self.environments |= set(results.rounds["environment"].unique())
            self.floors[results.run] = noise_floors(results)
            self._mean_floors[results.run] = mean_noise_floors(results)
            self.told[results.run] = differences.RunFacts(results.machine, results.environments)
            self._kept.append({**self.published, **{name: environment_side(results, name) for name in self._asked}})
            yield self._kept[-1]
        if self.published and not self._kept:
            self._kept.append({**self.published, **{name: Side(environment=name) for name in self._asked}})
            yield self._kept[-1]

    def mean_floors(self, matches: Iterable[_Match]) -> Mapping[str, float]:
        """Return by how much environments differed from themselves in the runs of some sides, the newest last."""
        runs = {side.run for one in matches for side in (one.base, one.other)}
        found = [floors for run, floors in self._mean_floors.items() if run in runs]
        return {name: floor for floors in reversed(found) for name, floor in floors.items()}


def _choose(runs: _Runs, base: str, other: str, *, best: bool) -> _Match | None:
    """Return the newest sides that can be compared, of one run where there is one; else those that were planned."""
    planned = None
    for sides in runs:
        match = _Match(sides[base], sides[other], pairs(sides[base], sides[other], best=best))
        if match.usable:
            return match
        planned = planned or (match if match.pairs else None)
    for newer in runs:
        for older in runs:
            one, two = older[base], newer[other]
            if one.run != two.run and not (one.figures or two.figures) and one.measured and two.measured:
                match = _Match(one, two, pairs(one, two, best=best))
                if match.usable:
                    return match
    return planned


def _devices(usable: Sequence[_Match]) -> dict[str, str]:
    """Return what each side was measured on."""
    return {one.environment: one.names("device_name") for match in usable for one in (match.base, match.other)}


def _sorted(rows: Iterable[Row], others: Sequence[str]) -> list[Row]:
    place = {name: index for index, name in enumerate(others)}
    return sorted(
        rows,
        key=lambda one: (
            one.case_id,
            one.phase,
            one.precision,
            one.implementation,
            one.base_implementation,
            place[one.environment],
        ),
    )


def _refuse_unknown(runs: _Runs, asked: Sequence[str], known: Collection[str]) -> None:
    names = sorted(runs.environments.union(known))
    problems = []
    for name in asked:
        if names and name not in names and name not in runs.published:
            near = difflib.get_close_matches(name, [*names, *published.sides()], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            problems.append(Problem(f"unknown environment {name!r}", hint=hint))
    if problems:
        raise UsageError(*problems)


def _nothing(runs: _Runs, found: Mapping[str, _Match | None], base: str) -> list[Problem]:
    """Return why none of the others can be compared with the base, and what to do."""
    here = [name for name in (base, *found) if name not in runs.published]
    missing = [name for name in here if not any(sides[name].measured for sides in runs)]
    command = _command(runs, here)
    if missing:
        words = {1: "it", 2: "both"}.get(len(here), "all")
        *rest, last = [Problem(f"{name} has no measurements: {_why(runs, name)}") for name in missing]
        return [*rest, Problem(last.message, hint=f"to measure {words}: {command}")]
    has = "; ".join(f"{name} has {_work(runs, name)}" for name in (base, *found))
    hint = f"take the fastest of each with --best{', or measure the same on all: ' + command if here else ''}"
    return [Problem(f"{base} and {', '.join(found)} have no measured cell in common: {has}", hint=hint)]


def _command(runs: _Runs, names: Sequence[str]) -> str:
    """Return the command that measures environments, on the workloads of what they are laid beside."""
    workloads = sorted({cell.workload for side in runs.published.values() for cell in side.measured})
    return f"`runner run {' '.join([*names, *(f'--workload {name}' for name in workloads)])}`"


def _why(runs: _Runs, name: str) -> str:
    """Return the distinct ends of an environment's cells in the newest run that asked for it."""
    for sides in runs:
        ends = list(dict.fromkeys(f"{code}: {reason}" for code, reason in sides[name].ends.values()))
        if ends:
            return "; ".join(ends[:3]) + (f"; and {len(ends) - 3} more" if len(ends) > 3 else "")
    return "no run asked for it"


def _work(runs: _Runs, name: str) -> str:
    """Return what the newest run with measurements of an environment has of it."""
    for sides in runs:
        if sides[name].measured:
            return _some({f"{cell.implementation} on {cell.case_id}" for cell in sides[name].measured})
    return "nothing"


def _some(words: Collection[str]) -> str:
    """Return the first three in a line, and how many more there are."""
    first, rest = sorted(words)[:3], len(words) - 3
    return ", ".join(first) + (f" and {rest} more" if rest > 0 else "")


def _notes(runs: _Runs, match: _Match | None, base: str, other: str) -> Iterator[str]:
    """Give a sentence for each implementation or case that only one side has."""
    if match is None or not match.usable:
        if not any(sides[other].measured for sides in runs):
            here = [name for name in (base, other) if name not in runs.published]
            words = "both" if len(here) == 2 else "it"
            yield f"{other} has no measurements: {_why(runs, other)}; {_command(runs, here)} measures {words}"
        else:
            yield f"{base} and {other} have no measured cell in common"
        return
    sides = (
        (match.base, {p.base for p in match.pairs}, match.other),
        (match.other, {p.other for p in match.pairs}, match.base),
    )
    for own, partners, lacking in sides:
        slugs, cases = {cell.implementation for cell in partners}, {cell.case_id for cell in partners}
        alone = [cell for cell in own.measured if cell not in partners]
        for slug in sorted({cell.implementation for cell in alone} - slugs):
            why = {lacking.ends[cell][1] for cell in lacking.skipped if cell.implementation == slug}
            yield f"only {own.environment} has {slug}" + (f": {', '.join(sorted(why))}" if why else "")
        left = {cell.case_id for cell in alone} - cases
        if left:
            yield f"only {own.environment} has {'' if own.figures else 'measured '}{_some(left)}"
