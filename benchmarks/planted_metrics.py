"""Are changes of other metrics than time found on real frameworks, and equal sides not called different?

``python -m benchmarks.planted_metrics torch-2.x tf-2.x jax --count 100`` measures an environment against itself with
the variable PLANTED, which has the cases of ``planted_network.py`` take 5 % more memory in a step, 20 % longer for the
first call, keep 1 kB of each call, or do nothing. ``--imports 10`` also measures images in which the import of the
framework takes 15 % more processor time. It needs a Docker engine and images that are made. Prints for each environment
how many planted changes have the right verdict, and how many rows of equal sides have the verdict of a change, for each
metric. ``--runs`` divides the count among so many runs, ten by default, because verdicts depend on the rows of a run.
``--only first-call`` measures cases of that plant alone, so that more rounds of them take minutes.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks import planted_network
from benchmarks.environments import MATRIX, nothing
from runner.analysis.compare.comparison import compare
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Row
from runner.analysis.dataset import load_dataset
from runner.analysis.quality import quality_issues
from runner.analysis.quality.memory_growth import CODE as GROWS
from runner.core.metrics import BY_NAME, CHANGES
from runner.core.progress import Progress
from runner.plan.pairs import with_twins
from runner.session import execution
from runner.session.context import PlannedRun, setup
from runner.session.options import Options
from runner.session.preparation import prepare
from runner.store.run import Run

PLANTS = ("memory", "first-call", "leak")
"""The plants of cases; the first two are metrics."""
CASES_FOR_EACH: Mapping[str, float] = {"memory": 1.0, "first-call": 1 / 3, "leak": 1 / 3, "equal": 2.0}
"""Cases of each plant, and equal ones, for each case with more memory."""
IMPORT_SHARE = 0.15
SERVERS = 3
"""How many servers tell how long an import takes."""
VARIABLE = "PLANTED"


class Tally:
    """What came out of the runs of an environment.

    Attributes:
        planted: plant -> the verdicts of its rows, for a leak ``named`` or ``not named``.
        equal: metric -> the verdicts of rows without a plant.
        grew: how many cells without a leak were named as growing.
        ratios: plant -> the ratios of its rows.
    """

    def __init__(self) -> None:
        """Count from nothing."""
        self.planted = {plant: Counter[str]() for plant in (*PLANTS, "import")}
        self.equal: dict[str, Counter[str]] = {}
        self.grew = 0
        self.ratios: dict[str, list[float]] = {}

    def add(self, run: Run, base: str, other: str, *, planted_import: bool = False) -> None:
        """Add the rows of a run."""
        measured = MeasuredRun.of(load_dataset(run))
        comparison = compare([measured], base, [other])
        for row in (*comparison.rows, *comparison.metrics):
            plant = plant_of(row)
            if row.metric == plant or (planted_import and row.metric == "import"):
                self.planted[row.metric][row.verdict] += 1
                self.ratios.setdefault(row.metric, []).append(row.ratio or 0.0)
            elif not (plant == "memory" or planted_import):  # more memory takes longer to fill
                self.equal.setdefault(row.metric, Counter())[row.verdict] += 1
        growing = {issue.cell for issue in quality_issues(measured) if issue.code == GROWS}
        for row in comparison.rows:
            if plant_of(row) == "leak":
                self.planted["leak"]["named" if row.other.id in growing else "not named"] += 1
                growing.discard(row.other.id)
        self.grew += len(growing)

    def lines(self) -> Iterator[str]:
        """Yield the counts, for people."""
        for plant, verdicts in self.planted.items():
            ratios = self.ratios.get(plant, ())
            middle = f", median ratio {median(ratios):.3f}" if ratios else ""
            if verdicts:
                right = "named" if plant == "leak" else BY_NAME[plant].worse
                yield f"  planted {plant}: {verdicts[right]} of {verdicts.total()} found ({counts(verdicts)}){middle}"
        for metric, verdicts in self.equal.items():
            unlike = sum(verdicts[word] for word in CHANGES)
            yield f"  equal {metric}: {unlike} of {verdicts.total()} called different ({counts(verdicts)})"
        yield f"  cells without a leak that were named as growing: {self.grew}"


def plant_of(row: Row) -> str:
    """Return the plant of the case of a row; ``equal`` without one."""
    return row.other.case.rpartition("-")[0]


def counts(verdicts: Counter[str]) -> str:
    """Return how often there was which verdict."""
    return ", ".join(f"{word} {count}" for word, count in verdicts.most_common())


def network(folder: Path, cases: Mapping[str, int]) -> Path:
    """Write the model file with a number of cases of each plant; return its path."""
    plants = {f"{plant}-{k}": {"plant": plant} for plant, count in cases.items() for k in range(count)}
    path = folder / "planted.py"
    path.write_text(planted_network.TEXT.replace("CASES_HERE", repr(plants)), "utf-8")
    return path


def measured(sides: Sequence[str], model: Path, reports: Path, options: Options) -> Run:
    """Measure the network on both sides, with an A/A control of each case and without plain processes."""
    options = replace(options, selectors=list(sides), model=[str(model)], matrix=MATRIX, reports=reports)
    context = setup(options)
    prepared = prepare(context.matrix, context.request, context.backend, context.settings, None)
    prepared = replace(prepared, plan=with_twins(prepared.plan))
    context = replace(context, settings=replace(context.settings, controls=False))
    totals = execution.run(PlannedRun(context, prepared), Progress(nothing))
    if totals.bad:
        raise SystemExit(f"failed: {', '.join(totals.bad)}")
    return totals.run


def of_environment(
    name: str, count: int, runs: int, imports: int, options: Options, shares: Mapping[str, float] = CASES_FOR_EACH
) -> Tally:
    """Measure ``count`` times the share of each plant as cases, in some runs; return what came out."""
    tally, each = Tally(), -(-count // runs)
    cases = {plant: math.ceil(each * share) for plant, share in shares.items()}
    for number in range(runs if count else 0):
        with tempfile.TemporaryDirectory() as folder:
            sides = (name, f"{name}@env:{VARIABLE}=1")
            tally.add(measured(sides, network(Path(folder), cases), Path(folder), options), *sides)
        report(f"{name}, run {number + 1}", tally)
    if imports:
        add_imports(tally, name, imports, options)
    return tally


def add_imports(tally: Tally, name: str, count: int, options: Options) -> None:
    """Compare the import of an image with that of another, in which it takes longer, in ``count`` runs."""
    with tempfile.TemporaryDirectory() as folder:
        model = network(Path(folder), {"equal": 1})
        context = setup(replace(options, selectors=[name], model=[str(model)], matrix=MATRIX))
        prepared = prepare(context.matrix, context.request, context.backend, context.settings, None)
        made = context.backend.provision(prepared.specs[0], nothing)
        slower = f"matrix-runner-planted:{name}"
        few = replace(options, rounds=SERVERS, max_rounds=SERVERS)
        plain = measured([f"plain=image:{made.handle}"], model, Path(folder), few)
        seconds = median(record.facts["import_cpu_seconds"] for record in plain.records())
        build_slower(made.handle, slower, made.framework, IMPORT_SHARE * seconds)
        try:
            for number in range(count):
                words = (f"plain=image:{made.handle}", f"slow=image:{slower}")
                tally.add(measured(words, model, Path(folder), options), "plain", "slow", planted_import=True)
                report(f"{name}, import {number + 1}", tally)
        finally:
            subprocess.run(["docker", "rmi", slower], check=False, capture_output=True)


def build_slower(image: str, name: str, framework: str, seconds: float) -> None:
    """Build an image in which the import of a framework computes for some seconds before it returns."""
    loop = "while time.process_time() < planted: pass"  # without names that a framework may have given another meaning
    code = f'import time; planted = time.process_time() + {seconds}; exec("{loop}")'
    find = f"import importlib.util; print(importlib.util.find_spec({framework!r}).origin)"
    # compiled, as the module was: an import that compiles it each time takes 10 % longer by that alone
    run = f"module=$(python -c {find!r}) && echo '{code}' >> $module && python -m py_compile $module"
    dockerfile = f"FROM {image}\nUSER root\nRUN {run}\n"
    subprocess.run(["docker", "build", "-t", name, "-"], input=dockerfile.encode(), check=True, capture_output=True)


def report(what: str, tally: Tally) -> None:
    """Print what came out so far."""
    sys.stdout.write("\n".join([f"{what}:", *tally.lines(), ""]))
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("environments", nargs="+", help="environments of the shipped matrix, whose images are made")
    parser.add_argument(
        "--count",
        type=int,
        default=10,
        help="cases with more memory; a third as many of others, twice as many equal ones",
    )
    parser.add_argument("--runs", type=int, default=10, help="in how many runs these are measured")
    parser.add_argument("--only", choices=CASES_FOR_EACH, help="measure so many cases of this plant alone")
    parser.add_argument("--imports", type=int, default=0, help="how many runs with a slower import")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.1, help="of samples of each side in a round")
    given = parser.parse_args(words)
    rounds = {"rounds": given.rounds, "max_rounds": given.rounds, "seconds": given.seconds}
    options = Options(backend="docker", device="cpu", threads="1", busy_ok=True, **rounds)
    shares = {given.only: 1.0} if given.only else CASES_FOR_EACH
    for name in given.environments:
        of_environment(name, given.count, given.runs, given.imports, options, shares)


if __name__ == "__main__":
    main()
