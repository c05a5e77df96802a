"""How far to trust the numbers of a run, in sentences: its grade, its controls, its machine."""

from collections.abc import Iterator

from runner.analysis.model import ADVICE
from runner.report.answer import Answer
from runner.report.formatting import counted


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
    yield "Grade", f"{answer.grade.level}: {ADVICE[answer.grade.level]}"
    for reason in answer.grade.reasons:
        yield "Reason", reason.sentence
    if figures.aa_median is not None:
        text = f"a release against itself differs by {100 * figures.aa_median:.1f} % in the median of "
        text += counted(figures.aa_pairs, "A/A control")
        text += f"; {figures.aa_differing} of them differ beyond chance or by more than 25 %"
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
