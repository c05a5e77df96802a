"""Provision the environments of a plan in parallel; one that fails does not stop the others."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from runner.backends import Backend
from runner.core.errors import ProvisionError
from runner.core.model import Provisioned, Spec

PARALLEL = 3  # builds wait for the network most of the time


def provision(
    specs: Sequence[Spec], backend: Backend, say: Callable[[str, str], None]
) -> tuple[Mapping[str, Provisioned], Mapping[str, ProvisionError]]:
    """Return the environments that are ready and the errors of those that failed, both by id.

    Args:
        specs: the environments.
        backend: makes them.
        say: receives (environment, line) as progress, from several threads.

    Raises:
        EngineError: the engine stopped answering.
    """
    ready: dict[str, Provisioned] = {}
    failed: dict[str, ProvisionError] = {}
    with ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="provision") as pool:
        jobs: dict[Future[Provisioned], Spec] = {}
        try:
            for spec in specs:
                jobs[pool.submit(backend.provision, spec, _sayer(say, spec.environment))] = spec
            for job in as_completed(jobs):
                name = jobs[job].environment
                try:
                    ready[name] = job.result()
                    say(name, "ready")
                except ProvisionError as error:
                    failed[name] = error
                    say(name, "failed")
        except BaseException:
            backend.cancel()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return {spec.environment: ready[spec.environment] for spec in specs if spec.environment in ready}, failed


def _sayer(say: Callable[[str, str], None], name: str) -> Callable[[str], None]:
    return lambda line: say(name, line)
