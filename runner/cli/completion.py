"""What the shell completes: names of the matrix file and of model files, and runs of the reports folder.

Completion never fails and never prints: where a file cannot be read, there is nothing to complete.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import get_args

import typer

from runner.core.metrics import BY_NAME
from runner.core.model import Phase, Precision
from runner.core.paths import DEFAULT_MATRIX, find_matrix

Completer = Callable[[typer.Context, str], list[str]]


def _of_matrix(section: str) -> Completer:
    """Return what completes the names of a section of the matrix file."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        from runner.matrix import load

        try:
            names: Iterable[str] = getattr(
                load(find_matrix(Path(context.params.get("matrix") or DEFAULT_MATRIX))), section
            )
        except Exception:  # noqa: BLE001  a half-typed line must not become a traceback
            return []
        return _starting_with(incomplete, names)

    return complete


def _of(names: Iterable[str]) -> Completer:
    """Return what completes names that never change."""

    def complete(_context: typer.Context, incomplete: str) -> list[str]:
        return _starting_with(incomplete, names)

    return complete


environments, presets, workloads = map(_of_matrix, ("environments", "presets", "workloads"))
_phases_of_matrix = _of_matrix("phase_names")
metrics = _of(BY_NAME)


def phases(context: typer.Context, incomplete: str) -> list[str]:
    """Return the phases of the program, of the matrix file and of the model files that were typed before."""
    of_models = (phase for text in context.params.get("model") or () for phase in _own_phases(text))
    names = (*get_args(Phase), *_phases_of_matrix(context, incomplete), *of_models)
    return _starting_with(incomplete, dict.fromkeys(names))


def _own_phases(text: str) -> tuple[str, ...]:
    """Return the phases that the model file of a value of ``--model`` names; a wrapper that is written has none."""
    from runner.matrix.wrapper import parse_model, read_model

    try:
        model = parse_model(text)
        return () if model.is_wrapped else read_model(model, ()).own_phases
    except Exception:  # noqa: BLE001  a half-typed line must not become a traceback
        return ()


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the stored runs that start with what was typed, newest first."""
    from runner.store.run import runs as stored_runs

    folder = Path(context.params.get("reports") or "reports")
    try:
        return _starting_with(incomplete, [run.id for run in stored_runs(folder)])
    except Exception:  # noqa: BLE001  a half-typed line must not become a traceback
        return []


COMPLETERS: Mapping[str, Completer] = {
    "selectors": environments,
    "preset": presets,
    "workload": workloads,
    "backend": _of(("auto", "docker", "venv", "host")),
    "phase": phases,
    "precision": _of(get_args(Precision)),
}
"""Field of Options -> what completes it."""


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
