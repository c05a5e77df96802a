"""The cells of a matrix, for `runner list tests`: what selectors can name, whether it can run here or not."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from runner.core.errors import NothingSelectedError
from runner.core.machine import capacity
from runner.core.paths import cache_folder
from runner.matrix import load
from runner.plan.planner import nothing_selected
from runner.plan.verdicts import selected_cells
from runner.releases.release_locks import FOLDER
from runner.session.named_releases import with_named_releases
from runner.session.options import Options
from runner.session.plan_request import plan_request
from runner.session.typed_variants import with_typed_variants


def cell_ids(file: Path, selectors: Sequence[str]) -> Iterator[str]:
    """Yield the ids of the cells that a matrix lists and selectors name.

    Args:
        file: the matrix file.
        selectors: as in `runner plan`; none select every cell.

    Raises:
        MatrixError, UsageError, NothingSelectedError: the matrix or a selector is wrong, or nothing is selected.
        ProvisionError: a selector names a release, and the index does not answer.
    """
    matrix, options = load(file), Options(selectors=list(selectors), matrix=file)
    named = with_named_releases(matrix, options, "cpu", cache_folder(os.environ) / FOLDER)
    matrix, options = with_typed_variants(named.matrix, named.options)
    request = plan_request(options, matrix, "venv", ("cpu", ()), capacity())
    cells = selected_cells(matrix, request)
    first = next(cells, None)
    if first is None:
        raise NothingSelectedError(nothing_selected(matrix, request))
    yield first.id
    yield from (cell.id for cell in cells)
