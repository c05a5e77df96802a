"""Write each outcome of a run to its folder as it happens, and keep the totals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.backends import harness_archive
from runner.core.errors import ProvisionError
from runner.core.model import (
    Canary,
    CaseFinished,
    Event,
    ExtraRound,
    GroupsFormed,
    Outcome,
    Plan,
    Provisioned,
    RoundTimes,
    device_id,
)
from runner.core.progress import Progress
from runner.gpu.device import DeviceSession
from runner.measure.record import collect
from runner.store.run import Run

SERVER_FACTS = ("server", "gpu_affinity", "opened_by_import")  # not of the environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How a run ended: its folder, how many cells have a good record, and the ids of those without one."""

    run: Run
    good: int
    bad: tuple[str, ...]


class RunRecorder:
    """Writes events to the folder of a run, and counts measurements."""

    def __init__(self, plan: Plan, stored: Run, progress: Progress) -> None:
        """Start counting from what the run has stored already."""
        self.plan = plan
        self.stored = stored
        self.progress = progress
        self.environments: dict[str, Any] = dict(stored.environments())
        self.recorded = {entry.cell for entry in stored.journal().counting()}
        rounds = plan.measurement.rounds
        self.kinds = {planned.cell: planned.kind for planned in plan.cells}
        self.expected = {planned.cell: planned.seconds / rounds / plan.devices for planned in plan.cells}
        self.corpora = {block.case_id: block.spec["corpus"] for block in plan.blocks if "corpus" in block.spec}
        remaining = [
            cell
            for block in plan.blocks
            for cell in block.cells
            * max(0, rounds - sum(case_id == block.case_id for case_id, _ in plan.past.finished))
        ]
        progress.begin(len(remaining), sum(self.expected[cell] for cell in remaining))

    def record(self, event: Event, elapsed: float, clocks: DeviceSession) -> None:
        """Store an event; it is on the disk when this returns.

        Args:
            event: what happened.
            elapsed: seconds that the run was measured for until then, all its parts together.
            clocks: the device session that it happened in.
        """
        elapsed_s = round(elapsed, 3)
        match event:
            case Outcome():
                self._record_outcome(event, elapsed_s, clocks)
            case GroupsFormed(groups):
                self.stored.note("groups", device=device_id(clocks.gpu), groups=groups, spent=elapsed_s)
            case ExtraRound(number, cells):
                self.stored.note("further", round=number, cells=len(cells), spent=elapsed_s)
                self.progress.extend(len(cells), sum(self.expected[cell] for cell in cells))
            case Canary(case_id, number, seconds):
                self.stored.note("canary", case=case_id, round=number, seconds=seconds, spent=elapsed_s)
            case RoundTimes(number, seconds):
                times = {name: round(value, 3) for name, value in seconds.items() if value}
                self.stored.note("times", device=device_id(clocks.gpu), round=number, seconds=times, spent=elapsed_s)
            case CaseFinished(case_id, number):
                self.stored.note("round", case=case_id, round=number, spent=elapsed_s)

    def record_unbuilt(self, part: Plan, failed: Mapping[str, ProvisionError], clocks: DeviceSession) -> None:
        """Store a failure for each cell whose environment could not be built, unless it has a record already."""
        for cell in (cell for block in part.blocks for cell in block.cells):
            error = failed.get(cell.environment)
            if error is not None and cell.id not in self.recorded:
                missing = Provisioned(
                    environment=cell.environment, framework="", handle="", digest="", seconds=0.0, cached=False
                )
                reply = {"status": "failed", "class": error.code, "reason": error.problems[0].message, "log": error.log}
                outcome = Outcome(cell=cell, round=1, reply=reply, facts={}, ready=missing)
                self.record(outcome, self.plan.past.elapsed, clocks)

    def _record_outcome(self, outcome: Outcome, elapsed: float, clocks: DeviceSession) -> None:
        cell = outcome.cell
        record, log = collect(outcome, self.stored.id, self._common_facts(outcome, clocks))
        self.stored.add(record, log if record.status != "ok" else "", elapsed)
        self._record_environment(outcome)
        self.recorded.add(cell.id)
        if record.status != "ok":
            self.progress.note(f"{cell.id}: {record.failure}: {record.reason}")
        self.progress.advance(self.expected.get(cell, 0.0), cell.id)

    def _common_facts(self, outcome: Outcome, clocks: DeviceSession) -> Mapping[str, Any]:
        """Return the facts that all records of a cell share."""
        cell = outcome.cell
        gpu, framework = clocks.gpu, self.plan.frameworks[cell.environment]
        return {
            "environment": cell.environment,
            "framework": framework,
            "kind": self.kinds[cell],
            "backend": self.plan.backend,
            "device": gpu.name if gpu else "cpu",
            "device_uuid": gpu.uuid if gpu else None,
            "driver": gpu.driver if gpu else None,
            "threads": self.plan.measurement.threads,
            "precision": cell.precision,
            "protocol": cell.protocol,
            **clocks.facts(),
            **outcome.device,
            "harness": harness_archive.version(),
            **({"corpus": self.corpora[cell.case_id]} if cell.case_id in self.corpora else {}),
        }

    def _record_environment(self, outcome: Outcome) -> None:
        """Store the facts of an environment once its first server has reported them."""
        name = outcome.cell.environment
        if name not in self.environments and outcome.facts:
            self.environments[name] = {
                **outcome.ready.facts,
                **{key: value for key, value in outcome.facts.items() if key not in SERVER_FACTS},
                "digest": outcome.ready.digest,
            }
            self.stored.write_environments(self.environments)

    def totals(self) -> Totals:
        """Return the totals by the records that count."""
        entries = tuple(self.stored.journal().counting())
        good = {entry.cell for entry in entries if entry.status == "ok"}
        return Totals(run=self.stored, good=len(good), bad=tuple(sorted({entry.cell for entry in entries} - good)))
