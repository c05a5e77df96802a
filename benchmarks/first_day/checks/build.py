"""``runner build --preset quick``: what the other checks measure in. Downloads do not count as time of the session."""

import subprocess
import time
from collections.abc import Iterator

from benchmarks.first_day.environments import planned
from benchmarks.first_day.rows import Row
from benchmarks.first_day.settings import ROOT, Settings

SUBJECT = "runner build --preset quick"


def rows(settings: Settings) -> Iterator[Row]:
    """Yield which environments are ready, and why others are not planned."""
    options = settings.options(preset="quick")
    complete = not settings.selectors and settings.backend != "host"
    begin = time.monotonic()
    code = subprocess.run(settings.command("build", options), cwd=ROOT, check=False).returncode
    minutes, bench = (time.monotonic() - begin) / 60, planned(settings, options)
    detail = f"exit {code} after {minutes:.1f} min with {bench.context.backend.name}"
    yield Row(SUBJECT, "held" if code == 0 else "did not hold", detail, {"code": code, "complete": complete})
    for spec in bench.prepared.specs:
        ready = spec in bench.specs
        values = {"framework": spec.framework, "release": spec.release}
        detail = f"{spec.framework} {spec.release}"
        yield Row(f"environment {spec.environment}", "held" if ready else "did not hold", detail, values)
    for note in bench.context.notes:
        yield Row("the plan says", "read", note)
    ready_names = {spec.environment for spec in bench.prepared.specs}
    reasons = {
        each.cell.environment: f"{each.skip.code}: {each.skip.reason}"
        for each in bench.prepared.plan.cells
        if each.skip and each.cell.environment not in ready_names
    }
    for name, reason in reasons.items():
        yield Row(f"environment {name}", "not tested", reason)
