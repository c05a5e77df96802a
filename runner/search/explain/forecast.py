"""What an explanation would take: its candidates, the builds, and the minutes of measuring."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from runner.core.units import duration
from runner.report import formatting, rich_text
from runner.search.explain.candidates import Candidate
from runner.search.explain.measuring import CandidateMeasuring
from runner.search.explain.question import ExplainCase


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainForecast:
    """What an explanation takes.

    Attributes:
        candidates: what may take the change back.
        builds: how many environments are built for candidates, at most.
        rounds: of each run.
        seconds: of measuring the candidates one at a time; measuring them together comes on top.
        notes: what is not tried, as sentences.
    """

    candidates: tuple[Candidate, ...]
    builds: int
    rounds: int
    seconds: float
    notes: tuple[str, ...] = ()

    def json(self) -> Mapping[str, Any]:
        """Return it as JSON has it."""
        return {
            "candidates": [asdict(each) for each in self.candidates],
            **{name: getattr(self, name) for name in ("builds", "rounds", "seconds")},
            "notes": list(self.notes),
        }

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  a plain table
        """Return the candidates as a table, then what the explanation takes."""
        rows = [("candidate", "kind", "source", "what it sets")]
        for each in self.candidates:
            described = ", ".join(filter(None, (each.change, each.sentence)))
            rows.append((each.name, each.kind, each.source, described))
        count, builds = formatting.counted(len(self.candidates), "candidate"), formatting.counted(self.builds, "build")
        summary = f"{count} take at most {builds}, and about {duration(self.seconds)} in {self.rounds} rounds"
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([rich_text.columns(rows, width).rstrip(), *notes, summary])


def forecast(case: ExplainCase, measuring: CandidateMeasuring) -> ExplainForecast:
    """Return what an explanation takes; nothing is locked, built or measured."""
    context = measuring.with_candidates([each for each in case.candidates if not each.is_built])
    built = sum(each.is_built for each in case.candidates)
    prepared = measuring.prepared(context)
    cells = [cell.seconds for cell in prepared.plan.cells]
    return ExplainForecast(
        candidates=case.candidates,
        builds=built,
        rounds=prepared.plan.measurement.rounds,
        seconds=sum(cells) + built * max(cells, default=0.0),
        notes=case.notes,
    )
