"""One pair of cells as a row: may they be compared, and what do the rounds say."""

import math

import numpy as np

from runner import stats
from runner.compare.beside import alike, note
from runner.compare.sides import Measured, Pair, Side
from runner.comparison import COMPARABLE, Row, Word

NAMES = {"clocks": "clock request", "threads": "thread count", "harness": "harness version"}
UNKNOWN = "nothing known"
NO_ROUNDS = "a published figure has no rounds: how far it changes from one process to the next is not known"


def row(base: Side, other: Side, pair: Pair, margin: float) -> Row:
    """Return the row of a pair of cells; the sides may be of different runs."""
    one, two = base.measured.get(pair.base), other.measured.get(pair.other)
    if one is None or two is None:
        ends = [side.ends[cell] for side, cell in zip((base, other), pair, strict=True) if cell not in side.measured]
        names = [side.environment for side, cell in zip((base, other), pair, strict=True) if cell not in side.measured]
        reason = "; ".join(f"{name}: {sentence}" for name, (_, sentence) in zip(names, ends, strict=True))
        return _row(base, other, pair, verdict="not-measured", code=ends[0][0], reason=reason)
    if base.figures or other.figures:
        return _beside(base, other, pair)
    different = differences(one, two, base.environment, other.environment)
    if different:
        code, reason = next(iter(different)), "; ".join(different.values())
        return _row(base, other, pair, verdict="not-comparable", code=code, reason=reason)
    return _compared(base, other, pair, margin)


def differences(base: Measured, other: Measured, base_name: str, other_name: str) -> dict[str, str]:
    """Return code -> sentence for each fact in which the rounds of two cells do not all agree."""
    found: dict[str, str] = {}
    for column, code in COMPARABLE.items():
        if code not in found and len(base.facts[column] | other.facts[column]) > 1:
            one, two = (" and ".join(sorted(v or UNKNOWN for v in side.facts[column])) for side in (base, other))
            found[code] = f"the {NAMES.get(code, code)} differs: {one} for {base_name}, {two} for {other_name}"
    return found


def _beside(base: Side, other: Side, pair: Pair) -> Row:
    """Return the row of two times of which one at least was published: their quotient, and why it proves nothing."""
    one, two = base.measured[pair.base], other.measured[pair.other]
    different = differences(*alike(one, two), base.environment, other.environment)
    reasons = [*different.values()] or [NO_ROUNDS]
    reasons += [
        note(side.figures[cell]) for side, cell in zip((base, other), pair, strict=True) if cell in side.figures
    ]
    return _row(
        base,
        other,
        pair,
        ratio=two.seconds / one.seconds,
        verdict="not-comparable" if different else "inconclusive",
        code=next(iter(different), "no-rounds"),
        reason="; ".join(filter(None, reasons)),
    )


def _compared(base: Side, other: Side, pair: Pair, margin: float) -> Row:
    one, two = base.measured[pair.base].medians, other.measured[pair.other].medians
    shared = sorted(one.keys() & two.keys()) if base.run == other.run else []
    if shared:
        ratios = np.log([two[number] / one[number] for number in shared])
        interval, count = stats.paired_interval(ratios), len(shared)
        spread = stats.deviation(ratios) if count > 1 else float("nan")
        code, doubt = "", ""
    else:
        logs = np.log(list(one.values())), np.log(list(two.values()))
        interval, count = stats.unpaired_interval(*logs), min(len(one), len(two))
        spread = math.hypot(*(stats.deviation(side) for side in logs)) if count > 1 else float("nan")
        code, doubt = _unpaired(base, other)
    low, ratio, high = (float(np.exp(value)) for value in (interval.low, interval.estimate, interval.high))
    word: Word = stats.verdict(low, ratio, high, margin)
    if word == "inconclusive":
        code = code or "more-rounds"
        doubt = "; ".join(filter(None, (doubt, _more(spread, ratio, margin, count))))
    return _row(
        base,
        other,
        pair,
        ratio=ratio,
        ratio_low=low if count > 1 else None,
        ratio_high=high if count > 1 else None,
        rounds=count,
        verdict=word,
        code=code,
        reason=doubt,
    )


def _unpaired(base: Side, other: Side) -> tuple[str, str]:
    if base.run == other.run:
        return "different-rounds", "the sides have no good round in common: they were not measured in turns"
    return "different-runs", f"the sides are from runs {base.run} and {other.run}: they were not measured in turns"


def _more(spread: float, ratio: float, margin: float, count: int) -> str:
    """Return about how many rounds it takes to decide, as a sentence."""
    needed = stats.rounds_needed(spread, ratio, margin, count)
    if count == 1:
        return "one round says nothing of the noise; 3 or more are needed"
    if needed >= stats.MOST_ROUNDS:
        return f"{stats.MOST_ROUNDS} rounds would not decide: the change is about the margin of {margin:.2g}"
    more = needed - count
    return f"about {more} more round{'s' * (more > 1)} would decide"


def _row(base: Side, other: Side, pair: Pair, **found: object) -> Row:
    one, two = base.measured.get(pair.base), other.measured.get(pair.other)
    cell = pair.other
    return Row(
        environment=cell.environment,
        implementation=cell.implementation,
        base_implementation=pair.base.implementation,
        workload=cell.workload,
        case=cell.case,
        phase=(pair.base if other.figures else cell).phase,
        precision=cell.precision,
        base_seconds=one.seconds if one else None,
        seconds=two.seconds if two else None,
        base_spread=base.figures[pair.base].spread if base.figures else None,
        spread=other.figures[cell].spread if other.figures else None,
        run=" and ".join(filter(None, dict.fromkeys((base.run, other.run)))),
        **found,  # type: ignore[arg-type]
    )
