"""The way back from a stored run to options, for all that measures it, or some of it, again.

A run is resumed and reproduced by ``of_stored_plan``, continued on several hosts by ``typed``, and the command that is
proposed after a run measures with ``again``.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from runner.core.model.cells import is_control
from runner.core.paths import expanded
from runner.releases.named import as_typed
from runner.session.options import Options
from runner.store.header import RunHeader

IN_THE_PLAN = frozenset(
    [
        "workload",
        "model",
        "input",
        "preset",
        "phase",
        "precision",
        "all",
        "rounds",
        "max_rounds",
        "budget",
        "seconds",
        "process",
        "seed",
        "corpus",
    ]
)
"""Options whose effect a stored plan has: they are not asked for again, for their files may be gone by now."""


def typed(header: Mapping[str, Any], environments: Sequence[str]) -> Options:
    """Return the options that a run was started with, with the home folder of this user.

    Args:
        header: the fields of its header.
        environments: those of its plan.
    """
    if header.get("program") or header.get("command"):
        with suppress(ValueError):  # another version of the program had other options
            stored = Options.of_argv(map(expanded, header.get("command") or ()))
            return replace(stored, upgrade=False)  # a run keeps the locks that it was started with
    return _by_facts(header, environments)


def _by_facts(header: Mapping[str, Any], environments: Sequence[str]) -> Options:
    """Return the options of a run of an older program, which did not keep what was typed, by what it measured with."""
    default = Options()
    if header.get("backend") != "host":
        return default
    names = [name for name in environments if not is_control(name)]
    return replace(
        default,
        backend="host",
        python=header.get("python"),
        framework=header.get("framework"),
        name=names[0] if names else default.name,
    )


def again(
    header: Mapping[str, Any], plan: Mapping[str, Any], reports: Path, present_device: str | None = None
) -> Options:
    """Return the options that measure a run again: what was typed, and what was chosen and may be chosen otherwise now.

    Args:
        header: the fields of its header.
        plan: its plan as a document.
        reports: the folder that holds the runs.
        present_device: what would be chosen now without ``--device``; None where that is unknown.
    """
    options = typed({"backend": plan.get("backend"), **header}, [cell["environment"] for cell in plan["cells"]])
    backend, device, matrix = plan.get("backend"), plan.get("device"), header.get("matrix")
    if options.backend == "auto" and backend in ("host", "venv"):
        options = replace(options, backend=backend)
    if backend == "host":
        options = replace(options, python=options.python or header.get("python"))
    if matrix:  # it is absolute: the command may be typed in another folder
        is_default = Path(matrix) == Options().matrix.absolute()
        options = replace(options, matrix=Options().matrix if is_default else Path(matrix))
    other_device = device if device and device != present_device else None
    return replace(options, reports=reports, device=options.device or other_device)


def of_stored_plan(header: RunHeader, environments: Sequence[str], now: Options) -> Options:
    """Return the options that lead to the backend, device and environments of a run whose plan is at hand.

    Args:
        header: that of the run.
        environments: those of the plan.
        now: what the user typed to continue it; its matrix file, reports folder and ``--busy-ok`` count.
    """
    names = [name for name in environments if not is_control(name)]
    is_host, default = header.backend == "host", Options()
    options = typed(header.event(), names)
    others: dict[str, Any] = {field.name: field.default for field in fields(Options) if field.name in IN_THE_PLAN}
    return replace(
        options,
        **others,
        threads=options.threads and options.threads.partition(",")[0],  # further counts are among the names
        selectors=None if is_host else as_typed(names, options.selectors or (), header.as_is),
        matrix=now.matrix if now.matrix != default.matrix else Path(header.matrix),
        reports=now.reports,
        device=header.device,
        backend=header.backend,
        python=header.python,
        framework=header.framework if is_host else options.framework,
        name=names[0] if is_host else default.name,
        busy_ok=now.busy_ok,
        traceback=now.traceback,
    )
