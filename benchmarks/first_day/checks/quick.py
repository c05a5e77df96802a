"""The quick preset through the real command line; its report is copied into the folder."""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.first_day import runs
from benchmarks.first_day.rows import Row, UntestableError
from benchmarks.first_day.settings import ROOT, Settings

SUBJECT = "runner run --preset quick"
BUDGET = 480.0  # seconds of measuring
AROUND = 90.0  # seconds before and after that: the first start of the servers, the report
SHORTEST = 60.0
SHOWN = 12  # failed cells that get a row of their own


def rows(settings: Settings) -> Iterator[Row]:
    """Yield what was planned and what became of it."""
    budget = min(BUDGET, settings.limit - AROUND)
    if budget < SHORTEST and not settings.small:
        raise UntestableError(f"{settings.limit:.0f} s are left, and a run needs {AROUND + SHORTEST:.0f} s")
    changes: dict[str, Any] = {"preset": "quick", "budget": f"{budget:.0f}s"}
    if settings.small:
        changes = {"preset": "quick", "rounds": 1, "seconds": 0.02, "busy_ok": True}
    reports = settings.scratch / "quick"
    options = settings.options(**changes, reports=reports)
    begin = time.monotonic()
    done = subprocess.run(settings.command("run", options), cwd=ROOT, stdout=subprocess.PIPE, check=False)
    elapsed = time.monotonic() - begin
    folder = runs.run_folder(reports)
    if folder is None:
        yield Row(SUBJECT, "did not hold", f"exit {done.returncode} before it measured: see logs/quick.txt")
        return
    runs.copy(folder, settings.folder / "quick")
    yield from _summary(folder, elapsed, done.returncode)


def _summary(folder: Path, elapsed: float, code: int) -> Iterator[Row]:
    records, plan = runs.records(folder), _plan(folder)
    good = [record for record in records if record["status"] == "ok"]
    ended = any(event["event"] == "ended" and event.get("how", "done") == "done" for event in runs.journal(folder))
    detail = f"exit {code}, {len({record['cell'] for record in good})} cells in {elapsed / 60:.1f} min"
    values: dict[str, Any] = {"code": code, "seconds": elapsed, "records": len(records), "good": len(good)}
    measuring, estimate = _measuring_seconds(folder), estimated_seconds(plan, records)
    values |= {"measuring": measuring, "estimate": estimate, "child_seconds": _child_seconds(good)}
    yield Row("the quick run", "held" if ended and good else "did not hold", detail, values)
    yield estimate_row(estimate, measuring)
    codes = skip_codes(plan, records, runs.journal(folder))
    skips = Counter(code for code in codes.values() if code)
    environments = Counter(cell.split("/")[0] for cell, code in codes.items() if not code)
    detail = ", ".join(f"{name}: {count} cells" for name, count in environments.items()) or "nothing runs"
    yield Row("environments that run", "read", detail, {"environments": dict(environments), "skips": dict(skips)})
    failed = [record for record in records if record["status"] == "failed"]
    kinds = Counter(record["class"] for record in failed)
    shown = ", ".join(f"{count} {name}" for name, count in kinds.items()) or "none failed"
    yield Row("cells that fail", "did not hold" if failed else "held", shown, {"classes": dict(kinds)})
    for record in list({record["cell"]: record for record in failed}.values())[:SHOWN]:
        yield Row(f"failed: {record['cell']}", "did not hold", f"{record['class']}: {record.get('reason', '')}")
    yield from _gpu(good)


def _plan(folder: Path) -> dict[str, Any]:
    from runner.store.run import Run

    return dict(Run.open(folder).plan())


def skip_codes(
    plan: dict[str, Any], records: list[dict[str, Any]], events: list[dict[str, Any]]
) -> dict[str, str | None]:
    """Return cell -> its skip code; ``over-budget`` also if the budget had no time for its case during the run.

    Args:
        plan: ``plan.json``.
        records: of the run.
        events: of its journal.
    """
    skipped_cases = {event["case"] for event in events if event["event"] == "skipped"}
    recorded = {record["cell"] for record in records}
    return {
        cell["id"]: "over-budget"
        if f"{cell['workload']}/{cell['case']}" in skipped_cases and cell["code"] is None and cell["id"] not in recorded
        else cell["code"]
        for cell in plan["cells"]
    }


def estimated_seconds(plan: dict[str, Any], records: list[dict[str, Any]]) -> float:
    """Return what the plan's estimates say of the measurements that a run made: its budget ends most runs before.

    Args:
        plan: ``plan.json``; its seconds are those of all planned rounds.
        records: of the run, one for each cell, round and attempt.
    """
    by_cell = {cell["id"]: cell["seconds"] / plan["rounds"] for cell in plan["cells"]}
    return float(sum(by_cell.get(record["cell"], 0.0) for record in records))


def _measuring_seconds(folder: Path) -> float:
    """Return the seconds that the journal counts as measuring, building and waiting left out."""
    return max((float(event["spent"]) for event in runs.journal(folder) if event.get("spent")), default=0.0)


def _child_seconds(good: list[dict[str, Any]]) -> dict[str, float]:
    """Return environment -> the median seconds of a child, from its fork to its end."""
    by_environment: dict[str, list[float]] = {}
    for record in good:
        seconds = record["facts"].get("round_seconds") or record["facts"].get("child_seconds")
        if seconds:
            by_environment.setdefault(record["cell"].split("/")[0], []).append(float(seconds))
    return {name: sorted(times)[len(times) // 2] for name, times in by_environment.items()}


def estimate_row(estimate: float, measuring: float) -> Row:
    """Return whether measuring took between a third and three times of what was estimated for it."""
    if not measuring or not estimate:
        return Row("the plan's estimate", "not tested", "nothing was measured")
    ratio = measuring / estimate
    detail = f"estimated {estimate / 60:.1f} min for what was measured, took {measuring / 60:.1f} min"
    return Row("the plan's estimate", "held" if 1 / 3 <= ratio <= 3 else "did not hold", detail, {"ratio": ratio})


def _gpu(good: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield how the clocks were held and how warm the GPU was, early and late; nothing on a CPU."""
    facts = [record["facts"] for record in good if record["facts"].get("clock_mhz")]
    if not facts:
        yield Row("clocks and heat during the run", "not tested", "no record has readings of a GPU")
        return
    held = Counter(f"{each.get('clocks')} {each.get('pinned', '')}".strip() for each in facts)
    throttled = sum(bool(each.get("throttled")) for each in facts)
    detail = ", ".join(f"{name}: {count} records" for name, count in held.items())
    values = {
        "clock_mhz": [each["clock_mhz"] for each in facts],
        "celsius": [each.get("temperature_celsius") for each in facts],
        "throttled": throttled,
    }
    detail += f"; {throttled} records throttled"
    yield Row("clocks and heat during the run", "did not hold" if throttled else "held", detail, values)
