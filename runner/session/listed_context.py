"""The context in which a matrix file is listed, on a machine of any kind."""

from dataclasses import replace
from pathlib import Path

from runner.core.errors import GpuError
from runner.session.context import Context, setup
from runner.session.options import Options


def setup_for_list(file: Path) -> tuple[Context, Options]:
    """Return the context of a matrix file, and its options: on the CPU if the GPU cannot be used.

    Raises:
        MatrixError: the file is not valid.
    """
    options = Options(matrix=file)
    try:
        return setup(options), options
    except GpuError:
        on_cpu = replace(options, device="cpu")
        return setup(on_cpu), on_cpu
