"""How long 1,000,000 samples in 10,000 cells take from the run folder to the HTML report, and how much memory.

Run it as ``python benchmarks/report_size.py``; the targets are 5 seconds and 500 MB. Making the folder is not counted,
and happens in a process of its own, so that its memory is not.
"""

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

CASES, ENVIRONMENTS, SLUGS, ROUNDS, SAMPLES = 100, 10, 10, 3, 34


def make(reports: Path) -> None:
    """Write a run: 100 cases x 10 environments x 10 implementations, 3 rounds of 34 samples each."""
    import numpy as np

    from runner import record_json
    from runner.documents import JOURNAL, newest, text
    from runner.journal import Entry
    from runner.model import Cell, Record
    from runner.store import Run

    draw = np.random.default_rng(0)
    names = [f"torch-2.{number}" for number in range(ENVIRONMENTS)]
    cells = [
        Cell(
            environment=name,
            implementation=f"slug-{slug}",
            workload="rnn-step",
            case=f"lstm-b{case}-h128",
            phase="train",
        )
        for case in range(CASES)
        for name in names
        for slug in range(SLUGS)
    ]
    planned = [{"id": cell.id, "kind": "fused", "framework": "torch", "verdict": "run"} for cell in cells]
    facts = {name: {"framework": "torch", "release": name[6:]} for name in names}
    run = Run.create(reports, {"cells": planned}, {}, {"cpu": "a processor"}, {}, datetime.now(UTC))
    run.write_environments(facts)
    lines = []
    for number in range(ROUNDS):
        for cell in cells:
            seconds = tuple((0.01 * np.exp(draw.normal(0, 0.02, SAMPLES))).tolist())
            known = {
                "device": "cpu",
                "kind": "fused",
                "framework": "torch",
                "release": cell.environment[6:],
                "threads": 2,
            }
            known |= {"backend": "venv", "loss_error": 1e-7, "gradient_error": 1e-6}
            record = Record(cell=cell, run=run.id, round=number, status="ok", seconds=seconds, facts=known)
            file = f"records/{cell.id.replace('/', '~')}.{number}.1.json"
            (run.path / file).write_text(text(record_json.encode(record, 1)))
            entry = Entry(cell.id, number, 1, "ok", file)
            lines.append(json.dumps({"version": newest(JOURNAL), "event": "measured", **entry._asdict()}) + "\n")
    (run.path / "journal.jsonl").write_text("".join(lines))


def main() -> None:
    """Print the seconds of each step and the peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        maker = multiprocessing.Process(target=make, args=(Path(folder),))
        maker.start()
        maker.join()
        from runner.store import runs

        begin, used = time.perf_counter(), time.process_time()
        from runner import merge
        from runner.compare import summarise
        from runner.report import html, view

        loaded = time.perf_counter()
        results = merge.results(runs(Path(folder))[0])
        merged = time.perf_counter()
        comparisons = summarise(results)
        compared = time.perf_counter()
        page = html.page_text(view.arrange(results, comparisons))
        done = time.perf_counter()
    steps = {"import": loaded - begin, "merge": merged - loaded, "compare": compared - merged, "html": done - compared}
    print(
        f"{len(results.samples):,} samples in {results.rounds['cell'].nunique():,} cells, page {len(page) / 1e6:.1f} MB"
    )
    print(", ".join(f"{name} {seconds:.2f} s" for name, seconds in steps.items()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    busy = time.process_time() - used
    print(f"total {done - begin:.2f} s, {busy:.2f} s of processor time, peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
