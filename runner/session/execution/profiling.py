"""Takes the profiles of a run once no device measures any more, so that no round is disturbed by one."""

import time
from collections.abc import Callable, Sequence

from runner.core.model import Plan
from runner.core.threads import run_concurrently
from runner.measure.profiles import take_profiles
from runner.session.execution.device_worker import DeviceWorker, RunContext


def profile_all(together: Sequence[DeviceWorker], workers: Sequence[DeviceWorker], context: RunContext) -> None:
    """Take the profiles that a run lacks: of the cases of several devices first, then of all devices side by side.

    Args:
        together: the worker of the cases that need all devices; empty without such cases.
        workers: one for each device.
        context: what they share.

    Raises:
        EngineError: the engine is gone.
        GpuError: the GPU is lost.
    """
    remaining = remaining_seconds(workers[0].plan, context.recorder.elapsed)
    for worker in together:
        _profile(worker, context, remaining)
    for _ in run_concurrently(lambda worker: _profile(worker, context, remaining), workers, len(workers)):
        pass


def remaining_seconds(plan: Plan, elapsed: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """Return a function that returns how many seconds of a plan's budget remain; infinite without a budget.

    Args:
        plan: has the budget.
        elapsed: the seconds of it that are used by now.
        clock: seconds, monotonic.
    """
    budget = float("inf") if plan.measurement.budget is None else plan.measurement.budget
    end = clock() + budget - elapsed
    return lambda: end - clock()


def _profile(worker: DeviceWorker, context: RunContext, remaining: Callable[[], float]) -> None:
    recorder, references = context.recorder, context.references(worker.plan)
    cells = recorder.without_profile(worker.plan)
    for taken in take_profiles(worker.plan, worker.servers, references, cells, remaining):
        with context.lock:
            if context.over.is_set():
                return
            recorder.record_profile(taken)
        worker.clocks.check()
    recorder.progress.finish(worker.name)
