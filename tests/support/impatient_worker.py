"""The command line whose worker looks for a scheduler that it has lost for one second instead of ten minutes.

``python -m tests.support.impatient_worker worker ...``
"""

from functools import partial

from runner import cli
from runner.hosts import worker

if __name__ == "__main__":
    worker.serve = partial(worker.serve, patience=1.0)
    cli.main()
