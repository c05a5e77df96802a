"""How long a settled verdict takes, against the 500 iterations a side of Braun 2018 (arXiv 1806.01818).

Ours is the measuring stage of ``runner run --rounds 3 --max-rounds 20``: servers, checks and rounds until no verdict is
open, without A/A pairs and canary, for which the paper has no like. The peer does what the paper's programs did, for
each side in a process of its own: import, build, and 500 iterations, of which it leaves out the first 100. To be done
today, it makes MADE of them and reckons the rest by the mean of those it keeps. Both work on the same aligned programs,
so that they time the same step. Nothing else is counted for the peer: no check of the computation, no start of a
container. The cases have the sizes that were published: with short steps 500 iterations are soon over.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.changed_harness import packed
from benchmarks.environments import Ready, nothing, ready, request
from benchmarks.table import Row, UnmeasurableError
from runner.analysis import dataset
from runner.analysis.compare.comparison import summarise
from runner.analysis.comparison_model import Verdict
from runner.backends import Channel
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.cleanup import owner
from runner.backends.local_channel import ProcessChannel
from runner.core import machine
from runner.core.locks import exclusive
from runner.core.model import Cell, Limits, Provisioned, Record
from runner.core.progress import Progress
from runner.harness import cases
from runner.measure.references import References
from runner.measure.session import Session
from runner.session import execution
from runner.session.context import PlannedRun
from runner.session.execution import side_by_side
from runner.session.options import Options

ROUNDS, MAX_ROUNDS, SECONDS = 3, 20, 0.25  # the seconds are those of the quick preset
TARGET = 0.2
SETTLED = ("slower", "faster", "same")
LEFT_OUT, KEPT = cases.iterations({"workload": "asr-lstm"})
MADE, FIRST = 60, 10  # iterations of the peer; those of them that are left out
FIXED = f"""

def measure(call, synchronize, clock, *_):
    times = yield from count(call, synchronize, clock, {MADE})
    return {{"warmup": times[:{FIRST}], "seconds": times[{FIRST}:]}}
"""


class Pair(NamedTuple):
    """Two environments and what both measure; in truth they differ by a tenth or more."""

    base: str
    other: str
    slug: str
    work: str

    @property
    def cells(self) -> tuple[str, str]:
        """The ids of both cells."""
        return f"{self.base}/{self.slug}/{self.work}/fp32", f"{self.other}/{self.slug}/{self.work}/fp32"


PAIRS = (
    Pair("torch-1.12", "torch-2.x", "nn-lstm", "asr-lstm/1x320-ce-short/forward"),
    Pair("torch-1.0", "torch-2.x", "nn-lstm", "asr-lstm/1x320-ce-short/train"),
    Pair("torch-1.12", "torch-2.x", "lstm-cell-fused", "asr-lstm/1x320-ce-short/train"),
    Pair("tf-1.8", "tf-2.x", "basic-lstm-cell", "asr-lstm/1x320-ce-short/forward"),
    Pair("tf-1.8", "tf-2.x", "lstm-block-cell", "asr-lstm/1x320-ce-short/train"),
    Pair("torch-1.0", "torch-2.x", "nn-lstm", "rnn-step/lstm-b128-h512/forward"),
    Pair("torch-1.12", "torch-2.x", "lstm-cell-basic", "rnn-step/lstm-b128-h512/train"),
    Pair("tf-1.8", "tf-2.x", "basic-lstm-cell", "rnn-step/lstm-b128-h512/train"),
    Pair("torch-1.0", "torch-1.12", "nn-rnn", "rnn-step/rnn-b128-h512/train"),
    Pair("tf-1.8", "tf-1.15", "basic-rnn-cell", "rnn-step/rnn-b128-h512/train"),
)


class Settled(NamedTuple):
    """What our way took: ``seconds`` in all, of which ``calls`` were timed calls, warm-up among them."""

    seconds: float
    calls: float
    verdict: Verdict
    ratio: float
    rounds: int


class Fixed(NamedTuple):
    """What the paper's way took, both sides together, likewise."""

    seconds: float
    calls: float
    ratio: float


def rows() -> Iterator[Row]:
    """Give the time of ten verdicts both ways, in all and in timed calls alone."""
    outcomes: list[tuple[Settled, Fixed]] = []
    lacking: list[str] = []
    for pair in PAIRS:
        try:
            bench = ready(pair.cells, Options(rounds=ROUNDS, max_rounds=MAX_ROUNDS, seconds=SECONDS))
            outcomes.append((settle(bench), fixed(bench, pair)))
            sys.stderr.write(f"{_line(pair, *outcomes[-1])}\n")
        except UnmeasurableError as error:
            sys.stderr.write(f"{' and '.join(pair.cells)}: {error}\n")
            lacking.append(str(error))
    if not outcomes:
        raise UnmeasurableError("; ".join(dict.fromkeys(lacking)))
    good = sum(settled.verdict in SETTLED and (settled.ratio > 1) == (two.ratio > 1) for settled, two in outcomes)
    yield _row(
        f"a settled verdict, {good} of {len(PAIRS)} pairs",
        sum(settled.seconds for settled, _ in outcomes),
        sum(two.seconds for _, two in outcomes),
        all_good=good == len(PAIRS),
    )
    calls = sum(settled.calls for settled, _ in outcomes), sum(two.calls for _, two in outcomes)
    yield _row("the same, timed calls alone", *calls, all_good=good == len(PAIRS))


def _row(figure: str, ours: float, theirs: float, *, all_good: bool) -> Row:
    note = f"{LEFT_OUT + KEPT} iterations {theirs:.1f} s"
    return Row(figure, f"{ours:.1f} s", note, ours / theirs, f"{TARGET:g}", all_good and ours <= TARGET * theirs)


def _line(pair: Pair, ours: Settled, theirs: Fixed) -> str:
    return (
        f"{pair.other} against {pair.base}, {pair.slug} {pair.work}: {ours.verdict} ({ours.ratio:.2f}) after "
        f"{ours.rounds} rounds, {ours.seconds:.1f} s, of it calls {ours.calls:.1f} s; "
        f"fixed ({theirs.ratio:.2f}) {theirs.seconds:.1f} s, of it calls {theirs.calls:.1f} s; "
        f"ratio {ours.seconds / theirs.seconds:.2f}, of calls {ours.calls / theirs.calls:.2f}"
    )


def settle(bench: Ready) -> Settled:
    """Measure a pair until its verdict is settled, or the rounds are used up."""
    block = bench.prepared.plan.blocks[0]
    References(bench.setup.settings.cache / "references", bench.setup.request.threads).get(block.spec)
    with tempfile.TemporaryDirectory() as folder:
        here = replace(bench.setup.settings, reports=Path(folder), controls=False)
        begin = time.perf_counter()
        context = replace(bench.setup, settings=here, backend=bench.backend, gpus=())
        totals = execution.run(PlannedRun(context, bench.prepared), Progress(nothing))
        took = time.perf_counter() - begin
        if totals.bad:
            raise UnmeasurableError(f"failed: {', '.join(totals.bad)}")
        calls = sum(_called(record) for record in totals.run.records())
        row = summarise(dataset.load_dataset(totals.run))[0].rows[0]
    return Settled(took, calls, row.verdict, row.ratio or 1.0, row.rounds)


def _called(record: Record) -> float:
    """Return the seconds that the calls of a record took, warm-up and leads among them."""
    counted = [*record.seconds, *record.facts.get("leads", ())]
    return float(record.facts["warmup_seconds"] + record.facts["batch"] * sum(counted))


def fixed(bench: Ready, pair: Pair) -> Fixed:
    """Time 500 iterations of each side, each in a process of its own."""
    made = {spec.environment: bench.backend.provision(spec, nothing) for spec in bench.prepared.specs}
    harness = packed({"timing.py": FIXED})
    with exclusive(bench.setup.settings.cache / "measuring-cpu.lock", nothing):
        cells = [cell for block in bench.prepared.plan.blocks for cell in block.cells]
        sides = {cell.environment: _side(bench, made[cell.environment], cell, harness) for cell in cells}
    took, calls = (sum(side[k] for side in sides.values()) for k in (0, 1))
    return Fixed(took, calls, sides[pair.other][2] / sides[pair.base][2])


def _side(bench: Ready, made: Provisioned, cell: Cell, harness: bytes) -> tuple[float, float, float]:
    """Return the seconds of one side's import, build and iterations, of the iterations alone, and their median."""
    threads, case = bench.setup.request.threads, dict(bench.prepared.plan.blocks[0].spec)
    references = References(bench.setup.settings.cache / "references", threads)
    session = Session(channel(bench, made, harness), "fixed#1")
    try:
        imported = session.hello(made.framework, threads, "cpu", 300.0)
        reply = session.measure(request(bench, made, cell, SECONDS), lambda: references.get(case))
    finally:
        session.close()
    if reply["status"] != "ok":
        raise UnmeasurableError(f"{cell.id} failed: {reply['reason']}")
    rest = LEFT_OUT + KEPT - MADE
    calls = sum(reply["warmup"]) + sum(reply["seconds"]) + rest * statistics.mean(reply["seconds"])
    started = imported["import_seconds"] + reply["compile_seconds"]
    return started + calls, calls, statistics.median(reply["seconds"])


def channel(bench: Ready, made: Provisioned, harness: bytes) -> Channel:
    """Start a server with a harness of our own; its memory is limited as a run's would be."""
    limits = Limits(memory=int(side_by_side.MEMORY_SHARE * machine.available_memory()), run="bench")
    if bench.backend.name == "docker":
        return DockerChannel(made, limits, owner(), harness)
    return ProcessChannel(made.handle, limits.device, harness)
