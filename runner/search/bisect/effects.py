"""The words for a change between two releases: by how much, of which metric, and from which value to which."""

from collections.abc import Iterator

from runner.core.metrics import BY_NAME, TIME
from runner.report import formatting, metric_text, wording
from runner.search.bisect.state import Question, SearchStep
from runner.stats.release_scatter import Standing


def effect(question: Question, step: SearchStep) -> str:
    """Return how much slower or faster, or more or less, the second release of a comparison is, with its interval."""
    return wording.change_with_range(BY_NAME[question.metric], step)


def level_effect(question: Question, standing: Standing) -> str:
    """Return by how much the releases after a change differ; the interval contains their scatter."""
    return wording.change_with_range(BY_NAME[question.metric], standing)


def subject(question: Question) -> str:
    """Return what is compared: ``CELL``, ``CELL, peak memory of the steps``."""
    return question.cell if question.metric == TIME else f"{question.cell}, {BY_NAME[question.metric].title}"


def named(question: Question, effect: str, releases: tuple[str, str], step: SearchStep) -> str:
    """Return that a release changed a cell.

    Args:
        question: of the search.
        effect: by how much.
        releases: the last one before the change, and the first one with it.
        step: their comparison.
    """
    before, after = releases
    if question.metric == TIME:
        return f"{after} made {question.cell} {effect} than {before}"
    return f"{subject(question)}: {effect} with {after} than with {before}{_values(question, step)}"


def between(question: Question, effect: str, releases: tuple[str, str]) -> str:
    """Return that a cell changed between two releases."""
    before, after = releases
    if question.metric == TIME:
        return f"{question.cell} became {effect} between {before} and {after}"
    return f"{subject(question)}: {effect}, and it changed between {before} and {after}"


def equal(question: Question, releases: tuple[str, str]) -> str:
    """Return that the ends of a search do not differ."""
    good, bad = releases
    if question.metric == TIME:
        return f"{bad} is as fast as {good}: there is no change to search"
    return f"{subject(question)}: {bad} and {good} do not differ, so there is no change to search"


def second_build(question: Question, release: str, step: SearchStep) -> str:
    """Return by how much a second build of a release differs from the first."""
    name = f"a second build of {release}"
    if not step.ratio:
        return f"{name}: {step.reason}"
    if question.metric == TIME:
        return f"{name} was {effect(question, step)} than the first"
    return f"{name} against the first: {effect(question, step)}"


def in_plain_processes(question: Question, step: SearchStep) -> Iterator[str]:
    """Yield what plain processes show of a comparison, where its run has some."""
    if step.plain is None:
        return
    measured = wording.change_with_range(BY_NAME[question.metric], step.plain)
    text = f"{measured} in {formatting.counted(step.plain.rounds, 'round')}"
    if step.plain.agrees:
        yield f"plain processes agree: {text}"
    else:
        yield f"plain processes show another change than forked ones, and it is theirs that counts: {text}"


def _values(question: Question, step: SearchStep) -> str:
    """Return the values of both sides with their unit, as the end of a sentence."""
    if step.base_value is None or step.value is None:
        return ""
    metric = BY_NAME[question.metric]
    return (
        f", {metric_text.amount(metric, step.base_value)} \N{RIGHTWARDS ARROW} {metric_text.amount(metric, step.value)}"
    )
