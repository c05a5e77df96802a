"""What becomes of a run while it goes on: its records, its journal, the facts of its environments, and the counts."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from runner.backends import harness_archive
from runner.core.errors import EngineError, GpuError, Problem, RecordError
from runner.core.model import Canary, Event, Finished, Further, Grouped, Outcome, Plan, device_id
from runner.core.progress import Progress
from runner.gpu.device import Clocks
from runner.measure.record import collect
from runner.store.run import Run
from runner.workflows.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How a run ended: its folder, and the cells that have a good record and those that have none."""

    run: Run
    good: int
    bad: tuple[str, ...]


class RunRecorder:
    """Writes what happens the moment it happens, and counts."""

    def __init__(self, planned: Plan, stored: Run, progress: Progress) -> None:
        """Begin counting with what the run has already."""
        self.planned = planned
        self.stored = stored
        self.progress = progress
        self.environments: dict[str, Any] = dict(stored.environments())
        entries = stored.journal().counting()
        self.seen = {entry.cell for entry in entries}
        rounds = planned.measurement.rounds
        self.kinds = {p.cell: p.kind for p in planned.cells}
        self.expected = {p.cell: p.seconds / rounds / planned.devices for p in planned.cells}
        self.corpora = {block.case_id: block.spec["corpus"] for block in planned.blocks if "corpus" in block.spec}
        finished = planned.past.finished
        left = [
            cell
            for block in planned.blocks
            for cell in block.cells * max(0, rounds - sum(case_id == block.case_id for case_id, _ in finished))
        ]
        progress.begin(len(left), sum(self.expected[cell] for cell in left))

    def keep(self, event: Event, spent: float, clocks: Clocks) -> None:
        """Keep what happened; it is on the disk when this returns.

        Args:
            event: what happened.
            spent: seconds that the run was measured for until then, all its parts together.
            clocks: those of the device that it happened on.
        """
        so_far = round(spent, 3)
        match event:
            case Outcome():
                self._outcome(event, so_far, clocks)
            case Grouped(groups):
                self.stored.note("groups", device=device_id(clocks.gpu), groups=groups, spent=so_far)
            case Further(number, cells):
                self.stored.note("further", round=number, cells=len(cells), spent=so_far)
                self.progress.extend(len(cells), sum(self.expected[cell] for cell in cells))
            case Canary(case_id, number, seconds):
                self.stored.note("canary", case=case_id, round=number, seconds=seconds, spent=so_far)
            case Finished(case_id, number):
                self.stored.note("round", case=case_id, round=number, spent=so_far)

    def _outcome(self, outcome: Outcome, spent: float, clocks: Clocks) -> None:
        """Make the record of an outcome and store it."""
        cell = outcome.cell
        record, log = collect(outcome, self.stored.id, self._common(outcome, clocks))
        self.stored.add(record, log if record.status != "ok" else "", spent)
        self._facts(outcome)
        self.seen.add(cell.id)
        if record.status != "ok":
            self.progress.note(f"{cell.id}: {record.failure}: {record.reason}")
        self.progress.advance(self.expected.get(cell, 0.0), cell.id)

    def _common(self, outcome: Outcome, clocks: Clocks) -> Mapping[str, Any]:
        """Return the facts that all records of a cell share."""
        cell = outcome.cell
        gpu, framework = clocks.gpu, self.planned.frameworks[cell.environment]
        return {
            "environment": cell.environment,
            "framework": framework,
            "kind": self.kinds[cell],
            "backend": self.planned.backend,
            "device": gpu.name if gpu else "cpu",
            "device_uuid": gpu.uuid if gpu else None,
            "driver": gpu.driver if gpu else None,
            "threads": self.planned.measurement.threads,
            "precision": cell.precision,
            "protocol": cell.protocol,
            **clocks.facts(),
            **outcome.device,
            "harness": harness_archive.version(),
            **({"corpus": self.corpora[cell.case_id]} if cell.case_id in self.corpora else {}),
        }

    def _facts(self, outcome: Outcome) -> None:
        name = outcome.cell.environment
        if name not in self.environments and outcome.facts:
            self.environments[name] = {
                **outcome.ready.facts,
                **{key: value for key, value in outcome.facts.items() if key != "server"},
                "digest": outcome.ready.digest,
            }
            self.stored.write_environments(self.environments)

    def totals(self) -> Totals:
        """Return how it ended, by the records that count."""
        entries = tuple(self.stored.journal().counting())
        good = {entry.cell for entry in entries if entry.status == "ok"}
        return Totals(run=self.stored, good=len(good), bad=tuple(sorted({entry.cell for entry in entries} - good)))

    def name(self) -> str:
        """Return what a command calls the run: its id where it lies in the usual folder, else its path."""
        usual = Options().reports.resolve() / "runs" / self.stored.id
        return self.stored.id if self.stored.path.resolve() == usual else shlex.quote(str(self.stored.path))

    @contextmanager
    def ending(self, *, resumes: bool = True) -> Iterator[None]:
        """Write down how the block ended, and say how to go on where that was too early.

        Args:
            resumes: the run can be taken up again; else the next night measures it anew.
        """
        again = f"runner run --resume {self.name()}" if resumes else "runner nightly"
        try:
            yield
        except KeyboardInterrupt:
            self.stored.note("ended", how="interrupted")
            self.progress.note(f"`{again}` {'goes on with it' if resumes else 'measures it anew'}")
            raise
        except GpuError as error:
            self.stored.note("ended", how="gpu")
            if not error.kind:  # the driver has no part in it
                raise
            hint = f"see that it is back, with `nvidia-smi`, then `{again}`; what was measured is kept"
            raise GpuError(Problem(error.problems[0].message, hint=hint), kind=error.kind) from error
        except EngineError as error:
            self.stored.note("ended", how="engine")
            hint = f"start the engine again, then `{again}`; what was measured is kept"
            raise EngineError(Problem(error.problems[0].message, hint=hint)) from error
        except OSError as error:
            with suppress(OSError):
                self.stored.note("ended", how="error")
            what = f"{self.stored.path} cannot be written: {error.strerror}"
            raise RecordError(Problem(what, hint=f"make room, then `{again}`")) from error
        except BaseException:
            self.stored.note("ended", how="error")
            raise
        self.stored.note("ended", how="done")
