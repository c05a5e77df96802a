"""What a build says of the environments that do not run: in full of those that the user named, briefly of others."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from runner.core.grouping import grouped
from runner.core.model import SKIP_MEANINGS, Plan, Skip
from runner.report.formatting import counted


def skip_notes(plan: Plan, named: Collection[str]) -> Iterator[str]:
    """Yield the sentences on the environments of which nothing runs.

    Args:
        plan: what is built.
        named: the environments that the user named by their ids. There is a sentence for each reason why these do not
            run. The environments that nobody named share one sentence; if all were skipped for the same reason, it has
            this reason in full.
    """
    first = _first_skips(plan)
    others = {name: skip for name, skip in first.items() if name not in named}
    share_reason = len(set(others.values())) == 1
    in_full = first if share_reason else {name: skip for name, skip in first.items() if name in named}
    for skip, names in grouped((skip, name) for name, skip in in_full.items()).items():
        yield f"skipped: {', '.join(names)}: {skip.code}: {skip.reason}"
    if others and not share_reason:
        counts = Counter(SKIP_MEANINGS.get(skip.code, skip.code) for skip in others.values())
        reasons = "; ".join(f"{title}: {count}" for title, count in counts.most_common())
        yield (
            f"skipped: {counted(len(others), 'environment')} that you did not name ({reasons}); "
            "`runner plan --why` has all reasons"
        )


def _first_skips(plan: Plan) -> Mapping[str, Skip]:
    """Return each environment of which no cell runs, with the reason of its first cell."""
    running = {planned.cell.environment for planned in plan.cells if planned.skip is None}
    first: dict[str, Skip] = {}
    for planned in plan.cells:
        if planned.skip and planned.cell.environment not in running:
            first.setdefault(planned.cell.environment, planned.skip)
    return first
