"""Plan for another machine from its description: a file made there by `runner doctor --format json`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runner.backends.lock_file import locked_packages
from runner.core.architectures import USUAL
from runner.core.errors import EngineError, Problem, UsageError
from runner.core.machine import Capacity
from runner.core.model import Gpu, Plan, Skip, Spec
from runner.core.model.devices import ClockPolicy
from runner.core.paths import cache_folder
from runner.gpu.selection import pick_devices
from runner.matrix import load
from runner.plan.compatibility.variants import choose_variants
from runner.plan.machine_file import MachineDescription
from runner.plan.missing_modules import missing_modules
from runner.plan.planner import plan
from runner.plan.specs import of_all, specs, with_locks
from runner.releases.release_locks import FOLDER
from runner.session.context import clocks
from runner.session.existing import existing_words
from runner.session.named_releases import with_named_releases
from runner.session.networks import network_notes, with_models
from runner.session.options import Options
from runner.session.plan_request import plan_request
from runner.session.quick_cells import gpu_notes, quick_cells, refusals, with_all_in_presets
from runner.session.typed_variants import with_typed_variants


def planned(options: Options, machine: MachineDescription, say: Callable[[str], None] = lambda _: None) -> Plan:
    """Return the plan for a described machine; nothing about this machine matters.

    Every image is assumed to be available to that machine's engine. An interpreter that the description does not
    mention counts as missing.

    Args:
        options: what the user typed.
        machine: the other machine.
        say: takes sentences that the user should read first.

    Raises:
        MatrixError, UsageError, NothingSelectedError: the selection is not in the matrix.
        EngineError: docker was chosen and the description has no engine.
        GpuError: the description does not have the chosen GPU.
    """
    declared, selected = with_models(load(options.matrix_file, architecture=machine.architecture), options)
    options = replace(options, workload=selected)
    backend = _backend(options, machine)
    device, gpus = pick_devices(options.device, machine.gpus, str(machine.file))
    gpu = gpus[0] if gpus else None
    capacity = Capacity(cores=machine.cores, memory=machine.memory, glibc=machine.glibc)
    named = with_named_releases(declared, options, device, cache_folder(os.environ) / FOLDER)
    matrix, options = with_all_in_presets(named.matrix, declared, named.options), named.options
    reasons: Mapping[str, str] = {}
    if gpu:
        matrix, reasons = choose_variants(matrix, gpu, backend, machine.glibc)
    matrix, options = with_typed_variants(matrix, options)
    request = plan_request(options, matrix, backend, (device, gpus), capacity)
    matrix, request, quick_notes = quick_cells(matrix, request, options)
    for note in (*named.notes, *quick_notes, *gpu_notes(matrix, request), *network_notes(matrix, request)):
        say(note)
    where = f"{gpu.name} with driver {gpu.driver}" if gpu else machine.cpu
    architecture = "" if machine.architecture == USUAL else f" ({machine.architecture})"
    say(f"planning for {where}{architecture}, as {machine.file} describes it")
    if gpu and backend == "docker" and not machine.passes_gpus:
        say("its engine cannot pass a GPU to a container: install the NVIDIA Container Toolkit there")
    if gpu:
        _say_what_happens_to_clocks(gpu, clocks(matrix.gpu, pin=options.pin), say)
    for name in request.environments:
        if name in reasons:
            say(reasons[name])
    complete, incomplete = specs(matrix, request.environments, device, options.matrix_file.parent)
    complete = with_locks(complete, named.locks)
    skips = {**unavailable(complete, machine, backend), **named.unresolved}
    missing = of_all(matrix, request.environments, skips)
    locked = locked_packages(complete)
    of_machine = plan(matrix, request, {**missing, **incomplete}, gpu, locked=locked)
    for note in (*missing_modules(matrix, of_machine, locked), *refusals(of_machine, matrix, options)):
        say(note)
    return of_machine


def _say_what_happens_to_clocks(gpu: Gpu, policy: ClockPolicy, say: Callable[[str], None]) -> None:
    """Say what a run on a described GPU will do to its clocks; only the machine itself knows whether it can."""
    if policy.nothing:
        return
    condition = "" if policy.force else " where nobody else computes on it"
    what = f"SM {policy.sm}, memory {policy.memory}"
    say(f"a run there locks the clocks of {gpu.name} ({what}) until it ends{condition}; `--no-pin` measures without")


def unavailable(specs: Sequence[Spec], machine: MachineDescription, backend: str) -> Mapping[str, Skip]:
    """Return the environments that cannot be built on a described machine, and why."""
    skips = {spec.environment: _skip(spec, machine, backend) for spec in specs}
    return {name: skip for name, skip in skips.items() if skip is not None}


def _skip(spec: Spec, machine: MachineDescription, backend: str) -> Skip | None:
    if spec.image is not None:
        reason = f"it is the image {spec.image}, which needs a container engine"
        return None if backend == "docker" else Skip("no-engine", reason)
    if spec.lock is None:
        return Skip("image-unavailable", spec.missing_lock)
    if backend == "docker" or machine.interpreters.get(spec.python or ""):
        return None
    if spec.python in machine.interpreters:
        return Skip("no-interpreter", f"there is no Python {spec.python} on that machine")
    return Skip("no-interpreter", f"{machine.file.name} does not say whether there is Python {spec.python}")


def _backend(options: Options, machine: MachineDescription) -> str:
    """Return the backend that `runner run` would choose there."""
    if options.backend == "host" or options.python or options.framework:
        hint = "leave out --backend host, --python and --framework"
        raise UsageError(
            Problem("--machine plans for another machine, and --backend host measures this one", hint=hint)
        )
    for word in existing_words(options.selectors or ()):
        message = f"--machine plans for another machine, and {word.word} is of this one"
        raise UsageError(Problem(message, hint="name environments of the matrix, or releases such as torch==2.9.1"))
    if options.backend not in {"auto", "docker", "venv"}:
        raise UsageError(Problem(f"there is no backend {options.backend!r}", hint="there are auto, docker, venv"))
    if options.backend == "docker" and not machine.engine:
        raise EngineError(Problem(f"{machine.file} describes no container engine", hint="leave out --backend docker"))
    return ("docker" if machine.engine else "venv") if options.backend == "auto" else options.backend
