"""What this machine can do for a matrix, and the fix for each thing it cannot."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.workflows.doctor.findings import Finding, judge
from runner.workflows.doctor.inspect import Facts, Outlook, look, outlooks
from runner.workflows.options import Options

__all__ = ["Examination", "examine", "table"]

VERSION = 1
WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found: the facts, a finding for each part of the machine, and what each backend could run."""

    facts: Facts
    findings: Sequence[Finding]
    outlooks: Sequence[Outlook]

    @property
    def ready(self) -> bool:
        """True where some backend runs some cell and has the room for it."""
        return any(found.ready for found in self.outlooks)

    @property
    def verdict(self) -> str:
        """What ``--backend auto`` would do, in a sentence."""
        run = "runner run --device cpu" if self.facts.trouble else "runner run"
        auto = self.outlooks[0]
        other = next((found for found in self.outlooks[1:] if found.ready), None)
        if auto.ready:
            return f"`{run}` takes {auto.name} and measures {auto.cells} cells"
        if other:
            return f"`{run}` takes {auto.name}, where nothing runs: `--backend {other.name}` would do"
        return f"nothing runs here: `{run}` takes {auto.name}"

    def json(self) -> dict[str, Any]:
        """Return all of it as JSON values: ``machine`` is what a plan depends on, ``findings`` what is printed."""
        return {
            "version": VERSION,
            "ready": self.ready,
            "backend": self.outlooks[0].name,
            "findings": [asdict(found) for found in self.findings],
            "machine": _machine(self.facts),
            "backends": {found.name: _backend(found) for found in self.outlooks},
        }

    def text(self, width: int = WIDTH) -> str:
        """Return the findings as a table of ``width`` columns, and the verdict."""
        rows = ((one.state, one.what, one.found + (f"\nfix: {one.fix}" if one.fix else "")) for one in self.findings)
        return table(rows, self.verdict, width)


def examine(options: Options) -> Examination:
    """Look at this machine with the selected environments of a matrix in mind; nothing is fetched or made.

    Raises:
        MatrixError, UsageError, NothingSelectedError, GpuError: what was asked for is not there.
        EngineError: the docker backend was asked for and no engine answers.
    """
    found, engine = outlooks(options)
    facts = look((name for one in found for name in one.pythons), engine)
    return Examination(facts=facts, findings=judge(facts, found), outlooks=found)


def table(rows: Iterable[tuple[str, str, str]], verdict: str, width: int) -> str:
    """Return rows of a state, a name and what was found as a table of ``width`` columns, and the verdict below it."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, show_header=False)
    shown.add_column(no_wrap=True, style="bold")
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for row in rows:
        shown.add_row(*row)
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    console.print(shown)
    console.print(f"\n{verdict}", soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _machine(facts: Facts) -> dict[str, Any]:
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


def _backend(found: Outlook) -> dict[str, Any]:
    """Return what a backend can give: environments, with the code and the reason of those that cannot be had."""
    return {
        "device": found.plan.device,
        "cells": len(found.plan.cells),
        "running": found.cells,
        "environments": list(found.environments),
        "made": sorted(found.survey.cached),
        "unavailable": {name: {"code": s.code, "reason": s.reason} for name, s in found.survey.skips.items()},
        "images": dict(found.survey.images),
        "free_bytes": found.survey.free,
        "needed_bytes": sum(spec.disk for spec in found.specs),
        "no_room": found.no_room,
    }
