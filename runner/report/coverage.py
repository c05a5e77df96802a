"""Which framework computes which workload: a plan as Markdown tables of four words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from runner.catalog.cases import CASES
from runner.core.errors import Problem, UsageError
from runner.core.model import SKIP_CODES, Plan, PlannedCell, Request, Skip
from runner.harness.adapters import implementations
from runner.matrix import FRAMEWORKS, Matrix
from runner.plan.environments import specs
from runner.plan.planner import plan
from runner.report.markdown import table

RUNS = "runs"
WORDS = ("needs-gpu", "processors", "image-unavailable", "framework-lacks")
"""Why nothing of a field runs; of several reasons the first of these is shown."""

WORD: Mapping[str, str] = {
    **{word: word for word in WORDS},
    "arch": "needs-gpu",  # another one than this machine's
    "driver": "needs-gpu",
    "no-engine": "image-unavailable",
    "precision-lacks": "framework-lacks",
}
"""Skip code -> the word that stands for it."""

WORDLESS = tuple(code for code in SKIP_CODES if code not in WORD)
"""Skip codes that no word stands for: they are this machine's or the user's doing, and not the framework's."""

Groups = Mapping[tuple[str, str], Sequence[PlannedCell]]


def coverage(planned: Plan) -> str:
    """Return what a plan covers as Markdown: workload x framework, then environment x workload.

    A field says ``runs`` where any cell runs, else the first of ``WORDS`` that is a reason. It is empty where the
    selection left out what there is, and ``framework-lacks`` where no implementation has the workload's networks.
    In the second table a reason that no word stands for, such as a missing interpreter, is shown by its code.

    Raises:
        UsageError: a framework as a whole is held back by such a reason.
    """
    of_framework = _grouped((planned.frameworks[found.cell.environment], found) for found in planned.cells)
    of_environment = _grouped((found.cell.environment, found) for found in planned.cells)
    for held in _held_back(of_framework):
        raise _wordless(held)
    cases = _cases_of_workloads(planned)
    frameworks = [name for name in FRAMEWORKS if name in planned.frameworks.values()]
    by_framework = [
        (work, *(_word(of_framework.get((work, name), ()), name, cases[work]) for name in frameworks)) for work in cases
    ]
    by_environment = [
        (name, *(_word(of_environment.get((work, name), ()), framework, cases[work]) for work in cases))
        for name, framework in planned.frameworks.items()
    ]
    groups = [*of_framework.values(), *of_environment.values()]
    used = sorted({code for group in groups for code in _standing(group)})
    notes = [f"`{WORD[code]}` stands for `{code}` as well." for code in used if WORD.get(code, code) != code]
    return "\n\n".join(
        [table(("workload", *frameworks), by_framework), *notes, table(("environment", *cases), by_environment)]
    )


def built_alone(matrix: Matrix, folder: Path) -> Plan:
    """Return the plan of a machine without a GPU that can build every locked environment and pull no image.

    It has a thread for each process of the cases with the fewest of them.

    Args:
        matrix: the checked matrix; all its environments and cases are planned.
        folder: what the locks' paths are relative to.
    """
    names = tuple(matrix.environments)
    wanted, skips = specs(matrix, names, "cpu", folder)
    lost = {
        spec.environment: Skip(
            "image-unavailable", f"{spec.image} cannot be pulled" if spec.image else "it has no lock yet"
        )
        for spec in wanted
        if spec.image or not spec.lock
    }
    return plan(matrix, Request(environments=names, backend="docker", threads=2), {**skips, **lost})


def _grouped(cells: Iterable[tuple[str, PlannedCell]]) -> Groups:
    found: dict[tuple[str, str], list[PlannedCell]] = {}
    for name, planned in cells:
        found.setdefault((planned.cell.workload, name), []).append(planned)
    return found


def _held_back(groups: Groups) -> Iterator[PlannedCell]:
    """Yield a cell for each group of which nothing runs for a reason that has no word."""
    for cells in groups.values():
        if all(found.skip for found in cells):
            yield from [found for found in cells if found.skip and found.skip.code in WORDLESS][:1]


def _wordless(held: PlannedCell) -> UsageError:
    assert held.skip is not None
    where = f"{held.cell.environment} does not run {held.cell.workload}"
    hint = f"leave it out with '!{held.cell.environment}'; `runner plan` gives every reason"
    return UsageError(
        Problem(f"no word of this table says why {where}: {held.skip.code}: {held.skip.reason}", hint=hint)
    )


def _cases_of_workloads(plan: Plan) -> Mapping[str, set[str]]:
    """Return workload -> its planned cases."""
    found: dict[str, set[str]] = {}
    for one in plan.cells:
        found.setdefault(one.cell.workload, set()).add(one.cell.case_id)
    return found


def _standing(group: Sequence[PlannedCell]) -> set[str]:
    """Return the codes behind the word that a group is shown by; none where it runs."""
    codes = {found.skip.code if found.skip else RUNS for found in group}
    shown = next((word for word in WORDS if word in {WORD.get(code) for code in codes}), None)
    return set() if RUNS in codes else {code for code in codes if WORD.get(code) == shown}


def _word(group: Sequence[PlannedCell], framework: str, cases: set[str]) -> str:
    if not group:
        offered = (one.concerns(dict(CASES[case_id])) for one in implementations(framework) for case_id in cases)
        return "" if any(offered) else "framework-lacks"
    skips = [found.skip for found in group if found.skip]
    if len(skips) < len(group):
        return RUNS
    present = {WORD.get(skip.code, skip.code) for skip in skips}
    return next(word for word in (*WORDLESS, *WORDS) if word in present)
