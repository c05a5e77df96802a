"""Sentences about a comparison that every output shares: its means, noise, devices, sources and reasons."""

from collections.abc import Iterable, Sequence

from runner.analysis.compare.kinds import by_kind
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.releases import framework_name
from runner.catalog.published import SOURCES
from runner.core.grouping import grouped
from runner.report import wording
from runner.report.formatting import counted, phase_label, sentence

SELF_EXPLANATORY = ("within-margin", "beyond-margin", "beyond-one")
"""Codes whose reason only repeats what the verdict means; tables explain it once, in their legend."""
MEAN = (
    "an average is the geometric mean over the tests that both releases ran, every workload counted once; it says "
    "nothing about other networks"
)


def widening_sentences(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a sentence for each run whose intervals are widened, once for all comparisons."""
    factors: dict[tuple[str, str], list[float]] = {}
    for widening in (each for comparison in comparisons for each in comparison.widenings):
        factors.setdefault((widening.run, widening.reason), []).extend((widening.smallest, widening.largest))
    sentences = []
    for (run, reason), of_run in factors.items():
        smallest, largest = f"{min(of_run):.1f}", f"{max(of_run):.1f}"
        factor = smallest if smallest == largest else f"{smallest} to {largest}"
        sentences.append(f"the intervals of run {run} are {factor} times as wide: {reason}")
    return sentences


def passed_over_sentence(comparison: Comparison) -> str:
    """Return which newer run is not compared and why, and how many more there are; empty if there is none."""
    if not comparison.passed_over:
        return ""
    newest, *others = dict.fromkeys(each.run for each in comparison.passed_over)
    reasons = "; ".join(each.reason for each in comparison.passed_over if each.run == newest)
    rest = f"; nor {'is' if len(others) == 1 else 'are'} {counted(len(others), 'other newer run')}" if others else ""
    return f"run {newest} is newer and is not compared: {reasons}{rest}"


def detectable_sentence(comparison: Comparison) -> str:
    """Return which changes a comparison can call, ``with 3 rounds and this noise, changes above about 9.2 % ...``.

    It is empty if no noise is known.
    """
    if comparison.detectable_change is None:
        return ""
    low, high = comparison.detectable_rounds[0], comparison.detectable_rounds[-1]
    rounds = counted(high, "round") if low == high else f"{low} to {high} rounds"
    size = wording.visible_size(comparison.detectable_change)
    what = f"changes above about {size}" if size else "no change"
    return f"with {rounds} and this noise, {what} can be called in 8 of 10 runs"


def detectable_sizes(comparisons: Iterable[Comparison]) -> list[tuple[str, str]]:
    """Return the smallest change that each comparison can call, or ``none``, after the name of its framework.

    It is the change that 8 of 10 such runs call. The comparison with most rows is the first.
    """
    of_kinds = [each for comparison in comparisons if not comparison.is_control for each in by_kind(comparison)]
    of_kinds.sort(key=lambda each: -len(each.rows))
    several = len({each.device_name for each in of_kinds}) > 1
    return [
        (
            f"{_base_name(each)}{f' on {each.device_name}' if several else ''}",
            wording.visible_size(each.detectable_change) or "none",
        )
        for each in of_kinds
        if each.detectable_change is not None
    ]


def detectable_sentences(comparisons: Iterable[Comparison]) -> list[str]:
    """Return ``detectable_texts`` as sentences."""
    return list(map(sentence, detectable_texts(comparisons)))


def detectable_texts(comparisons: Iterable[Comparison]) -> list[str]:
    """Return ``detectable_sentence`` of each comparison and kind of device, with their names if there are several."""
    of_kinds = [each for comparison in comparisons for each in by_kind(comparison)]
    sentences = [(each, text) for each in of_kinds if (text := detectable_sentence(each))]
    if len(sentences) == 1:
        return [sentences[0][1]]
    several = len({each.device_name for each, _ in sentences}) > 1
    return [f"{_base_name(each)}{f' on {each.device_name}' if several else ''}: {text}" for each, text in sentences]


def _base_name(comparison: Comparison) -> str:
    """Return the name of a comparison's framework, or the id of its base if its release is not known."""
    release = comparison.releases.get(comparison.base)
    return framework_name(release.framework) if release and release.framework else f"against {comparison.base}"


def implementations(row: Row) -> str:
    """Return the implementation of a row, and that of its base if they differ."""
    if row.implementation == row.base_implementation:
        return row.implementation
    return f"{row.implementation} / {row.base_implementation}"


def devices(comparison: Comparison) -> str:
    """Return the device of a comparison; with published sides, each device with its sides."""
    if not comparison.devices:
        return comparison.device_name or comparison.device
    sides = grouped((device, side) for side, device in comparison.devices.items())
    return "; ".join(f"{device}: {', '.join(names)}" for device, names in sides.items())


def sources(comparison: Comparison) -> list[str]:
    """Return what a ratio with a published figure means, then each source with what it timed and its spread."""
    if not comparison.figures:
        return []
    notes = ["with a published figure the ratio is the quotient of the two times, and has no interval"]
    for name in dict.fromkeys(figure.source for figure in comparison.figures):
        source = SOURCES[name]
        ends = f"; ± is the {source.spread}" if source.spread else "; no spread was published"
        notes.append(f"{name} is {source.citation}: {source.timed}{ends}")
    return notes


def reasons(rows: Sequence[Row]) -> list[tuple[str, str, list[str]]]:
    """Return (verdict, reason, labels of the rows that have it) for each distinct reason, in the order of the rows."""
    precisions = {row.precision for row in rows}
    several = len({row.environment for row in rows}) > 1

    def label(row: Row) -> str:
        text = f"{implementations(row)} {phase_label(row.phase, row.precision, precisions)}"
        return f"{row.environment} {text}" if several else text

    unclear = [row for row in rows if row.reason and row.code not in SELF_EXPLANATORY]
    by_reason = grouped(((row.verdict, row.reason), label(row)) for row in unclear)
    return [(verdict, reason, labels) for (verdict, reason), labels in by_reason.items()]
