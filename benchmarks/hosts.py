"""64 devices of other hosts, simulated: the makespan over its lower bound, and what the driver costs for each cell.

The planner, the driver and the store are the real ones. Each figure is of a process of its own, which runs the driver,
and whose processor time and memory have nothing of the hosts: these are ``benchmarks.simulated_hosts``.
"""

import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.simulated_hosts import Remote, Scenario, Simulation, serve
from benchmarks.table import Row
from runner.hosts import project

ROOT = Path(__file__).parent.parent
MAX_RATIO = 1.05
HALVES = {"fast": 32, "slow": 32}
TWICE = {"fast": 2.0, "slow": 1.0}
SCENARIOS = (
    Scenario(cells=1_000, blocks=500),
    Scenario(),
    Scenario(cells=100_000),
    Scenario(name="two kinds, one twice as fast", devices=HALVES, speeds=TWICE),
    Scenario(
        name="two kinds, 20 % and 10 % of the blocks on one alone",
        devices=HALVES,
        speeds=TWICE,
        only={"fast": 0.2, "slow": 0.1},
    ),
    Scenario(
        name="the same with a heavy tail", devices=HALVES, speeds=TWICE, only={"fast": 0.2, "slow": 0.1}, tail=1.2
    ),
    Scenario(name="3 devices lost, 3 others join", lost=3),
)


def measured(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Run the driver of a scenario in this process; return its figures."""
    from runner.core.progress import Progress
    from runner.hosts.collector import FOLDER, Collector
    from runner.hosts.driver import HostsDriver
    from runner.hosts.planning import plan_for_hosts
    from runner.hosts.remote_devices import Devices
    from runner.plan.document import plan_document
    from runner.store.run import Run
    from tests.support.fake_runs import MACHINE, NOW

    pipe, other = multiprocessing.get_context("spawn").Pipe()
    stand_in = multiprocessing.get_context("spawn").Process(target=serve, args=(scenario, folder, other), daemon=True)
    stand_in.start()
    other.close()
    executor, archive = Remote(pipe), project.pack(ROOT / "matrix.yaml")
    executor.devices()  # the hosts are ready
    begin, cpu, memory = time.monotonic(), [time.process_time()], _peak_bytes()
    devices = Devices(
        executor=executor, project=archive, options={}, progress=Progress(lambda _: None), clock=lambda: executor.now
    )
    offers = devices.first_offers()
    cpu.append(time.process_time())
    host_plan = plan_for_hosts(offers, controls=False)
    del offers
    run = Run.create(folder / "reports", plan_document(host_plan.plan), {}, MACHINE, {}, NOW)
    cpu.append(time.process_time())
    HostsDriver(devices=devices, collector=Collector(run), plan=host_plan).measure()
    cpu.append(time.process_time())
    wall, memory = time.monotonic() - begin, _peak_bytes() - memory
    journal = run.journal()
    counts = [(entry.cell, entry.round) for entry in journal.entries]
    assert len(set(counts)) == len(counts) == 2 * scenario.cells, "every cell has one record of each round"
    archives = sum(path.stat().st_size for path in (run.path / FOLDER).iterdir())
    pipe.close()
    return {
        "ratio": executor.now / Simulation(scenario).bound(),
        "joining": cpu[1] - cpu[0],
        "planning": cpu[2] - cpu[1],
        "driving": cpu[3] - cpu[2],
        "wall": wall,
        "memory": memory,
        "journal": (run.path / "journal.jsonl").stat().st_size,
        "archives": archives,
        "repeated": executor.repeated,
    }


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rows() -> Iterator[Row]:
    """Give the makespan over its lower bound, and what the driver costs for each cell."""
    for index, scenario in enumerate(SCENARIOS):
        command = [sys.executable, "-m", "benchmarks.hosts", str(index)]
        done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        yield from _rows(scenario, json.loads(done.stdout))


def _rows(scenario: Scenario, values: Mapping[str, Any]) -> Iterator[Row]:
    size = f"{scenario.cells:,} cells in {scenario.blocks:,} blocks"
    name = f"{size}, {scenario.name}" if scenario.name else size
    ratio, per = values["ratio"], 1 / scenario.cells
    again = f", {values['repeated']} blocks measured again" if scenario.lost else ""
    yield Row(
        f"makespan over its lower bound, {name}", f"{ratio:.3f}{again}", target=f"{MAX_RATIO:g}", met=ratio <= MAX_RATIO
    )
    processor = (values["joining"] + values["planning"] + values["driving"]) * per * 1e3
    yield Row(
        f"driver, for a cell, {name}",
        f"{processor:.2f} ms of processor ({values['joining'] * per * 1e3:.2f} of it while devices join, "
        f"{values['planning'] * per * 1e3:.2f} planning), {values['memory'] * per / 1e3:.1f} kB of memory, "
        f"{values['journal'] * per:.0f} bytes of journal, {values['archives'] * per:.0f} of archives; "
        f"{values['wall']:.0f} s passed",
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(json.dumps(measured(SCENARIOS[int(sys.argv[1])], Path(temporary))))
