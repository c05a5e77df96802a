"""How far are a plan's estimates from what runs take? Planned and real minutes of stored runs.

``python -m benchmarks.estimates RUN...`` prints a line for each run folder: what ``runner plan`` says of it now, with
its controls, from the planned rounds to the largest number of them; what the same estimates say of the rounds that it
measured; and what these took. The estimates in a folder are those of the program that measured it, and do not count.
Runs of less than SHORTEST are left out, as the first start of the servers decides them.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from runner.catalog.hardware.versions import version_numbers
from runner.core.model import Cell, Past, Plan, PlannedCell
from runner.plan import estimate
from runner.plan.document import read_plan
from runner.plan.estimate import CellCost, Program
from runner.plan.rates import Preparation, Rates, cpu_rates, gpu_rates, preparation
from runner.plan.verdicts import implementation_class
from runner.store.header import header_of
from runner.store.run import Run

SHORTEST = 60.0  # seconds
FACTOR = 1.5
"""A run whose estimate is within this factor of its time is estimated well."""


class Compared(NamedTuple):
    """A run beside its estimates.

    Attributes:
        run: its id.
        process: how its processes started.
        cells: how many ran, controls included.
        planned: seconds of its planned rounds.
        longest: seconds of the largest number of rounds.
        estimated: seconds of the rounds that it measured.
        took: seconds that it was measured for.
    """

    run: str
    process: str
    cells: int
    planned: float
    longest: float
    estimated: float
    took: float

    @property
    def ratio(self) -> float:
        """The estimate of what was measured over its time."""
        return self.estimated / self.took

    @property
    def is_close(self) -> bool:
        """Whether the estimate is within FACTOR of the time."""
        return 1 / FACTOR <= self.ratio <= FACTOR

    @property
    def line(self) -> str:
        """A line of the table."""
        planned, longest, estimated, took = (f"{seconds / 60:.1f}" for seconds in self[3:])
        columns = (self.run, self.process, str(self.cells), f"{planned} to {longest}", estimated, took)
        return f"| {' | '.join(columns)} | {self.ratio:.2f} |"


def compared(run: Run) -> Compared | None:
    """Return a run beside its estimates; None where it was measured for less than SHORTEST."""
    journal = run.journal()
    if journal.elapsed < SHORTEST:
        return None
    header = header_of(journal.header)
    plan = read_plan(run.plan(), run.cases(), header.measurement, Past())
    rates = gpu_rates(header.device_name) if plan.device == "cuda" else cpu_rates(header.measurement.threads)
    prepared = preparations(run, plan)
    costs = {each.cell: cost(each, plan, prepared, rates) for each in plan.cells if each.skip is None}
    planned = with_costs(plan, costs, prepared).seconds
    measured = [(Cell.parse(entry.cell), entry.round) for entry in journal.entries]
    rounds = Counter(cell for cell, _ in measured)
    servers = Counter(name for name, _ in {(cell.environment, number) for cell, number in measured})
    of_servers = {name: estimate.server_seconds(prepared[name].importing) for name in servers}
    return Compared(
        run=run.id,
        process=header.measurement.process,
        cells=len(costs),
        planned=planned,
        longest=planned / header.measurement.rounds * header.measurement.round_limit,
        estimated=sum(costs[cell].of(count) for cell, count in rounds.items())
        + sum(count * of_servers[name] for name, count in servers.items()),
        took=journal.elapsed,
    )


def preparations(run: Run, plan: Plan) -> Mapping[str, Preparation]:
    """Return environment -> what its processes take before they compute, by the release that the run has found."""
    facts = run.environments()
    releases = {name: str(facts.get(name, {}).get("version", "")) for name in plan.frameworks}
    return {name: preparation(plan.frameworks[name], version_numbers(release)) for name, release in releases.items()}


def cost(planned: PlannedCell, plan: Plan, prepared: Mapping[str, Preparation], rates: Rates) -> CellCost:
    """Return what a cell of a stored plan costs."""
    cell, framework = planned.cell, plan.frameworks[planned.cell.environment]
    program = Program(
        framework=framework,
        kind=planned.kind,
        compiling=implementation_class(framework, cell.implementation).compile_seconds,
        preparation=prepared[cell.environment],
    )
    return estimate.cell_cost(cell, program, plan.measurement, rates)


def with_costs(plan: Plan, costs: Mapping[Cell, CellCost], prepared: Mapping[str, Preparation]) -> Plan:
    """Return a stored plan with estimates of today, its controls as cells of their own."""
    measurement = plan.measurement
    running = (each for each in plan.cells if each.cell in costs)
    seconds = {cell: of.of(measurement.planned_rounds(cell)) for cell, of in costs.items()}
    cells = [replace(each, seconds=seconds[each.cell], control_seconds=0.0, deferred="") for each in running]
    importing = {name: each.importing for name, each in prepared.items()}
    return replace(plan, cells=estimate.with_servers(cells, importing, measurement))


def table(rows: Sequence[Compared]) -> Iterator[str]:
    """Yield the lines of a table with a row for each run, and how many are estimated well."""
    yield "| run | processes | cells | plan, min | what it measured by the estimate, min | real, min | ratio |"
    yield "|---" * 7 + "|"
    yield from (row.line for row in rows)
    close = sum(row.is_close for row in rows)
    yield f"\nwithin a factor of {FACTOR:g}: {close} of {len(rows)}"


def main(names: Sequence[str]) -> None:
    """Print the table of some run folders."""
    rows = (compared(Run.open(Path(name))) for name in names)
    print("\n".join(table([row for row in rows if row is not None])))


if __name__ == "__main__":
    main(sys.argv[1:])
