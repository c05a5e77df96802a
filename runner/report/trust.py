"""How far to trust the numbers of a run, in sentences: its grade, its controls, its machine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from runner.analysis.model import ADVICE, Figures, Grade, Level, Reason
from runner.analysis.quality.grade import FAIR_AA_MEDIAN, FAR_AA_PAIR, WIDEST_SHOWN
from runner.core.metrics import BY_NAME, TIME
from runner.report import wording
from runner.report.answer import Answer
from runner.report.compared_rows import ComparedRow
from runner.report.formatting import counted, difference

BELIEVED: Mapping[Level, str] = {"good": "Yes", "fair": "Mostly", "poor": "No"}
"""Grade -> the answer to whether a reader can believe the numbers."""
SHOWN_APART = frozenset({"a-a-median", "a-a-differs", "no-controls", "busy", "load"})
"""Codes of reasons of a grade that have a mark of their own."""


class TrustMark(NamedTuple):
    """One of the reasons to believe the numbers, or not to."""

    good: bool
    text: str


def trust_lines(answer: Answer, *, failed: int, cells: int) -> Iterator[tuple[str, str]]:
    """Yield (topic, sentence) that say how far to trust the numbers of a run.

    Args:
        answer: of the run.
        failed: how many of its cells have no good record.
        cells: how many cells have one.
    """
    if answer.grade is None:
        return
    figures = answer.grade.figures
    yield from _grade_lines(answer.grade)
    if figures.aa_median is not None:
        text = f"a release against itself differs by {100 * figures.aa_median:.1f} % in the median of "
        text += counted(figures.aa_pairs, "A/A control")
        text += f"; {figures.aa_differing} of them differ beyond chance or by more than {100 * FAR_AA_PAIR:g} %"
        if figures.aa_visible is not None:
            visible = f"{100 * figures.aa_visible:.0f} %"
            text += f"; if one of two equal servers were {visible} slower, 8 of 10 such runs would show it"
        yield "Noise", text
    if figures.plain_pairs:
        count = f"{figures.plain_differing or 'none'} of {counted(figures.plain_pairs, 'test')}"
        yield "Processes", f"a plain process takes another time than was measured in {count}"
    if figures.others_busy is not None:
        yield "Machine", f"other programs kept {figures.others_busy:.2f} of {figures.cpus} CPUs busy"
    if answer.disturbed:
        yield "Disturbed", answer.disturbed
    yield (
        "Correct",
        f"no disagreement with the reference in any of the {cells} measured tests"
        + (f"; {failed} more failed, see below" if failed else ""),
    )


def _grade_lines(grade: Grade) -> Iterator[tuple[str, str]]:
    yield "Grade", f"{grade.level}: {ADVICE[grade.level]}"
    yield from (("Reason", reason.sentence) for reason in grade.reasons)
    widest, decided = grade.figures.metric, [BY_NAME[name].title for name in grade.figures.decided]
    if len(decided) > 1:
        titles = f"{', '.join(decided[:-1])} and {decided[-1]}"
        yield "Precision", f"the run decides {titles}; trust rests on the widest intervals, of {BY_NAME[widest].title}"
    elif widest != TIME:
        yield "Precision", f"the run decides {decided[0]}, so trust rests on the intervals of this metric"


def _good(text: str) -> TrustMark:
    return TrustMark(good=True, text=text)


def _bad(text: str) -> TrustMark:
    return TrustMark(good=False, text=text)


def trust_marks(answer: Answer, rows: Sequence[ComparedRow], *, failed: int, cells: int) -> Iterator[TrustMark]:
    """Yield in a few words each what speaks for the numbers of a run and what against, for one line of its page.

    Args:
        answer: of the run.
        rows: its comparisons of releases.
        failed: how many of its cells have no good record.
        cells: how many cells have one.
    """
    grade = answer.grade
    if grade is None:
        return
    yield _good(f"{counted(cells, 'test agrees', 'tests agree')} with the reference")
    if failed:
        yield _bad(f"{counted(failed, 'test')} failed")
    yield from _machine_marks(grade)
    yield from _control_marks(grade.figures)
    yield from (
        _bad(_in_few_words(reason, grade.figures)) for reason in grade.reasons if reason.code not in SHOWN_APART
    )
    questioned = sum(bool(each.serious) for each in rows)
    if questioned:
        yield _bad(f"{counted(questioned, 'comparison')} with a serious warning, marked below")
    yield from _open_marks(answer, rows)
    if answer.disturbed:
        yield _bad(answer.disturbed)


def _open_marks(answer: Answer, rows: Sequence[ComparedRow]) -> Iterator[TrustMark]:
    """Yield how many comparisons are open, in the words that their rows have."""
    probable = sum(each.word in wording.PROBABLY for each in rows)
    if probable:
        yield _bad(f"{probable} of {answer.compared} comparisons only probable")
    if answer.undecided > probable:
        yield _bad(f"{answer.undecided - probable} of {answer.compared} comparisons: {wording.CANNOT_TELL}")
    rounds = sorted({each.row.rounds for each in rows if each.row.abandoned})
    if rounds:
        after = " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1]))))
        yield _bad(f"{counted(answer.abandoned, 'comparison')} given up after {after} rounds")


def _in_few_words(reason: Reason, figures: Figures) -> str:
    """Return a reason of a grade in a few words; the sentence of one that has none."""
    if reason.code == "half-width" and figures.half_width is not None:
        of_metric = "" if figures.metric == TIME else f" of {BY_NAME[figures.metric].title}"
        if figures.half_width >= WIDEST_SHOWN:
            return f"typical interval{of_metric}: excludes no change"
        return f"typical interval{of_metric}: {difference(figures.half_width)} to either side"
    if reason.code == "rounds":
        return f"{figures.rounds:g} round{'s' * (figures.rounds != 1)}: small changes stay open"
    if reason.code == "canary" and figures.canary is not None:
        return f"the speed of the machine changed by {difference(figures.canary)}"
    return reason.sentence


def _machine_marks(grade: Grade) -> Iterator[TrustMark]:
    figures, busy = grade.figures, [each.sentence for each in grade.reasons if each.code in ("busy", "load")]
    if busy:
        yield from (_bad(text) for text in busy)
    elif figures.others_busy is not None:
        yield _good(f"machine quiet: other programs used {figures.others_busy:.2g} of {figures.cpus} CPUs")


def _control_marks(figures: Figures) -> Iterator[TrustMark]:
    if figures.aa_median is None:
        if figures.comparisons:
            yield _bad("no A/A control")
        return
    text = f"A/A control: the same release twice differs by {difference(figures.aa_median)}"
    differ = (
        f", {figures.aa_differing} of {figures.aa_pairs} pairs differ beyond chance" if figures.aa_differing else ""
    )
    yield TrustMark(figures.aa_median <= FAIR_AA_MEDIAN and not differ, text + differ)
