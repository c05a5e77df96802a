"""What this machine can do for a matrix, and the fix for each thing it cannot. Nothing is fetched or changed.

``runner doctor``: ``inspect`` reads the facts, ``findings`` judges them, ``Examination`` puts both together.
``runner tune``: ``noise`` reads what makes times noisy, ``tune`` judges it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.core.model import Plan
from runner.core.units import long_duration
from runner.machine.doctor.findings import Finding, judge
from runner.machine.doctor.inspect import MachineFacts, Outlook, outlooks_and_engine, read_facts, running
from runner.report.formatting import STATE_STYLES, counted
from runner.report.rich_text import as_text, listed
from runner.session.options import Options

__all__ = ["Examination", "examine", "table"]

VERSION = 1
WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The result of ``runner doctor``.

    Attributes:
        facts: about the machine.
        findings: what they mean, one for each part of the machine and each backend.
        outlooks: what each backend could run; the first is that of ``--backend auto``.
    """

    facts: MachineFacts
    findings: Sequence[Finding]
    outlooks: Sequence[Outlook]

    @property
    def ready(self) -> bool:
        """True if some backend runs some cell and has the disk space for it."""
        return any(outlook.ready for outlook in self.outlooks)

    @property
    def verdict(self) -> str:
        """What ``--backend auto`` would do, in a sentence."""
        command = "runner run --device cpu" if self.facts.gpu_problem else "runner run"
        auto = self.outlooks[0]
        other = next((outlook for outlook in self.outlooks[1:] if outlook.ready), None)
        if auto.ready:
            first = f"`{command}` takes {auto.name} and measures {_tests(auto.quick or auto.plan)}"
            everything = f"about {long_duration(auto.plan.seconds)}"
            return f"{first}, the quick ones; `{command} --all` takes {everything}" if auto.quick else first
        if other:
            return f"`{command}` takes {auto.name}, with which nothing runs: use `--backend {other.name}`"
        return f"nothing runs here: `{command}` takes {auto.name}"

    def json(self) -> dict[str, Any]:
        """Return all of it as JSON values: ``machine`` is what a plan depends on, ``findings`` what is printed."""
        return {
            "version": VERSION,
            "ready": self.ready,
            "backend": self.outlooks[0].name,
            "findings": [finding.json() for finding in self.findings],
            "machine": _machine_json(self.facts),
            "backends": {outlook.name: _backend_json(outlook) for outlook in self.outlooks},
        }

    def text(self, width: int = WIDTH, *, colour: bool = False) -> str:
        """Return the findings as a table of ``width`` columns, and the verdict."""
        rows = (
            (finding.state, finding.name, finding.detail + (f"\nfix: {finding.fix}" if finding.fix else ""))
            for finding in self.findings
        )
        return table(rows, self.verdict, width, colour=colour)


def examine(options: Options) -> Examination:
    """Examine this machine for the selected environments of a matrix.

    Raises:
        MatrixError, UsageError, NothingSelectedError, GpuError: what the options name does not exist.
        EngineError: the options name the docker backend and no engine answers.
    """
    outlooks, engine = outlooks_and_engine(options)
    facts = read_facts((version for outlook in outlooks for version in outlook.pythons), engine)
    return Examination(facts=facts, findings=judge(facts, outlooks), outlooks=outlooks)


def table(rows: Iterable[tuple[str, str, str]], verdict: str, width: int, *, colour: bool = False) -> str:
    """Return rows of (state, name, detail) as a table of ``width`` columns, with the verdict below it."""
    from rich.text import Text

    fields = (
        (Text(state, style=f"bold {STATE_STYLES.get(state, '')}".strip()), Text(name), Text(detail))
        for state, name, detail in rows
    )
    return as_text([*listed(fields, width), Text(f"\n{verdict}")], width, colour=colour)


def _tests(plan: Plan) -> str:
    """Return how many tests of a plan run, and about how long that takes."""
    return f"{counted(running(plan), 'test')} in about {long_duration(plan.seconds)}"


def _machine_json(facts: MachineFacts) -> dict[str, Any]:
    return {
        **facts.common,
        **facts.system,
        "physical_cores": facts.physical_cores,
        "cpu_quota": facts.quota,
        "memory_available_bytes": facts.memory,
        "memory_limit_bytes": facts.memory_limit,
        "gpus": [asdict(gpu) for gpu in facts.gpus],
        "engine": facts.engine,
        "interpreters": facts.interpreters,
        "compiler": facts.compiler,
        "cache": facts.cache,
        "cache_free_bytes": facts.cache_free,
    }


def _backend_json(outlook: Outlook) -> dict[str, Any]:
    """Return what a backend can give: its environments, and the code and the reason of those it cannot make."""
    survey = outlook.survey
    return {
        "device": outlook.plan.device,
        "cells": len(outlook.plan.cells),
        "running": outlook.cells,
        "environments": list(outlook.environments),
        "made": sorted(survey.cached),
        "unavailable": {name: {"code": skip.code, "reason": skip.reason} for name, skip in survey.skips.items()},
        "images": {name: str(state) for name, state in survey.images.items()},
        "free_bytes": survey.free,
        "needed_bytes": sum(spec.disk for spec in outlook.specs),
        "no_room": outlook.no_room,
    }
