"""Make the environments of a plan ready, several side by side; one that cannot be made never stops the others."""

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from runner.backends import Backend
from runner.core.errors import ProvisionError
from runner.core.model import Provisioned, Spec
from runner.core.progress import Progress

SIDE_BY_SIDE = 3  # builds wait for the network most of the time


def provision(
    specs: Sequence[Spec], backend: Backend, progress: Progress
) -> tuple[Mapping[str, Provisioned], Mapping[str, ProvisionError]]:
    """Return the environments that are ready and the errors of those that are not, both by id.

    Args:
        specs: what to make.
        backend: makes it.
        progress: shows a row for each environment that is being made.

    Raises:
        EngineError: the engine stopped answering.
    """
    ready: dict[str, Provisioned] = {}
    failed: dict[str, ProvisionError] = {}
    with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE, thread_name_prefix="provision") as pool:
        jobs: dict[Future[Provisioned], Spec] = {}
        try:
            for spec in specs:
                jobs[pool.submit(backend.provision, spec, functools.partial(progress.status, spec.environment))] = spec
            for job in as_completed(jobs):
                name = jobs[job].environment
                try:
                    ready[name] = job.result()
                    progress.finish(name)
                except ProvisionError as error:
                    failed[name] = error
                    progress.finish(name)
        except BaseException:
            backend.cancel()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return {spec.environment: ready[spec.environment] for spec in specs if spec.environment in ready}, failed
