"""What a forked child does: build an implementation, verify it, time a phase."""

from __future__ import generator_stop

import inspect
import os
import tempfile
import time
import traceback

from . import adapters, cases, compile_cache, cpu, device_time, profiling, queueing, timing, variables
from .errors import CellFailure
from .link import BUILT, FORK, TIMED
from .model import blob, mistakes
from .model.builder import Builder
from .model.reference import compute
from .model.trial import ModelTrial
from .other_load import OtherLoad
from .own_memory import STEPS
from .sample_usage import SampleUsage
from .script_stack import AfterEach, Steps
from .verify.trial import METHODS, KernelTrial, Trial

OUT_OF_MEMORY = ("out of memory", "allocate memory", "bad_alloc", "oom when allocating", "resourceexhausted", "alloc_failed")
NO_KERNEL = "could not create a primitive"  # oneDNN's words for what it has no kernel for on this processor
REASON_LENGTH = 300  # characters


def classify(error: "BaseException") -> "tuple":
    """Return (failure class, one-line reason) of an exception that a framework raised."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    first = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    reason = "{}: {}".format(type(error).__name__, first[:REASON_LENGTH])
    message = "{} {}".format(type(error).__name__, error).lower()
    if isinstance(error, MemoryError) or any(phrase in message for phrase in OUT_OF_MEMORY):
        return "oom", reason
    if isinstance(error, ImportError):
        return "import", reason
    return "arch" if NO_KERNEL in message else "crash", reason


def implementation(framework: "str", slug: "str", case: "object" = None) -> "type":
    """Return the class of a slug, which may depend on the case. Raises CellFailure where the adapter has no such class."""
    try:
        return adapters.of_case(framework, slug, case or {})
    except KeyError as error:
        raise CellFailure("crash", error.args[0]) from error


def measure(request: "dict", reference: "dict", wait: "object" = None) -> "Steps":
    """Return the result of one cell in one round; a generator, which ``script_stack.run`` runs.

    Args:
        request: ``framework``, ``implementation``, ``case``, ``phase``, ``device``, ``precision``, ``seconds``,
            ``cache``. Optional: ``already_verified``, an earlier round of the run has verified the cell; ``precompile``, only the
            compilers' results in the cache are needed; ``driver_cache``, the folder for GPU code that the driver compiles;
            ``check``, the results alone are verified, and another process is timed;
            ``op``, where it is "profile": the result is a ``profile``, see ``profiling.facts``, and no sample is taken;
            ``batch``, exactly how many calls a sample on a GPU has, or ``least_batch``, how many it has at least.
        reference: ``loss``, ``gradients``, ``outputs`` and ``digest`` of the case.
        wait: a ``ServerLink``: takes a stage and returns when it is this process's turn; None where nothing else is measured
            meanwhile. It is called with FIRST and CALLED around the first call, with BUILT before the warm-up and with TIMED
            after the last sample, so that the runner can let several processes build and verify at the same time, and one
            process at a time make its first call and take samples.

    Raises:
        CellFailure: the data or the results differ from the reference's.
    """
    begin = time.perf_counter()
    case = request["case"]
    checked = cases.checked(case)
    chosen = implementation(request["framework"], request["implementation"], case)
    trial = trial_class(case)(chosen, request, reference, wait)
    if request.get("op") == "profile":
        profiling.prepare(request["framework"])
    if checked == case:
        program, facts = trial.build_verified(case)
    else:
        program, facts = trial.build_after_smaller(case, checked)
    facts["build_seconds"] = time.perf_counter() - begin - (wait.waited if wait is not None else 0.0)
    if program.description:
        facts["arithmetic"] = program.description
    facts["process"] = FORK
    phase, _, protocol = request["phase"].partition("+")
    if request.get("precompile"):
        getattr(program, METHODS[phase])()  # compiles, if it is the first call
        if not cases.is_kernel(case) and not cases.is_model(case):
            program.outputs()
        facts.update(seconds=[], warmup=[])
    elif request.get("op") == "profile":
        return {"profile": profiling.facts(program, getattr(program, METHODS[phase]), request)}
    elif request.get("check"):
        call = getattr(program, METHODS[phase])
        call()
        if phase != "forward":
            trial.check_step(program, facts, call)
        trial.verify_again(program, facts, checked)
        facts.update(seconds=[], warmup=[])
    elif phase.startswith("compile"):
        reason = program.why_cold() if phase == "compile-warm" else ""
        if reason:
            raise CellFailure("crash", reason)
        facts.update(seconds=[facts["compile_seconds"]], warmup=[])
    elif protocol == "published" and not cases.repeats(case):
        del program  # it has verified the implementation; the original program is timed
        times = yield from trial.time_original(phase, facts)
        facts.update(on_device(True, request, times))  # it is waited for each time
    else:
        call = getattr(program, METHODS[phase])
        if protocol == "published":
            times = yield from trial.time_iterations(program, phase)
        else:
            trial.compilations.begin()
            if phase != "train":
                call()  # compiles, if it is the first call: that is no warm-up
            if wait is not None:
                wait(BUILT)
            earlier = len(facts.get("loss") or ()) if phase == "train" else 2  # verified steps; the first call, and the last
            trial.memory.begin()
            times = yield from time_call(program, call, request, wait, earlier)
            trial.memory.end(STEPS)
            trial.compilations.end()
        times = on_device(program.waits_for_device, request, times)
        trial.keep_last(call)
        if phase != "forward":
            trial.check_step(program, facts, call)
        if wait is not None:
            wait(TIMED)
        checking = time.perf_counter()
        trial.verify_again(program, facts, checked)
        facts.update(times, check_seconds=time.perf_counter() - checking)
        if request["device"] != "cpu":
            facts.update(device_time.facts(program, call, request["seconds"], times.get("batch", 1)))
    if variables.SET_TOO_LATE:
        facts["set_too_late"] = sorted(variables.SET_TOO_LATE)
    facts.update(trial.compilations.facts())
    facts.update(trial.memory.facts(), child_seconds=time.perf_counter() - begin)
    return facts


def trial_class(case: "dict") -> "type":
    """Return the class that builds and verifies the program of a case."""
    if cases.is_model(case):
        return ModelTrial
    return KernelTrial if cases.is_kernel(case) else Trial


def time_call(program: "object", call: "object", request: "dict", wait: "object", earlier: "int" = 0) -> "Steps":
    """Return the times of a call, from ``timing.measure``, and the facts of its device and of the machine meanwhile.

    Args:
        program: has the function to wait for the device.
        call: starts one iteration.
        request: see ``measure``.
        wait: see ``measure``.
        earlier: how many calls the program has made.
    """
    others, usage = OtherLoad(timing.CLOCK, server=os.getppid()), SampleUsage()
    seconds, clock = request["seconds"], timing.CLOCK
    if request["device"] == "cpu":
        monitor = cpu.CpuMonitor()
        turn = usage.outside_turns(monitor.before_turns(others.during(wait)))
        agree = getattr(wait, "agree", None)
        # As in a script that waits; else calls overlap where a sample has several of them, which not all samples have.
        sync = AfterEach(program.synchronize) if program.asynchronous else program.synchronize
        times = yield from timing.measure(
            call, sync, clock, seconds, turn, starts=usage.begin, agree=agree, earlier=earlier
        )
        times.update(usage.facts(times))
        return dict(times, **dict(others.facts(), **monitor.facts()))
    rule = sample_rule(request)
    turn = usage.outside_turns(others.during(wait))
    times = yield from timing.measure(call, program.synchronize, clock, seconds, turn, rule, usage.begin)
    ended = time.monotonic()
    times.update(usage.facts(times))
    if rule is None:
        times.update((yield from queueing.single_calls(call, program.synchronize, clock, seconds)))
    return dict(times, ended=ended, cpus=cpu.allowed(), **others.facts())


def sample_rule(request: "dict") -> "queueing.SampleRule":
    """Return the rule of how many calls a sample on a GPU has; None where each call is waited for."""
    case, seconds, batch = request["case"], request["seconds"], request.get("batch", 0)
    least_batch = request.get("least_batch", 1)
    if cases.waits_for_each_call(case):
        return None
    if cases.is_kernel(case):
        return queueing.SampleRule(queueing.OPERATION_SECONDS, seconds, queueing.ANY_LENGTH, batch, least_batch)
    return queueing.SampleRule(queueing.STEP_SECONDS, seconds, queueing.STEP_SECONDS, batch, least_batch)


def on_device(waits: "bool", request: "dict", times: "dict") -> "dict":
    """Return the times of a cell, on a GPU with ``waited_after`` and, if it is known, ``host_bound``.

    Args:
        waits: whether a call waits for the device by itself, which hides how long the host takes to start it.
        request: see ``measure``.
        times: of its samples.
    """
    if request["device"] == "cpu":
        return times
    queued = queueing.ALL_CALLS if request["phase"].endswith("+published") else queueing.EACH_SAMPLE
    each_call = waits or cases.waits_for_each_call(request["case"])
    times = dict(times, waited_after=queueing.EACH_CALL if each_call else queued)
    if waits:
        times.pop("dispatch_seconds", None)
    if "dispatch_seconds" in times:
        times["host_bound"] = queueing.host_bound(times["dispatch_seconds"], timing.median(times["seconds"]))
    return times


def run_guarded(work: "object") -> "Steps":
    """Return the dict of ``work`` with ``status`` ok; if it raises, ``status`` failed with ``class`` and ``reason``.

    A generator, which ``script_stack.run`` runs; ``work`` may be one, too.
    """
    try:
        facts = work()
        if inspect.isgenerator(facts):
            facts = yield from facts
    except CellFailure as failure:
        return dict(failure.facts, status="failed", reason=failure.reason, **{"class": failure.kind})
    except BaseException as error:  # whatever a framework raises ends this cell only
        traceback.print_exc()
        kind, reason = classify(error)
        return {"status": "failed", "class": kind, "reason": reason}
    return dict(facts, status="ok")


def run(request: "dict", reference: "dict", load: "object", wait: "object" = None) -> "Steps":
    """Import the framework with ``load`` if necessary, measure, and return the result message."""

    def work():
        compile_cache.use(request["cache"], request.get("driver_cache"))  # before the import: Theano reads its folder only then
        load()
        with explained(request, reference["files"].folder if "files" in reference else None):
            return (yield from measure(request, reference, wait))

    return run_guarded(work)


def explained(request: "dict", folder: "object") -> "object":
    """Return the context in which an exception gets the line of the user's file; no effect where ``folder`` is None."""
    return mistakes.explained(folder, request.get("environment", ""), classify)


def run_reference(request: "dict", files: "object", load: "object", path: "str") -> "Steps":
    """Make the reference of a user's network; write its arrays to a file, and return the result message.

    Args:
        request: ``framework``, ``case``, ``device``, ``precision``, ``cache``, ``environment``, ``driver_cache`` where
            ``measure`` has it, and ``float64``, False where no results of that precision are wanted.
        files: the ``ModelFiles`` of the case.
        load: imports the framework.
        path: of the file.
    """

    def work():
        compile_cache.use(request["cache"], request.get("driver_cache"))
        load()
        with explained(request, files.folder):
            chosen = implementation(request["framework"], adapters.MODEL)
            build = Builder(chosen, files.load(), request["case"], request["device"])
            facts, groups = compute(build, request["precision"], request.get("float64", True))
        blob.write(path, groups)
        return {"facts": facts, "arrays": blob.index(groups), "bytes": os.path.getsize(path)}

    return run_guarded(work)


def run_cold(request: "dict", reference: "dict", load: "object") -> "Steps":
    """Return what ``run`` does, with empty compiler caches in the temporary folder of this child."""
    return run(dict(request, cache=tempfile.mkdtemp(prefix="cold-")), reference, load)
