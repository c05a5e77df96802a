"""The coverage of a plan, which framework runs which workload, as two Markdown tables."""

from collections.abc import Iterator, Mapping, Sequence

from runner.catalog.cases import CASES
from runner.core.errors import Problem, UsageError
from runner.core.grouping import grouped
from runner.core.model import SKIP_CODES, Plan, PlannedCell
from runner.harness.adapters import implementations
from runner.matrix import FRAMEWORKS
from runner.report.markdown_text import table

RUNS = "runs"
REASONS = ("needs-gpu", "processors", "image-unavailable", "framework-lacks")
"""Reasons why nothing of a field runs, in the order of precedence."""

REASON_OF_CODE: Mapping[str, str] = {
    **{reason: reason for reason in REASONS},
    "arch": "needs-gpu",  # another GPU than this machine has
    "driver": "needs-gpu",
    "no-engine": "image-unavailable",
    "precision-lacks": "framework-lacks",
}
"""Skip code -> the reason that the tables show for it."""

LOCAL_CODES = tuple(code for code in SKIP_CODES if code not in REASON_OF_CODE)
"""Skip codes that the tables cannot show for a framework: they are about this machine, or a choice of the user."""

Groups = Mapping[tuple[str, str], Sequence[PlannedCell]]


def coverage(plan: Plan) -> str:
    """Return the coverage of a plan as Markdown: workload x framework, then environment x workload.

    A field is ``runs`` if any cell runs, else the first of ``REASONS`` that applies. It is empty if the selection left
    all its cells out, and ``framework-lacks`` if no implementation has the networks of the workload. The second table
    shows one of ``LOCAL_CODES``, such as a missing interpreter, by its code.

    Raises:
        UsageError: all cells of a framework and workload are skipped, at least one for such a local reason.
    """
    of_framework = grouped(((each.cell.workload, plan.frameworks[each.cell.environment]), each) for each in plan.cells)
    of_environment = grouped(((each.cell.workload, each.cell.environment), each) for each in plan.cells)
    for local in _local_skips(of_framework):
        raise _not_shown(local)
    cases = _cases_of_workloads(plan)
    frameworks = [name for name in FRAMEWORKS if name in plan.frameworks.values()]
    by_framework = [
        (workload, *(_field(of_framework.get((workload, name), ()), name, cases[workload]) for name in frameworks))
        for workload in cases
    ]
    by_environment = [
        (name, *(_field(of_environment.get((workload, name), ()), framework, cases[workload]) for workload in cases))
        for name, framework in plan.frameworks.items()
    ]
    groups = [*of_framework.values(), *of_environment.values()]
    used = sorted({code for group in groups for code in _codes_shown(group)})
    notes = [f"`{REASON_OF_CODE[code]}` includes `{code}`." for code in used if REASON_OF_CODE.get(code, code) != code]
    return "\n\n".join(
        [table(("workload", *frameworks), by_framework), *notes, table(("environment", *cases), by_environment)]
    )


def _local_skips(groups: Groups) -> Iterator[PlannedCell]:
    """Yield a cell with a local skip code for each group that has one and of which nothing runs."""
    for cells in groups.values():
        if all(planned.skip for planned in cells):
            yield from [planned for planned in cells if planned.skip and planned.skip.code in LOCAL_CODES][:1]


def _not_shown(planned: PlannedCell) -> UsageError:
    cell, skip = planned.cell, planned.skip
    assert skip is not None
    message = (
        f"the coverage table cannot show {cell.environment}/{cell.workload}: "
        f"it is skipped for a local reason: {skip.code}: {skip.reason}"
    )
    return UsageError(Problem(message, hint=f"exclude the environment with '!{cell.environment}'"))


def _cases_of_workloads(plan: Plan) -> Mapping[str, set[str]]:
    """Return workload -> its planned cases."""
    cases: dict[str, set[str]] = {}
    for planned in plan.cells:
        cases.setdefault(planned.cell.workload, set()).add(planned.cell.case_id)
    return cases


def _codes_shown(group: Sequence[PlannedCell]) -> set[str]:
    """Return the skip codes behind the reason that is shown for a group; none if it runs."""
    codes = {planned.skip.code if planned.skip else RUNS for planned in group}
    shown = next((reason for reason in REASONS if reason in {REASON_OF_CODE.get(code) for code in codes}), None)
    return set() if RUNS in codes else {code for code in codes if REASON_OF_CODE.get(code) == shown}


def _field(group: Sequence[PlannedCell], framework: str, cases: set[str]) -> str:
    if not group:
        known = [dict(CASES[case_id]) for case_id in cases if case_id in CASES]  # others are networks of the user
        offered = (each.concerns(case) for each in implementations(framework) for case in known)
        return "" if any(offered) else "framework-lacks"
    skips = [planned.skip for planned in group if planned.skip]
    if len(skips) < len(group):
        return RUNS
    present = {REASON_OF_CODE.get(skip.code, skip.code) for skip in skips}
    return next(reason for reason in (*LOCAL_CODES, *REASONS) if reason in present)
