"""Where the minutes of a run go: seconds by activity, from the journals of stored runs.

``python -m benchmarks.minutes reports/runs/A reports/runs/B`` prints one column for each run.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.environments import REPORTS
from benchmarks.table import Row, UnmeasurableError
from runner.core.model.events import ACTIVITIES
from runner.store.run import Run, runs

TARGET = 0.3  # the share of samples in the time after provisioning


def seconds_by_activity(run: Run) -> Mapping[str, float]:
    """Return the seconds of a run by activity, over all rounds and devices; empty for runs of older programs."""
    totals: dict[str, float] = {}
    for _, seconds in run.journal().times:
        for activity, value in seconds.items():
            totals[activity] = totals.get(activity, 0.0) + value
    return totals


def rows() -> Iterator[Row]:
    """Give the breakdown of the newest run of this folder, as shares of its time; it should be of the quick preset."""
    timed = next((run for run in runs(REPORTS) if run.journal().times), None)
    if timed is None:
        raise UnmeasurableError("there is no run with a breakdown: measure one with `nox -s matrix`")
    totals = seconds_by_activity(timed)
    total = sum(totals.values())
    yield Row(f"minutes of run {timed.id}", f"{total / 60:.1f} min")
    for activity in ACTIVITIES:
        share = totals.get(activity, 0.0) / total
        target = ("30 %", share >= TARGET) if activity == "samples" else ("", None)
        yield Row(f"  {activity}", f"{totals.get(activity, 0.0):.0f} s", "", f"{share:.0%}", *target)


def table(stored: Sequence[Run]) -> Iterator[str]:
    """Yield the lines of a table with a row for each activity and a column for each run."""
    columns = [seconds_by_activity(run) for run in stored]
    yield "| activity | " + " | ".join(run.id for run in stored) + " |"
    yield "|---" * (len(stored) + 1) + "|"
    for activity in ACTIVITIES:
        cells = [f"{column.get(activity, 0.0):.0f} s" for column in columns]
        yield f"| {activity} | " + " | ".join(cells) + " |"
    totals = [sum(column.values()) for column in columns]
    yield "| total | " + " | ".join(f"{total:.0f} s" for total in totals) + " |"
    shares = [column.get("samples", 0.0) / total for column, total in zip(columns, totals, strict=True)]
    yield "| share of samples | " + " | ".join(f"{share:.0%}" for share in shares) + " |"


if __name__ == "__main__":
    print("\n".join(table([Run.open(Path(name)) for name in sys.argv[1:]])))
