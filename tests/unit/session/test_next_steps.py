"""What a run ends with: the page first, and what helps next."""

from dataclasses import replace

import pytest

from runner.report.check import Check, Counts
from runner.session.next_steps import lines, next_commands

CHECK = Check(
    run="20261120-104500-ab12",
    state="finished",
    settings=(),
    counts=Counts(cells=2, skipped=0, rounds=3, good=6, failed=0, environments=2),
    grade=None,
    quality_issues=(),
    failures=(),
    comparisons=(),
    notes=(),
    command="runner compare torch-1.0 torch-2.x",
)


def shown(check: Check, *, has_own_network: bool = False, folder: tuple[str, ...] = ()) -> list[str]:
    return lines(next_commands(check, folder, has_own_network=has_own_network))


def test_a_newcomer_opens_the_page_and_then_measures_a_network() -> None:
    assert shown(CHECK) == [f"next: runner open {CHECK.run}", "your own network: runner new my_network.py"]
    assert shown(CHECK, has_own_network=True) == [f"next: runner open {CHECK.run}"]
    assert shown(CHECK, has_own_network=True, folder=("--reports", "there")) == [
        f"next: runner open {CHECK.run} --reports there"
    ]


def test_what_would_decide_open_results_comes_after_the_page() -> None:
    again = replace(CHECK, command="runner run 'torch-1.0/*' --rounds 9")
    assert shown(again, has_own_network=True) == [
        f"next: runner open {CHECK.run}",
        "to measure again: runner run 'torch-1.0/*' --rounds 9",
    ]


@pytest.mark.parametrize("command", ["runner tune", "runner accuracy 20261120-104500-ab12"])
def test_numbers_that_cannot_be_used_are_looked_into_first(command: str) -> None:
    assert shown(replace(CHECK, command=command)) == [f"next: {command}", f"the page: runner open {CHECK.run}"]


def test_an_unfinished_run_is_continued() -> None:
    resume = f"runner run --resume {CHECK.run}"
    assert shown(replace(CHECK, state="unfinished", command=resume))[0] == f"next: {resume}"
