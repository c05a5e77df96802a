"""Pairs of cells as rows: are they comparable, and which verdicts do their rounds support?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType

import numpy as np

from runner.analysis.boards import groups, kind_name, shared_rounds
from runner.analysis.cell_rounds import log_ratios
from runner.analysis.compare.drafts import Draft, freedom, variance_factor
from runner.analysis.compare.file_differences import file_differences
from runner.analysis.compare.forecasts import with_forecasts
from runner.analysis.compare.machine_outliers import NO_OUTLIERS
from runner.analysis.compare.pairing import CellPair, MeasuredCell, Side
from runner.analysis.compare.published_side import note, with_comparable_facts
from runner.analysis.compare.sample_sizes import SampleSize, batch_difference
from runner.analysis.compare.tails import mean_log_ratios, p95, with_mean_ratios
from runner.analysis.comparison_model import LEANING, Row
from runner.analysis.error_inflation import Inflation
from runner.analysis.model import Round
from runner.analysis.model_checks import pair_issues
from runner.core.facts import COMPARABLE
from runner.core.model.variant_ids import THREADS
from runner.stats import intervals, paired_tests

FACT_NAMES = {"clocks": "clock request", "threads": "thread count", "harness": "harness version"}
UNKNOWN = "unknown"
DIFFERENT_RUNS = "different-runs"
DIFFERENT_BOARDS = "different-boards"
WITHOUT_VERDICT = frozenset({DIFFERENT_RUNS, DIFFERENT_BOARDS})
"""Codes of sides that did not take turns, for a reason that the noise of their rounds says nothing about."""
NO_ROUNDS = "a published figure has no rounds: its variation between processes is unknown"


def draft(base: Side, other: Side, pair: CellPair) -> Draft:
    """Return the row of a pair of cells; its verdict follows from its rounds, if it has evidence.

    The sides may be from different runs.
    """
    base_cell, other_cell = base.measured.get(pair.base), other.measured.get(pair.other)
    if base_cell is None or other_cell is None:
        missing = [
            (side.environment, *side.ends[cell])
            for side, cell in zip((base, other), pair, strict=True)
            if cell not in side.measured
        ]
        reason = "; ".join(f"{environment}: {sentence}" for environment, _, sentence in missing)
        return Draft(_row(base, other, pair, verdict="not-measured", code=missing[0][1], reason=reason))
    if base.figures or other.figures:
        return Draft(_row_with_published(base, other, pair))
    different = fact_differences(base_cell, other_cell, base.environment, other.environment)
    different.update(host_difference(base_cell, other_cell, base.environment, other.environment))
    of_base, of_other = _sizes(base, other, pair)
    different.update(batch_difference(of_base, of_other, base.environment, other.environment))
    if different:
        code, reason = next(iter(different)), "; ".join(different.values())
        return Draft(_row(base, other, pair, verdict="not-comparable", code=code, reason=reason))
    return _draft_with_evidence(base, other, pair)


def with_verdicts(
    drafts: Iterable[Draft],
    margin: float,
    *,
    across_runs: bool = False,
    inflations: Mapping[str, Inflation] = MappingProxyType({}),
) -> list[Row]:
    """Return the rows of a table with their verdicts, which depend on how many rows it has.

    Args:
        drafts: the rows without verdicts.
        margin: the relative change that counts as none, above 0.
        across_runs: whether sides of different runs get a verdict, too. The noise within runs is all that it knows of,
            so it is a suspicion: nights, boots and rooms differ by more than rounds do. Sides on different boards
            never get one.
        inflations: run -> by how much its errors are larger than they seem.
    """
    drafts = list(drafts)
    undecidable = WITHOUT_VERDICT - {DIFFERENT_RUNS} if across_runs else WITHOUT_VERDICT
    decidable = [draft for draft in drafts if draft.evidence and draft.row.code not in undecidable]
    decided = iter(_decided_rows(decidable, margin, inflations) if decidable else ())
    is_decided = set(map(id, decidable))
    return [next(decided) if id(draft) in is_decided else _row_without_verdict(draft) for draft in drafts]


def host_difference(base: MeasuredCell, other: MeasuredCell, base_name: str, other_name: str) -> dict[str, str]:
    """Return code -> sentence if two cells have no host in common; none if a host is not known."""
    if not base.hosts or not other.hosts or base.hosts & other.hosts:
        return {}
    of_base, of_other = (" and ".join(sorted(side.hosts)) for side in (base, other))
    return {"host": f"the host differs: {of_base} for {base_name}, {of_other} for {other_name}"}


def fact_differences(base: MeasuredCell, other: MeasuredCell, base_name: str, other_name: str) -> dict[str, str]:
    """Return code -> sentence for each fact in which the rounds of two cells do not all agree."""
    differences: dict[str, str] = {}
    asked_for = {"threads"} if THREADS in base_name + other_name else set()  # counts as an axis: compared on purpose
    for fact, code in COMPARABLE.items():
        if code in differences or code in asked_for or len(base.facts[fact] | other.facts[fact]) <= 1:
            continue
        if code == "model-files":
            sides = base.facts[fact], other.facts[fact]
            differences[code] = file_differences(*sides, base_name, other_name)
        else:
            of_base, of_other = (
                " and ".join(sorted(value or UNKNOWN for value in side.facts[fact])) for side in (base, other)
            )
            name = FACT_NAMES.get(code, code)
            differences[code] = f"the {name} differs: {of_base} for {base_name}, {of_other} for {other_name}"
    return differences


def _row_with_published(base: Side, other: Side, pair: CellPair) -> Row:
    """Return the row of two times, at least one of them published: their quotient, and why it proves nothing."""
    base_cell, other_cell = base.measured[pair.base], other.measured[pair.other]
    different = fact_differences(*with_comparable_facts(base_cell, other_cell), base.environment, other.environment)
    reasons = [*different.values()] or [NO_ROUNDS]
    reasons += [
        note(side.figures[cell]) for side, cell in zip((base, other), pair, strict=True) if cell in side.figures
    ]
    return _row(
        base,
        other,
        pair,
        ratio=other_cell.seconds / base_cell.seconds,
        verdict="not-comparable" if different else "inconclusive",
        code=next(iter(different), "no-rounds"),
        reason="; ".join(filter(None, reasons)),
    )


def _shared_rounds(base: Side, other: Side, pair: CellPair) -> list[int]:
    """Return the numbers of the rounds that both cells have on the same board; none for sides of different runs."""
    if base.run != other.run:
        return []
    return shared_rounds(base.measured[pair.base].boards, other.measured[pair.other].boards)


def _sizes(base: Side, other: Side, pair: CellPair) -> tuple[list[SampleSize], list[SampleSize]]:
    """Return the sizes of the samples of both sides, in the rounds that are compared."""
    shared = set(_shared_rounds(base, other, pair))
    of_base, of_other = base.measured[pair.base].sizes, other.measured[pair.other].sizes
    return (
        [size for number, size in of_base.items() if not shared or number in shared],
        [size for number, size in of_other.items() if not shared or number in shared],
    )


def _draft_with_evidence(base: Side, other: Side, pair: CellPair) -> Draft:
    base_cell, other_cell = base.measured[pair.base], other.measured[pair.other]
    shared = _shared_rounds(base, other, pair)
    if shared:
        ratios = log_ratios(_rounds(base_cell, shared), _rounds(other_cell, shared))
        outliers = base.outliers.get((pair.base.case_id, pair.base.phase, pair.base.precision), NO_OUTLIERS)
        servers = [(base_cell.servers[number], other_cell.servers[number]) for number in shared]
        boards = [base_cell.boards[number] for number in shared]
        grouped = groups(boards, servers)
        evidence = intervals.paired(np.array(ratios), grouped)
        floored = intervals.with_tick(evidence, np.array(ratios), _relative_tick(base_cell), _relative_tick(other_cell))
        return Draft(
            _row(
                base,
                other,
                pair,
                verdict="inconclusive",
                boards=tuple(dict.fromkeys(boards)),
                base_seconds=median(base_cell.medians[number] for number in shared),
                seconds=median(other_cell.medians[number] for number in shared),
            ),
            floored,
            base.looks,
            ratios=dict(zip(shared, ratios, strict=True)),
            groups=dict(zip(shared, grouped, strict=True)) if grouped else {},
            mean_ratios=mean_log_ratios(base_cell, other_cell, shared, outliers),
            is_coarse=floored is not evidence,
        )
    code, reason = _why_unpaired(base, other, pair)
    evidence = intervals.unpaired(*(np.log(list(cell.medians.values())) for cell in (base_cell, other_cell)))
    return Draft(_row(base, other, pair, verdict="inconclusive", code=code, reason=reason), evidence)


def _row_without_verdict(draft: Draft) -> Row:
    """Return the row of a draft; sides that did not take turns get the ratio of their times, without an interval."""
    if draft.evidence is None:
        return draft.row
    ratio, rounds = float(np.exp(draft.evidence.mean)), int(draft.evidence.rounds)
    where = "in one run" if draft.row.code == DIFFERENT_RUNS else "on one board"
    reason = f"{draft.row.reason}: measure both {where} for a verdict"
    return replace(draft.row, ratio=ratio, rounds=rounds, reason=reason)


def _relative_tick(cell: MeasuredCell) -> float:
    return cell.tick / cell.seconds


def _rounds(cell: MeasuredCell, numbers: Sequence[int]) -> list[Round]:
    return [(cell.medians[number], cell.turns.get(number)) for number in numbers]


def _decided_rows(drafts: Sequence[Draft], margin: float, inflations: Mapping[str, Inflation]) -> list[Row]:
    """Return the rows of drafts that have evidence, with their verdicts."""
    evidence_columns = zip(*(draft.evidence for draft in drafts), strict=True)
    evidence = intervals.PairedEvidence(*(np.array(column) for column in evidence_columns))
    looks = [draft.looks or (int(rounds),) for draft, rounds in zip(drafts, evidence.rounds, strict=True)]
    factors = np.array([variance_factor(draft, inflations) for draft in drafts])
    evidence = evidence._replace(freedom=np.array([freedom(draft, inflations) for draft in drafts]))
    log_ratios = [draft.for_ranks(draft.ratios) for draft in drafts]
    tested = paired_tests.evaluate(evidence, log_ratios, looks, factors)
    evidence = evidence._replace(error=evidence.error * np.sqrt(factors))
    p, alpha, shown, decisive = tested
    significant = intervals.significant(p)
    verdicts = intervals.verdicts(decisive, significant, margin)
    rows = []
    with np.errstate(over="ignore"):  # two rounds at the level of a first look: the interval may be unbounded
        ends, deciding = np.exp(shown), np.exp(decisive)
    probably = intervals.probable(p, significant)
    columns = zip(drafts, verdicts, evidence.rounds, p, alpha, probably, *ends, *deciding[1:], strict=True)
    for draft, verdict, rounds, p_value, level, probable, ratio, low, high, deciding_low, deciding_high in columns:
        if verdict == "inconclusive":
            leans = probable and (low > 1 or high < 1) and abs(np.log(ratio)) > np.log1p(margin)
            code = LEANING if leans else "more-rounds"
            reason = ""  # the forecast
        else:
            code, reason = _why_decided(verdict, margin, max(deciding_low, 1 / deciding_high))
        row = replace(
            draft.row,
            ratio=float(ratio),
            ratio_low=float(low) if rounds > 1 else None,
            ratio_high=_finite(high) if rounds > 1 else None,
            rounds=int(rounds),
            p_value=float(p_value) if rounds > 1 else None,
            level=float(level) if rounds > 1 else None,
            deciding_low=_finite(deciding_low) if rounds > 1 else None,
            deciding_high=_finite(deciding_high) if rounds > 1 else None,
            verdict=verdict,
            code=draft.row.code or code,
            reason="; ".join(filter(None, (draft.row.reason, reason))),
        )
        rows.append(row)
    rows = with_mean_ratios(rows, drafts, looks, margin, inflations)
    return with_forecasts(rows, evidence, looks, log_ratios, int(significant.sum()), margin)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _why_decided(verdict: intervals.Verdict, margin: float, distance: float) -> tuple[str, str]:
    """Return the code and the sentence of a verdict.

    Args:
        verdict: ``same``, ``slower`` or ``faster``.
        margin: the relative change that counts as none.
        distance: the ratio of the deciding interval's end that is nearest to 1, or its inverse, at least 1.
    """
    if verdict == "same":
        return "within-margin", f"the entire interval is within {margin:.2g} of 1"
    if distance > 1 + margin:
        return "beyond-margin", f"the entire interval is more than {margin:.2g} from 1"
    return "beyond-one", f"the interval excludes 1, but not every change within {margin:.2g}"


def _why_unpaired(base: Side, other: Side, pair: CellPair) -> tuple[str, str]:
    of_base, of_other = base.measured[pair.base].boards, other.measured[pair.other].boards
    boards = [" and ".join(dict.fromkeys(board.text for board in side.values())) for side in (of_base, of_other)]
    apart = not {*of_base.values()} & {*of_other.values()} and all(boards)
    if base.run != other.run:
        on_boards = f", on boards {boards[0]} and {boards[1]}" if apart else ""
        return (
            DIFFERENT_RUNS,
            f"the sides are from runs {base.run} and {other.run}{on_boards}, so they did not take turns",
        )
    if apart:
        return (
            DIFFERENT_BOARDS,
            f"the sides were measured on boards {boards[0]} and {boards[1]}, so they did not take turns",
        )
    return "different-rounds", "the sides share no good round, so they did not take turns"


def _row(base: Side, other: Side, pair: CellPair, **fields: object) -> Row:
    base_measured, other_measured = base.measured.get(pair.base), other.measured.get(pair.other)
    phase = (pair.base if other.figures else pair.other).phase
    measured = [side for side in (base_measured, other_measured) if side]
    all_boards = tuple(dict.fromkeys(board for side in measured for board in side.boards.values()))
    fields.setdefault("boards", all_boards)
    fields.setdefault("base_seconds", base_measured.seconds if base_measured else None)
    fields.setdefault("seconds", other_measured.seconds if other_measured else None)
    return Row(
        base=replace(pair.base, phase=phase),
        other=replace(pair.other, phase=phase),
        base_spread=base.figures[pair.base].spread if base.figures else None,
        spread=other.figures[pair.other].spread if other.figures else None,
        base_p95_seconds=p95(base_measured),
        p95_seconds=p95(other_measured),
        runs=tuple(filter(None, dict.fromkeys((base.run, other.run)))),
        device_name=kind_name(all_boards),
        quality_issues=pair_issues(base.check_of(pair.base), other.check_of(pair.other), pair.other),
        **fields,  # type: ignore[arg-type]
    )
