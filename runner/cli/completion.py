"""What the shell completes: environments, presets and workloads of the matrix file, and runs of the reports folder.

Completion never fails and never prints: where a file cannot be read, there is nothing to complete.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import typer

from runner.core.model import Precision

Completer = Callable[[typer.Context, str], list[str]]


def environments(context: typer.Context, incomplete: str) -> list[str]:
    """Return the environments of the matrix file that start with what was typed."""
    return _starting_with(incomplete, _matrix(context, "environments"))


def presets(context: typer.Context, incomplete: str) -> list[str]:
    """Return the presets of the matrix file that start with what was typed."""
    return _starting_with(incomplete, _matrix(context, "presets"))


def workloads(context: typer.Context, incomplete: str) -> list[str]:
    """Return the workloads of the matrix file that start with what was typed."""
    return _starting_with(incomplete, _matrix(context, "workloads"))


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the stored runs that start with what was typed, newest first."""
    from runner.store.run import runs as stored_runs

    folder = Path(context.params.get("reports") or "reports")
    try:
        return _starting_with(incomplete, [run.id for run in stored_runs(folder)])
    except Exception:  # noqa: BLE001  a half-typed line must not become a traceback
        return []


def backends(_context: typer.Context, incomplete: str) -> list[str]:
    """Return the names that ``--backend`` takes and that start with what was typed."""
    return _starting_with(incomplete, ("auto", "docker", "venv", "host"))


def precisions(_context: typer.Context, incomplete: str) -> list[str]:
    """Return the precisions that start with what was typed."""
    return _starting_with(incomplete, get_args(Precision))


COMPLETERS: Mapping[str, Completer] = {
    "selectors": environments,
    "preset": presets,
    "workload": workloads,
    "backend": backends,
    "precision": precisions,
}
"""Field of Options -> what completes it."""


def _matrix(context: typer.Context, section: str) -> Iterable[str]:
    from runner.matrix import load

    try:
        names: Mapping[str, Any] = getattr(load(Path(context.params.get("matrix") or "matrix.yaml")), section)
    except Exception:  # noqa: BLE001  a half-typed line must not become a traceback
        return ()
    return names


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
