"""Pairs of cells as rows: may they be compared, and what do the rounds of all of them say together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from runner.analysis import statistics
from runner.analysis.compare.pairing import Measured, Pair, Side
from runner.analysis.compare.published import note, with_comparable_facts
from runner.analysis.model import COMPARABLE, Row, log_ratio

NAMES = {"clocks": "clock request", "threads": "thread count", "harness": "harness version"}
UNKNOWN = "nothing known"
NO_ROUNDS = "a published figure has no rounds: how far it changes from one process to the next is not known"


@dataclass(frozen=True, slots=True)
class Draft:
    """A row that waits for the verdict, where it has evidence.

    Attributes:
        looks: the numbers of rounds at which verdicts were planned.
        ratios: round -> the logarithm of other over base; empty where the rounds were not measured in turns.
        servers: round -> the pair of servers it was measured on; empty where nobody wrote them down.
    """

    row: Row
    found: statistics.Evidence | None = None
    looks: tuple[int, ...] = ()
    ratios: Mapping[int, float] = field(default_factory=dict)
    servers: Mapping[int, tuple[str, str]] = field(default_factory=dict)


def draft(base: Side, other: Side, pair: Pair) -> Draft:
    """Return the row of a pair of cells, without a verdict where that is for its rounds to say.

    The sides may be of different runs.
    """
    one, two = base.measured.get(pair.base), other.measured.get(pair.other)
    if one is None or two is None:
        ends = [side.ends[cell] for side, cell in zip((base, other), pair, strict=True) if cell not in side.measured]
        names = [side.environment for side, cell in zip((base, other), pair, strict=True) if cell not in side.measured]
        reason = "; ".join(f"{name}: {sentence}" for name, (_, sentence) in zip(names, ends, strict=True))
        return Draft(_row(base, other, pair, verdict="not-measured", code=ends[0][0], reason=reason))
    if base.figures or other.figures:
        return Draft(_beside(base, other, pair))
    different = fact_differences(one, two, base.environment, other.environment)
    if different:
        code, reason = next(iter(different)), "; ".join(different.values())
        return Draft(_row(base, other, pair, verdict="not-comparable", code=code, reason=reason))
    return _evidence(base, other, pair)


def with_verdicts(drafts: Iterable[Draft], margin: float) -> list[Row]:
    """Return the rows of a table with their verdicts, which depend on how many rows it has."""
    drafts = list(drafts)
    waiting = [one for one in drafts if one.found is not None]
    rows = iter(_judged(waiting, margin) if waiting else ())
    return [one.row if one.found is None else next(rows) for one in drafts]


def fact_differences(base: Measured, other: Measured, base_name: str, other_name: str) -> dict[str, str]:
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
    different = fact_differences(*with_comparable_facts(one, two), base.environment, other.environment)
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


def _evidence(base: Side, other: Side, pair: Pair) -> Draft:
    one, two = base.measured[pair.base], other.measured[pair.other]
    shared = sorted(one.medians.keys() & two.medians.keys()) if base.run == other.run else []
    if shared:
        ratios = np.array(
            [
                log_ratio((one.medians[number], one.turns.get(number)), (two.medians[number], two.turns.get(number)))
                for number in shared
            ]
        )
        servers = [(one.servers[number], two.servers[number]) for number in shared]
        known = servers if all(map(all, servers)) else None  # else nobody wrote them down
        return Draft(
            _row(base, other, pair, verdict="inconclusive"),
            statistics.paired(ratios, known),
            base.looks,
            ratios=dict(zip(shared, ratios.tolist(), strict=True)),
            servers=dict(zip(shared, known, strict=True)) if known else {},
        )
    code, doubt = _unpaired(base, other)
    found = statistics.unpaired(*(np.log(list(side.medians.values())) for side in (one, two)))
    return Draft(_row(base, other, pair, verdict="inconclusive", code=code, reason=doubt), found)


def _judged(drafts: Sequence[Draft], margin: float) -> list[Row]:
    """Return the rows of drafts that have evidence."""
    evidence = statistics.Evidence(*(np.array(column) for column in zip(*(one.found for one in drafts), strict=True)))
    looks = [one.looks or (int(rounds),) for one, rounds in zip(drafts, evidence.rounds, strict=True)]
    p, alpha = np.ones(len(drafts)), np.ones(len(drafts))
    for at in set(looks):
        mine = np.array([one == at for one in looks])
        own = statistics.Evidence(*(column[mine] for column in evidence))
        p[mine] = statistics.p_value(own, at)
        alpha[mine] = statistics.level(own.rounds, at, 1 - statistics.CONFIDENCE)
    found = statistics.interval(evidence, alpha)
    shown = statistics.interval(
        evidence, np.where([len(at) > 1 for at in looks], statistics.SHOWN, 1 - statistics.CONFIDENCE)
    )
    sure = (p <= statistics.FALSE_ALARMS) & statistics.discoveries(p)
    words = statistics.verdicts(found, sure, margin)
    needed = statistics.rounds_needed(evidence, margin)
    rows = []
    columns = zip(drafts, words, evidence.rounds, needed, p, *np.exp(shown), strict=True)
    for one, word, rounds, rounds_needed, chance, ratio, low, high in columns:
        code, reason = _said(word, margin, int(rounds), int(rounds_needed), beyond=bool(low > 1 or high < 1))
        row = replace(
            one.row,
            ratio=float(ratio),
            ratio_low=float(low) if rounds > 1 else None,
            ratio_high=float(high) if rounds > 1 else None,
            rounds=int(rounds),
            more_rounds=int(rounds_needed - rounds) if word == "inconclusive" else 0,
            p_value=float(chance) if rounds > 1 else None,
            verdict=word,
            code=one.row.code or code,
            reason="; ".join(filter(None, (one.row.reason, reason))),
        )
        rows.append(row)
    return rows


def _said(word: statistics.Verdict, margin: float, rounds: int, needed: int, *, beyond: bool) -> tuple[str, str]:
    """Return the code and the sentence of a verdict."""
    if word == "same":
        return "within-margin", f"all of the interval is within {margin:.2g} of 1"
    if word in ("slower", "faster"):
        return "beyond-margin", f"the interval leaves out 1, and the ratio is more than {margin:.2g} from it"
    if rounds == 1:
        return "more-rounds", f"one round says nothing of the noise; {statistics.MIN_ROUNDS} or more are needed"
    if needed >= statistics.MAX_ROUNDS:
        return (
            "more-rounds",
            f"{statistics.MAX_ROUNDS} rounds would not decide: the change is about the margin of {margin:.2g}",
        )
    more = needed - rounds
    about = f"about {more} more round{'s' * (more > 1)} would decide"
    return "more-rounds", f"{'chance does as much too often in so few rounds; ' * beyond}{about}"


def _unpaired(base: Side, other: Side) -> tuple[str, str]:
    if base.run == other.run:
        return "different-rounds", "the sides have no good round in common: they were not measured in turns"
    return "different-runs", f"the sides are from runs {base.run} and {other.run}: they were not measured in turns"


def _row(base: Side, other: Side, pair: Pair, **fields: object) -> Row:
    base_measured, other_measured = base.measured.get(pair.base), other.measured.get(pair.other)
    phase = (pair.base if other.figures else pair.other).phase
    return Row(
        base=replace(pair.base, phase=phase),
        other=replace(pair.other, phase=phase),
        base_seconds=base_measured.seconds if base_measured else None,
        seconds=other_measured.seconds if other_measured else None,
        base_spread=base.figures[pair.base].spread if base.figures else None,
        spread=other.figures[pair.other].spread if other.figures else None,
        runs=tuple(filter(None, dict.fromkeys((base.run, other.run)))),
        **fields,  # type: ignore[arg-type]
    )
