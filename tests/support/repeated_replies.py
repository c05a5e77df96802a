"""The command line with a Dask that delivers every reply twice, and then once more after the next one.

``python -m tests.support.repeated_replies run ...``
"""

from collections.abc import Iterable

from runner import cli
from runner.hosts.executors.dask import DaskExecutor
from runner.hosts.executors.executor import Completion

completed = DaskExecutor.completed
earlier: list[Completion] = []


def repeated(executor: DaskExecutor, seconds: float) -> Iterable[Completion]:
    """Return the tasks that ended, those with a reply twice, and those of the time before again."""
    ended = list(completed(executor, seconds))
    replies = [completion for completion in ended if completion.result is not None]
    again = [*ended, *replies, *(earlier if ended else ())]
    if ended:
        earlier[:] = replies
    return again


if __name__ == "__main__":
    DaskExecutor.completed = repeated  # type: ignore[assignment, method-assign]
    cli.main()
