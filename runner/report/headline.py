"""The headline of a run: its largest comparisons in a sentence, or why it cannot be used, after what it is about."""

from collections.abc import Iterator, Mapping, Sequence

from runner.analysis.model import Dataset, Grade
from runner.analysis.releases import EnvironmentRelease
from runner.catalog.cases import is_network_of_user
from runner.core.model.cells import environment_of, is_control, is_plain
from runner.report import wording
from runner.report.formatting import counted, few
from runner.report.release_change import Card

SHOWN_IN_HEADLINE = 2
"""Frameworks that the headline names; the cards have all."""


def headline(cards: Sequence[Card], grade: Grade | None) -> str:
    """Return the largest comparisons in a sentence; empty without a comparison."""
    largest = sorted(cards, key=lambda card: -card.newest.tests)[:SHOWN_IN_HEADLINE]
    if not largest:
        return ""
    if grade and grade.level == "poor":
        reason = f", {grade.reasons[0].sentence}" if grade.reasons else ""
        states = "".join(f"; {card.newest.states}" for card in largest if card.newest.states)
        return f"{subject(largest)}: not usable{reason}{states}"
    clauses = list(_clauses(largest))
    text = clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
    averaged = largest[0].newest.ratio is not None and largest[0].newest.tests > 1
    return f"On average {text}" if averaged else text


def subject(cards: Sequence[Card]) -> str:
    """Return what some comparisons are about: the networks of the user, if all tests are theirs, and the releases."""
    rows = [row for card in cards for row in card.newest.rows]
    networks = (
        dict.fromkeys(row.workload for row in rows) if all(is_network_of_user(row.case_id) for row in rows) else ()
    )
    pairs = few(list(dict.fromkeys(card.newest.pair for card in cards)))
    return f"{few(list(networks), 2)}, {pairs}" if networks else pairs


def without_comparisons(dataset: Dataset, names: Mapping[str, EnvironmentRelease], device: str) -> str:
    """Return the title of a run that compares nothing: its tests and releases, and what failed in which of them.

    Args:
        dataset: the run.
        names: environment -> its release.
        device: on which it ran.
    """
    cells = [each.cell for each in dataset.plan if each.verdict == "run" and not is_control(each.cell.environment)]
    workloads = list(dict.fromkeys(cell.workload for cell in cells if not is_plain(cell.environment)))
    failed = [environment_of(cell) for cell in dict.fromkeys(dataset.failures["cell"].tolist())]
    failed = [name for name in failed if not is_control(name) and not is_plain(name)]
    what = f"{few(workloads, 3)}, {_named(dict.fromkeys(cell.environment for cell in cells), names)}"
    if failed:
        return f"{what}: {counted(len(failed), 'test')} failed in {_named(dict.fromkeys(failed), names)}"
    return f"{what}: nothing to compare, on {device}"


def _named(environments: Mapping[str, None], names: Mapping[str, EnvironmentRelease]) -> str:
    """Return the names of releases; the environments by their ids where these are not known."""
    shown = [each for each in environments if not is_plain(each)]
    return few([names[each].name if each in names else each for each in shown], 3)


def _clauses(cards: Sequence[Card]) -> Iterator[str]:
    """Yield a clause for each card, with its kind of device if there are several; releases are named once in a row."""
    named = ("", "")
    for card in cards:
        change, on_kind = card.newest, f" on {card.device_name}" if card.device_name else ""
        releases = (change.base, change.other) if change.clear else ("", "")
        yield (
            f"{wording.speedup(change.ratio)}{on_kind}" if releases == named != ("", "") else change.sentence + on_kind
        )
        named = releases
