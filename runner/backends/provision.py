"""Make the environments of a plan ready, several side by side; one that cannot be made never stops the others."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from runner.backends import Backend
from runner.core.errors import ProvisionError
from runner.core.model import Provisioned, Spec

SIDE_BY_SIDE = 3  # builds wait for the network most of the time


def provision(
    specs: Sequence[Spec], backend: Backend, say: Callable[[str, str], None]
) -> tuple[Mapping[str, Provisioned], Mapping[str, ProvisionError]]:
    """Return the environments that are ready and the errors of those that are not, both by id.

    Args:
        specs: what to make.
        backend: makes it.
        say: told (environment, line) as work goes on, from several threads.

    Raises:
        EngineError: the engine stopped answering.
    """
    ready: dict[str, Provisioned] = {}
    failed: dict[str, ProvisionError] = {}
    with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE, thread_name_prefix="provision") as pool:
        jobs: dict[Future[Provisioned], Spec] = {}
        try:
            for spec in specs:
                jobs[pool.submit(backend.provision, spec, _teller(say, spec.environment))] = spec
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


def _teller(say: Callable[[str, str], None], name: str) -> Callable[[str], None]:
    return lambda line: say(name, line)
