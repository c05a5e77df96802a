"""Write each outcome of a run to its folder as it happens, and keep the totals."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runner.backends import harness_archive
from runner.backends.lock_file import parse_lock
from runner.core.errors import ProvisionError
from runner.core.model import (
    Canary,
    CaseFinished,
    CaseSkipped,
    Cell,
    Event,
    ExtraRound,
    GroupsFormed,
    Outcome,
    Plan,
    ProfileTaken,
    Provisioned,
    RoundDisturbed,
    RoundTimes,
    device_id,
)
from runner.core.model.cells import is_control, is_plain, is_twin
from runner.core.model.events import Activity
from runner.core.progress import Progress
from runner.gpu.device import DeviceSession
from runner.measure.breakdown import ONCE
from runner.measure.record import collect
from runner.measure.round_plan import OUTAGE, TRANSIENT_FAILURES
from runner.measure.step_profiles import can_profile
from runner.report.formatting import counted
from runner.session.execution.costs import CellCosts, measured_seconds
from runner.session.execution.header import now, write_lock
from runner.store.events import Entry
from runner.store.profile_files import read_profiles, write_profile
from runner.store.run import Run

SERVER_FACTS = ("server", "gpu_affinity", "opened_by_import")  # not of the environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How a run ended: its folder, how many cells have a good record, and the ids of those without one."""

    run: Run
    good: int
    bad: tuple[str, ...]


def totals_of(run: Run, statuses: Mapping[tuple[str, int], str]) -> Totals:
    """Return the totals of a run; ``statuses`` has those of its records that count, by cell and round."""
    good = {cell for (cell, _), status in statuses.items() if status == "ok"}
    return Totals(run=run, good=len(good), bad=tuple(sorted({cell for cell, _ in statuses} - good)))


class RunRecorder:
    """Writes events to the folder of a run, and counts measurements."""

    def __init__(self, plan: Plan, stored: Run, progress: Progress, entries: Iterable[Entry] | None = None) -> None:
        """Start counting from what the run has stored already.

        Args:
            plan: what is measured.
            stored: the run, with its folder.
            progress: shows the work.
            entries: its records that count, if the journal was read before.
        """
        self.plan = plan
        self.stored = stored
        self.progress = progress
        self.environments: dict[str, Any] = dict(stored.environments())
        counting = stored.journal().counting() if entries is None else entries
        self.statuses = {(entry.cell, entry.round): entry.status for entry in counting}
        self.disturbed = {(cell.id, number) for cell, number, _ in plan.past.disturbed}
        self.elapsed = plan.past.elapsed
        self.costs = CellCosts(plan.round_seconds, plan.past.seconds)
        self.kinds = {planned.cell: planned.kind for planned in plan.cells}
        self.pace = (
            1.0  # how long a round takes over the seconds of its cells: servers start, and canaries are measured
        )
        self.seconds_of_round: dict[str, float] = {}  # of the cells that were measured in this round, by device
        self.expected = self._expected()
        self.corpora = {block.case_id: block.spec["corpus"] for block in plan.blocks if "corpus" in block.spec}
        self.models = {
            block.case_id: plan.models[block.spec["files"]].fact() for block in plan.blocks if "files" in block.spec
        }
        finished = Counter(case_id for case_id, _ in plan.past.finished)
        self.rounds_left = Counter(
            {
                cell: max(0, plan.measurement.planned_rounds(cell) - finished[block.case_id])
                for block in plan.blocks
                for cell in block.cells
            }
        )
        progress.begin(self.rounds_left.total(), self.expected_seconds())

    def start(self) -> None:
        """Start the clock of the estimate, where nothing was measured before: the run had to wait for its device."""
        self.progress.expect(self.expected_seconds())

    def _expected(self) -> dict[Cell, float]:
        """Return the seconds by which a round of each cell brings the end of the run nearer."""
        share = self.pace / self.plan.devices
        return {cell: self.costs.seconds(cell) * share for cell in self.costs.estimated}

    def expected_seconds(self) -> float:
        """Return the seconds until all planned rounds are measured."""
        return sum(rounds * self.expected[cell] for cell, rounds in self.rounds_left.items())

    def record(self, event: Event, elapsed: float, clocks: DeviceSession) -> None:
        """Store an event; it is on the disk when this returns.

        Args:
            event: what happened.
            elapsed: seconds that the run was measured for until then, all its parts together.
            clocks: the device session that it happened in.
        """
        elapsed_s = round(elapsed, 3)
        self.elapsed = elapsed_s or self.elapsed
        match event:
            case Outcome():
                self._record_outcome(event, elapsed_s, clocks)
            case GroupsFormed(groups):
                self.stored.note("groups", device=device_id(clocks.gpu), groups=groups, spent=elapsed_s)
            case ExtraRound(number, cells):
                self.stored.note("further", round=number, cells=len(cells), spent=elapsed_s)
                self.progress.extend(len(cells), sum(self.expected[cell] for cell in cells))
                self.rounds_left.update(cells)
            case CaseSkipped():
                self._record_skipped(event, elapsed_s)
            case RoundTimes(number, seconds):
                times = {name: round(value, 3) for name, value in seconds.items() if value}
                self.stored.note("times", device=device_id(clocks.gpu), round=number, seconds=times, spent=elapsed_s)
                self._correct_estimate(seconds, device_id(clocks.gpu))
            case Canary() | CaseFinished() | RoundDisturbed():
                self._record_about_case(event, elapsed_s)

    def record_unbuilt(self, part: Plan, failed: Mapping[str, ProvisionError], clocks: DeviceSession) -> None:
        """Store a failure for each cell whose environment could not be built, unless it has a record already."""
        recorded = {name for name, _ in self.statuses}
        for cell in (cell for block in part.blocks for cell in block.cells):
            error = failed.get(cell.environment)
            if error is not None and cell.id not in recorded:
                missing = Provisioned(
                    environment=cell.environment, framework="", handle="", digest="", seconds=0.0, cached=False
                )
                kind, reason = OUTAGE if error.passing else error.code, error.problems[0].message
                reply = {"status": "failed", "class": kind, "reason": reason, "log": error.log}
                outcome = Outcome(cell=cell, round=1, reply=reply, facts={}, ready=missing)
                self.record(outcome, self.plan.past.elapsed, clocks)

    def _record_about_case(self, event: Canary | CaseFinished | RoundDisturbed, elapsed_s: float) -> None:
        """Store what is known of a case in a round besides its records."""
        match event:
            case Canary(case_id, number, seconds):
                self.stored.note("canary", case=case_id, round=number, seconds=seconds, spent=elapsed_s)
            case CaseFinished(case_id, number):
                self.stored.note("round", case=case_id, round=number, spent=elapsed_s)
            case RoundDisturbed():
                self.stored.note("disturbed", **event.event(), spent=elapsed_s)
                self.disturbed |= {(cell.id, event.round) for cell in event.cells}

    def _record_skipped(self, event: CaseSkipped, elapsed_s: float) -> None:
        """Store that the budget has no time for a case, say so, and expect it no more."""
        self.stored.note("skipped", case=event.case_id, reason=event.reason, spent=elapsed_s)
        cells = f"{counted(len(event.cells), 'test')} skipped"
        self.progress.note(f"{event.case_id}: {cells}: over-budget: {event.reason}")
        rounds = {cell: self.rounds_left.pop(cell, 0) for cell in event.cells}
        seconds = sum(count * self.expected[cell] for cell, count in rounds.items())
        self.progress.extend(-sum(rounds.values()), -seconds)

    def record_profile(self, taken: ProfileTaken) -> None:
        """Store a profile, and say why a cell has none."""
        write_profile(self.stored.path, taken.cell.id, taken.profile)
        if taken.profile["reason"]:
            self.progress.note(f"{taken.cell.id}: no profile: {taken.profile['reason']}")

    def without_profile(self, plan: Plan) -> list[Cell]:
        """Return the cells of a plan that can have a profile, have a good record, and have no profile yet.

        Twins come last: their profiles show how much a profile differs from itself.
        """
        good = self._good()
        cells = [cell for block in plan.blocks for cell in block.cells]
        selected = [cell for cell in cells if cell.id in good and can_profile(cell) and not is_plain(cell.environment)]
        selected.sort(key=lambda cell: is_twin(cell.environment))
        profiled = {cell_id for cell_id, _ in read_profiles(self.stored.path, (cell.id for cell in selected))}
        return [cell for cell in selected if cell.id not in profiled]

    def _correct_estimate(self, times: Mapping[Activity, float], device: str) -> None:
        """Replace the estimate of what remains by what the round that has ended took, and its cells."""
        of_cells = self.seconds_of_round.pop(device, 0.0)
        if of_cells:
            repeated = sum(seconds for activity, seconds in times.items() if activity not in ONCE)
            self.pace = repeated / of_cells
        self.expected = self._expected()
        self.progress.expect(self.expected_seconds())

    def _record_outcome(self, outcome: Outcome, elapsed: float, clocks: DeviceSession) -> None:
        cell = outcome.cell
        record, log = collect(outcome, self.stored.id, self._common_facts(outcome, clocks))
        keeps_log = record.status != "ok" or cell.case_id in self.models  # what a user's network prints is for the user
        self.stored.add(record, log if keeps_log else "", elapsed)
        self._record_environment(outcome)
        is_repeat = (cell.id, record.round) in self.disturbed
        if record.status == "ok" or not is_repeat:  # a repeat that fails does not replace what was disturbed
            self.statuses[cell.id, record.round] = record.status
        seconds = measured_seconds(record.facts, record.seconds)
        device = device_id(clocks.gpu)
        self.seconds_of_round[device] = self.seconds_of_round.get(device, 0.0) + (seconds or 0.0)
        if record.status == "ok" and seconds:
            self.costs.add(cell, measured_seconds(record.facts, record.seconds, again=True) or seconds)
        elif record.status != "ok" and record.failure not in TRANSIENT_FAILURES:
            self.costs.abandon(cell, seconds or 0.0)
        if is_repeat or not self.rounds_left[cell]:
            self.progress.extend(1, self.expected.get(cell, 0.0))
        else:
            self.rounds_left[cell] -= 1
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
            "threads": self.plan.threads_of(cell.environment),
            "precision": cell.precision,
            "protocol": cell.protocol,
            **(outcome.device if "clocks" in outcome.device else {**clocks.facts(), **outcome.device}),
            "harness": harness_archive.version(),
            **({"corpus": self.corpora[cell.case_id]} if cell.case_id in self.corpora else {}),
            **({"model_files": self.models[cell.case_id]} if cell.case_id in self.models else {}),
        }

    def _record_environment(self, outcome: Outcome) -> None:
        """Store the facts of an environment once its first server has reported them."""
        name = outcome.cell.environment
        if name not in self.environments and outcome.facts:
            self.environments[name] = {
                **outcome.ready.facts,
                **({"overrides": parse_lock(lock, name).overrides} if (lock := outcome.ready.lock) else {}),
                **{key: value for key, value in outcome.facts.items() if key not in SERVER_FACTS},
                "digest": outcome.ready.digest,
            }
            self.stored.write_environments(self.environments)
            if not is_control(name):
                from runner.session.execution.sbom import write_sbom  # loads a large library

                write_sbom(self.stored.path, outcome.ready, outcome.facts, now())
                write_lock(self.stored.path, outcome.ready)

    def totals(self) -> Totals:
        """Return the totals by the records that count: of each cell and round, the last one."""
        return totals_of(self.stored, self.statuses)

    def _good(self) -> set[str]:
        """Return the cells that have a good record."""
        return {cell for (cell, _), status in self.statuses.items() if status == "ok"}
